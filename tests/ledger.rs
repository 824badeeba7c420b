//! The ledger against the kernel, and against the events that led to it. Tests take turns, since
//! a process has one memory.

mod common;
#[path = "common/running.rs"]
mod running;

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use berth::config::Config;
use berth::groth16::Stage;
use berth::input::Input;
use berth::input::class::{CircuitId, Kind, SectorSize};
use berth::memory::heap::{self, ProcessBytes};
use berth::memory::slot::{Occupancy, Place};
use berth::prover::ledger::{Heap, Holder, Ledger, Row};
use berth::prover::{Event, Hooks, Priority, What, setup};
use berth::srs::find::Search;
use running::{build, config, holds, window};

#[global_allocator]
static HEAP: heap::Heap = heap::Heap;

const WINDOW: CircuitId = CircuitId { kind: Kind::Window, sector: SectorSize::K2 };
const POREP: CircuitId = CircuitId { kind: Kind::Porep, sector: SectorSize::K2 };

/// The process to this test alone.
fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    let turn = TURN.lock().unwrap_or_else(|e| e.into_inner());
    heap::purge().unwrap();
    turn
}

/// Pages of 2 MiB added to the pool of node 0, and taken out again on drop.
struct Reserved(usize);

const POOL: &str = "/sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages";

fn pool() -> Option<usize> {
    std::fs::read_to_string(POOL).ok()?.trim().parse().ok()
}

impl Reserved {
    /// `None` where this process may not reserve, or the memory is too fragmented.
    fn new(pages: usize) -> Option<Self> {
        let before = pool()?;
        std::fs::write(POOL, (before + pages).to_string()).ok()?;
        let reserved = Reserved(pool()?.saturating_sub(before));
        (reserved.0 >= pages).then_some(reserved)
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        let now = pool().unwrap_or(0);
        let _ = std::fs::write(POOL, now.saturating_sub(self.0).to_string());
    }
}

/// The sum of a ledger is what the kernel says, within three per cent.
#[track_caller]
fn adds_up(when: &str, ledger: &Ledger) {
    println!("{when}: {:+.2} %\n{ledger}", 100.0 * ledger.excess());
    assert_eq!(ledger.sum_bytes, ledger.rows.iter().map(|row| row.bytes as u64).sum::<u64>());
    assert!(ledger.excess().abs() <= 0.03, "{when}: {:+.4}\n{ledger}", ledger.excess());
    // The heap by the kernel and by its own books.
    let in_heap = [Holder::CompiledCircuits, Holder::QueuedInput, Holder::Heap];
    let by_kernel: usize =
        in_heap.iter().flat_map(|what| rows(ledger, *what, None)).map(|row| row.bytes).sum();
    let Heap { allocated_bytes, resident_bytes, .. } = ledger.heap;
    assert!((allocated_bytes..=resident_bytes).contains(&by_kernel), "{by_kernel}\n{ledger}");
    let used = rows(ledger, Holder::Heap, Some("used"))[0].bytes;
    assert!(used > 0, "more is named than allocated\n{ledger}");
}

fn rows<'a>(ledger: &'a Ledger, what: Holder, state: Option<&str>) -> Vec<&'a Row> {
    let wanted = |row: &&Row| row.what == what && (state.is_none() || row.state == state);
    ledger.rows.iter().filter(wanted).collect()
}

