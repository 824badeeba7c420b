//! The life of requests in a running prover, on the tiny WindowPoSt circuit: slots, order, faults,
//! ends.

mod common;
#[path = "common/running.rs"]
mod running;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use berth::error::Error;
use berth::groth16::Sums;
use berth::input::Vanilla;
use berth::input::class::{CircuitId, Kind, SectorSize};
use berth::memory::heap::Heap;
use berth::plan::Purpose;
use berth::prover::{Hooks, Priority, Prover};
use blstrs::G1Projective;
use group::Group;
use running::{Built, build, come_home, config, holds, post, window};

#[global_allocator]
static HEAP: Heap = Heap;

const WINDOW: CircuitId = CircuitId { kind: Kind::Window, sector: SectorSize::K2 };

fn with_slots(slots: &str) -> Built {
    // Tests that run side by side must not take each other's pages.
    let pages = ("BERTH_HUGEPAGES", "off");
    build(&config(&[("BERTH_SLOTS", slots), ("BERTH_PARTITION_WORKERS", "2"), pages]), WINDOW)
}

/// Demands that the next request is proven as if nothing had been before it.
#[track_caller]
fn lives(prover: Prover) {
    come_home(&prover);
    let outcome = prover.submit(window(2), Priority::Normal).unwrap().wait().unwrap();
    assert!(holds(&prover, &outcome, &window(2)));
    assert_eq!(outcome.redone, 0);
    prover.stop();
}

#[test]
fn any_number_of_partitions_goes_through_any_number_of_slots() {
    let mut lanes = Vec::new();
    for slots in [1usize, 2, 4] {
        let built = with_slots(&slots.to_string());
        let bytes = |purpose| built.plan.arena(purpose, 0).unwrap().bytes;
        let arena = built.plan.arena(Purpose::Slots, 0).unwrap();
        let need = slots * built.plan.slot_bytes;
        assert_eq!(arena.bytes, need.next_multiple_of(arena.page_bytes));
        lanes.push((bytes(Purpose::Lane), bytes(Purpose::Srs)));
        let prover = built.start(Hooks::default());
        assert_eq!(prover.classes()[0].pools[0].count(), slots);
        // One request of several partitions beside two of one.
        let whole = prover.submit(window(5), Priority::Normal).unwrap();
        let tickets = [(); 2].map(|()| prover.submit(window(1), Priority::Normal).unwrap());
        assert!(holds(&prover, &whole.wait().unwrap(), &window(5)));
        for ticket in tickets {
            assert!(holds(&prover, &ticket.wait().unwrap(), &window(1)));
        }
        prover.stop();
    }
    assert!(lanes.iter().all(|bytes| *bytes == lanes[0]), "lane and SRS are the same: {lanes:?}");
}

/// A prover whose lane tells when it begins a partition and waits to be let on.
fn gated(built: Built, hooks: Hooks) -> (Prover, mpsc::Receiver<()>, mpsc::Sender<()>) {
    let (begins, begun) = mpsc::channel();
    let (on, gate) = mpsc::channel::<()>();
    let prover = built.start_quick_around(hooks, move |lane, slot, call| {
        let _ = begins.send(());
        // A closed gate no more: whoever dropped the other end wants no stops.
        let _ = gate.recv();
        call(lane, slot)
    });
    (prover, begun, on)
}

#[test]
fn an_urgent_request_overtakes_at_the_next_free_slot() {
    let order = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&order);
    let hooks = Hooks {
        sums: Box::new(move |partition, _, _| seen.lock().unwrap().push(partition)),
        ..Hooks::default()
    };
    let (prover, begun, on) = gated(with_slots("1"), hooks);
    let long = prover.submit(window(4), Priority::Normal).unwrap();
    begun.recv().unwrap();
    // The one slot is in the lane: what comes now waits, whatever its priority.
    let low = prover.submit(window(1), Priority::Low).unwrap();
    let urgent = prover.submit(window(2), Priority::Critical).unwrap();
    drop(on);
    urgent.wait().unwrap();
    long.wait().unwrap();
    low.wait().unwrap();
    // The first of the long one, both urgent ones, the rest of the long one, the low one.
    assert_eq!(*order.lock().unwrap(), [0, 0, 1, 1, 2, 3, 0]);
    prover.stop();
}

fn corrupt(sums: &mut Sums) {
    sums.h += G1Projective::generator();
}

