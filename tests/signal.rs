//! SIGUSR1: the program tells its ledger, at any moment of its life, and goes on.

mod common;
#[path = "common/running.rs"]
mod running;

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use berth::input::class::{CircuitId, Kind, SectorSize};
use berth::prover::setup;
use berth::srs::find::Search;
use running::config;

const POREP: CircuitId = CircuitId { kind: Kind::Porep, sector: SectorSize::K2 };

fn signal(process: u32) {
    // SAFETY: the process is a child of this one, and not yet waited for.
    assert_eq!(unsafe { libc::kill(process as i32, libc::SIGUSR1) }, 0);
}

/// Does the main thread of a process block SIGUSR1?
fn blocks(process: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigBlk:")).unwrap();
    let mask = u64::from_str_radix(mask.trim(), 16).unwrap();
    mask >> (libc::SIGUSR1 - 1) & 1 == 1
}

/// Signals the program from its first moment to its last; gives what it told.
fn signalled(mut command: Command) -> (i32, String, String) {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let process = child.id();
    let began = Instant::now();
    while !blocks(process) {
        assert!(began.elapsed() < Duration::from_secs(60), "the program does not listen");
        std::thread::sleep(Duration::from_millis(1));
    }
    let read = |mut from: Box<dyn std::io::Read + Send>| {
        std::thread::spawn(move || {
            let mut text = String::new();
            from.read_to_string(&mut text).unwrap();
            text
        })
    };
    let stdout = read(Box::new(child.stdout.take().unwrap()));
    let stderr = read(Box::new(child.stderr.take().unwrap()));
    let status = loop {
        // Not waited for yet, so that the number is still its own.
        signal(process);
        std::thread::sleep(Duration::from_millis(100));
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
    };
    (status.code().unwrap_or(-1), stdout.join().unwrap(), stderr.join().unwrap())
}

/// The exact number of bytes in a line such as `sum     1.5 GiB (1,587,453,952), ..`.
fn bytes_of(ledger: &str, name: &str) -> f64 {
    let line = ledger.lines().find(|line| line.starts_with(name));
    let line = line.unwrap_or_else(|| panic!("no {name} in {ledger}"));
    let (_, exact) = line.split_once('(').unwrap();
    exact.split(')').next().unwrap().replace(',', "").parse().unwrap()
}

/// The ledgers in what the program told, each from its head to the plan's line.
fn ledgers(told: &str) -> Vec<String> {
    let whole = |rest: &str| -> String {
        let lines: Vec<&str> = rest.lines().collect();
        let last = lines.iter().position(|line| line.starts_with("plan  ")).unwrap();
        lines[..=last].join("\n")
    };
    told.split("ledger\nmemory ").skip(1).map(whole).collect()
}

#[test]
fn a_signal_before_the_prover_is_there_ends_nothing() {
    let (code, stdout, stderr) = signalled(common::window("prove", &["--json"]));
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.contains("\"verified\":true"), "{stdout}");
    assert!(stderr.contains("ledger      no prover yet: parameters are being read"), "{stderr}");
}

#[test]
fn on_a_signal_the_program_tells_its_ledger() {
    if let Search::Missing(_) = setup::search(&config(&[]), POREP).unwrap() {
        eprintln!("not run: no dev parameters of {POREP}; `berth params make-dev` makes them");
        return;
    }
    let c1 = common::data("porep-2kib.c1.json").display().to_string();
    let (code, stdout, stderr) = signalled(common::berth(&["prove", &c1, "--json"]));
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.contains("\"verified\":true"), "{stdout}");
    let ledgers = ledgers(&stderr);
    assert!(ledgers.len() >= 3, "{} ledgers: {stderr}", ledgers.len());
    for ledger in &ledgers {
        for row in ["slots ", "lanes ", "srs ", "compiled circuits ", "heap ", "program "] {
            assert!(ledger.contains(row), "no {row} in {ledger}");
        }
        let (sum, kernel) = (bytes_of(ledger, "sum "), bytes_of(ledger, "kernel "));
        assert!((sum / kernel - 1.0).abs() <= 0.03, "{ledger}");
        assert!(kernel <= bytes_of(ledger, "plan ") * 1.03, "{ledger}");
    }
    // Some came while the lane was at work.
    assert!(ledgers.iter().any(|ledger| ledger.contains("quotient")), "{stderr}");
}
