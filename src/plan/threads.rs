//! Which CPUs work, at what, and on which node the memory is.

use crate::config::{Config, Mode};
use crate::error::{Error, Result};
use crate::host::{Host, Node};

/// Threads and their CPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Threads {
    /// Synthesis threads.
    pub partition_workers: usize,
    /// The CPU of each synthesis thread; CPUs repeat where there are more threads.
    pub synthesis_cpus: Vec<usize>,
    /// The CPU of each thread of the CPU lane. Both kinds share the cores: the lane has by far
    /// the greater part of the work.
    pub lane_cpus: Vec<usize>,
}

impl Threads {
    /// Decides the threads; the caller needs them to say what a lane needs.
    ///
    /// # Errors
    /// [`Error::Config`] where `BERTH_CPUS` names a CPU that is not allowed, [`Error::Host`]
    /// where no CPU is left.
    pub fn new(config: &Config, host: &Host) -> Result<Self> {
        let nodes = usable(config, host)?;
        let cores: Vec<&Vec<usize>> = if config.numa == Mode::Strict {
            home(&nodes)?.cores.iter().collect()
        } else {
            nodes.iter().flat_map(|node| &node.cores).collect()
        };
        if cores.is_empty() {
            return Err(Error::Host("no CPU is allowed on a node with memory".to_owned()));
        }
        let default = cores.len().saturating_sub(1).max(1);
        let partition_workers = config.partition_workers.unwrap_or(default);
        // From the last core down, so that core 0, where the kernel's own work is, comes last.
        let first: Vec<usize> = cores.iter().rev().map(|core| core[0]).collect();
        let synthesis_cpus = first.iter().copied().cycle().take(partition_workers).collect();
        let mut lane_cpus: Vec<usize> = cores.iter().copied().flatten().copied().collect();
        lane_cpus.sort_unstable();
        Ok(Threads { partition_workers, synthesis_cpus, lane_cpus })
    }
}

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

/// The node of the arenas: of those with memory the one with the most cores, the first of equals.
pub(super) fn home(nodes: &[Node]) -> Result<&Node> {
    nodes
        .iter()
        .filter(|node| node.memory_available_bytes > 0)
        .reduce(|best, node| if node.cores.len() > best.cores.len() { node } else { best })
        .ok_or_else(|| Error::Host("no node has memory that this process may take".to_owned()))
}