#[test]
fn a_wrong_result_is_made_once_more() {
    let calls = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&calls);
    let hooks = Hooks {
        sums: Box::new(move |partition, attempt, sums| {
            seen.fetch_add(1, Ordering::Relaxed);
            if partition == 3 && attempt == 0 {
                corrupt(sums);
            }
        }),
        ..Hooks::default()
    };
    let prover = with_slots("2").start_quick(hooks);
    let outcome = prover.submit(window(5), Priority::Normal).unwrap().wait().unwrap();
    assert_eq!(outcome.redone, 1);
    assert!(holds(&prover, &outcome, &window(5)));
    assert_eq!(calls.load(Ordering::Relaxed), 6, "only the bad partition is made again");
    prover.stop();
}

#[test]
fn a_result_that_is_wrong_twice_fails_its_request_only() {
    let bad = Arc::new(AtomicBool::new(true));
    let now = Arc::clone(&bad);
    let hooks = Hooks {
        sums: Box::new(move |_, _, sums| {
            if now.load(Ordering::Relaxed) {
                corrupt(sums);
            }
        }),
        ..Hooks::default()
    };
    let prover = with_slots("2").start_quick(hooks);
    let error = prover.submit(window(3), Priority::Normal).unwrap().wait().unwrap_err();
    assert!(matches!(error, Error::Unverified(_)), "{error}");
    assert_eq!(error.exit_code(), 6);
    come_home(&prover);
    bad.store(false, Ordering::Relaxed);
    lives(prover);
}

#[test]
fn a_panic_in_the_lane_fails_its_request_only() {
    for in_team in [false, true] {
        let mut first = true;
        let prover =
            with_slots("2").start_quick_around(Hooks::default(), move |lane, slot, call| {
                if std::mem::take(&mut first) {
                    if in_team {
                        lane.team()
                            .run(&|thread| assert!(thread != 0, "the team's thread {thread}"));
                    }
                    panic!("the lane's thread");
                }
                call(lane, slot)
            });
        let error = prover.submit(window(4), Priority::Normal).unwrap().wait().unwrap_err();
        assert_eq!(error.exit_code(), 7, "{error}");
        let who = if in_team { "the team's thread 0" } else { "the lane's thread" };
        assert!(error.to_string().contains(who), "{error}");
        lives(prover);
    }
}

#[test]
fn a_lane_that_fails_once_makes_the_partition_again() {
    let mut first = true;
    let prover = with_slots("1").start_quick_around(Hooks::default(), move |lane, slot, call| {
        if std::mem::take(&mut first) {
            return Err(Error::Device("no more".into()));
        }
        call(lane, slot)
    });
    let outcome = prover.submit(window(4), Priority::Normal).unwrap().wait().unwrap();
    assert_eq!((outcome.redone, outcome.proofs.len()), (1, 4));
    lives(prover);
}

#[test]
fn a_lane_that_fails_fails_its_request_only() {
    let broken = Arc::new(AtomicBool::new(true));
    let seen = Arc::clone(&broken);
    let prover = with_slots("1").start_quick_around(Hooks::default(), move |lane, slot, call| {
        if seen.load(Ordering::Relaxed) {
            return Err(Error::Device("no more".into()));
        }
        call(lane, slot)
    });
    let error = prover.submit(window(4), Priority::Normal).unwrap().wait().unwrap_err();
    come_home(&prover);
    broken.store(false, Ordering::Relaxed);
    assert_eq!(error.to_string(), "device: no more");
    lives(prover);
}

#[test]
fn a_panic_in_the_finish_fails_its_request_only() {
    let first = AtomicBool::new(true);
    let hooks = Hooks {
        finish: Box::new(move |partition| {
            assert!(!first.swap(false, Ordering::Relaxed), "the finish of {partition}");
        }),
        ..Hooks::default()
    };
    let prover = with_slots("2").start_quick(hooks);
    let error = prover.submit(window(4), Priority::Normal).unwrap().wait().unwrap_err();
    assert!(error.to_string().contains("the finish of"), "{error}");
    lives(prover);
}

