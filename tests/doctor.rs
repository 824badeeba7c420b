//! `berth doctor` and `berth unit` as an operator runs them: exit codes, JSON, the units, and the
//! script that reserves hugepages, run against files that stand for sysfs.

mod common;

use std::ffi::CString;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::{berth, run, scratch};
use serde_json::Value;

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// The files of a sandbox that says the least.
fn sandbox(tag: &str) -> PathBuf {
    let root = scratch(tag);
    let memory = "MemTotal: 8388608 kB\nMemFree: 4194304 kB\nMemAvailable: 4194304 kB\n";
    write(&root.join("proc/meminfo"), memory);
    write(&root.join("proc/self/status"), "Name:\tberth\n");
    write(&root.join("sys/devices/system/cpu/online"), "0-1\n");
    root
}

fn doctor(root: &Path, more: &[&str]) -> Command {
    let mut arguments = vec!["doctor", "--sysroot", root.to_str().unwrap()];
    arguments.extend(more);
    berth(&arguments)
}

#[test]
fn exit_codes_and_json() {
    let root = sandbox("doctor-json");
    let (code, stdout, stderr) = run(&mut doctor(&root, &["--json"]));
    assert_eq!((code, &*stderr), (0, ""), "warnings alone are no fault");
    let record: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(record["status"], "warning");
    for check in record["checks"].as_array().unwrap() {
        assert!(check["name"].is_string() && check["fact"].is_string(), "{check}");
        let good = check["status"] == "ok";
        assert!(good || check["status"] == "warning", "{check}");
        assert_eq!(check["remedy"].is_string(), !good, "{check}");
    }
    for name in ["build", "kernel", "node", "hugepages", "locked memory", "swap", "GPUs", "plan"] {
        let checks = record["checks"].as_array().unwrap();
        assert!(checks.iter().any(|check| check["name"] == name), "{name}");
    }

    let (code, stdout, stderr) =
        run(doctor(&root, &["--json"]).env("BERTH_HUGEPAGES", "2M").env("BERTH_LOCK", "strict"));
    assert_eq!(code, 3, "{stderr}");
    assert!(stderr.contains("hugepages, locked memory"), "names what is wrong: {stderr}");
    let record: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(record["status"], "error");

    // The plan of named circuits is that of the host under the root, not of this one.
    let (code, stdout, stderr) = run(&mut doctor(&root, &["--circuit", "window-2k"]));
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.contains("plan           window-2k: "), "{stdout}");
    write(&root.join("proc/meminfo"), "MemTotal: 9 kB\nMemFree: 9 kB\nMemAvailable: 9 kB\n");
    let (code, stdout, _) = run(&mut doctor(&root, &["--circuit", "window-2k"]));
    assert_eq!(code, 3, "{stdout}");
    assert!(stdout.contains("the plan needs"), "{stdout}");

    assert_eq!(run(&mut doctor(&root, &["--circuit", "porep-3g"])).0, 2);
    assert_eq!(run(doctor(&root, &[]).env("BERTH_SLOT", "1")).0, 2);
    fs::remove_dir_all(&root).unwrap();
}

#[test]
fn a_root_that_is_no_folder() {
    let root = sandbox("doctor-no-root");
    for path in [root.join("absent"), root.join("proc/meminfo")] {
        let (code, stdout, stderr) = run(&mut doctor(&path, &[]));
        assert_eq!((code, &*stdout), (2, ""), "{stderr}");
        assert!(stderr.contains(path.to_str().unwrap()) && stderr.contains("folder"), "{stderr}");
    }
    fs::remove_dir_all(&root).unwrap();
}

