//! The memory law in one process: the plan holds over many proofs, the lane allocates nothing,
//! queued work is no memory. Tests take turns, since a process has one peak.

mod common;
#[path = "common/running.rs"]
mod running;

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use berth::groth16::Sums;
use berth::groth16::cpu::lane::CpuLane;
use berth::input::Input;
use berth::input::class::{CircuitId, Kind, SectorSize};
use berth::memory::heap::{self, Heap, ProcessBytes};
use berth::memory::slot::{Ready, Slot};
use berth::plan::Purpose;
use berth::prover::{Hooks, Priority};
use running::{Call, build, config, window};

#[global_allocator]
static HEAP: Heap = Heap;

const WINDOW: CircuitId = CircuitId { kind: Kind::Window, sector: SectorSize::K2 };
const PROOFS: usize = 20;

/// The process to this test alone, its peak begun anew.
fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    let turn = TURN.lock().unwrap_or_else(|e| e.into_inner());
    heap::purge().unwrap();
    // proc_pid_clear_refs(5): 5 sets VmHWM back to what is there now.
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    turn
}

/// Bytes that the calling thread has ever allocated.
fn allocated() -> u64 {
    heap::thread_bytes().unwrap().allocated
}

/// What the threads of the lane had allocated when a partition came to it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Allocated {
    /// The thread that drives the lane, less what the test allocates there.
    driver: u64,
    team: Vec<u64>,
}

#[derive(Default)]
struct Looker {
    seen: Vec<Allocated>,
    /// Allocated on the driving thread by looking, so far.
    own: u64,
    /// Address of the first slot.
    slots: usize,
}

impl Looker {
    fn around(&mut self, lane: &mut CpuLane, slot: Slot<Ready>, call: &mut Call<'_>) -> Sums {
        let before = allocated();
        let team: Vec<Mutex<u64>> = (0..lane.team().len()).map(|_| Mutex::new(0)).collect();
        lane.team().run(&|n| *team[n].lock().unwrap() = allocated());
        let team = team.into_iter().map(|bytes| bytes.into_inner().unwrap()).collect();
        self.seen.push(Allocated { driver: before - self.own, team });
        let address = slot.witness().wides.as_ptr() as usize;
        self.slots = address - slot.index() * slot.shape().slot_bytes();
        self.own += allocated() - before;
        call(lane, slot).unwrap()
    }
}

/// Bytes of the mapping that begins at an address, from /proc/self/smaps: size and resident.
fn smaps(address: usize) -> (usize, usize) {
    let smaps = std::fs::read_to_string("/proc/self/smaps").unwrap();
    let mut lines = smaps.lines().skip_while(|line| !line.starts_with(&format!("{address:x}-")));
    let mut value = |key: &str| -> usize {
        let line = lines.find(|line| line.starts_with(key)).unwrap();
        let number = line[key.len()..].trim().trim_end_matches(" kB");
        number.parse::<usize>().unwrap() * 1024
    };
    (value("Size:"), value("Rss:") + value("Private_Hugetlb:"))
}

/// Bytes that this process has read from files and the like.
fn bytes_read() -> u64 {
    let io = std::fs::read_to_string("/proc/self/io").unwrap();
    io.lines().find_map(|line| line.strip_prefix("rchar: ")).unwrap().parse().unwrap()
}

/// Twenty proofs, one after the other, in one process.
fn twenty_proofs(id: CircuitId, input: impl Fn() -> Input) {
    let _turn = alone();
    let first = input();
    // One request at a time keeps one worker busy; more would be planned for and not be there.
    let built = build(&config(&[("BERTH_PARTITION_WORKERS", "1")]), id);
    let plan = built.plan.clone();
    let looker = Arc::new(Mutex::new(Looker::default()));
    let inside = Arc::clone(&looker);
    let prover = built.start_around(Hooks::default(), move |lane, slot, call| {
        Ok(inside.lock().unwrap().around(lane, slot, call))
    });
    let read_before = bytes_read();
    let mut next = Some(first);
    let mut figures = Vec::new();
    for _ in 0..PROOFS {
        let input = next.take().unwrap_or_else(&input);
        let outcome = prover.submit(input, Priority::Normal).unwrap().wait().unwrap();
        assert_eq!(outcome.redone, 0);
        let process = ProcessBytes::read().unwrap();
        let heap = heap::heap_bytes().unwrap().allocated;
        figures.push((process.peak(), process.current(), heap));
    }
    // Field case I-52: parameters are read at the start alone.
    let read = bytes_read() - read_before;
    let srs = plan.arena(Purpose::Srs, 0).unwrap().need_bytes as u64;
    assert!(read < srs / 4, "{PROOFS} proofs read {read} bytes, parameters are {srs}");

    let planned = plan.total_bytes as u64;
    let peak = figures[PROOFS - 1].0;
    println!("{id}: planned {planned}, peak {peak}, after each proof {figures:?}");
    assert!(peak <= planned + planned * 3 / 100, "peak {peak} of {planned} planned");
    assert!(peak >= planned - planned * 3 / 100, "peak {peak} of {planned} planned: it is padded");
    // Flat: what the third proof had suffices for the twentieth, but for the noise of the heap.
    let grown = peak.saturating_sub(figures[2].0);
    assert!(grown <= planned / 100, "the peak grew by {grown} from the third proof on");
    let kept = figures[PROOFS - 1].2.saturating_sub(figures[2].2);
    assert!(kept <= 64 << 10, "the heap grew by {kept}");

    let looker = looker.lock().unwrap();
    assert_eq!(looker.seen.len(), PROOFS);
    for seen in &looker.seen {
        assert_eq!(*seen, looker.seen[0], "threads of the lane allocate");
    }
    let arena = plan.arena(Purpose::Slots, 0).unwrap();
    let (slots, each) = (plan.slots, plan.slot_bytes);
    let bytes = (slots * each).next_multiple_of(arena.page_bytes);
    assert_eq!(arena.bytes, bytes, "the plan rounds up once");
    assert_eq!(smaps(looker.slots), (bytes, bytes), "mapped and resident: {slots} x {each}");
    drop(looker);
    prover.stop();
}