/// Proofs one after the other, the ledger before, during and after them.
fn ledger_of(config: &Config, id: CircuitId, proofs: usize, input: impl Fn() -> Input) {
    let built = build(config, id);
    let (slots, slot) = (built.plan.slots, built.plan.slot_bytes);
    let planned = built.plan.total_bytes as f64;
    let arenas: usize = built.plan.arenas.iter().map(|arena| arena.bytes).sum();
    let prover = built.start(Hooks::default());
    adds_up(&format!("{id} before"), &prover.ledger().unwrap());
    let mut during = 0;
    for _ in 0..proofs {
        let ticket = prover.submit(input(), Priority::Normal).unwrap();
        let outcome = std::thread::scope(|scope| {
            let waits = scope.spawn(|| ticket.wait().unwrap());
            while !waits.is_finished() {
                let ledger = prover.ledger().unwrap();
                let out = rows(&ledger, Holder::Slots, Some("home"))[0].count.unwrap() < slots;
                if out {
                    during += 1;
                    assert!(ledger.excess().abs() <= 0.03, "during:\n{ledger}");
                }
                std::thread::sleep(Duration::from_millis(50));
            }
            waits.join().unwrap()
        });
        assert!(holds(&prover, &outcome, &input()));
    }
    assert!(during >= proofs, "only {during} looks during {proofs} proofs");
    let began = Instant::now();
    let after = prover.ledger().unwrap();
    println!("{id}: {during} ledgers during {proofs} proofs; one takes {:?}", began.elapsed());
    adds_up(&format!("{id} after"), &after);
    let kernel = after.kernel_bytes as f64;
    assert!(kernel <= planned * 1.03, "{kernel} of {planned} planned");

    let of_slots = rows(&after, Holder::Slots, None);
    let count: usize = of_slots.iter().filter_map(|row| row.count).sum();
    assert_eq!(count, slots + 1, "every slot once, and one mapping");
    assert_eq!(rows(&after, Holder::Slots, Some("home"))[0].bytes, slots * slot);
    assert!(rows(&after, Holder::Slots, Some("proving"))[0].peak_count.unwrap() >= 1);
    let three = [Holder::Slots, Holder::Lanes, Holder::Srs];
    let mapped: usize =
        three.iter().flat_map(|what| rows(&after, *what, None)).map(|row| row.bytes).sum();
    assert_eq!(mapped, arenas, "arenas to the byte");
    prover.stop();
}

#[test]
fn the_sum_is_what_the_kernel_counts() {
    let _turn = alone();
    ledger_of(&config(&[("BERTH_HUGEPAGES", "off")]), WINDOW, 5, || window(1));
    match Reserved::new(24) {
        Some(_reserved) => {
            let settings = [("BERTH_HUGEPAGES", "2M"), ("BERTH_SLOTS", "2")];
            ledger_of(&config(&settings), WINDOW, 5, || window(1));
        }
        None => eprintln!("not run: no hugepages of 2 MiB can be reserved here"),
    }
}

#[test]
fn the_sum_of_a_large_plan_is_what_the_kernel_counts() {
    let config = config(&[]);
    if let Search::Missing(_) = setup::search(&config, POREP).unwrap() {
        eprintln!("not run: no dev parameters of {POREP}; `berth params make-dev` makes them");
        return;
    }
    let _turn = alone();
    ledger_of(&config, POREP, 2, || running::porep("porep-2kib.c1.json"));
}

/// What was told, in the order in which it was.
type Told = Arc<Mutex<Vec<Event>>>;

/// Hooks that write down every event, into room that is there before.
fn listening() -> (Told, Hooks) {
    let told: Told = Arc::new(Mutex::new(Vec::with_capacity(1 << 16)));
    let inside = Arc::clone(&told);
    let event = Box::new(move |event: &Event| inside.lock().unwrap().push(*event));
    (told, Hooks { event, ..Hooks::default() })
}

/// Goes through the events as they came: every path is one that a slot or a lane may go. Gives
/// where the slots are at the end, the most that were ever in each place, and the lanes' peaks.
fn replay(events: &[Event], slots: usize) -> (Occupancy, Occupancy, BTreeMap<&'static str, usize>) {
    let mut places = vec![Place::Home; slots];
    let mut lanes = BTreeMap::new();
    let count = |places: &[Place]| {
        let at = |place| places.iter().filter(|at| **at == place).count();
        Occupancy {
            home: at(Place::Home),
            taken: at(Place::Taken),
            filling: at(Place::Filling),
            ready: at(Place::Ready),
            proving: at(Place::Proving),
        }
    };
    let (mut peak, mut stages) = (count(&places), BTreeMap::from([("idle", 1)]));
    for event in events {
        assert_eq!((event.class, event.node), (0, 0));
        match event.what {
            What::Slot { index, place } => {
                let next = match places[index] {
                    Place::Home => Place::Taken,
                    Place::Taken => Place::Filling,
                    Place::Filling => Place::Ready,
                    Place::Ready => Place::Proving,
                    Place::Proving => Place::Home,
                };
                assert_eq!(place, next, "slot {index} after {:?}", places[index]);
                places[index] = place;
                let now = count(&places);
                for (peak, now) in [
                    (&mut peak.home, now.home),
                    (&mut peak.taken, now.taken),
                    (&mut peak.filling, now.filling),
                    (&mut peak.ready, now.ready),
                    (&mut peak.proving, now.proving),
                ] {
                    *peak = now.max(*peak);
                }
            }
            What::Lane { lane, stage, arrival, partition } => {
                let (before, of) = lanes
                    .insert(lane, (stage, (arrival, partition)))
                    .unwrap_or((Stage::Idle, (arrival, partition)));
                let next = Stage::ALL[(before as usize + 1) % Stage::ALL.len()];
                assert_eq!(stage, next, "lane {lane} after {before:?}");
                assert!(before == Stage::Idle || of == (arrival, partition), "one at a time");
                if stage != Stage::Idle {
                    assert_eq!(count(&places).proving, 1, "a lane works on a slot");
                }
                stages.insert(stage.name(), 1);
            }
        }
    }
    (count(&places), peak, stages)
}