/// The command of `berth doctor --help` collects all that is read: the copy is the host.
#[test]
fn a_copy_of_this_host_is_judged_as_the_host() {
    let (code, help, stderr) = run(&mut berth(&["doctor", "--help"]));
    assert_eq!(code, 0, "{stderr}");
    let from = help.find("cd / && for f in").expect("the command");
    let to = from + help[from..].find("/tmp/host.tgz host").expect("its end");
    let script = format!("{}/tmp/host.tgz host", &help[from..to]);
    let folder = scratch("doctor-copy");
    // Only where it writes is another place here.
    let script = script.replace("-C /tmp ", &format!("-C {} ", folder.display()));
    let script = script.replace("/tmp/host", &format!("{}/host", folder.display()));
    match Command::new("bash").args(["-c", &script]).output() {
        Ok(made) => assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr)),
        Err(error) => return println!("bash: not run: {error}"),
    }
    assert!(folder.join("host.tgz").exists());
    let lines = |command: &mut Command| {
        let (_, stdout, stderr) = run(command.env("BERTH_HUGEPAGES", "off"));
        let record: Value =
            serde_json::from_str(&stdout).unwrap_or_else(|e| panic!("{e} {stderr}"));
        let checks = record["checks"].as_array().unwrap().iter();
        // Figures move between the two looks; device files and libcuda are no part of the copy.
        let moving = ["device files", "libcuda", "plan"];
        let told = checks.filter(|check| !moving.contains(&check["name"].as_str().unwrap()));
        let words = |text: &str| {
            let digits = |c: char| c.is_ascii_digit() || c == '.' || c == ',';
            let text = text.replace(digits, "").replace(&folder.display().to_string(), "");
            text.replace("GiB", "").replace("MiB", "")
        };
        told.map(|check| (check["name"].to_string(), words(check["fact"].as_str().unwrap())))
            .collect::<Vec<_>>()
    };
    let copy = folder.join("host");
    assert_eq!(lines(&mut doctor(&copy, &["--json"])), lines(&mut berth(&["doctor", "--json"])));
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn this_host_on_one_screen() {
    let (code, stdout, stderr) = run(&mut berth(&["doctor"]));
    assert!(code == 0 || code == 3, "{code}: {stderr}");
    let lines: Vec<&str> = stdout.lines().collect();
    assert!(lines.len() <= 40, "{stdout}");
    for (number, line) in lines.iter().enumerate() {
        if line.starts_with("warning") || line.starts_with("error") {
            assert!(lines[number + 1].starts_with("         -> "), "what mends it: {stdout}");
        } else {
            assert!(line.starts_with("ok ") || line.starts_with("         -> "), "{line}");
        }
    }
    assert!(stdout.contains("cuda: no"), "the build says what it cannot do: {stdout}");
}

#[test]
fn dev_parameters_are_found_and_said_to_be_so() {
    let root = sandbox("doctor-dev");
    let dev = root.join("dev-parameters");
    let told = |wanted: &str| {
        let mut command = doctor(&root, &["--circuit", "window-2k"]);
        let (code, stdout, stderr) = run(command.env("BERTH_DEV_PARAMETER_DIR", &dev));
        assert_eq!(code, 0, "{stderr}");
        assert!(stdout.contains(wanted), "{wanted}: {stdout}");
    };
    told("`berth prove` would make dev parameters");
    let mut make = berth(&["params", "make-dev", "window-2k"]);
    let (code, _, stderr) = run(make.env("BERTH_DEV_PARAMETER_DIR", &dev));
    assert_eq!(code, 0, "{stderr}");
    let refused = "serve refuses them unless BERTH_DEV_PARAMETERS=allow";
    told(&format!("warning  parameters     window-2k: dev alone; {refused}"));
    for (mode, said) in [("auto", true), ("allow", false)] {
        let mut unit = berth(&["unit", "--circuit", "window-2k"]);
        unit.env("BERTH_DEV_PARAMETER_DIR", &dev).env("BERTH_DEV_PARAMETERS", mode);
        let (code, _, stderr) = run(unit.env("BERTH_HUGEPAGES", "off"));
        assert_eq!((code, stderr.contains(refused)), (0, said), "{mode}: {stderr}");
        let mut doctor = doctor(&root, &["--circuit", "window-2k"]);
        doctor.env("BERTH_DEV_PARAMETER_DIR", &dev).env("BERTH_DEV_PARAMETERS", mode);
        let (code, stdout, _) = run(&mut doctor);
        assert_eq!((code, stdout.contains(refused)), (0, said), "{mode}: {stdout}");
    }
    fs::remove_dir_all(&root).unwrap();
}

