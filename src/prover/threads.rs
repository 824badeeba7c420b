//! What each kind of thread does: synthesis fills slots, a lane sums, the finish blinds and
//! verifies.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use super::events::{Event, What};
use super::queue::{Begun, Filled, Summed, Task, Waiting, take_first};
use super::{Priority, Shared};
use crate::error::Error;
use crate::groth16::assemble::{Blinding, assemble};
use crate::groth16::verify::Proof;
use crate::groth16::{Lane, Stage};
use crate::memory::heap;
use crate::memory::slot::{Free, Home, Slot};

/// What a synthesis thread does next.
pub(super) enum Step {
    Part(Begun),
    Partition(Task, Slot<Free>),
    /// A partition of a failed request was taken off the list.
    GiveUp,
}

/// A synthesis thread: finishes slots of its node that are begun before it begins another of no
/// higher priority, takes the most urgent partition that has a free slot there, and ends when the
/// queue has drained. The heap is closed for it, but for published circuit code and for errors.
pub(super) fn synthesis(shared: &Shared, node: usize) {
    heap::close_thread();
    let mut take = |class: usize| shared.classes[class].pools[node].try_take();
    while let Some(step) = shared.queue.next(|waiting| next_step(waiting, node, &mut take)) {
        match step {
            Step::Part(begun) => fill(shared, begun),
            Step::Partition(task, slot) => {
                task.job.begin();
                let mut waiting = shared.queue.lock();
                for part in slot.fill().split() {
                    waiting.parts.push(Begun { task: task.clone(), node, part });
                }
                drop(waiting);
                shared.queue.notify();
            }
            Step::GiveUp => shared.queue.close(),
        }
    }
}

/// What to do next on a node, if there is anything; `take` gives a slot of a class, if one is free.
pub(super) fn next_step(
    waiting: &mut Waiting,
    node: usize,
    take: &mut impl FnMut(usize) -> Option<Slot<Free>>,
) -> Option<Step> {
    let here = waiting.parts.iter().filter(|begun| begun.node == node);
    let begun = here.map(|begun| begun.task.job.priority).max();
    begin(waiting, begun, take).or_else(|| {
        let key = |begun: &Begun| (begun.node == node).then(|| begun.task.key());
        take_first(&mut waiting.parts, key).map(Step::Part)
    })
}

/// The most urgent partition above a priority whose class has a free slot.
fn begin(
    waiting: &mut Waiting,
    above: Option<Priority>,
    take: &mut impl FnMut(usize) -> Option<Slot<Free>>,
) -> Option<Step> {
    let mut full = 0u64;
    loop {
        let candidate = (0..waiting.pending.len())
            .filter(|&i| full >> waiting.pending[i].job.class & 1 == 0)
            .filter(|&i| above.is_none_or(|above| waiting.pending[i].job.priority > above))
            .min_by_key(|&i| waiting.pending[i].key())?;
        let class = waiting.pending[candidate].job.class;
        if waiting.pending[candidate].job.failed() {
            waiting.pending.swap_remove(candidate);
            return Some(Step::GiveUp);
        }
        match take(class) {
            Some(slot) => {
                return Some(Step::Partition(waiting.pending.swap_remove(candidate), slot));
            }
            None => full |= 1 << class,
        }
    }
}

fn fill(shared: &Shared, begun: Begun) {
    let Begun { task, node, part: mut guard } = begun;
    let began = Instant::now();
    let job = &task.job;
    if job.failed() {
        if guard.abandon() {
            shared.queue.close();
        }
        return;
    }
    let class = &shared.classes[job.class];
    let part = guard.part();
    let (input, compiled) = (&job.input, &class.compiled);
    let filled = catch_unwind(AssertUnwindSafe(|| {
        let (wides, bits) = guard.planes();
        shared.witnesses.fill_part(input, compiled, task.partition, part, wides, bits)
    }))
    .unwrap_or_else(|panic| Err(heap::opened(|| panicked("the witness", &panic))));
    job.state().times.witness += began.elapsed();
    match filled {
        Ok(()) => match guard.finish() {
            Home::Waiting => {}
            Home::Ready(slot) => {
                shared.queue.lock().ready.push(Filled { task, node, slot });
                shared.queue.notify();
            }
            Home::Failed => shared.queue.close(),
        },
        Err(error) => {
            job.fail(error);
            if guard.abandon() {
                shared.queue.close();
            }
        }
    }
}

