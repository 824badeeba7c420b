//! The heap that closes, on synthesis threads: native witnesses allocate nothing and ask the kernel
//! for no memory; for published code and for errors it is opened.

mod common;
#[path = "common/filter.rs"]
mod filter;
#[path = "common/running.rs"]
mod running;
#[path = "common/scenario.rs"]
mod scenario;

use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use berth::input::Vanilla;
use berth::input::class::{CircuitId, Kind, SectorSize};
use berth::memory::heap::{self, Heap, ThreadBytes};
use berth::memory::slot::Place;
use berth::prover::{Event, Hooks, Priority, What};
use filter::forbid_memory_calls;
use running::{build, config, holds, porep, window};
use scenario::{child, ended, killed};

#[global_allocator]
static HEAP: Heap = Heap;

const WINDOW: CircuitId = CircuitId { kind: Kind::Window, sector: SectorSize::K2 };
const POREP: CircuitId = CircuitId { kind: Kind::Porep, sector: SectorSize::K2 };
const C1: &str = "porep-2kib.c1.json";
const PROOFS: usize = 20;
/// One partition at a time, on pages that nobody else can take away meanwhile.
const SETTINGS: [(&str, &str); 3] =
    [("BERTH_SLOTS", "2"), ("BERTH_PARTITION_WORKERS", "1"), ("BERTH_HUGEPAGES", "off")];

/// What a synthesis thread does whenever a slot begins to be filled.
fn when_filling(work: impl Fn() + Send + Sync + 'static) -> Hooks {
    let event = move |event: &Event| {
        if matches!(event.what, What::Slot { place: Place::Filling, .. }) {
            work();
        }
    };
    Hooks { event: Box::new(event), ..Hooks::default() }
}

/// Native witnesses by one thread that may not ask the kernel for memory either.
#[test]
fn twenty_native_witnesses_allocate_nothing() {
    ended(&child("twenty_native_witnesses_allocate_nothing", "", |_| {
        let looks = Arc::new(
            (0..=PROOFS).map(|_| Mutex::default()).collect::<Vec<Mutex<Option<ThreadBytes>>>>(),
        );
        let (now, inside) = (AtomicUsize::new(0), Arc::clone(&looks));
        let hooks = when_filling(move || {
            let now = now.fetch_add(1, Ordering::Relaxed);
            if now == 0 {
                forbid_memory_calls();
            }
            *inside[now].lock().unwrap() = Some(heap::thread_bytes().unwrap());
        });
        let built = build(&config(&SETTINGS), POREP);
        heap::abort_on_closed(true);
        // Each proof has the same five sums: what is looked at is the witness.
        let prover = built.start_quick(hooks);
        for _ in 0..=PROOFS {
            let outcome = prover.submit(porep(C1), Priority::Normal).unwrap().wait().unwrap();
            assert!(outcome.redone == 0 && holds(&prover, &outcome, &porep(C1)));
        }
        let looks: Vec<_> = looks.iter().map(|look| look.lock().unwrap().unwrap()).collect();
        println!("synthesis thread: {:?}", looks[0]);
        assert!(looks.iter().all(|look| *look == looks[0]), "{looks:?}");
        assert_eq!(heap::closed_allocations(), 0);
        std::mem::forget(prover);
    }));
}

/// The controls of the test above, and a request that does not fit: its error is let through.
#[test]
fn a_synthesis_thread_is_closed_but_for_errors() {
    let output = child("a_synthesis_thread_is_closed_but_for_errors", "any", |what| match what {
        "any" => {
            let built = build(&config(&SETTINGS), POREP);
            heap::abort_on_closed(true);
            let prover = built.start_quick(Hooks::default());
            let mut input = porep(C1);
            let Vanilla::PorepBase(vanilla) = &mut input.vanilla else { unreachable!("2 KiB") };
            vanilla.partitions[0][1].node ^= 1;
            let error = prover.submit(input, Priority::Normal).unwrap().wait().unwrap_err();
            assert_eq!(error.exit_code(), 5);
            assert!(error.to_string().contains("challenge 1, comm_r_last path"), "{error}");
            assert!(error.to_string().contains("the label of layer 1"), "{error}");
            assert_eq!(heap::closed_allocations(), 0);
            prover.stop();
        }
        what => {
            let filtered = what == "filtered";
            let built = build(&config(&SETTINGS), WINDOW);
            heap::abort_on_closed(true);
            let prover = built.start_quick(when_filling(move || {
                if filtered {
                    forbid_memory_calls();
                    // SAFETY: given nothing but zeros, it does nothing.
                    unsafe { libc::syscall(libc::SYS_mmap, 0, 0, 0, 0, 0, 0) };
                } else {
                    drop(black_box(Box::new(1u64)));
                }
            }));
            let _ = prover.submit(window(1), Priority::Normal).unwrap().wait();
            std::mem::forget(prover);
        }
    });
    ended(&output);
    let again = |variant| child("a_synthesis_thread_is_closed_but_for_errors", variant, |_| ());
    killed(&again("filtered"), libc::SIGSYS);
    let told = killed(&again("allocates"), libc::SIGABRT);
    assert!(told.contains("thread synthesis-0 asks for"), "{told}");
}
