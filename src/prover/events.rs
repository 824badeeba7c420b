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

/// The lanes of all nodes, and which of them is at what.
pub(super) struct Stages {
    lanes: Mutex<Vec<NodeLanes>>,
}

/// The lanes of one node, which are all alike.
struct NodeLanes {
    /// Number of the first in the prover.
    first: usize,
    /// Bytes of each.
    bytes: usize,
    at: Box<[Stage]>,
    /// The most lanes that were ever at each stage, in the order of [`Stage::ALL`].
    peak: [usize; Stage::ALL.len()],
}

/// How many lanes of a node are at a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Count {
    /// Index of the node.
    pub node: usize,
    pub stage: Stage,
    pub now: usize,
    /// The most that ever were.
    pub peak: usize,
    /// Bytes of each.
    pub bytes: usize,
}

impl NodeLanes {
    fn count(&self, stage: Stage) -> usize {
        self.at.iter().filter(|at| **at == stage).count()
    }
}

impl Stages {
    /// Lanes of each node: how many, and the bytes of each.
    pub fn new(nodes: impl Iterator<Item = (usize, usize)>) -> Self {
        let mut first = 0;
        let nodes = nodes.map(|(count, bytes)| {
            let mut peak = [0; Stage::ALL.len()];
            peak[Stage::Idle as usize] = count;
            first += count;
            NodeLanes { first: first - count, bytes, at: vec![Stage::Idle; count].into(), peak }
        });
        Stages { lanes: Mutex::new(nodes.collect()) }
    }

    /// A lane goes on to a stage.
    pub fn go(&self, lane: usize, stage: Stage) {
        let mut nodes = self.lock();
        // The last node whose first lane is not beyond this one.
        let node = nodes.iter_mut().rev().find(|node| node.first <= lane);
        let node = node.expect("the first lane has the number 0");
        node.at[lane - node.first] = stage;
        let now = node.count(stage);
        let peak = &mut node.peak[stage as usize];
        *peak = now.max(*peak);
    }

    /// Every stage of every node, in the order of [`Stage::ALL`].
    pub fn counts(&self) -> Vec<Count> {
        let nodes = self.lock();
        let stages = |(node, lanes)| {
            let lanes: &NodeLanes = lanes;
            Stage::ALL.into_iter().map(move |stage| Count {
                node,
                stage,
                now: lanes.count(stage),
                peak: lanes.peak[stage as usize],
                bytes: lanes.bytes,
            })
        };
        nodes.iter().enumerate().flat_map(stages).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<NodeLanes>> {
        self.lanes.lock().unwrap_or_else(|e| e.into_inner())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peaks_are_counted_from_the_moves() {
        let stages = Stages::new([(2, 100), (1, 70)].into_iter());
        stages.go(0, Stage::Rows);
        stages.go(1, Stage::Rows);
        stages.go(2, Stage::L);
        stages.go(0, Stage::H);
        let counts = stages.counts();
        let of = |node: usize, stage: Stage| {
            let count = counts[node * Stage::ALL.len() + stage as usize];
            assert_eq!((count.node, count.stage), (node, stage));
            (count.now, count.peak, count.bytes)
        };
        assert_eq!(of(0, Stage::Idle), (0, 2, 100));
        assert_eq!(of(0, Stage::Rows), (1, 2, 100));
        assert_eq!(of(0, Stage::H), (1, 1, 100));
        assert_eq!(of(0, Stage::L), (0, 0, 100));
        assert_eq!(of(1, Stage::Idle), (0, 1, 70));
        assert_eq!(of(1, Stage::L), (1, 1, 70));
    }

    #[test]
    fn the_list_of_stages_is_in_their_order() {
        for (index, stage) in Stage::ALL.into_iter().enumerate() {
            assert_eq!(stage as usize, index);
        }
    }
}
