//! Native witnesses in whole provers on the 2 KiB PoRep: parts on any thread, and requests that do
//! not fit, which are found while the witness is made and never come to a lane.

mod common;
#[path = "common/running.rs"]
mod running;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use berth::circuit::kinds;
use berth::config::WitnessMaker;
use berth::error::Error;
use berth::groth16::Sums;
use berth::input::class::{CircuitId, Kind, SectorSize};
use berth::input::{self, Input, PorepOptions};
use berth::memory::arena::Arena;
use berth::memory::heap::Heap;
use berth::memory::slot::{Home, Part, Ready, Slot, SlotPool};
use berth::plan::{ArenaPlan, Purpose};
use berth::prover::{Hooks, Priority};
use berth::witness::Witnesses;
use common::{data, run, scratch};
use group::Group;
use running::{build, come_home, config, holds, porep};
use serde_json::{Value, json};

#[global_allocator]
static HEAP: Heap = Heap;

const POREP: CircuitId = CircuitId { kind: Kind::Porep, sector: SectorSize::K2 };
const C1: &str = "porep-2kib.c1.json";

/// The planes of a filled slot.
fn planes(slot: &Slot<Ready>) -> (Vec<blstrs::Scalar>, Vec<u64>) {
    let witness = slot.witness();
    (witness.wides.to_vec(), witness.bits.to_vec())
}

#[test]
fn two_threads_share_one_partition() {
    let (input, compiled) = (porep(C1), kinds::compile(POREP).unwrap());
    let plan = ArenaPlan::unplaced(Purpose::Slots, compiled.shape.slot_bytes());
    let pool = SlotPool::new(Arena::map(&plan).unwrap().0, compiled.shape, 1);
    let fill = |witnesses: &Witnesses, mut part: Part| -> Home {
        let number = part.part();
        let (wides, bits) = part.planes();
        witnesses.fill_part(&input, &compiled, 0, number, wides, bits).unwrap();
        part.finish()
    };
    let mut all = Vec::new();
    for maker in [WitnessMaker::Generic, WitnessMaker::Native, WitnessMaker::Auto] {
        let witnesses = &Witnesses::new(maker);
        let parts: Vec<Part> = pool.take().unwrap().fill().split().collect();
        // The last block first, and neither thread before the other.
        let (mut one, other): (Vec<_>, Vec<_>) =
            parts.into_iter().partition(|part| part.part() % 2 == 0);
        one.reverse();
        assert_eq!((one.len(), other.len()), (2, 1));
        let (begin, ready) = (Barrier::new(2), Mutex::new(None));
        std::thread::scope(|scope| {
            for parts in [one, other] {
                let (begin, ready) = (&begin, &ready);
                scope.spawn(move || {
                    begin.wait();
                    for part in parts {
                        if let Home::Ready(slot) = fill(witnesses, part) {
                            *ready.lock().unwrap() = Some(slot);
                        }
                    }
                });
            }
        });
        let slot = ready.into_inner().unwrap().expect("the last part home makes the slot Ready");
        all.push(planes(&slot));
    }
    assert!(all[1] == all[0] && all[2] == all[0]);
}

/// The file of a C1 with one bit of a byte changed; the pointer is within the first partition.
fn flipped(pointer: &str) -> Vec<u8> {
    let mut wrapper: Value = serde_json::from_slice(&std::fs::read(data(C1)).unwrap()).unwrap();
    let inner = BASE64_STANDARD.decode(wrapper["Phase1Out"].as_str().unwrap()).unwrap();
    let mut inner: Value = serde_json::from_slice(&inner).unwrap();
    let byte = inner
        .pointer_mut(&format!("/vanilla_proofs/StackedDrg2KiBV1/0/{pointer}/0"))
        .unwrap_or_else(|| panic!("no {pointer}"));
    *byte = json!(byte.as_u64().unwrap() ^ 1);
    wrapper["Phase1Out"] = BASE64_STANDARD.encode(inner.to_string()).into();
    wrapper.to_string().into_bytes()
}

fn later(bytes: &[u8]) -> Input {
    let options = PorepOptions { hashes_later: true, ..PorepOptions::default() };
    input::read_porep(bytes, &options).unwrap()
}

