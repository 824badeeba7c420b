//! What happens to slots and lanes, as it happens: told to a hook, and counted from the same moves.

use std::sync::{Mutex, MutexGuard};

use crate::groth16::Stage;
use crate::memory::slot::Place;

/// A move of a slot or a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Index of the circuit in the prover.
    pub class: usize,
    /// Index of the node in the plan.
    pub node: usize,
    pub what: What,
}

/// What moved, and where to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    Slot {
        /// Position in its pool.
        index: usize,
        place: Place,
    },
    Lane {
        /// Number of the lane in the prover.
        lane: usize,
        stage: Stage,
        /// Number of the request, in the order of submission, and its partition.
        arrival: u64,
        partition: usize,
    },
}

/// Which lane is at what.
pub(super) struct Stages {
    lanes: Mutex<Lanes>,
}

struct Lanes {
    at: Box<[Stage]>,
    /// The most lanes that were ever at each stage, in the order of [`Stage::ALL`].
    peak: [usize; Stage::ALL.len()],
}

impl Stages {
    pub fn new(lanes: usize) -> Self {
        let mut peak = [0; Stage::ALL.len()];
        peak[Stage::Idle as usize] = lanes;
        Stages { lanes: Mutex::new(Lanes { at: vec![Stage::Idle; lanes].into(), peak }) }
    }

    /// A lane goes on to a stage.
    pub fn go(&self, lane: usize, stage: Stage) {
        let mut lanes = self.lock();
        lanes.at[lane] = stage;
        let now = lanes.at.iter().filter(|at| **at == stage).count();
        let peak = &mut lanes.peak[stage as usize];
        *peak = now.max(*peak);
    }

    /// Lanes at each stage now, and the most that ever were, in the order of [`Stage::ALL`].
    pub fn counts(&self) -> [(usize, usize); Stage::ALL.len()] {
        let lanes = self.lock();
        Stage::ALL.map(|stage| {
            let now = lanes.at.iter().filter(|at| **at == stage).count();
            (now, lanes.peak[stage as usize])
        })
    }

    fn lock(&self) -> MutexGuard<'_, Lanes> {
        self.lanes.lock().unwrap_or_else(|e| e.into_inner())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peaks_are_counted_from_the_moves() {
        let stages = Stages::new(2);
        stages.go(0, Stage::Rows);
        stages.go(1, Stage::Rows);
        stages.go(0, Stage::H);
        let of = |stage: Stage| stages.counts()[stage as usize];
        assert_eq!(of(Stage::Idle), (0, 2));
        assert_eq!(of(Stage::Rows), (1, 2));
        assert_eq!(of(Stage::H), (1, 1));
        assert_eq!(of(Stage::L), (0, 0));
    }

    #[test]
    fn the_list_of_stages_is_in_their_order() {
        for (index, stage) in Stage::ALL.into_iter().enumerate() {
            assert_eq!(stage as usize, index);
        }
    }
}