#[test]
fn events_tell_what_pools_and_ledger_tell() {
    let _turn = alone();
    let (told, hooks) = listening();
    let prover = build(&config(&[("BERTH_PARTITION_WORKERS", "2"), ("BERTH_SLOTS", "3")]), WINDOW)
        .start(hooks);
    let pool = prover.classes()[0].pools[0].clone();
    let tickets: Vec<_> = [3, 1, 4]
        .into_iter()
        .map(|partitions| prover.submit(window(partitions), Priority::Normal).unwrap())
        .collect();
    for ticket in tickets {
        assert_eq!(ticket.wait().unwrap().redone, 0);
    }
    running::come_home(&prover);
    let ledger = prover.ledger().unwrap();
    let (occupancy, most) = (pool.occupancy(), pool.peak());
    let books = prover.books();
    assert_eq!(books.ledger().unwrap().unwrap().rows.len(), ledger.rows.len());
    prover.stop();
    assert!(books.ledger().is_none(), "a prover that has ended has no ledger");
    let events = told.lock().unwrap();
    let (now, peak, stages) = replay(&events, 3);
    assert_eq!((now, peak), (occupancy, most));
    assert!(peak.home == 3 && peak.proving == 1 && peak.filling >= 1, "{peak:?}");
    for place in [Place::Taken, Place::Filling, Place::Ready, Place::Proving, Place::Home] {
        let moves = events
            .iter()
            .filter(|event| matches!(event.what, What::Slot { place: at, .. } if at == place));
        assert_eq!(moves.count(), 8, "{place:?}: once for each partition");
    }
    for stage in Stage::ALL {
        let row = rows(&ledger, Holder::Lanes, Some(stage.name()))[0];
        assert_eq!(row.peak_count, stages.get(stage.name()).copied(), "{stage:?}");
    }
    let mut made: Vec<(u64, usize)> = events
        .iter()
        .filter_map(|event| match event.what {
            What::Lane { stage: Stage::Rows, arrival, partition, .. } => Some((arrival, partition)),
            _ => None,
        })
        .collect();
    made.sort_unstable();
    assert_eq!(made, [(0, 0), (0, 1), (0, 2), (1, 0), (2, 0), (2, 1), (2, 2), (2, 3)]);
}

/// A gate that a test opens.
#[derive(Default)]
struct Gate {
    open: Mutex<bool>,
    changed: Condvar,
}

impl Gate {
    fn set(&self, open: bool) {
        *self.open.lock().unwrap() = open;
        self.changed.notify_all();
    }

    fn pass(&self) {
        let mut open = self.open.lock().unwrap();
        while !*open {
            open = self.changed.wait(open).unwrap();
        }
    }
}

