use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use blstrs::Scalar;

use super::job::{Job, Ticket};
use super::queue::{Begun, Queue, Waiting};
use super::threads::{Step, next_step};
use super::*;
use crate::circuit::shape::{PartShape, Shape};
use crate::groth16::PROOF_BYTES;
use crate::input::class::{Kind, SectorSize};
use crate::input::{Post, Vanilla};
use crate::memory::arena::Arena;
use crate::plan::{ArenaPlan, Purpose};

/// A request of so many partitions with nothing in them, of a class.
fn job(partitions: usize, class: usize, priority: Priority, arrival: u64) -> Arc<Job> {
    let vanilla = Post { prover_id: Scalar::from(1), randomness: [0; 32], partitions: Vec::new() };
    let input = Input {
        circuit: CircuitId { kind: Kind::Window, sector: SectorSize::K2 },
        registered_proof: String::new(),
        non_interactive: false,
        miner: None,
        sector: None,
        prover_id: None,
        miner_checked: false,
        public_inputs: vec![Vec::new(); partitions],
        vanilla: Vanilla::PostBase(vanilla),
    };
    Arc::new(Job::new(input, class, priority, arrival))
}

/// Slots for a circuit of a header and one block.
fn pool(slots: usize) -> SlotPool {
    let part = PartShape { inputs: 1, bits: 64, wides: 1, rows: 0 };
    let shape = Shape { header: part, block: part, repeats: 1 };
    let plan = ArenaPlan::unplaced(Purpose::Slots, slots * shape.slot_bytes());
    SlotPool::new(Arena::map(&plan).unwrap().0, shape, slots)
}

/// A step in words: arrival and partition, and what is done with it.
fn told(step: Option<Step>) -> String {
    match step {
        None => "waits".into(),
        Some(Step::GiveUp) => "gives up".into(),
        Some(Step::Partition(task, _)) => format!("begins {} {}", task.job.arrival, task.partition),
        Some(Step::Part(Begun { task, part, .. })) => {
            format!("fills {} {} {}", task.job.arrival, task.partition, part.part())
        }
    }
}

fn step(waiting: &mut Waiting, pools: &[SlotPool]) -> Option<Step> {
    next_step(waiting, 0, &mut |class| pools[class].try_take())
}

#[test]
fn the_order_is_priority_then_arrival_then_partition() {
    let queue = Queue::new(8, 16);
    queue.submit(&job(2, 0, Priority::Low, 0));
    queue.submit(&job(2, 0, Priority::Normal, 1));
    queue.submit(&job(1, 0, Priority::Critical, 2));
    queue.submit(&job(1, 0, Priority::Normal, 3));
    let pools = [pool(1)];
    let mut waiting = queue.lock();
    let order: Vec<String> = (0..7).map(|_| told(step(&mut waiting, &pools))).collect();
    let wanted = ["2 0", "1 0", "1 1", "3 0", "0 0", "0 1"].map(|it| format!("begins {it}"));
    assert_eq!(order[..6], wanted);
    assert_eq!(order[6], "waits");
}

#[test]
fn a_class_without_a_free_slot_holds_up_no_other() {
    let queue = Queue::new(8, 16);
    queue.submit(&job(2, 0, Priority::High, 0));
    queue.submit(&job(1, 1, Priority::Low, 1));
    let pools = [pool(1), pool(1)];
    let mut waiting = queue.lock();
    let Some(Step::Partition(_, taken)) = step(&mut waiting, &pools) else { panic!("a slot") };
    assert_eq!(told(step(&mut waiting, &pools)), "begins 1 0");
    assert_eq!(told(step(&mut waiting, &pools)), "waits");
    drop(taken);
    assert_eq!(told(step(&mut waiting, &pools)), "begins 0 1");
}

#[test]
fn begun_slots_are_finished_first_but_for_something_more_urgent() {
    let queue = Queue::new(8, 16);
    queue.submit(&job(2, 0, Priority::Normal, 0));
    let pools = [pool(3)];
    let mut waiting = queue.lock();
    let Some(Step::Partition(task, slot)) = step(&mut waiting, &pools) else { panic!("a slot") };
    let guards = slot.fill().split();
    waiting.parts.extend(guards.map(|part| Begun { task: task.clone(), node: 0, part }));
    drop(waiting);
    queue.submit(&job(1, 0, Priority::High, 1));
    let mut waiting = queue.lock();
    assert_eq!(told(step(&mut waiting, &pools)), "begins 1 0");
    // What is as urgent waits, though slots are free.
    assert_eq!(told(step(&mut waiting, &pools)), "fills 0 0 0");
    assert_eq!(told(step(&mut waiting, &pools)), "fills 0 0 1");
    assert_eq!(told(step(&mut waiting, &pools)), "begins 0 1");
}

