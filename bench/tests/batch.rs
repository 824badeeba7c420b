//! `berth-bench batch` as a program: lines, exit code and record.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

const COUNT: usize = 5;
const CONCURRENCY: usize = 2;

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data").join(name)
}

/// A series of window proofs of 2 KiB, as many as there are to be, to its end.
fn batch(vanilla: &Path, json: &Path) -> Output {
    command(vanilla, COUNT).arg("--json").arg(json).output().unwrap()
}

/// The command of one; other settings of this process do not reach it.
fn command(vanilla: &Path, count: usize) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_berth-bench"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("BERTH_") {
            command.env_remove(name);
        }
    }
    let parameters = Path::new(env!("CARGO_TARGET_TMPDIR")).join("../dev-parameters");
    command.env("BERTH_DEV_PARAMETER_DIR", parameters);
    // So that the machine's own parameters do not matter.
    let none = Path::new(env!("CARGO_TARGET_TMPDIR")).join("no-official-parameters");
    std::fs::create_dir_all(&none).unwrap();
    command.env("BERTH_PARAMETER_CACHE", none);
    command.args(["batch", "--type", "window", "--count", &count.to_string()]);
    command.args(["--concurrency", &CONCURRENCY.to_string()]);
    command.arg("--vanilla").arg(vanilla).arg("--meta").arg(data("windowpost-2kib.meta.json"));
    command.env("BERTH_HUGEPAGES", "off");
    command
}

#[test]
fn a_series_leaves_lines_and_a_whole_record() {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("batch.json");
    let output = batch(&data("windowpost-2kib.vanilla.json"), &file);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let lines: Vec<&str> = text.lines().collect();
    for (number, line) in lines[..COUNT].iter().enumerate() {
        assert!(line.starts_with(&format!("[{}/{COUNT}] COMPLETED — ", number + 1)), "{line}");
        assert!(line.contains("s (prove=") && line.ends_with(" ms)"), "{line}");
    }

    let record: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    assert_eq!((&record["schema"], &record["control_build"]), (&1.into(), &false.into()));
    assert_eq!(record["parameters"], "dev");
    assert!(record["host"]["cores"].as_u64().unwrap() > 0);
    assert_eq!(record["config"], record["plan"]["settings"]);
    let proofs = record["proofs"].as_array().unwrap();
    assert_eq!(proofs.len(), COUNT);
    for proof in proofs {
        assert_eq!((&proof["ok"], &proof["error"]), (&true.into(), &Value::Null));
        let stages = &proof["stages_ms"];
        let of = |name: &str| stages[name].as_f64().unwrap();
        let lane: f64 =
            ["rows", "quotient", "h", "l", "a", "b_g1", "b_g2"].iter().map(|name| of(name)).sum();
        // The stages of the lane are its time, but for taking and giving back the slot.
        assert!((lane - of("prove")).abs() < 0.1 * of("prove"), "{stages}");
        let seconds = proof["seconds"].as_f64().unwrap();
        assert!(seconds * 1e3 > of("prove") + of("verify"), "{proof}");
        assert!(proof["queue_ms"].as_f64().unwrap() >= 0.0);
    }
    slots_go_round(record["events"].as_array().unwrap());
    assert_eq!(record["events_missed"], 0);
    assert_eq!(record["memory"].as_array().unwrap().len(), COUNT);
    let summary = &record["summary"];
    assert_eq!((&summary["count"], &summary["failed"]), (&COUNT.into(), &0.into()));
    assert_eq!(summary["warmup"], CONCURRENCY);
    let [low, high] = [0, 1].map(|end| summary["ci95"][end].as_f64().unwrap());
    let steady = summary["steady_seconds_per_proof"].as_f64().unwrap();
    assert!(low <= steady && steady <= high && steady > 0.0, "{summary}");
    assert!(summary["drift_seconds_per_proof"].is_f64(), "{summary}");
    let bytes = |name: &str| summary[name].as_u64().unwrap();
    assert!(bytes("peak_bytes") < bytes("planned_bytes") * 2, "{summary}");
}

