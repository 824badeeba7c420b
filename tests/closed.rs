//! The heap that closes, in whole provers on the tiny WindowPoSt circuit: threads of a lane
//! allocate nothing and ask the kernel for no memory, and what goes wrong there still ends as an
//! error of its request.
//!
//! What ends a process, and whether a heap that is not closed enough does, is a setting of the
//! process. So every scenario runs in a child: the same test of the same program once more.

mod common;
#[path = "common/filter.rs"]
mod filter;
#[path = "common/running.rs"]
mod running;
#[path = "common/scenario.rs"]
mod scenario;

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use berth::error::{Error, Result};
use berth::groth16::Sums;
use berth::groth16::cpu::lane::CpuLane;
use berth::input::class::{CircuitId, Kind, SectorSize};
use berth::memory::heap::{self, Heap, ThreadBytes};
use berth::memory::slot::Place;
use berth::prover::{Hooks, Priority, Prover, What};
use filter::{MEMORY_CALLS, forbid_memory_calls};
use running::{Built, build, config, holds, window};
use scenario::{child, ended, killed};

#[global_allocator]
static HEAP: Heap = Heap;

const WINDOW: CircuitId = CircuitId { kind: Kind::Window, sector: SectorSize::K2 };
/// One partition at a time, on pages that nobody else can take away meanwhile.
const SETTINGS: [(&str, &str); 3] =
    [("BERTH_SLOTS", "2"), ("BERTH_PARTITION_WORKERS", "1"), ("BERTH_HUGEPAGES", "off")];
const PROOFS: usize = 20;
/// Bytes that no other allocation here has.
const ODD_BYTES: usize = 12_347;
/// Ready to start.
fn built() -> Built {
    build(&config(&SETTINGS), WINDOW)
}

/// A prover whose lane does something, with the heap closed, before each partition. `work` gets the
/// partition's number.
fn start<F>(mut work: F, hooks: Hooks) -> Prover
where
    F: FnMut(usize, &mut CpuLane) -> Result<()> + Send + 'static,
{
    let built = built();
    heap::abort_on_closed(true);
    let mut numbers = 0..;
    built.start_around(hooks, move |lane, slot, call| {
        work(numbers.next().unwrap(), lane)?;
        call(lane, slot)
    })
}

fn prove(prover: &Prover) -> Result<usize> {
    let outcome = prover.submit(window(1), Priority::Normal)?.wait()?;
    assert!(holds(prover, &outcome, &window(1)));
    Ok(outcome.redone)
}

/// Does something on a thread of a lane: on the one that drives it, or on one of its team.
fn on(thread: &str, lane: &CpuLane, work: &(dyn Fn() + Sync)) {
    match thread {
        "driver" => work(),
        "team" => lane.team().run(&|n| {
            if n == 0 {
                work();
            }
        }),
        other => unreachable!("{other}"),
    }
}

/// What a thread had allocated and freed when each proof began.
type Looks = Vec<Mutex<ThreadBytes>>;

fn no_looks() -> Looks {
    // One more than there are proofs, to see the last one to its end.
    (0..=PROOFS).map(|_| Mutex::new(ThreadBytes { allocated: 0, freed: 0 })).collect()
}

fn look(looks: &Looks, proof: usize) {
    *looks[proof].lock().unwrap() = heap::thread_bytes().unwrap();
}

/// Allocated and not freed on this thread so far.
fn kept_here() -> i64 {
    kept(heap::thread_bytes().unwrap())
}

fn kept(bytes: ThreadBytes) -> i64 {
    bytes.allocated as i64 - bytes.freed as i64
}

fn values(looks: &Looks) -> Vec<ThreadBytes> {
    looks.iter().map(|look| *look.lock().unwrap()).collect()
}

/// What looks at the threads that may allocate: a slot is filled by a synthesis thread, and a proof
/// checked by a finish thread.
fn looking(now: &Arc<AtomicUsize>) -> (Hooks, [Arc<Looks>; 2]) {
    let [synthesis, finish] = [(); 2].map(|()| Arc::new(no_looks()));
    let looks = [Arc::clone(&synthesis), Arc::clone(&finish)];
    let (filling, checking) = (Arc::clone(now), Arc::clone(now));
    let hooks = Hooks {
        event: Box::new(move |event| {
            if matches!(event.what, What::Slot { place: Place::Filling, .. }) {
                look(&synthesis, filling.load(Ordering::Relaxed));
            }
        }),
        finish: Box::new(move |_| look(&finish, checking.load(Ordering::Relaxed))),
        ..Hooks::default()
    };
    (hooks, looks)
}

