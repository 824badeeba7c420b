//! The prover: owns the slots, the lanes and every thread of the data path.
//!
//! ```text
//! submit -> pending -> [synthesis thread takes a Free slot, parts, fills] -> ready
//!        -> [lane: five sums, slot Free] -> summed -> [finish: r, s, verify] -> stored
//! ```
//!
//! A partition waits as a few words in a list until a slot is free for it; owning a slot is the
//! only admission, so memory does not depend on what is queued.

mod build;
mod events;
mod fixed;
mod job;
pub mod ledger;
mod queue;
pub mod setup;
mod threads;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;

use events::Stages;
pub use events::{Event, What};
use job::Job;
pub use job::{Outcome, Priority, Ticket};
use ledger::Ledger;
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
use crate::witness::Witnesses;

/// One enabled circuit: its compiled form, its parameters and its slots.
pub struct Class {
    pub id: CircuitId,
    pub compiled: Arc<Compiled>,
    pub key: VerifyingKey,
    pub prepared: PreparedKey,
    /// The copy of each node, in the order of the plan's nodes.
    pub srs: Vec<Srs>,
    /// The slots of each node, likewise.
    pub pools: Vec<SlotPool>,
}

/// Who works on one node, in the order of the plan's nodes.
pub struct Crew {
    pub lanes: Vec<Box<dyn Lane>>,
    /// One synthesis thread for each; `None`: not pinned.
    pub synthesis_cpus: Vec<Option<usize>>,
}

/// Called with (partition, attempt, sums) when a lane is done with a partition, on the thread
/// that drives the lane.
pub type SumsHook = Box<dyn Fn(usize, usize, &mut Sums) + Send + Sync>;

/// Called with a partition before it is assembled and verified, on the finishing thread.
pub type FinishHook = Box<dyn Fn(usize) + Send + Sync>;

/// Called at every move of a slot and a lane, by the thread that makes it; it must be quick, and
/// allocate nothing, as it may stand in a lane's way.
pub type EventHook = Box<dyn Fn(&Event) + Send + Sync>;

/// Where tests reach in and the bench listens. A panic in a hook counts as one in the step it is
/// called from.
pub struct Hooks {
    pub sums: SumsHook,
    pub finish: FinishHook,
    pub event: EventHook,
}

impl Default for Hooks {
    fn default() -> Self {
        Hooks { sums: Box::new(|_, _, _| {}), finish: Box::new(|_| {}), event: Box::new(|_| {}) }
    }
}

struct Shared {
    classes: Vec<Class>,
    queue: Queue,
    witnesses: Arc<Witnesses>,
    hooks: Hooks,
    stages: Stages,
    /// May a lane read slots of other nodes?
    roam: bool,
}

/// The running prover.
pub struct Prover {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    arrivals: AtomicU64,
}

/// A way to a prover's ledger that does not keep the prover: for a thread that waits for a signal.
#[derive(Clone)]
pub struct Books {
    shared: Weak<Shared>,
}

impl Books {
    /// As [`Prover::ledger`]; `None` once the prover is at its end.
    pub fn ledger(&self) -> Option<Result<Ledger>> {
        let shared = self.shared.upgrade()?;
        let ledger = ledger::read(&shared);
        // Lanes may have gone while it was read, with their memory.
        (!shared.queue.over()).then_some(ledger)
    }
}

/// Finish threads: r, s, assembly and pairing check take milliseconds beside a lane's seconds.
const FINISH_THREADS: usize = 1;

impl Prover {
    /// Starts the threads of every node's crew, one driving thread per lane, and the finish, which
    /// runs where the caller may. With `roam` a lane that has nothing to do on its own node reads
    /// slots of others.
    ///
    /// # Errors
    /// [`Error::Host`] when a thread cannot be made.
    pub fn start(
        classes: Vec<Class>,
        crews: Vec<Crew>,
        witnesses: Arc<Witnesses>,
        roam: bool,
        hooks: Hooks,
    ) -> Result<Self> {
        assert!(classes.len() <= 64 && !classes.is_empty() && !crews.is_empty());
        for class in &classes {
            assert_eq!((class.pools.len(), class.srs.len()), (crews.len(), crews.len()));
        }
        for crew in &crews {
            assert!(!crew.lanes.is_empty() && !crew.synthesis_cpus.is_empty(), "a crew has both");
        }
        let pools = || classes.iter().flat_map(|class| &class.pools);
        let slots = pools().map(SlotPool::count).sum();
        let parts = pools().map(|pool| pool.count() * pool.shape().parts()).sum();
        let lanes = crews.iter().map(|crew| {
            let bytes: Vec<usize> = crew.lanes.iter().map(|lane| lane.bytes()).collect();
            assert!(bytes.iter().all(|other| *other == bytes[0]), "lanes of a node are alike");
            (bytes.len(), bytes[0])
        });
        let queue = Queue::new(slots, parts);
        let stages = Stages::new(lanes);
        let shared = Arc::new(Shared { classes, queue, witnesses, hooks, stages, roam });
        watch(&shared);
        let mut prover = Prover { shared, threads: Vec::new(), arrivals: AtomicU64::new(0) };
        let (mut synthesis, mut lane_number) = (0, 0);
        for (node, crew) in crews.into_iter().enumerate() {
            for cpu in crew.synthesis_cpus {
                prover.spawn(format!("synthesis-{synthesis}"), move |shared| {
                    if let Some(cpu) = cpu {
                        team::pin(cpu);
                    }
                    threads::synthesis(shared, node);
                })?;
                synthesis += 1;
            }
            for mut lane in crew.lanes {
                let number = lane_number;
                prover.spawn(format!("lane-{number}"), move |shared| {
                    threads::lane(shared, number, node, lane.as_mut());
                })?;
                lane_number += 1;
            }
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
            .map_err(|e| team::thread_error(&name, &e))?;
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

    /// What every large piece of memory is for, now.
    ///
    /// # Errors
    /// [`Error::Host`] where the kernel or the heap does not say what it takes.
    pub fn ledger(&self) -> Result<Ledger> {
        ledger::read(&self.shared)
    }

    /// The way to the ledger for a thread that does not own the prover.
    pub fn books(&self) -> Books {
        Books { shared: Arc::downgrade(&self.shared) }
    }

    /// Finishes what was taken in, then ends every thread.
    ///
    /// # Panics
    /// If a slot is not home then: it would be lost to a prover that goes on.
    pub fn stop(mut self) {
        self.end(false);
        for class in &self.shared.classes {
            for pool in &class.pools {
                let occupancy = pool.occupancy();
                assert_eq!(occupancy.home, pool.count(), "{}: {occupancy:?}", class.id);
            }
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

/// Has the pools tell the hook of events what their slots do.
fn watch(shared: &Arc<Shared>) {
    for (class, of) in shared.classes.iter().enumerate() {
        for (node, pool) in of.pools.iter().enumerate() {
            // Weak: what the pool holds must not hold the pool.
            let shared = Arc::downgrade(shared);
            pool.watch(Box::new(move |index, place| {
                if let Some(shared) = shared.upgrade() {
                    let what = What::Slot { index, place };
                    (shared.hooks.event)(&Event { class, node, what });
                }
            }));
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
