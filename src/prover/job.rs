//! One request on its way: its input, the proofs made so far, and who waits for them.

use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::groth16::PROOF_BYTES;
use crate::input::Input;

/// How urgent a request is. More urgent partitions take the next free slot and the next free
/// lane, ahead of everything less urgent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    Low,
    Normal,
    High,
    Critical,
}

/// Where the time of a request went. Witness, prove and verify are summed over partitions, so
/// they can exceed the total when threads work side by side.
#[derive(Clone, Copy, Debug, Default)]
pub struct Times {
    /// From submission to the last verified proof.
    pub total: Duration,
    /// From submission to the first slot.
    pub queue: Duration,
    /// Filling slots.
    pub witness: Duration,
    /// On a lane.
    pub prove: Duration,
    /// Assembly and pairing check.
    pub verify: Duration,
}

/// The finished proofs of a request.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// 192 bytes per partition, in order; every one passed the pairing check.
    pub proofs: Vec<[u8; PROOF_BYTES]>,
    /// The backend that made each partition.
    pub backends: Vec<&'static str>,
    /// Partitions that failed the pairing check once and were made again.
    pub redone: usize,
    pub times: Times,
}

pub(super) struct State {
    pub proofs: Vec<Option<([u8; PROOF_BYTES], &'static str)>>,
    pub attempts: Vec<u8>,
    pub redone: usize,
    pub times: Times,
    pub error: Option<Error>,
    pub begun: bool,
    pub finished: bool,
}

/// A request in the prover. The input is kept until the last proof is verified, so that a
/// partition that must be made again can be.
pub(super) struct Job {
    pub input: Input,
    /// Index of its circuit class in the prover.
    pub class: usize,
    pub priority: Priority,
    pub arrival: u64,
    began: Instant,
    state: Mutex<State>,
    done: Condvar,
}

impl Job {
    pub fn new(input: Input, class: usize, priority: Priority, arrival: u64) -> Self {
        let partitions = input.partitions();
        Job {
            input,
            class,
            priority,
            arrival,
            began: Instant::now(),
            state: Mutex::new(State {
                proofs: vec![None; partitions],
                attempts: vec![0; partitions],
                redone: 0,
                times: Times::default(),
                error: None,
                begun: false,
                finished: false,
            }),
            done: Condvar::new(),
        }
    }

    /// The state; a poisoned lock is taken as it is, since every update is a plain store.
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// True once the request has failed: its remaining partitions are not worth making.
    pub fn failed(&self) -> bool {
        self.state().error.is_some()
    }

    /// A partition has a slot.
    pub fn begin(&self) {
        let mut state = self.state();
        if !state.begun {
            state.begun = true;
            state.times.queue = self.began.elapsed();
        }
    }

    /// Ends the request with its first error.
    pub fn fail(&self, error: Error) {
        let mut state = self.state();
        if !state.finished {
            state.error = Some(error);
            state.finished = true;
            drop(state);
            self.done.notify_all();
        }
    }

    /// Stores a verified proof; true when it was the last one.
    pub fn store(&self, partition: usize, proof: [u8; PROOF_BYTES], backend: &'static str) -> bool {
        let mut state = self.state();
        state.proofs[partition] = Some((proof, backend));
        if state.finished || state.proofs.iter().any(Option::is_none) {
            return false;
        }
        state.finished = true;
        state.times.total = self.began.elapsed();
        drop(state);
        self.done.notify_all();
        true
    }
}

/// The caller's end of a request.
pub struct Ticket {
    pub(super) job: Arc<Job>,
}

impl Ticket {
    /// Waits for the request to end.
    ///
    /// # Errors
    /// The first error of any of its partitions.
    pub fn wait(self) -> Result<Outcome> {
        let mut state = self.job.state();
        while !state.finished {
            state = self.job.done.wait(state).unwrap_or_else(|e| e.into_inner());
        }
        if let Some(error) = state.error.take() {
            return Err(error);
        }
        let made = state.proofs.iter().flatten();
        Ok(Outcome {
            proofs: made.clone().map(|(proof, _)| *proof).collect(),
            backends: made.map(|(_, backend)| *backend).collect(),
            redone: state.redone,
            times: state.times,
        })
    }
}