/// Fields of challenge 1 that the circuit reads, and what is named.
fn fields_that_are_read() -> Vec<(String, String)> {
    let path = |of: &str| -> Vec<String> {
        let level = |level| (0..7).map(move |i| format!("{level}/hashes/{i}"));
        (0..2).flat_map(level).map(|at| format!("1/{of}/data/Single/path/path/{at}")).collect()
    };
    let mut fields = vec![("1/comm_d_proofs/data/Single/leaf".into(), "comm_d path".into())];
    for level in 0..6 {
        let at = format!("1/comm_d_proofs/data/Single/path/path/{level}/hashes/0");
        fields.push((at, "comm_d path".into()));
    }
    let mut add = |at: &str, piece: &str| {
        fields.extend(path(at).into_iter().map(|at| (at, piece.to_string())));
    };
    add("comm_r_last_proof", "comm_r_last path");
    add("replica_column_proofs/c_x/inclusion_proof", "c_x");
    for (list, piece, count) in [("drg_parents", "drg parent", 6), ("exp_parents", "exp parent", 8)]
    {
        for parent in 0..count {
            let (at, piece) =
                (format!("replica_column_proofs/{list}/{parent}"), format!("{piece} {parent}"));
            add(&format!("{at}/inclusion_proof"), &piece);
        }
    }
    for (list, piece, count) in [("drg_parents", "drg parent", 6), ("exp_parents", "exp parent", 8)]
    {
        for (parent, row) in (0..count).flat_map(|parent| [(parent, 0), (parent, 1)]) {
            let at = format!("1/replica_column_proofs/{list}/{parent}/column/rows/{row}");
            fields.push((at, format!("{piece} {parent}")));
        }
    }
    fields
}

/// Fields that no circuit reads, and what the full check names.
const FIELDS_UNREAD: [(&str, &str); 8] = [
    ("1/encoding_proof/parents/20", "encoding"),
    ("1/labeling_proofs/0/parents/0", "label of layer 1"),
    ("1/labeling_proofs/1/parents/36", "label of layer 2"),
    ("1/comm_d_proofs/data/Single/root", "comm_d path"),
    ("1/comm_r_last_proof/data/Single/leaf", "comm_r_last path"),
    ("1/replica_column_proofs/c_x/column/rows/1", "c_x column"),
    ("1/replica_column_proofs/drg_parents/3/inclusion_proof/data/Single/leaf", "drg parent 3"),
    ("1/replica_column_proofs/exp_parents/7/inclusion_proof/data/Single/root", "exp parent 7"),
];

#[track_caller]
fn refused(error: &Error, challenge: usize, piece: &str) {
    assert_eq!(error.exit_code(), 5, "{error}");
    let place = format!("input: partition 0, challenge {challenge}, {piece}");
    assert!(error.to_string().starts_with(&place), "{error}, not {place}");
}

