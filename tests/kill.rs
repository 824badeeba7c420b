//! Ends from outside: kill -9 while the proof is written, and memory that does not suffice. Whole
//! programs on the tiny WindowPoSt circuit.

#[path = "common/cgroup.rs"]
mod cgroup;
mod common;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use cgroup::Group;
use common::{json, run, scratch, window};

/// Numbers that look random and are the same in every run (splitmix64, Steele et al. 2014).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }
}

/// When a run is killed.
enum When {
    After(Duration),
    /// As soon as a temporary file of the output is seen.
    Writing,
}

/// Runs `prove --out`, kills it, and gives how long it had run.
fn killed(folder: &Path, out: &Path, when: &When) -> Duration {
    let mut command = window("prove", &["--out", out.to_str().unwrap()]);
    let began = Instant::now();
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let begun = |name: &str| name.starts_with("proof.bin.");
    loop {
        let now = match when {
            When::After(time) => began.elapsed() >= *time,
            When::Writing => fs::read_dir(folder)
                .unwrap()
                .any(|entry| begun(&entry.unwrap().file_name().to_string_lossy())),
        };
        if now || child.try_wait().unwrap().is_some() {
            break;
        }
        std::thread::sleep(Duration::from_micros(200));
    }
    let _ = child.kill();
    child.wait().unwrap();
    began.elapsed()
}

/// Field case I-66: after a kill the result is whole or absent.
#[test]
fn a_killed_program_leaves_a_whole_proof_or_none() {
    let kills = if cfg!(feature = "long-tests") { 200 } else { 10 };
    let folder = scratch("kill");
    let out = folder.join("proof.bin");
    let began = Instant::now();
    assert_eq!(run(&mut window("prove", &["--out", out.to_str().unwrap()])).0, 0);
    let whole_run = began.elapsed().as_micros() as u64;
    let mut random = Random(66);
    let mut there = 0;
    for n in 0..kills {
        let _ = fs::remove_file(&out);
        let when = match n % 5 {
            0 => When::Writing,
            _ => {
                When::After(Duration::from_micros(whole_run / 2 + random.below(whole_run * 3 / 4)))
            }
        };
        killed(&folder, &out, &when);
        if let Ok(bytes) = fs::read(&out) {
            assert_eq!(bytes.len(), 192, "kill {n} left a part of a proof");
            there += 1;
            let verify = &mut window("verify", &[out.to_str().unwrap()]);
            assert!(there > 2 || run(verify).0 == 0, "kill {n} left a proof that does not verify");
        }
    }
    println!("{kills} kills, {there} proofs were there");
    // What was left beside it hinders nobody.
    assert_eq!(run(&mut window("prove", &["--out", out.to_str().unwrap()])).0, 0);
    assert_eq!(fs::read(&out).unwrap().len(), 192);
    fs::remove_dir_all(&folder).unwrap();
}

/// An old proof stays until the new one is whole.
#[test]
fn a_killed_program_leaves_the_old_proof_alone() {
    let folder = scratch("kill-old");
    let out = folder.join("proof.bin");
    fs::write(&out, "old").unwrap();
    killed(&folder, &out, &When::Writing);
    let bytes = fs::read(&out).unwrap();
    assert!(bytes == b"old" || bytes.len() == 192, "{} bytes", bytes.len());
    fs::remove_dir_all(&folder).unwrap();
}

/// Field case I-01, first half. What is measured of the program differs by some pages from run to
/// run, so the limits are a little apart from the plan; `plan::tests` tries the exact byte.
#[test]
fn a_limit_below_the_plan_is_refused_and_one_above_it_works() {
    let margin = 512 << 10;
    let planned = json(&mut window("plan", &["--json"]))["total_bytes"].as_u64().unwrap();
    let with = |limit: u64| {
        let mut command = window("prove", &["--json"]);
        command.env("BERTH_MEMORY_LIMIT", limit.to_string());
        command
    };
    let short = planned - margin;
    let (code, stdout, stderr) = run(&mut with(short));
    assert_eq!(code, 3, "{stderr}");
    assert!(stdout.is_empty(), "no result: {stdout}");
    let last = stderr.lines().last().unwrap();
    assert!(last.contains("BERTH_MEMORY_LIMIT"), "{last}");
    // 12,345,678
    let grouped = |bytes: u64| {
        let digits = bytes.to_string();
        let groups = digits.as_bytes().rchunks(3).rev();
        groups.map(|group| String::from_utf8(group.to_vec()).unwrap()).collect::<Vec<_>>().join(",")
    };
    assert!(last.contains(&grouped(short)), "what there is: {last}");
    assert!(last.contains("the plan needs "), "and what is needed: {last}");
    let record = json(&mut with(planned + margin));
    let memory = |key: &str| record["memory"][key].as_u64().unwrap();
    assert!(memory("planned_bytes") <= planned + margin);
    assert!(memory("peak_bytes") <= memory("planned_bytes") * 103 / 100, "{record}");
}

/// Field case I-01, second half: a control group with as much as the plan is enough.
#[test]
fn a_control_group_of_the_planned_size_is_enough() {
    let planned = json(&mut window("plan", &["--json"]))["total_bytes"].as_u64().unwrap();
    let Some(group) = Group::new("enough") else {
        println!("not run: no control group with a memory limit can be made here");
        return;
    };
    group.limit(planned + (1 << 20));
    let mut command = window("prove", &["--json"]);
    group.hold(&mut command);
    let (code, stdout, stderr) = run(&mut command);
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.contains("\"verified\":true"), "{stdout}");
}

/// Lets another program run a command.
fn under(outer: &mut Command, command: &Command) {
    outer.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => outer.env(name, value),
            None => outer.env_remove(name),
        };
    }
}

/// Field case I-49: in a network namespace of its own, without any interface.
#[test]
fn a_program_without_any_network_proves() {
    let mut alone = Command::new("unshare");
    alone.args(["--net", "--"]);
    under(&mut alone, &window("prove", &["--json"]));
    let possible = Command::new("unshare").args(["--net", "--", "true"]).output();
    if !possible.is_ok_and(|output| output.status.success()) {
        println!("no network namespace can be made here; not tried");
        return;
    }
    assert_eq!(json(&mut alone)["verified"], true);
}
