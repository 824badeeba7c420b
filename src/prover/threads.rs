//! What each kind of thread does: synthesis fills slots, a lane sums, the finish blinds and
//! verifies.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use super::queue::{Summed, Task, Waiting, take_first};
use super::{Priority, Shared};
use crate::error::Error;
use crate::groth16::Lane;
use crate::groth16::assemble::{Blinding, assemble};
use crate::groth16::verify::Proof;
use crate::memory::slot::{Free, Home, Part, Ready, Slot};
use crate::witness::generic;

/// What a synthesis thread does next.
pub(super) enum Step {
    Part(Task, Part),
    Partition(Task, Slot<Free>),
    /// A partition of a failed request was taken off the list.
    GiveUp,
}

/// A synthesis thread: finishes slots that are begun before it begins another of no higher
/// priority, takes the most urgent partition that has a free slot, and ends when the queue has
/// drained.
pub(super) fn synthesis(shared: &Shared) {
    let mut take = |class: usize| shared.classes[class].pool.try_take();
    while let Some(step) = shared.queue.next(|waiting| next_step(waiting, &mut take)) {
        match step {
            Step::Part(task, guard) => fill(shared, task, guard),
            Step::Partition(task, slot) => {
                let mut waiting = shared.queue.lock();
                for guard in slot.fill().split() {
                    waiting.parts.push((task.clone(), guard));
                }
                drop(waiting);
                shared.queue.notify();
            }
            Step::GiveUp => shared.queue.close(),
        }
    }
}

/// What to do next, if there is anything; `take` gives a slot of a class, if one is free.
pub(super) fn next_step(
    waiting: &mut Waiting,
    take: &mut impl FnMut(usize) -> Option<Slot<Free>>,
) -> Option<Step> {
    let begun = waiting.parts.iter().map(|(task, _)| task.job.priority).max();
    begin(waiting, begun, take).or_else(|| {
        let (task, guard) = take_first(&mut waiting.parts, |(task, _)| task)?;
        Some(Step::Part(task, guard))
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

fn fill(shared: &Shared, task: Task, mut guard: Part) {
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
        generic::fill_part(input, compiled, task.partition, part, wides, bits)
    }))
    .unwrap_or_else(|panic| Err(panicked("the witness", &panic)));
    job.state().times.witness += began.elapsed();
    match filled {
        Ok(()) => match guard.finish() {
            Home::Waiting => {}
            Home::Ready(slot) => {
                shared.queue.lock().ready.push((task, slot));
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

/// A lane: takes the most urgent Ready slot, leaves five points.
pub(super) fn lane(shared: &Shared, lane: &mut dyn Lane) {
    while let Some((task, slot)) = shared
        .queue
        .next(|waiting| take_first(&mut waiting.ready, |(task, _): &(Task, Slot<Ready>)| task))
    {
        let class = &shared.classes[task.job.class];
        if task.job.failed() {
            drop(slot);
            shared.queue.close();
            continue;
        }
        let began = Instant::now();
        let attempt = usize::from(task.job.state().attempts[task.partition]);
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let mut sums = lane.sums(&class.compiled, &class.srs, slot)?;
            (shared.hooks.sums)(task.partition, attempt, &mut sums);
            Ok(sums)
        }));
        task.job.state().times.prove += began.elapsed();
        match outcome {
            Ok(Ok(sums)) => {
                let backend = lane.backend();
                shared.queue.lock().summed.push(Summed { task, sums, backend });
                shared.queue.notify();
            }
            Ok(Err(error)) => again(shared, task, error),
            Err(panic) => {
                task.job.fail(panicked("the lane", &panic));
                shared.queue.close();
            }
        }
    }
}

/// A finish thread: r and s, assembly, the pairing check, and one more try if it fails.
pub(super) fn finish(shared: &Shared) {
    while let Some(summed) =
        shared.queue.next(|waiting| take_first(&mut waiting.summed, |summed| &summed.task))
    {
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
