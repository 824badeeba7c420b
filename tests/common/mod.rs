//! What the whole-program tests share: the program, its dev parameters, real inputs.
#![allow(unused)] // each test file uses its own part

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Dev parameters of the tests: made once, kept under `target/`.
pub fn dev_parameters() -> PathBuf {
    let folder = target().join("dev-parameters");
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// The target folder that this test was built into.
pub fn target() -> PathBuf {
    let binary = PathBuf::from(env!("CARGO_BIN_EXE_berth"));
    binary.parent().unwrap().parent().unwrap().to_path_buf()
}

/// A file of `tests/data`.
pub fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

/// An empty folder of this test alone; the caller's tag and the process keep it apart.
pub fn scratch(tag: &str) -> PathBuf {
    let folder = target().join("scratch").join(format!("{tag}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// The program with a clean environment: no settings of the caller, the tests' dev parameters, no
/// official ones.
pub fn berth(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_berth"));
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy().to_string();
        if text.starts_with("BERTH_") || text.starts_with("FIL_PROOFS_") {
            command.env_remove(name);
        }
    }
    let official = target().join("no-official-parameters");
    std::fs::create_dir_all(&official).unwrap();
    command
        .args(arguments)
        .env("BERTH_DEV_PARAMETER_DIR", dev_parameters())
        .env("BERTH_PARAMETER_CACHE", official)
        .env("XDG_CACHE_HOME", target().join("cache"));
    command
}

/// Runs to the end; gives exit code, standard output and standard error.
pub fn run(command: &mut Command) -> (i32, String, String) {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (status.code().unwrap_or(-1), text(stdout), text(stderr))
}

/// Runs, demands success and reads standard output as one JSON object.
#[track_caller]
pub fn json(command: &mut Command) -> serde_json::Value {
    let (code, stdout, stderr) = run(command);
    assert_eq!(code, 0, "{stderr}");
    serde_json::from_str(&stdout).unwrap_or_else(|e| panic!("{e}: {stdout}"))
}

/// The arguments of a request of `tests/data` that is not a C1.
pub fn vanilla(kind: &str, name: &str) -> Vec<String> {
    let file = |ending: &str| data(&format!("{name}.{ending}.json")).display().to_string();
    ["--kind", kind, "--vanilla", &file("vanilla"), "--meta", &file("meta")]
        .iter()
        .map(|text| (*text).to_string())
        .collect()
}

/// `berth COMMAND --kind window ...` for the tiny WindowPoSt request, with more arguments.
pub fn window(command: &str, more: &[&str]) -> Command {
    let request = vanilla("window", "windowpost-2kib");
    let mut arguments = vec![command];
    arguments.extend(request.iter().map(String::as_str));
    arguments.extend(more);
    berth(&arguments)
}

/// The bytes of a text of hex digits.
pub fn unhex(text: &str) -> Vec<u8> {
    let byte = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
    (0..text.len()).step_by(2).map(byte).collect()
}
