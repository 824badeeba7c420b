//! The prover: owns the slots, the lanes and every thread of the data path.
//!
//! ```text
//! submit -> pending -> [synthesis thread takes a Free slot, parts, fills] -> ready
//!        -> [lane: five sums, slot Free] -> summed -> [finish: r, s, verify] -> stored
//! ```
//!
//! A partition waits as a few words in a list until a slot is free for it; owning a slot is the
//! only admission, so memory does not depend on what is queued.

mod fixed;
mod job;
mod queue;
pub mod setup;
mod threads;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;

use job::Job;
pub use job::{Outcome, Priority, Ticket};
use queue::Queue;

use crate::circuit::compiled::Compiled;
use crate::error::{Error, Result};
use crate::groth16::assemble::VerifyingKey;
use crate::groth16::verify::PreparedKey;
use crate::groth16::{Lane, Sums};
use crate::input::Input;
use crate::input::class::CircuitId;
use crate::memory::slot::SlotPool;
use crate::srs::read::Srs;
use crate::team;

/// One enabled circuit: its compiled form, its parameters and its slots.
pub struct Class {
    pub id: CircuitId,
    pub compiled: Arc<Compiled>,
    pub srs: Srs,
    pub key: VerifyingKey,
    pub prepared: PreparedKey,
    pub pool: SlotPool,
}

/// Called with (partition, attempt, sums) when a lane is done with a partition, on the thread
/// that drives the lane.
pub type SumsHook = Box<dyn Fn(usize, usize, &mut Sums) + Send + Sync>;

/// Called with a partition before it is assembled and verified, on the finishing thread.
pub type FinishHook = Box<dyn Fn(usize) + Send + Sync>;

/// Where tests reach in. A panic in a hook counts as one in the step it is called from.
pub struct Hooks {
    pub sums: SumsHook,
    pub finish: FinishHook,
}

impl Default for Hooks {
    fn default() -> Self {
        Hooks { sums: Box::new(|_, _, _| {}), finish: Box::new(|_| {}) }
    }
}

struct Shared {
    classes: Vec<Class>,
    queue: Queue,
    hooks: Hooks,
}

/// The running prover.
pub struct Prover {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    arrivals: AtomicU64,
}

/// Finish threads: r, s, assembly and pairing check take milliseconds beside a lane's seconds.
const FINISH_THREADS: usize = 1;

impl Prover {
    /// Starts the threads: one synthesis thread per entry of `synthesis_cpus` (`None`: not
    /// pinned), one driving thread per lane, and the finish.
    ///
    /// # Errors
    /// [`Error::Host`] when a thread cannot be made.
    pub fn start(
        classes: Vec<Class>,
        lanes: Vec<Box<dyn Lane>>,
        synthesis_cpus: &[Option<usize>],
        hooks: Hooks,
    ) -> Result<Self> {
        assert!(classes.len() <= 64 && !classes.is_empty() && !lanes.is_empty());
        assert!(!synthesis_cpus.is_empty(), "a plan has at least one partition worker");
        let slots = classes.iter().map(|class| class.pool.count()).sum();
        let parts = classes.iter().map(|c| c.pool.count() * c.compiled.shape.parts()).sum();
        let shared = Arc::new(Shared { classes, queue: Queue::new(slots, parts), hooks });
        let mut prover = Prover { shared, threads: Vec::new(), arrivals: AtomicU64::new(0) };
        for (number, cpu) in synthesis_cpus.iter().copied().enumerate() {
            prover.spawn(format!("synthesis-{number}"), move |shared| {
                if let Some(cpu) = cpu {
                    team::pin(cpu);
                }
                threads::synthesis(shared);
            })?;
        }
        for (number, mut lane) in lanes.into_iter().enumerate() {
            prover.spawn(format!("lane-{number}"), move |shared| {
                threads::lane(shared, lane.as_mut());
            })?;
        }
        for number in 0..FINISH_THREADS {
            prover.spawn(format!("finish-{number}"), threads::finish)?;
        }
        Ok(prover)
    }

    fn spawn(&mut self, name: String, work: impl FnOnce(&Shared) + Send + 'static) -> Result<()> {
        let shared = Arc::clone(&self.shared);
        let thread = std::thread::Builder::new()
            .name(name.clone())
            .spawn(move || work(&shared))
            .map_err(|e| Error::Host(format!("cannot make thread {name}: {e}")))?;
        self.threads.push(thread);
        Ok(())
    }

    /// Takes in a request.
    ///
    /// # Errors
    /// [`Error::Config`] when the request's circuit is not enabled, [`Error::Input`] when there
    /// is nothing in it to prove.
    pub fn submit(&self, input: Input, priority: Priority) -> Result<Ticket> {
        let classes = &self.shared.classes;
        let class =
            classes.iter().position(|class| class.id == input.circuit).ok_or_else(|| {
                Error::Config(format!("circuit {} is not enabled (BERTH_CIRCUITS)", input.circuit))
            })?;
        if input.partitions() == 0 {
            return Err(Error::input("partitions", "the request has none"));
        }
        let arrival = self.arrivals.fetch_add(1, Ordering::Relaxed);
        let job = Arc::new(Job::new(input, class, priority, arrival));
        self.shared.queue.submit(&job);
        Ok(Ticket { job })
    }

    /// The enabled circuits.
    pub fn classes(&self) -> &[Class] {
        &self.shared.classes
    }

    /// Finishes what was taken in, then ends every thread.
    ///
    /// # Panics
    /// If a slot is not home then: it would be lost to a prover that goes on.
    pub fn stop(mut self) {
        self.end(false);
        for class in &self.shared.classes {
            let occupancy = class.pool.occupancy();
            assert_eq!(occupancy.home, class.pool.count(), "{}: {occupancy:?}", class.id);
        }
    }

    fn end(&mut self, abandon: bool) {
        self.shared.queue.drain(abandon);
        for thread in self.threads.drain(..) {
            // A panic on a thread of ours was already reported by the panic hook.
            let _ = thread.join();
        }
    }
}

/// Gives up what has not begun, finishes what has, and ends every thread.
impl Drop for Prover {
    fn drop(&mut self) {
        self.end(true);
    }
}

#[cfg(test)]
mod tests;
