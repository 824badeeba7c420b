use super::*;
use crate::circuit::shape::PartShape;
use crate::memory::heap;
use crate::plan::{ArenaPlan, Purpose};
use proptest::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc;

/// Odd sizes, so that every part has padding in both planes.
fn shape(repeats: usize) -> Shape {
    Shape {
        header: PartShape { inputs: 2, bits: 70, wides: 5, rows: 0 },
        block: PartShape { inputs: 1, bits: 513, wides: 2, rows: 0 },
        repeats,
    }
}

fn pool(count: usize, repeats: usize) -> SlotPool {
    let shape = shape(repeats);
    let plan = ArenaPlan::unplaced(Purpose::Slots, count * shape.slot_bytes());
    SlotPool::new(Arena::map(&plan).unwrap().0, shape, count)
}

/// Fills the used entries of a part with a mark of its slot's round and its number.
fn write(part: &mut Part, round: u64) {
    let mark = round * 1000 + part.part() as u64;
    let sizes = *part.shape().part(part.part());
    let (wides, bits) = part.planes();
    assert!(wides.iter().all(|wide| *wide == Scalar::default()), "cleared");
    assert!(bits.iter().all(|word| *word == 0), "cleared");
    wides[..sizes.inputs + sizes.wides].fill(Scalar::from(mark));
    bits[..sizes.bits.div_ceil(64)].fill(mark);
}

fn check(witness: Witness, round: u64) {
    let shape = witness.shape;
    for part in 0..shape.parts() {
        let sizes = shape.part(part);
        let mark = round * 1000 + part as u64;
        let wides = &witness.wides[shape.wide_base(part)..][..sizes.wide_len()];
        let (used, padding) = wides.split_at(sizes.inputs + sizes.wides);
        assert!(used.iter().all(|wide| *wide == Scalar::from(mark)));
        assert!(padding.iter().all(|wide| *wide == Scalar::default()));
        let words = &witness.bits[shape.word_base(part)..][..sizes.word_len()];
        let (used, padding) = words.split_at(sizes.bits.div_ceil(64));
        assert!(used.iter().all(|word| *word == mark));
        assert!(padding.iter().all(|word| *word == 0));
    }
}

fn fill(slot: Slot<Free>, round: u64) -> Slot<Ready> {
    for mut part in slot.fill().split() {
        write(&mut part, round);
        if let Home::Ready(slot) = part.finish() {
            return slot;
        }
    }
    panic!("the last part home makes the slot ready");
}

/// Everything that can be out of the pool.
enum Out {
    Free(Slot<Free>),
    Filling(Slot<Filling>),
    /// Guards that are out, those not handed out yet, and whether one was dropped.
    Split(Vec<Part>, Option<Parts>, bool),
    Ready(Slot<Ready>, u64),
    Proving(Slot<Proving>, u64),
}

fn expected(out: &[Out], count: usize) -> Occupancy {
    let mut expected = Occupancy { home: count - out.len(), ..Occupancy::default() };
    for item in out {
        match item {
            Out::Free(_) => expected.taken += 1,
            Out::Filling(_) | Out::Split(..) => expected.filling += 1,
            Out::Ready(..) => expected.ready += 1,
            Out::Proving(..) => expected.proving += 1,
        }
    }
    expected
}

/// What the step makes of an item; `None` if its slot has gone home.
fn step(item: Out, action: u8, choice: usize, round: &mut u64) -> Option<Out> {
    let drops = action >= 6;
    match item {
        Out::Free(slot) if !drops => Some(Out::Filling(slot.fill())),
        Out::Filling(slot) if !drops => Some(Out::Split(Vec::new(), Some(slot.split()), false)),
        Out::Split(mut parts, mut rest, mut failed) => {
            match rest.take() {
                // Take one more guard out; or give the whole rest up.
                Some(mut left) if !drops || left.len() > 1 => {
                    parts.extend(left.next());
                    rest = (left.len() > 0).then_some(left);
                }
                Some(left) => {
                    drop(left);
                    failed = true;
                }
                None => {
                    let mut part = parts.swap_remove(choice % parts.len());
                    let (slot, last) = (part.slot() as u64, parts.is_empty());
                    if drops {
                        let panic = catch_unwind(AssertUnwindSafe(|| {
                            let mut part = part;
                            part.planes().1.fill(u64::MAX);
                            resume_unwind(Box::new("made up"));
                        }));
                        assert!(panic.is_err());
                        failed = true;
                        return (!last).then_some(Out::Split(parts, None, failed));
                    }
                    write(&mut part, slot);
                    return match part.finish() {
                        Home::Waiting => {
                            assert!(!last);
                            Some(Out::Split(parts, None, failed))
                        }
                        Home::Ready(ready) => {
                            assert!(last && !failed);
                            check(ready.witness(), slot);
                            Some(Out::Ready(ready, slot))
                        }
                        Home::Failed => {
                            assert!(last && failed);
                            None
                        }
                    };
                }
            }
            let gone = parts.is_empty() && rest.is_none();
            (!gone).then_some(Out::Split(parts, rest, failed))
        }
        Out::Ready(slot, mark) if !drops => Some(Out::Proving(slot.prove(), mark)),
        Out::Proving(slot, mark) => {
            check(slot.witness(), mark);
            *round += 1;
            if drops {
                drop(slot)
            } else {
                slot.release()
            }
            None
        }
        Out::Free(_) | Out::Filling(_) | Out::Ready(..) => None,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None,
                                        ..ProptestConfig::default() })]

    #[test]
    fn any_order_of_steps_keeps_the_figures_true(
        count in 1usize..5,
        repeats in 0usize..4,
        steps in proptest::collection::vec((0u8..8, any::<u16>()), 0..150),
    ) {
        let pool = pool(count, repeats);
        let mut out: Vec<Out> = Vec::new();
        let mut proven = 0;
        for (action, choice) in steps {
            let choice = usize::from(choice);
            if action < 2 || out.is_empty() {
                match pool.try_take() {
                    Some(slot) => out.push(Out::Free(slot)),
                    None => prop_assert_eq!(out.len(), count),
                }
            } else {
                let item = out.swap_remove(choice % out.len());
                out.extend(step(item, action, choice, &mut proven));
            }
            prop_assert_eq!(pool.occupancy(), expected(&out, count));
        }
        drop(out);
        prop_assert_eq!(pool.occupancy(), Occupancy { home: count, ..Occupancy::default() });
        pool.shutdown();
    }
}