fn twenty_proofs() {
    let built = built();
    let team = built.lanes[0].team().len();
    // The threads of the team, and the one that drives the lane.
    let lane: Arc<Vec<Looks>> = Arc::new((0..=team).map(|_| no_looks()).collect());
    let now = Arc::new(AtomicUsize::new(0));
    let (hooks, others) = looking(&now);
    let (looks, in_lane) = (Arc::clone(&lane), Arc::clone(&now));
    heap::abort_on_closed(true);
    let prover = built.start_around(hooks, move |lane, slot, call| {
        let now = in_lane.load(Ordering::Relaxed);
        lane.team().run(&|n| look(&looks[n], now));
        look(&looks[team], now);
        call(lane, slot)
    });
    // Whoever lets go of a request last frees its input. So inputs are made before, all alike, and
    // one is freed with each proof. (Making them needs threads that end with what they took.)
    let inputs: Vec<_> = (0..=PROOFS).map(|_| window(1)).collect();
    let like = window(1);
    let input = window(1);
    let before = kept_here();
    drop(input);
    let input_bytes = before - kept_here();
    let own = no_looks();
    for (n, input) in inputs.into_iter().enumerate() {
        now.store(n, Ordering::Relaxed);
        look(&own, n);
        let outcome = prover.submit(input, Priority::Normal).unwrap().wait().unwrap();
        assert!(outcome.redone == 0 && holds(&prover, &outcome, &like));
    }
    for (thread, looks) in lane.iter().enumerate() {
        let looks = values(looks);
        println!("lane thread {thread}: {:?}", looks[0]);
        assert!(looks.iter().all(|look| *look == looks[0]), "lane thread {thread}: {looks:?}");
    }
    assert_eq!(heap::closed_allocations(), 0);
    let [synthesis, finish] = &others;
    let all: Vec<_> = (0..=PROOFS)
        .map(|n| {
            let threads = [&own, synthesis, finish].map(|looks| kept(*looks[n].lock().unwrap()));
            threads.iter().sum::<i64>() + n as i64 * input_bytes
        })
        .collect();
    let synthesis: Vec<_> = values(synthesis).into_iter().map(kept).collect();
    println!("kept by synthesis {synthesis:?}");
    println!("by this thread, synthesis and finish, but for {input_bytes} of each input: {all:?}");
    assert!(synthesis.iter().all(|kept| *kept == synthesis[0]));
    // What the first proof leaves behind is made once. After that a request may just not have been
    // let go when this thread looks (640 bytes); what is kept of each proof would add up.
    assert!(all[1] - all[0] < 64 << 10);
    let (least, most) = (all[1..].iter().min().unwrap(), all[1..].iter().max().unwrap());
    assert!(most - least <= 1024, "{all:?}");
    // The ends of those threads, and of the lane, allocate nothing either.
    prover.stop();
}

#[test]
fn twenty_proofs_allocate_nothing_on_a_lane_and_keep_nothing() {
    ended(&child("twenty_proofs_allocate_nothing_on_a_lane_and_keep_nothing", "", |_| {
        twenty_proofs();
    }));
}

/// Forbids every thread of a lane to ask the kernel for memory.
fn forbid(lane: &CpuLane) {
    lane.team().run(&|_| forbid_memory_calls());
    forbid_memory_calls();
}

#[test]
fn a_lane_never_asks_the_kernel_for_memory() {
    ended(&child("a_lane_never_asks_the_kernel_for_memory", "", |_| {
        let first = |n: usize, lane: &mut CpuLane| {
            if n == 0 {
                forbid(lane);
            }
            Ok(())
        };
        let prover = start(first, Hooks::default());
        for _ in 0..5 {
            assert_eq!(prove(&prover).unwrap(), 0);
        }
        // Filtered threads stay until the process ends.
        std::mem::forget(prover);
    }));
}