#[track_caller]
fn until(what: &str, mut done: impl FnMut() -> bool) {
    let began = Instant::now();
    while !done() {
        assert!(began.elapsed() < Duration::from_secs(60), "{what} does not come");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Field case I-04: the lane is held back, and twenty requests wait in front of it.
#[test]
fn behind_a_lane_that_is_held_back_only_inputs_wait() {
    const JOBS: usize = 20;
    let _turn = alone();
    let gate = Arc::new(Gate::default());
    let (told, hooks) = listening();
    let (held, inside) = (window(1).held_bytes(), Arc::clone(&gate));
    let built = build(&config(&[("BERTH_SLOTS", "2")]), WINDOW);
    let slot_bytes = built.plan.slot_bytes;
    let prover = built.start_quick_around(hooks, move |lane, slot, call| {
        inside.pass();
        call(lane, slot)
    });
    let pool = prover.classes()[0].pools[0].clone();
    gate.set(true);
    prover.submit(window(1), Priority::Normal).unwrap().wait().unwrap();
    gate.set(false);
    let queued = || rows(&prover.ledger().unwrap(), Holder::QueuedInput, None)[0].clone();
    until("the first request's end", || queued().count == Some(0));

    let before = ProcessBytes::read().unwrap().current();
    let tickets: Vec<_> =
        (0..JOBS).map(|_| prover.submit(window(1), Priority::Normal).unwrap()).collect();
    until("two filled slots", || pool.occupancy().ready == 2);
    // Whoever would go on without a slot has the time to do it.
    std::thread::sleep(Duration::from_millis(300));
    let takes = |place: Place| {
        let at = |event: &&Event| matches!(event.what, What::Slot { place: at, .. } if at == place);
        told.lock().unwrap().iter().filter(at).count()
    };
    assert_eq!((takes(Place::Taken), takes(Place::Filling)), (3, 3), "one before, two now");
    let row = queued();
    assert_eq!((row.count, row.bytes), (Some(JOBS), JOBS * held));
    let ledger = prover.ledger().unwrap();
    assert_eq!(rows(&ledger, Holder::Slots, Some("ready"))[0].count, Some(2));
    assert_eq!(rows(&ledger, Holder::Slots, Some("home"))[0].count, Some(0));
    let grown = ProcessBytes::read().unwrap().current().saturating_sub(before) as usize;
    println!("{JOBS} inputs of {held} wait; the process grew by {grown}, a slot is {slot_bytes}");
    assert!(grown < 2 * slot_bytes, "it grew by {grown} while {JOBS} requests wait");

    gate.set(true);
    for ticket in tickets {
        ticket.wait().unwrap();
    }
    running::come_home(&prover);
    until("the last request's end", || queued().count == Some(0));
    let row = queued();
    assert_eq!((row.bytes, row.peak_count, row.peak_bytes), (0, Some(JOBS), Some(JOBS * held)));
    let grown = ProcessBytes::read().unwrap().current().saturating_sub(before) as usize;
    assert!(grown < 2 * slot_bytes, "it grew by {grown} over {JOBS} proofs");
    prover.stop();

    assert_eq!((takes(Place::Taken), takes(Place::Filling)), (JOBS + 1, JOBS + 1));
    let events = told.lock().unwrap();
    let slots: Vec<Event> =
        events.iter().filter(|event| matches!(event.what, What::Slot { .. })).copied().collect();
    // Two places alone: a third slot in use would be none of them.
    let (now, peak, _) = replay(&slots, 2);
    assert_eq!((now.home, peak.ready), (2, 2));
}

/// What a request says that it holds, against what the allocator gets back with it.
#[test]
fn a_request_knows_what_it_holds() {
    let _turn = alone();
    type Read = fn() -> Input;
    let inputs: [(&str, Read); 5] = [
        ("window", || window(1)),
        ("winning", || running::post(Kind::Winning, "winningpost-2kib")),
        ("snap", || running::post(Kind::Update, "snap-2kib")),
        ("porep", || running::porep("porep-2kib.c1.json")),
        ("porep of 13 partitions", || running::porep("porep-2kib-ni.c1.json")),
    ];
    for (name, read) in inputs {
        let input = read();
        let held = input.held_bytes() - size_of::<Input>();
        let before = heap::thread_bytes().unwrap().freed;
        drop(input);
        let freed = (heap::thread_bytes().unwrap().freed - before) as usize;
        println!("{name}: {held} held, {freed} freed");
        // Sizes of the allocator are a quarter apart; room beyond the elements is small.
        assert!((held..=held * 5 / 4).contains(&freed), "{name}: {held} held, {freed} freed");
    }
}
