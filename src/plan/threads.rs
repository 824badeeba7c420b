//! Which CPUs work, and at what.
//!
//! Synthesis threads stand one per physical core, on its first SMT sibling. The lane has a thread
//! on every CPU of its node and shares the cores with synthesis by design: on the CPU backend the
//! lane has by far the greater part of the work, and cores kept for either would idle while the
//! other works. What is neither, the housekeeping, runs on cores without a synthesis thread.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use crate::config::Config;
use crate::error::{Error, Result};
use crate::host::{Host, Node};

/// The CPUs that work may use: those that are allowed and that `BERTH_CPUS` leaves, ascending.
///
/// # Errors
/// [`Error::Config`] where `BERTH_CPUS` names a CPU that is not allowed, [`Error::Host`] where no
/// CPU is left.
pub fn cpus(config: &Config, host: &Host) -> Result<Vec<usize>> {
    let mut cpus: Vec<usize> = usable(config, host)?.iter().flat_map(Node::cpus).collect();
    if cpus.is_empty() {
        return Err(Error::Host("no CPU is left to this process".to_owned()));
    }
    cpus.sort_unstable();
    Ok(cpus)
}

/// The nodes with the CPUs that `BERTH_CPUS` leaves.
pub(super) fn usable(config: &Config, host: &Host) -> Result<Vec<Node>> {
    let mut nodes = host.nodes.clone();
    if let Some(wanted) = &config.cpus {
        let allowed = host.cpus();
        let strange: Vec<usize> =
            wanted.iter().copied().filter(|cpu| !allowed.contains(cpu)).collect();
        if !strange.is_empty() {
            return Err(Error::Config(format!(
                "BERTH_CPUS names {}, offline or not allowed to this process; allowed: {}",
                numa::format_list(&strange),
                numa::format_list(&allowed)
            )));
        }
        for node in &mut nodes {
            for core in &mut node.cores {
                core.retain(|cpu| wanted.contains(cpu));
            }
            node.cores.retain(|core| !core.is_empty());
        }
    }
    Ok(nodes)
}

/// Divides a total in proportion to weights, with at least 1 for each. One by one to whom it leaves
/// best off (D'Hondt), the last of equals: so of all cores but one, as synthesis threads, every
/// node gets its own number, and the first of the largest one less.
///
/// # Panics
/// If there is not 1 for each, or a weight is 0.
pub(super) fn apportion(total: usize, weights: &[usize]) -> Vec<usize> {
    assert!(total >= weights.len() && weights.iter().all(|weight| *weight > 0));
    let sum: usize = weights.iter().sum();
    // All that is certain at once; what is left is less than one for each.
    let over = (total - weights.len()) as u128;
    let mut shares: Vec<usize> =
        weights.iter().map(|weight| 1 + (over * *weight as u128 / sum as u128) as usize).collect();
    let claim = |index: usize, share: usize| Claim { weight: weights[index], share, index };
    let mut claims: BinaryHeap<Claim> =
        shares.iter().enumerate().map(|(index, share)| claim(index, *share)).collect();
    for _ in shares.iter().sum()..total {
        let best = claims.pop().expect("something is left only if there is somebody").index;
        shares[best] += 1;
        claims.push(claim(best, shares[best]));
    }
    shares
}

/// Somebody who could have one more; the greatest is whom that leaves best off.
#[derive(PartialEq, Eq)]
struct Claim {
    weight: usize,
    share: usize,
    index: usize,
}

impl Ord for Claim {
    fn cmp(&self, other: &Self) -> Ordering {
        // Weight per share, multiplied across, if each had one more.
        let worth = |of: &Self, by: &Self| of.weight as u128 * (by.share as u128 + 1);
        worth(self, other).cmp(&worth(other, self)).then(self.index.cmp(&other.index))
    }
}

impl PartialOrd for Claim {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The CPUs of so many synthesis threads on a node: from the last core down, then on cores that
/// other nodes lend, and on the first core last, so that it is the one left to housekeeping and, on
/// node 0, to the kernel's own work. More threads than cores begin again.
pub(super) fn synthesis_cpus(own: &[Vec<usize>], lent: &[&[usize]], count: usize) -> Vec<usize> {
    let own = || own.iter().map(Vec::as_slice);
    let cores = own().skip(1).rev().chain(lent.iter().copied().rev()).chain(own().next());
    let first: Vec<usize> = cores.map(|core| core[0]).collect();
    first.iter().copied().cycle().take(count).collect()
}

/// All CPUs of the cores without a synthesis thread, ascending; every CPU where each core has one.
pub(super) fn housekeeping_cpus(nodes: &[Node], synthesis: &[usize]) -> Vec<usize> {
    let cores = || nodes.iter().flat_map(|node| &node.cores);
    let free = cores().filter(|core| !core.iter().any(|cpu| synthesis.contains(cpu)));
    let mut cpus: Vec<usize> = free.flatten().copied().collect();
    if cpus.is_empty() {
        cpus = cores().flatten().copied().collect();
    }
    cpus.sort_unstable();
    cpus
}
