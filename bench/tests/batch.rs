//! `berth-bench batch` as a program: lines, exit code and record.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

const COUNT: usize = 5;
const CONCURRENCY: usize = 2;

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data").join(name)
}

/// A series of window proofs of 2 KiB; other settings of this process do not reach it.
fn batch(vanilla: &Path, json: &Path) -> Output {
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
    command.args(["batch", "--type", "window", "--count", &COUNT.to_string()]);
    command.args(["--concurrency", &CONCURRENCY.to_string()]);
    command.arg("--vanilla").arg(vanilla).arg("--meta").arg(data("windowpost-2kib.meta.json"));
    command.arg("--json").arg(json).output().unwrap()
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
fn a_request_that_is_none_ends_with_1_and_no_record() {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("batch-none.json");
    let output = batch(&data("windowpost-2kib.meta.json"), &file);
    assert_eq!(output.status.code(), Some(1));
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.starts_with("berth-bench: input: "), "{told}");
    assert!(output.stdout.is_empty() && !file.exists());
}
