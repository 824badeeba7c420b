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

/// Heap that is held at once while one part of a witness is made: none by native code, whose
/// tables are there when the process is measured.
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
    let lanes: usize = nodes.iter().map(|node| node.lane_cpus.len()).sum();
    let all = workers + lanes + nodes.len() + OTHER_THREADS;
    let witness = needs.iter().map(|need| witness_bytes(need.id.kind, maker)).max().unwrap_or(0);
    all * THREAD_BYTES + workers * witness + FINISH_BYTES
}