/// The control of the test above: the filter bites, on both kinds of threads.
#[test]
fn a_lane_that_asks_the_kernel_for_memory_is_the_end() {
    let test = "a_lane_that_asks_the_kernel_for_memory_is_the_end";
    for (thread, (name, number)) in ["driver", "team"].into_iter().cycle().zip(MEMORY_CALLS) {
        let output = child(test, &format!("{thread} {number}"), |variant| {
            let (thread, number) = variant.split_once(' ').unwrap();
            let (thread, number) = (thread.to_string(), number.parse::<libc::c_long>().unwrap());
            let work = move |_: usize, lane: &mut CpuLane| {
                forbid(lane);
                on(&thread, lane, &|| {
                    // SAFETY: given nothing but zeros, none of the five does anything.
                    unsafe { libc::syscall(number, 0, 0, 0, 0, 0, 0) };
                });
                Ok(())
            };
            let prover = start(work, Hooks::default());
            let _ = prove(&prover);
            std::mem::forget(prover);
        });
        println!("{name} on the {thread}: {}", output.status);
        killed(&output, libc::SIGSYS);
    }
}

fn allocate() {
    drop(black_box(Vec::<u8>::with_capacity(ODD_BYTES)));
}

#[test]
fn a_lane_that_allocates_is_the_end() {
    for (thread, name) in [("driver", "lane-0"), ("team", "lane0-0")] {
        let output = child("a_lane_that_allocates_is_the_end", thread, |thread| {
            let thread = thread.to_string();
            let work = move |_: usize, lane: &mut CpuLane| {
                on(&thread, lane, &allocate);
                Ok(())
            };
            let _ = prove(&start(work, Hooks::default()));
        });
        let told = killed(&output, libc::SIGABRT);
        let line = format!(
            "berth: thread {name} asks for {ODD_BYTES} bytes, and the heap is closed for it\n"
        );
        assert!(told.contains(&line), "{told}");
    }
}

#[test]
fn a_lane_that_allocates_is_counted_where_it_is_not_the_end() {
    ended(&child("a_lane_that_allocates_is_counted_where_it_is_not_the_end", "", |_| {
        let work = |_: usize, lane: &mut CpuLane| {
            heap::abort_on_closed(false);
            on("driver", lane, &allocate);
            on("team", lane, &allocate);
            heap::abort_on_closed(true);
            heap::opened(allocate);
            Ok(())
        };
        let prover = start(work, Hooks::default());
        for proofs in 1..=2 {
            assert_eq!(prove(&prover).unwrap(), 0);
            assert_eq!(heap::closed_allocations(), 2 * proofs);
        }
        prover.stop();
    }));
}

/// A lane that goes wrong, with every allocation of a closed thread the end of the process.
fn goes_wrong(variant: &str) {
    env_logger::Builder::new().filter_level(log::LevelFilter::Warn).init();
    let wrong = variant.to_string();
    let error = || Error::Device(heap::opened(|| "on purpose".into()));
    let work = move |n: usize, lane: &mut CpuLane| {
        match (&*wrong, n) {
            ("driver" | "team", 0) => on(&wrong, lane, &|| panic!("on purpose")),
            ("formatted", 0) => on("team", lane, &|| assert_eq!(wrong, "on purpose")),
            ("any", 0) => on("driver", lane, &|| std::panic::panic_any("on purpose")),
            ("error", 0) | ("errors", 0 | 1) => return Err(error()),
            _ => {}
        }
        Ok(())
    };
    let in_hook = AtomicBool::new(variant == "hook");
    let sums = move |_: usize, _: usize, _: &mut Sums| {
        assert!(!in_hook.swap(false, Ordering::Relaxed), "on purpose");
    };
    let prover = start(work, Hooks { sums: Box::new(sums), ..Hooks::default() });
    // An error is tried once more, a panic is not.
    match prove(&prover) {
        Ok(redone) => assert_eq!((variant, redone), ("error", 1)),
        Err(error) => {
            assert_ne!(variant, "error");
            assert_eq!(error.exit_code(), 7);
            assert!(error.to_string().contains("on purpose"), "{error}");
        }
    }
    assert_eq!(prove(&prover).unwrap(), 0);
    assert_eq!(heap::closed_allocations(), 0);
    prover.stop();
}

#[test]
fn a_lane_that_goes_wrong_fails_its_request_only() {
    for variant in ["driver", "team", "formatted", "any", "hook", "error", "errors"] {
        ended(&child("a_lane_that_goes_wrong_fails_its_request_only", variant, goes_wrong));
    }
}
