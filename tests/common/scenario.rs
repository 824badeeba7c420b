//! Scenarios that each need a process of their own: the same test of the same program once more.
#![allow(unused)] // each test file uses its own part

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output};

/// Says to a child what it is, and holds its variant.
const MARK: &str = "CLOSED_SCENARIO";
/// What a child says when it has come to its end.
const END: &str = "the scenario has come to its end";

/// Runs a scenario in a child, and gives how that ended; `variant` is for the scenario.
pub fn child(test: &str, variant: &str, scenario: impl FnOnce(&str)) -> Output {
    if let Ok(variant) = std::env::var(MARK) {
        let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: the struct is whole. The ends that are tried here would leave core files.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_CORE, &none) }, 0);
        scenario(&variant);
        println!("{END}");
        // SAFETY: always. No thread ends before the process, see `forbid_memory_calls`.
        unsafe { libc::_exit(0) };
    }
    let arguments = [test, "--exact", "--nocapture", "--test-threads=1"];
    let program = std::env::current_exe().unwrap();
    Command::new(program).args(arguments).env(MARK, variant).output().unwrap()
}

/// Demands that a child came to its end, and shows what it said.
#[track_caller]
pub fn ended(output: &Output) {
    let [out, err] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    print!("{out}");
    assert!(output.status.success() && out.contains(END), "{}: {out}{err}", output.status);
}

/// Demands that a child ended by a signal; gives what it said on standard error.
#[track_caller]
pub fn killed(output: &Output, signal: libc::c_int) -> String {
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.signal(), Some(signal), "{}: {told}", output.status);
    told
}