#[test]
fn a_witness_that_cannot_be_made_fails_its_request_only() {
    let prover = with_slots("2").start_quick(Hooks::default());
    // No sector to prove: the code that makes the witness panics.
    let mut missing = window(5);
    let Vanilla::PostBase(vanilla) = &mut missing.vanilla else { unreachable!("2 KiB") };
    vanilla.partitions[2].pop();
    // A path too few: the witness ends early.
    let mut short = window(5);
    let Vanilla::PostBase(vanilla) = &mut short.vanilla else { unreachable!("2 KiB") };
    vanilla.partitions[2][0].1.inclusion_proofs.pop();
    for (input, what) in [(missing, "gave up"), (short, "shorter")] {
        let beside = prover.submit(window(2), Priority::Normal).unwrap();
        let error = prover.submit(input, Priority::Normal).unwrap().wait().unwrap_err();
        assert_eq!(error.exit_code(), 5, "{error}");
        let told = error.to_string();
        assert!(told.contains("partition 2") && told.contains(what), "{told}");
        assert!(holds(&prover, &beside.wait().unwrap(), &window(2)));
        come_home(&prover);
    }
    lives(prover);
}

#[test]
fn a_vanilla_proof_of_something_else_never_leaves() {
    let prover = with_slots("2").start_quick(Hooks::default());
    // The input check would refuse it; the pairing check is what stands behind.
    let mut input = window(1);
    input.public_inputs[0][0] += blstrs::Scalar::from(1);
    let error = prover.submit(input, Priority::Normal).unwrap().wait().unwrap_err();
    assert_eq!(error.exit_code(), 6, "{error}");
    lives(prover);
}

#[test]
fn what_was_taken_in_is_finished_before_the_end() {
    let prover = with_slots("1").start_quick(Hooks::default());
    let tickets = [(); 5].map(|()| prover.submit(window(1), Priority::Normal).unwrap());
    prover.stop();
    for ticket in tickets {
        assert_eq!(ticket.wait().unwrap().proofs.len(), 1);
    }
}

#[test]
fn a_dropped_prover_gives_up_what_has_not_begun() {
    let (prover, begun, on) = gated(with_slots("1"), Hooks::default());
    let running = prover.submit(window(1), Priority::Normal).unwrap();
    begun.recv().unwrap();
    let waiting = [1, 13].map(|n| prover.submit(window(n), Priority::Normal).unwrap());
    let ends = std::thread::spawn(move || drop(prover));
    for ticket in waiting {
        // Told at once, while the lane is still at work.
        let error = ticket.wait().unwrap_err();
        assert!(error.to_string().contains("ended"), "{error}");
    }
    assert!(!ends.is_finished(), "work on a lane is not torn away");
    drop(on);
    assert_eq!(running.wait().unwrap().proofs.len(), 1);
    let began = std::time::Instant::now();
    while !ends.is_finished() {
        assert!(began.elapsed().as_secs() < 60, "the threads do not end");
        std::thread::sleep(Duration::from_millis(5));
    }
    ends.join().unwrap();
}

/// Keeps what the program says.
struct Log;

static TOLD: Mutex<Vec<String>> = Mutex::new(Vec::new());

impl log::Log for Log {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        TOLD.lock().unwrap().push(format!("{} {}", record.level(), record.args()));
    }

    fn flush(&self) {}
}

#[test]
fn a_thread_that_cannot_be_pinned_is_said_once_and_works() {
    log::set_logger(&Log).unwrap();
    log::set_max_level(log::LevelFilter::Warn);
    let team = berth::team::Team::new("astray", &[Some(4095), Some(4094), None]).unwrap();
    let calls = AtomicUsize::new(0);
    team.run(&|_| {
        calls.fetch_add(1, Ordering::Relaxed);
    });
    assert_eq!(calls.into_inner(), 3);
    let told = TOLD.lock().unwrap();
    let pins: Vec<_> = told.iter().filter(|line| line.contains("cannot be pinned")).collect();
    assert_eq!(pins.len(), 1, "{told:?}");
    assert!(pins[0].starts_with("WARN thread astray-"), "{pins:?}");
}

#[test]
fn what_is_not_enabled_or_empty_is_refused_at_once() {
    let prover = with_slots("1").start_quick(Hooks::default());
    let winning = post(Kind::Winning, "winningpost-2kib");
    let Err(error) = prover.submit(winning, Priority::Normal) else { panic!("taken in") };
    assert_eq!(error.exit_code(), 2);
    assert!(error.to_string().contains("winning-2k is not enabled"), "{error}");
    let Err(error) = prover.submit(window(0), Priority::Normal) else { panic!("taken in") };
    assert_eq!(error.exit_code(), 5, "{error}");
    lives(prover);
}