/// Threads that fill parts of each other's slots, some of which panic, and a lane.
#[test]
fn many_threads_share_few_slots() {
    let pool = pool(3, 2);
    let (jobs, to_fill) = mpsc::channel::<(Part, u64)>();
    let (done, ready) = mpsc::channel::<(Slot<Ready>, u64)>();
    let to_fill = Arc::new(Mutex::new(to_fill));
    let rounds = 300u64;
    std::thread::scope(|scope| {
        for _ in 0..3 {
            let (to_fill, done) = (Arc::clone(&to_fill), done.clone());
            scope.spawn(move || {
                loop {
                    let job = to_fill.lock().unwrap().recv();
                    let Ok((mut part, round)) = job else { return };
                    let _ = catch_unwind(AssertUnwindSafe(|| {
                        write(&mut part, round);
                        if round % 7 == 3 && part.part() as u64 == round % 3 {
                            resume_unwind(Box::new("made up"));
                        }
                        if let Home::Ready(slot) = part.finish() {
                            done.send((slot, round)).unwrap();
                        }
                    }));
                }
            });
        }
        drop(done);
        let lane = scope.spawn(move || {
            let mut proven = 0;
            for (slot, round) in ready {
                let slot = slot.prove();
                check(slot.witness(), round);
                slot.release();
                proven += 1;
            }
            proven
        });
        for round in 0..rounds {
            let slot = pool.take().unwrap();
            for part in slot.fill().split() {
                jobs.send((part, round)).unwrap();
            }
        }
        drop(jobs);
        let failed = (0..rounds).filter(|round| round % 7 == 3).count() as u64;
        assert_eq!(lane.join().unwrap(), rounds - failed);
    });
    pool.shutdown();
}

#[test]
fn one_slot_serves_waiting_threads_in_turn() {
    let pool = pool(1, 0);
    std::thread::scope(|scope| {
        for round in 0..4 {
            let pool = &pool;
            scope.spawn(move || {
                for _ in 0..100 {
                    let slot = fill(pool.take().unwrap(), round).prove();
                    check(slot.witness(), round);
                }
            });
        }
    });
    pool.shutdown();
}

#[test]
fn closing_wakes_those_who_wait_and_lets_work_go_on() {
    let pool = pool(1, 1);
    let slot = fill(pool.take().unwrap(), 5);
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| pool.take().is_none());
        pool.close();
        assert!(waits.join().unwrap());
    });
    assert!(pool.try_take().is_none());
    check(slot.witness(), 5);
    let (at_shutdown, pool) = (pool.clone(), pool);
    assert!(catch_unwind(AssertUnwindSafe(|| at_shutdown.shutdown())).is_err(), "a slot is out");
    drop(slot);
    pool.shutdown();
}

#[test]
fn guards_that_were_not_handed_out_count_as_dropped() {
    let pool = pool(1, 3);
    let mut parts = pool.take().unwrap().fill().split();
    assert_eq!(parts.len(), 4);
    let first = parts.next().unwrap();
    assert_eq!(first.part(), 0);
    drop(parts);
    assert_eq!(pool.occupancy().filling, 1);
    assert!(matches!(first.finish(), Home::Failed));
    assert_eq!(pool.occupancy().home, 1);
}

#[test]
fn a_part_that_nobody_wrote_is_zero_not_the_last_witness() {
    let pool = pool(1, 1);
    drop(fill(pool.take().unwrap(), 9));
    let mut ready = None;
    for part in pool.take().unwrap().fill().split() {
        if let Home::Ready(slot) = part.finish() {
            ready = Some(slot);
        }
    }
    let slot = ready.unwrap();
    assert!(slot.witness().wides.iter().all(|wide| *wide == Scalar::default()));
    assert!(slot.witness().bits.iter().all(|word| *word == 0));
}

#[test]
fn the_way_of_a_slot_allocates_nothing() {
    let pool = pool(2, 3);
    check(fill(pool.take().unwrap(), 1).witness(), 1);
    let before = heap::thread_bytes().unwrap();
    for round in 0..100 {
        let slot = fill(pool.take().unwrap(), round).prove();
        check(slot.witness(), round);
        slot.release();
    }
    assert_eq!(heap::thread_bytes().unwrap(), before);
}

#[test]
fn slots_and_guards_go_to_other_threads() {
    fn send<T: Send + 'static>() {}
    send::<Slot<Free>>();
    send::<Slot<Proving>>();
    send::<Part>();
    send::<Parts>();
    send::<SlotPool>();
}
