//! What waits for whom: partitions for slots, parts for threads, slots for lanes, sums for the
//! finish.
//!
//! The order is priority, then arrival, then partition. Nothing here holds a witness but the
//! slots themselves, so the queue cannot grow the memory: owning a slot is the only admission.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, Weak};

use super::job::Job;
use crate::error::Error;
use crate::groth16::Sums;
use crate::memory::slot::{Part, Ready, Slot};

/// Priority, arrival, partition: the most urgent is the least.
pub(super) type Key = (std::cmp::Reverse<super::Priority>, u64, usize);

/// One partition of a request.
#[derive(Clone)]
pub(super) struct Task {
    pub job: Arc<Job>,
    pub partition: usize,
}

impl Task {
    /// Most urgent first: smallest key.
    pub fn key(&self) -> Key {
        (std::cmp::Reverse(self.job.priority), self.job.arrival, self.partition)
    }
}

/// A part of a slot that is being filled.
pub(super) struct Begun {
    pub task: Task,
    /// Index of the slot's node.
    pub node: usize,
    pub part: Part,
}

/// A partition whose witness is there.
pub(super) struct Filled {
    pub task: Task,
    /// Index of the slot's node.
    pub node: usize,
    pub slot: Slot<Ready>,
}

/// A partition whose sums are there.
pub(super) struct Summed {
    pub task: Task,
    pub sums: Sums,
    pub backend: &'static str,
}

/// A request whose input is in memory: as long as somebody has the job, a partition that is being
/// made or whoever waits for the outcome.
struct Held {
    job: Weak<Job>,
    class: usize,
    /// Bytes of its input.
    bytes: usize,
}

/// Inputs of one class, and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Inputs {
    pub count: usize,
    pub bytes: usize,
    /// The most that ever were, each by itself.
    pub peak_count: usize,
    pub peak_bytes: usize,
}

/// Everything that waits. What can be in a slot has its room from the start, the rest is made when
/// a request comes in, so that lanes and synthesis threads move things without allocating.
pub(super) struct Waiting {
    /// Partitions without a slot.
    pub pending: Vec<Task>,
    /// Parts of slots that are being filled.
    pub parts: Vec<Begun>,
    /// Filled slots.
    pub ready: Vec<Filled>,
    /// Sums to be blinded, assembled and verified.
    pub summed: Vec<Summed>,
    /// No new work; threads end when nothing is left.
    pub draining: bool,
    /// Partitions that were taken in and are neither verified nor given up.
    pub open: usize,
    held: Vec<Held>,
    /// Of each class, as it was when the last request came: it never grows in between.
    inputs: Vec<Inputs>,
}

/// The queue: one lock, one condition for every change.
pub(super) struct Queue {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

impl Queue {
    /// A queue in front of so many slots, which have so many parts in all.
    pub fn new(slots: usize, parts: usize) -> Self {
        let waiting = Waiting {
            pending: Vec::new(),
            parts: Vec::with_capacity(parts),
            ready: Vec::with_capacity(slots),
            summed: Vec::new(),
            draining: false,
            open: 0,
            held: Vec::new(),
            inputs: Vec::new(),
        };
        Queue { waiting: Mutex::new(waiting), changed: Condvar::new() }
    }

    pub fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Waits for the next change.
    pub fn wait<'a>(&self, waiting: MutexGuard<'a, Waiting>) -> MutexGuard<'a, Waiting> {
        self.changed.wait(waiting).unwrap_or_else(|e| e.into_inner())
    }

    pub fn notify(&self) {
        self.changed.notify_all();
    }

    /// Something that threads look at beside the lists has changed: a slot is free.
    pub fn changed(&self) {
        // With the lock no thread is between its look and its wait.
        drop(self.lock());
        self.notify();
    }

    /// Calls `take` until it gives something, waiting for changes in between; `None` when the
    /// queue drains and nothing is open any more.
    pub fn next<T>(&self, mut take: impl FnMut(&mut Waiting) -> Option<T>) -> Option<T> {
        let mut waiting = self.lock();
        loop {
            if let Some(taken) = take(&mut waiting) {
                return Some(taken);
            }
            if waiting.over() {
                return None;
            }
            waiting = self.wait(waiting);
        }
    }

    /// Takes in the partitions of a request.
    pub fn submit(&self, job: &Arc<Job>) {
        let held =
            Held { job: Arc::downgrade(job), class: job.class, bytes: job.input.held_bytes() };
        let mut waiting = self.lock();
        waiting.held.push(held);
        waiting.count_inputs();
        let partitions = job.input.partitions();
        waiting.open += partitions;
        // Any of them may come back to be made once more, or wait for the finish.
        let open = waiting.open;
        reserve(&mut waiting.pending, open);
        reserve(&mut waiting.summed, open);
        for partition in 0..partitions {
            waiting.pending.push(Task { job: Arc::clone(job), partition });
        }
        drop(waiting);
        self.notify();
    }

    /// The inputs of each class that are in memory; classes that never had one may be left out.
    pub fn inputs(&self) -> Vec<Inputs> {
        let mut waiting = self.lock();
        waiting.count_inputs();
        waiting.inputs.clone()
    }

    /// Has everything ended, so that the threads go, too?
    pub fn over(&self) -> bool {
        self.lock().over()
    }

    /// Takes no new work; with `abandon` what has no slot yet is given up, too.
    pub fn drain(&self, abandon: bool) {
        let mut waiting = self.lock();
        waiting.draining = true;
        if abandon {
            for task in &waiting.pending {
                task.job.fail(Error::Host("the prover ended before the request was done".into()));
            }
        }
        drop(waiting);
        self.notify();
    }

    /// One partition is verified or given up.
    pub fn close(&self) {
        let mut waiting = self.lock();
        waiting.open -= 1;
        drop(waiting);
        self.notify();
    }
}

impl Waiting {
    fn over(&self) -> bool {
        self.draining && self.open == 0
    }

    /// Counts the inputs anew, from those that are there.
    fn count_inputs(&mut self) {
        self.held.retain(|held| held.job.strong_count() > 0);
        for inputs in &mut self.inputs {
            (inputs.count, inputs.bytes) = (0, 0);
        }
        for held in &self.held {
            if held.class >= self.inputs.len() {
                self.inputs.resize(held.class + 1, Inputs::default());
            }
            let inputs = &mut self.inputs[held.class];
            inputs.count += 1;
            inputs.bytes += held.bytes;
        }
        for inputs in &mut self.inputs {
            inputs.peak_count = inputs.peak_count.max(inputs.count);
            inputs.peak_bytes = inputs.peak_bytes.max(inputs.bytes);
        }
    }
}

fn reserve<T>(list: &mut Vec<T>, total: usize) {
    list.reserve(total.saturating_sub(list.len()));
}

/// Takes the entry with the least key out of a list; those without a key stay.
pub(super) fn take_first<T, K: Ord>(list: &mut Vec<T>, key: impl Fn(&T) -> Option<K>) -> Option<T> {
    let keys = list.iter().enumerate().filter_map(|(i, entry)| Some((key(entry)?, i)));
    let (_, first) = keys.min()?;
    Some(list.swap_remove(first))
}
