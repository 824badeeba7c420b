//! The plan's term `fixed`: all memory that no arena and no compiled circuit holds.
//!
//! Program and heap are measured when the circuits are compiled; what threads, witnesses and the
//! finish take after that is added, per thread, as measured on x86-64 with the published circuit
//! code 19.1. A test compares the sum with the peak over many proofs.

use crate::config::WitnessMaker;
use crate::input::class::Kind;
use crate::memory::heap::ProcessBytes;
use crate::plan::{ClassNeed, NodePlan};

/// Pages of a thread's stack that are used, and its share of the heap's own tables.
const THREAD_BYTES: usize = 96 << 10;
/// Threads beside those of the plan and the one that drives each lane: the finish.
const OTHER_THREADS: usize = 1;
/// Prepared keys, the verifier's heap, and pages of the program that only proving touches.
const FINISH_BYTES: usize = 256 << 10;

/// Heap that a thread holds while it fills a slot with a part of a witness: none by native code,
/// whose tables are there when the process is measured.
fn witness_bytes(kind: Kind, maker: WitnessMaker) -> usize {
    match kind {
        _ if maker.is_native(kind) => 0,
        Kind::Window | Kind::Winning => 768 << 10,
        Kind::Porep | Kind::Update => 3584 << 10,
    }
}

/// Bytes of the process as it is `now`, less the compiled circuits, and what comes once it proves
/// with threads on the given nodes.
pub(super) fn fixed_bytes(
    needs: &[ClassNeed<'_>],
    maker: WitnessMaker,
    now: &ProcessBytes,
    nodes: &[NodePlan],
) -> usize {
    let compiled: usize = needs.iter().map(|need| need.compiled_bytes).sum();
    (now.current() as usize).saturating_sub(compiled) + still_to_come(needs, maker, nodes)
}

fn still_to_come(needs: &[ClassNeed<'_>], maker: WitnessMaker, nodes: &[NodePlan]) -> usize {
    let workers: usize = nodes.iter().map(|node| node.synthesis_cpus.len()).sum();
    // A thread without a slot waits, and holds no part of a witness.
    let filling: usize = nodes.iter().map(|node| node.synthesis_cpus.len().min(node.slots)).sum();
    let lanes: usize = nodes.iter().map(|node| node.lane_cpus.len()).sum();
    let all = workers + lanes + nodes.len() + OTHER_THREADS;
    let witness = needs.iter().map(|need| witness_bytes(need.id.kind, maker)).max().unwrap_or(0);
    all * THREAD_BYTES + filling * witness + FINISH_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::circuit::shape::{PartShape, Shape};

    #[test]
    fn no_more_threads_fill_than_there_are_slots() {
        let part = PartShape { inputs: 4, bits: 4096, wides: 60, rows: 5000 };
        let need = |id: &str| ClassNeed {
            id: id.parse().unwrap(),
            shape: Shape { header: part, block: part, repeats: 2 },
            srs_bytes: 1,
            lane_bytes: &|_| 1,
            compiled_bytes: 1,
        };
        let node = |node, slots, workers: usize| NodePlan {
            node,
            slots,
            synthesis_cpus: (0..workers).collect(),
            lane_cpus: vec![0, 1],
            ordinary_bytes: 0,
            available_bytes: 0,
            pools: Vec::new(),
        };
        let needs = [need("window-2k"), need("porep-2k")];
        let bytes = |nodes: &[NodePlan]| still_to_come(&needs, WitnessMaker::Generic, nodes);
        let threads = |count: usize| count * THREAD_BYTES + FINISH_BYTES;
        let witness = witness_bytes(Kind::Porep, WitnessMaker::Generic);
        assert!(witness > 0);
        // Workers, lane threads, the lane's driver, the finish.
        assert_eq!(bytes(&[node(0, 6, 4)]), threads(4 + 2 + 1 + 1) + 4 * witness);
        assert_eq!(bytes(&[node(0, 1, 40)]), threads(40 + 2 + 1 + 1) + witness);
        // Slots of one node are not filled by threads of another.
        let two = [node(0, 1, 40), node(1, 9, 3)];
        assert_eq!(bytes(&two), threads(43 + 4 + 2 + 1) + 4 * witness);
    }
}