#[test]
fn partitions_of_a_failed_request_are_given_up_without_a_slot() {
    let queue = Queue::new(8, 16);
    let failed = job(2, 0, Priority::High, 0);
    queue.submit(&failed);
    queue.submit(&job(1, 0, Priority::Low, 1));
    failed.fail(Error::Device("gone".into()));
    let pools = [pool(1)];
    let taken = pools[0].try_take().unwrap();
    let mut waiting = queue.lock();
    assert_eq!(told(step(&mut waiting, &pools)), "gives up");
    assert_eq!(told(step(&mut waiting, &pools)), "gives up");
    assert_eq!(told(step(&mut waiting, &pools)), "waits");
    drop(taken);
    assert_eq!(told(step(&mut waiting, &pools)), "begins 1 0");
}

#[test]
fn what_waits_in_slots_has_its_room_from_the_start() {
    let queue = Queue::new(3, 6);
    for arrival in 0..50 {
        queue.submit(&job(13, 0, Priority::Normal, arrival));
    }
    let waiting = queue.lock();
    assert_eq!(waiting.open, 650);
    assert!(waiting.pending.capacity() >= 650 && waiting.summed.capacity() >= 650);
    assert!((3..13).contains(&waiting.ready.capacity()), "{}", waiting.ready.capacity());
    assert!((6..13).contains(&waiting.parts.capacity()), "{}", waiting.parts.capacity());
}

#[test]
fn a_drained_queue_lets_everyone_go() {
    let queue = Arc::new(Queue::new(1, 2));
    queue.submit(&job(1, 0, Priority::Normal, 0));
    let (ends, ended) = mpsc::channel();
    for _ in 0..3 {
        let (queue, ends) = (Arc::clone(&queue), ends.clone());
        std::thread::spawn(move || {
            ends.send(queue.next(|_| None::<()>)).unwrap();
        });
    }
    queue.drain(false);
    assert!(ended.recv_timeout(Duration::from_millis(100)).is_err(), "one partition is open");
    assert!(!queue.over());
    queue.close();
    assert!(queue.over());
    for _ in 0..3 {
        assert_eq!(ended.recv_timeout(Duration::from_secs(60)), Ok(None));
    }
}

#[test]
fn draining_may_give_up_what_has_no_slot() {
    let queue = Queue::new(1, 2);
    let (waits, runs) = (job(1, 0, Priority::Normal, 0), job(1, 0, Priority::Normal, 1));
    queue.submit(&waits);
    queue.drain(true);
    assert!(waits.failed() && !runs.failed());
    assert!(Ticket { job: waits }.wait().is_err());
}

#[test]
fn a_request_ends_once_and_with_its_first_error() {
    let proof = [7; PROOF_BYTES];
    let done = job(2, 0, Priority::Normal, 0);
    assert!(!done.store(1, proof, "cpu"));
    assert!(done.store(0, [6; PROOF_BYTES], "cpu"));
    // Too late: nobody is told otherwise.
    done.fail(Error::Device("late".into()));
    let outcome = Ticket { job: done }.wait().unwrap();
    assert_eq!(outcome.proofs, [[6; PROOF_BYTES], proof], "in the order of partitions");

    let failed = job(2, 0, Priority::Normal, 0);
    failed.fail(Error::Device("first".into()));
    failed.fail(Error::Device("second".into()));
    assert!(!failed.store(0, proof, "cpu"));
    assert!(!failed.store(1, proof, "cpu"), "a failed request is not finished by a proof");
    assert_eq!(Ticket { job: failed }.wait().unwrap_err().to_string(), "device: first");
}

#[test]
fn a_panic_with_the_lock_held_stops_nobody() {
    let queue = Queue::new(1, 2);
    let poisoned = catch_unwind(AssertUnwindSafe(|| {
        let _waiting = queue.lock();
        panic!("with the lock");
    }));
    assert!(poisoned.is_err());
    queue.submit(&job(1, 0, Priority::Normal, 0));
    assert_eq!(queue.lock().open, 1);
}