/// A lane on a node: takes the most urgent Ready slot, of equally urgent ones a slot of its own
/// node first, and leaves five points. The heap is closed for it, but for what goes wrong.
pub(super) fn lane(shared: &Shared, number: usize, node: usize, lane: &mut dyn Lane) {
    heap::close_thread();
    let key = |filled: &Filled| {
        let (priority, arrival, partition) = filled.task.key();
        let far = filled.node != node;
        (!far || shared.roam).then_some((priority, far, arrival, partition))
    };
    while let Some(filled) = shared.queue.next(|waiting| take_first(&mut waiting.ready, key)) {
        let Filled { task, slot, .. } = filled;
        let class = &shared.classes[task.job.class];
        if task.job.failed() {
            drop(slot);
            shared.queue.close();
            continue;
        }
        let began = Instant::now();
        let at = |stage| {
            shared.stages.go(number, stage);
            let (arrival, partition) = (task.job.arrival, task.partition);
            let what = What::Lane { lane: number, stage, arrival, partition };
            (shared.hooks.event)(&Event { class: task.job.class, node, what });
            // The slot may have gone home in the middle of the lane's work.
            shared.queue.changed();
        };
        let attempt = usize::from(task.job.state().attempts[task.partition]);
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let mut sums = lane.sums(&class.compiled, &class.srs[node], slot, &at)?;
            (shared.hooks.sums)(task.partition, attempt, &mut sums);
            Ok(sums)
        }));
        at(Stage::Idle);
        task.job.state().times.prove += began.elapsed();
        match outcome {
            Ok(Ok(sums)) => {
                let backend = lane.backend();
                shared.queue.lock().summed.push(Summed { task, sums, backend });
                shared.queue.notify();
            }
            Ok(Err(error)) => heap::opened(|| again(shared, task, error)),
            Err(panic) => {
                task.job.fail(heap::opened(|| panicked("the lane", &panic)));
                shared.queue.close();
            }
        }
    }
}

/// A finish thread: r and s, assembly, the pairing check, and one more try if it fails.
pub(super) fn finish(shared: &Shared) {
    let key = |summed: &Summed| Some(summed.task.key());
    while let Some(summed) = shared.queue.next(|waiting| take_first(&mut waiting.summed, key)) {
        let Summed { task, sums, backend } = summed;
        if task.job.failed() {
            shared.queue.close();
            continue;
        }
        let began = Instant::now();
        let checked = catch_unwind(AssertUnwindSafe(|| check(shared, &task, &sums)))
            .unwrap_or_else(|panic| Err(panicked("the verifier", &panic)));
        task.job.state().times.verify += began.elapsed();
        match checked {
            Ok(Some(proof)) => {
                task.job.store(task.partition, proof, backend);
                shared.queue.close();
            }
            Ok(None) => {
                let error = unverified(task.partition);
                again(shared, task, error);
            }
            Err(error) => {
                task.job.fail(error);
                shared.queue.close();
            }
        }
    }
}

/// The proof's bytes if they verify.
fn check(
    shared: &Shared,
    task: &Task,
    sums: &crate::groth16::Sums,
) -> crate::error::Result<Option<[u8; crate::groth16::PROOF_BYTES]>> {
    (shared.hooks.finish)(task.partition);
    let class = &shared.classes[task.job.class];
    let bytes = assemble(&class.key, sums, Blinding::draw()?)?;
    let inputs = &task.job.input.public_inputs[task.partition];
    // What is checked is what is handed out: the bytes, read back.
    let valid = match Proof::read(&bytes, 0) {
        Ok(proof) => class.prepared.verify(&proof, inputs)?,
        Err(_) => false,
    };
    Ok(valid.then_some(bytes))
}

/// A partition that a lane failed on, or whose proof its own key does not accept, is made once
/// more; twice is an error.
fn again(shared: &Shared, task: Task, error: Error) {
    let mut state = task.job.state();
    let attempts = &mut state.attempts[task.partition];
    *attempts += 1;
    if *attempts == 1 {
        state.redone += 1;
        drop(state);
        log::warn!("partition {} is made once more: {error}", task.partition);
        shared.queue.lock().pending.push(task);
        shared.queue.notify();
        return;
    }
    drop(state);
    let error = match error {
        // The hashes may have been left to the witness, which does not read all of them.
        Error::Unverified(_) => task.job.input.vanilla.check_hashes().err().unwrap_or(error),
        error => error,
    };
    task.job.fail(error);
    shared.queue.close();
}

fn unverified(partition: usize) -> Error {
    Error::Unverified(format!(
        "partition {partition} does not verify, though its vanilla proof passed every check; \
         suspect the memory or processor of this host, or parameters of another circuit"
    ))
}

fn panicked(who: &str, panic: &Box<dyn std::any::Any + Send>) -> Error {
    let what = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_string())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a message".into());
    Error::Device(format!("{who} gave up: {what}"))
}