/// Every slot passes its places in order, as often as there were proofs.
fn slots_go_round(events: &[Value]) {
    const ROUND: [&str; 5] = ["taken", "filling", "ready", "proving", "home"];
    let mut slots: Vec<Vec<&str>> = Vec::new();
    for event in events.iter().filter(|event| event["slot"].is_u64()) {
        let slot = event["slot"].as_u64().unwrap() as usize;
        slots.resize(slots.len().max(slot + 1), Vec::new());
        slots[slot].push(event["place"].as_str().unwrap());
    }
    for places in &slots {
        for (number, place) in places.iter().enumerate() {
            assert_eq!(*place, ROUND[number % ROUND.len()], "{places:?}");
        }
    }
    assert_eq!(slots.concat().len(), COUNT * ROUND.len());
    let times: Vec<f64> = events.iter().map(|event| event["ms"].as_f64().unwrap()).collect();
    assert!(times.is_sorted(), "events are in order");
}

#[test]
fn a_request_that_is_none_ends_with_5_and_no_record() {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("batch-none.json");
    let output = batch(&data("windowpost-2kib.meta.json"), &file);
    assert_eq!(output.status.code(), Some(5), "as the prover itself");
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.starts_with("berth-bench: input: "), "{told}");
    assert!(output.stdout.is_empty() && !file.exists());
}

#[test]
fn an_error_of_the_prover_keeps_its_exit_code() {
    let vanilla = data("windowpost-2kib.vanilla.json");
    for (name, value, code) in [
        ("BERTH_SLOTS", "none", 2),
        ("BERTH_MEMORY_LIMIT", "1MiB", 3),
        ("BERTH_PARAMETER_CACHE", "/nonexistent/parameters", 4),
    ] {
        let output = command(&vanilla, 1).env(name, value).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{name}: {told}");
    }
}

#[test]
fn counts_that_cannot_be_meant_are_refused() {
    let vanilla = data("windowpost-2kib.vanilla.json");
    for count in ["0", "1000001", "18446744073709551615"] {
        for option in ["--count", "--concurrency"] {
            let mut series = Command::new(env!("CARGO_BIN_EXE_berth-bench"));
            series.args(["batch", "--type", "window", option, count]).arg("--vanilla");
            assert_eq!(series.arg(&vanilla).output().unwrap().status.code(), Some(2), "{option}");
        }
    }
    for size in ["0", "1", "18446744073709551615"] {
        let mut pages = Command::new(env!("CARGO_BIN_EXE_berth-bench"));
        let output = pages.args(["pages", "--size", size]).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{size}");
    }
}

/// The most proofs that may be asked for: their room is made, and no proof of them waited for.
#[test]
fn the_largest_count_begins_and_ends_with_its_reader() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut series = command(&data("windowpost-2kib.vanilla.json"), 1_000_000);
    let output = series.stdout(writer).output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("cannot write to standard output") && !told.contains("panic"), "{told}");
}

#[test]
fn without_a_reader_the_record_is_still_written() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let (reader, closed) = std::io::pipe().unwrap();
    drop(reader);
    for (name, out) in [("closed", Stdio::from(closed)), ("full", Stdio::from(full))] {
        let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("batch-{name}.json"));
        let _ = std::fs::remove_file(&file);
        let mut series = command(&data("windowpost-2kib.vanilla.json"), COUNT);
        let output = series.arg("--json").arg(&file).stdout(out).output().unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{name}: {told}");
        assert!(told.contains("cannot write to standard output"), "{name}: {told}");
        let record: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        assert_eq!(record["summary"]["count"], COUNT, "{name}");
        assert_eq!(record["summary"]["failed"], 0, "{name}");
    }
}

#[test]
fn on_a_signal_the_ledger_is_told() {
    let mut series = command(&data("windowpost-2kib.vanilla.json"), 12);
    let mut child = series.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.next().unwrap().unwrap().starts_with("[1/12] COMPLETED"));
    // SAFETY: a child of this process that nobody has waited for.
    assert_eq!(unsafe { libc::kill(child.id() as i32, libc::SIGUSR1) }, 0);
    let rest = lines.map(Result::unwrap).collect::<Vec<_>>();
    let output = child.wait_with_output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && rest.len() > 11, "{told}");
    assert!(told.contains("ledger\nmemory ") && told.contains("\nslots "), "{told}");
}