/// I-87: a plain user in a container with the kernel's old limit of locked memory, and with device
/// files that are somebody else's.
#[test]
fn a_plain_user_is_told_of_limits_and_rights() {
    // SAFETY: the call has no arguments and no effect.
    if unsafe { libc::geteuid() } != 0 {
        println!("not run: to become a plain user needs root");
        return;
    }
    let root = sandbox("doctor-user");
    let folder = std::env::temp_dir().join(format!("berth-doctor-user-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    // The program and the files lie where every user may go.
    let program = folder.join("berth");
    fs::copy(env!("CARGO_BIN_EXE_berth"), &program).unwrap();
    let files = folder.join("root");
    assert!(Command::new("cp").arg("-r").args([&root, &files]).status().unwrap().success());
    let version = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release\n";
    write(&files.join("proc/driver/nvidia/version"), version);
    let card = files.join("proc/driver/nvidia/gpus/0000:00:06.0/information");
    write(&card, "Model: \t\t NVIDIA H200\nDevice Minor: \t 0\n");
    for (file, mode) in [("nvidiactl", 0o666), ("nvidia-uvm", 0o666), ("nvidia0", 0o600)] {
        let path = files.join("dev").join(file);
        write(&path, "");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
        fs::set_permissions(path, mode).unwrap();
    }
    let limits = "Max locked memory         65536                65536                bytes\n";
    write(&files.join("proc/self/limits"), limits);

    let mut command = Command::new(&program);
    command.arg("doctor").arg("--sysroot").arg(&files).env_clear().current_dir("/");
    command.env("BERTH_STATE_DIR", &folder).uid(65534).gid(65534);
    let (code, stdout, stderr) = run(&mut command);
    assert_eq!(code, 0, "{stderr}");
    let chown = format!("-> chown berth:berth {}", folder.display());
    for text in ["at most 64 KiB", "not to be opened by this user: nvidia0", &chown] {
        assert!(stdout.contains(text), "{text}: {stdout}");
    }
    fs::remove_dir_all(&folder).unwrap();
    fs::remove_dir_all(&root).unwrap();
}

/// Both units for a small circuit, as files; the texts of the service and of the one-shot.
fn units(folder: &Path) -> (String, String) {
    let out = folder.to_str().unwrap();
    let (code, stdout, stderr) = run(&mut berth(&["unit", "--circuit", "window-2k", "--out", out]));
    assert_eq!(code, 0, "{stderr}");
    let names = ["berth.service", "berth-hugepages.service"];
    let [service, pages] = names.map(|name| {
        assert!(stdout.contains(name), "{stdout}");
        fs::read_to_string(folder.join(name)).unwrap()
    });
    (service, pages)
}

// I-14: the unit as far as it can be told without a service to start.
#[test]
fn units_are_printed_written_and_verified() {
    let folder = scratch("units");
    let (service, pages) = units(&folder);
    let (code, stdout, stderr) = run(&mut berth(&["unit", "--circuit", "window-2k"]));
    assert_eq!(code, 0, "{stderr}");
    let both = format!("# == berth.service\n{service}\n# == berth-hugepages.service\n{pages}");
    assert_eq!(stdout, both);
    for line in ["Type=notify", "RuntimeDirectory=berth", "BERTH_NUMA", "LimitMEMLOCK="] {
        assert!(service.lines().any(|l| l.contains(line)), "{line}: {service}");
    }
    let (code, _, _) = run(&mut berth(&["serve"]));
    if code == 2 {
        assert!(stderr.contains("no command `serve`"), "says what is not there: {stderr}");
        assert!(service.contains("has no command serve"), "{service}");
    }
    let (code, _, stderr) = run(&mut berth(&["unit"]));
    assert_eq!(code, 2, "no circuit is named and none has official parameters: {stderr}");

    let paths = ["berth.service", "berth-hugepages.service"].map(|name| folder.join(name));
    verify(&paths);
    fs::remove_dir_all(&folder).unwrap();
}

/// Runs systemd's own check on units, where it is.
fn verify(paths: &[PathBuf]) {
    match Command::new("systemd-analyze").arg("verify").args(paths).output() {
        Ok(verified) => {
            let told = String::from_utf8_lossy(&verified.stderr).to_string();
            assert!(verified.status.success(), "{told}");
            assert!(!told.contains("berth"), "not a warning: {told}");
        }
        Err(error) => println!("systemd-analyze: not run: {error}"),
    }
}

/// A program whose path systemd takes but must not read anything into, and one that it does not.
#[test]
fn the_program_may_lie_in_odd_places() {
    let folder = scratch("unit-odd");
    for (name, good) in [("a $HOME ${X} 5%h;", true), ("a\"b", false), ("a\\x41", false)] {
        let program = folder.join(name).join("berth");
        fs::create_dir_all(program.parent().unwrap()).unwrap();
        fs::copy(env!("CARGO_BIN_EXE_berth"), &program).unwrap();
        let mut unit = Command::new(&program);
        unit.args(["unit", "--circuit", "window-2k", "--out"]).arg(&folder).env_clear();
        let (code, _, stderr) =
            run(unit.env("BERTH_HUGEPAGES", "off").env("BERTH_STATE_DIR", "/srv"));
        assert_eq!(code, if good { 0 } else { 2 }, "{stderr}");
        if good {
            verify(&[folder.join("berth.service")]);
            fs::remove_file(folder.join("berth.service")).unwrap();
        } else {
            assert!(!folder.join("berth.service").exists() && stderr.contains("copy it elsewhere"));
        }
    }
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn an_old_unit_of_hugepages_is_said_to_be_stale() {
    let folder = scratch("unit-stale");
    let off = |expected: bool| {
        let out = folder.to_str().unwrap();
        let mut unit = berth(&["unit", "--circuit", "window-2k", "--out", out]);
        let (code, stdout, stderr) = run(unit.env("BERTH_HUGEPAGES", "off"));
        assert_eq!(code, 0, "{stderr}");
        assert!(!stdout.contains("berth-hugepages"), "{stdout}");
        assert_eq!(stderr.contains("is of an earlier plan"), expected, "{stderr}");
    };
    off(false);
    let old = folder.join("berth-hugepages.service");
    write(&old, "old");
    off(true);
    assert_eq!(fs::read_to_string(old).unwrap(), "old", "it is the operator's");
    fs::remove_dir_all(&folder).unwrap();
}

/// The script of the one-shot as systemd hands it to the shell.
fn script() -> String {
    let folder = scratch("one-shot");
    let (_, pages) = units(&folder);
    fs::remove_dir_all(&folder).unwrap();
    let joined = pages.replace("\\\n", " ");
    let start = joined.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap();
    let (script, words) = start.strip_prefix("/bin/sh -c '").unwrap().split_once('\'').unwrap();
    let words: Vec<&str> = words.split_whitespace().collect();
    assert_eq!(words.len() % 3, 1, "a name, then threes: {words:?}");
    script.replace("$$", "$")
}

const POOL: &str = "devices/system/node/node0/hugepages/hugepages-2048kB";

/// Runs the script for some pools; gives exit code and standard error.
fn reserve(script: &str, sysfs: &Path, words: &[&str]) -> (i32, String) {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script, "berth-hugepages"]).args(words).env("SYSFS", sysfs);
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let began = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if began.elapsed() > Duration::from_secs(20) {
            child.kill().unwrap();
            panic!("the script waits for ever");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let output = child.wait_with_output().unwrap();
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn the_one_shot_reserves_pages() {
    let script = script();
    let sysfs = scratch("sysfs");
    let set = |pool: &str, total: usize, free: usize| {
        write(&sysfs.join(pool).join("nr_hugepages"), &format!("{total}\n"));
        write(&sysfs.join(pool).join("free_hugepages"), &format!("{free}\n"));
    };
    let total = |pool: &str| {
        let text = fs::read_to_string(sysfs.join(pool).join("nr_hugepages")).unwrap();
        text.trim().parse::<usize>().unwrap()
    };
    let second = POOL.replace("node0", "node1");
    let words =
        ["devices/system/node/node0", "2048", "728", "devices/system/node/node1", "2048", "9"];
    // Of the pool of node 0 others hold six pages, which stay theirs; node 1 has enough.
    for (pages, free, expected) in [(0, 0, 728), (10, 4, 734), (800, 790, 800)] {
        set(POOL, pages, free);
        set(&second, 20, 9);
        assert_eq!(reserve(&script, &sysfs, &words), (0, String::new()), "{pages} {free}");
        assert_eq!((total(POOL), total(&second)), (expected, 20));
    }
    fs::remove_dir_all(&sysfs).unwrap();
}

/// A kernel that has fewer pages than it is asked for: `nr_hugepages` is a pipe at whose other end
/// it is asked, asked to raise, and answers.
#[test]
fn the_one_shot_fails_where_the_kernel_gives_fewer() {
    let script = script();
    let sysfs = scratch("sysfs-short");
    let pool = sysfs.join(POOL);
    write(&pool.join("free_hugepages"), "0\n");
    let file = pool.join("nr_hugepages");
    let name = CString::new(file.to_str().unwrap()).unwrap();
    // SAFETY: the name ends in a NUL and outlives the call.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    let kernel = std::thread::spawn(move || {
        fs::write(&file, "0\n").unwrap();
        let asked = fs::read_to_string(&file).unwrap();
        fs::write(&file, "5\n").unwrap();
        asked
    });
    let missing = "devices/system/node/node1";
    let words = ["devices/system/node/node0", "2048", "728", missing, "1048576", "2"];
    let (code, told) = reserve(&script, &sysfs, &words);
    assert_eq!(kernel.join().unwrap(), "728\n");
    assert_eq!(code, 1, "{told}");
    for text in [
        "berth: devices/system/node/node0: need 728 hugepages of 2048 kB, free 5;",
        "reboot, or reserve them on the command line",
        "berth: devices/system/node/node1: need 2 hugepages of 1048576 kB, free 0;",
    ] {
        assert!(told.contains(text), "{text}: {told}");
    }
    fs::remove_dir_all(&sysfs).unwrap();
}