#[test]
fn twenty_window_proofs_stay_within_the_plan() {
    twenty_proofs(WINDOW, || window(1));
}

#[cfg(feature = "long-tests")]
#[test]
fn twenty_porep_proofs_stay_within_the_plan() {
    let id = CircuitId { kind: Kind::Porep, sector: SectorSize::K2 };
    twenty_proofs(id, || running::porep("porep-2kib.c1.json"));
}

/// The 13 partitions of a non-interactive PoRep through 1, 2 and 4 slots.
#[cfg(feature = "long-tests")]
#[test]
fn thirteen_partitions_go_through_any_number_of_slots() {
    let id = CircuitId { kind: Kind::Porep, sector: SectorSize::K2 };
    let mut others = Vec::new();
    for slots in ["1", "2", "4"] {
        let _turn = alone();
        let input = running::porep("porep-2kib-ni.c1.json");
        let built = build(&config(&[("BERTH_SLOTS", slots)]), id);
        let plan = built.plan.clone();
        let arena = plan.arena(Purpose::Slots, 0).unwrap();
        others.push(
            [Purpose::Lane, Purpose::Srs].map(|purpose| plan.arena(purpose, 0).unwrap().bytes),
        );
        assert_eq!(arena.bytes, (plan.slots * plan.slot_bytes).next_multiple_of(arena.page_bytes));
        let prover = built.start(Hooks::default());
        let outcome = prover.submit(input, Priority::Normal).unwrap().wait().unwrap();
        assert!(running::holds(&prover, &outcome, &running::porep("porep-2kib-ni.c1.json")));
        prover.stop();
        let (peak, planned) = (ProcessBytes::read().unwrap().peak(), plan.total_bytes as u64);
        println!("{slots} slots: planned {planned}, peak {peak}, times {:?}", outcome.times);
        assert!(peak <= planned + planned * 3 / 100, "{slots} slots: {peak} of {planned}");
    }
    assert!(others.iter().all(|bytes| *bytes == others[0]), "{others:?}");
}

/// Field case I-04: a slow lane, and work that piles up in front of it.
#[test]
fn queued_work_holds_its_input_alone() {
    const JOBS: usize = 20;
    let _turn = alone();
    let one = std::mem::size_of_val(&window(1)) + window(1).to_bincode().len();
    let built = build(&config(&[("BERTH_SLOTS", "2")]), WINDOW);
    let prover = built.start_quick_around(Hooks::default(), |lane, slot, call| {
        std::thread::sleep(Duration::from_millis(50));
        call(lane, slot)
    });
    let pool = prover.classes()[0].pools[0].clone();
    prover.submit(window(1), Priority::Normal).unwrap().wait().unwrap();
    // What this thread allocates and does not free is what the queue holds.
    let kept = || {
        let bytes = heap::thread_bytes().unwrap();
        bytes.allocated - bytes.freed
    };
    let before = kept();
    let tickets: Vec<_> =
        (0..JOBS).map(|_| prover.submit(window(1), Priority::Normal).unwrap()).collect();
    let each = (kept() - before) as usize / JOBS;
    let slot = pool.shape().slot_bytes();
    println!("a queued request takes {each} bytes, its input {one}, a slot {slot}");
    assert!(each > 0 && each < slot / 8 && each < 4 * one, "{each} bytes for each queued one");
    let peak = ProcessBytes::read().unwrap().peak();
    for ticket in tickets {
        ticket.wait().unwrap();
    }
    let grown = ProcessBytes::read().unwrap().peak().saturating_sub(peak);
    assert!(grown < (2 * slot) as u64, "the peak grew by {grown} while they were proven");
    prover.stop();
}