/// Every field in turn, through one prover.
#[test]
fn what_does_not_fit_is_named_and_comes_to_no_lane() {
    let settings = [("BERTH_SLOTS", "2"), ("BERTH_PARTITION_WORKERS", "2")];
    let (seen, runs) = (Arc::new(Mutex::new(None)), Arc::new(AtomicUsize::new(0)));
    let (last, count, mut sums) = (Arc::clone(&seen), Arc::clone(&runs), None);
    // Spoils what comes from the lane while it is up.
    let spoil = Arc::new(AtomicUsize::new(0));
    let spoiling = Arc::clone(&spoil);
    let spoils = move |_: usize, _: usize, sums: &mut Sums| {
        if spoiling.load(Ordering::Relaxed) == 1 {
            sums.h += blstrs::G1Projective::generator();
        }
    };
    let hooks = Hooks { sums: Box::new(spoils), ..Hooks::default() };
    let prover = build(&config(&settings), POREP).start_around(hooks, move |lane, slot, call| {
        count.fetch_add(1, Ordering::Relaxed);
        *last.lock().unwrap() = Some(planes(&slot));
        // All that come here have the same witness, so the sums are made once.
        match sums {
            Some(sums) => {
                slot.prove().release();
                Ok(sums)
            }
            None => Ok(*sums.insert(call(lane, slot)?)),
        }
    });
    let prove = |input| prover.submit(input, Priority::Normal).unwrap().wait();
    assert!(holds(&prover, &prove(porep(C1)).unwrap(), &porep(C1)));
    let sound = seen.lock().unwrap().take().unwrap();

    let fields = fields_that_are_read();
    assert_eq!(fields.len(), 7 + 16 * 14 + 14 * 2);
    for (pointer, piece) in fields {
        refused(&prove(later(&flipped(&pointer))).unwrap_err(), 1, &piece);
    }
    let roots = ["c_x/inclusion_proof", "comm_r_last_proof"];
    for root in [format!("0/replica_column_proofs/{}", roots[0]), format!("0/{}", roots[1])] {
        // Parts are made at the same time, and each finds it where it reads it.
        let error = prove(later(&flipped(&format!("{root}/data/Single/root")))).unwrap_err();
        assert_eq!(error.exit_code(), 5);
        assert!(error.to_string().starts_with("input: partition 0, challenge "), "{error}");
    }
    come_home(&prover);
    assert_eq!(runs.load(Ordering::Relaxed), 1, "runs of the lane");

    for (pointer, piece) in FIELDS_UNREAD {
        let input = later(&flipped(pointer));
        refused(&input.vanilla.check_hashes().unwrap_err(), 1, piece);
        assert!(holds(&prover, &prove(input).unwrap(), &porep(C1)), "{pointer}");
        assert!(seen.lock().unwrap().take().unwrap() == sound, "{pointer} changes the witness");
    }
    // A partition that fails twice is looked at by the full check.
    spoil.store(1, Ordering::Relaxed);
    let (pointer, piece) = FIELDS_UNREAD[0];
    refused(&prove(later(&flipped(pointer))).unwrap_err(), 1, piece);
    assert_eq!(prove(porep(C1)).unwrap_err().exit_code(), 6);
    spoil.store(0, Ordering::Relaxed);
    assert!(holds(&prover, &prove(porep(C1)).unwrap(), &porep(C1)));
    prover.stop();
}

/// The program: by native code, with the full check, and by the generic code.
#[test]
fn the_program_ends_with_the_code_for_its_input() {
    let folder = scratch("witness");
    let file = |name: &str, bytes: &[u8]| {
        let path = folder.join(name);
        std::fs::write(&path, bytes).unwrap();
        path.display().to_string()
    };
    let read = file("read.json", &flipped("1/replica_column_proofs/drg_parents/3/column/rows/0"));
    let unread = file("unread.json", &flipped(FIELDS_UNREAD[0].0));
    let prove = |maker: &str, arguments: &[&str]| {
        let mut command = common::berth(&[&["prove"], arguments].concat());
        run(command.env("BERTH_WITNESS", maker))
    };
    for (maker, arguments, piece) in [
        ("auto", &[&read[..]][..], "challenge 1, drg parent 3: it does not hash to comm_c"),
        ("native", &[&read, "--check"], "challenge 1, drg parent 3 column: "),
        ("generic", &[&read], "challenge 1, drg parent 3 column: "),
        ("auto", &[&unread, "--check"], "challenge 1, encoding: "),
        ("generic", &[&unread], "challenge 1, encoding: "),
    ] {
        let (code, stdout, stderr) = prove(maker, arguments);
        assert_eq!((code, &stdout[..]), (5, ""), "{maker}: {stderr}");
        assert!(stderr.contains(piece), "{maker}: {stderr}, not {piece}");
    }
    let (code, stdout, stderr) = prove("native", &[&unread, "--json"]);
    assert_eq!(code, 0, "{stderr}");
    let record: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(record["verified"], true);
    let mut window = common::window("prove", &[]);
    let (code, _, stderr) = run(window.env("BERTH_WITNESS", "native"));
    assert_eq!(code, 2, "{stderr}");
    assert!(stderr.contains("no native code for window-2k"), "{stderr}");
    std::fs::remove_dir_all(&folder).unwrap();
}
