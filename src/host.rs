//! The host as one value: what there is, less what this process may not use.

use std::path::Path;

use numa::{HugePages, Limits, Topology};

use crate::error::{Error, Result};

/// One NUMA node, as far as this process may use it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    pub id: usize,
    /// Allowed CPUs by physical core, SMT siblings together.
    pub cores: Vec<Vec<usize>>,
    /// Free bytes and the file pages that the kernel would give up for them; 0 where this process
    /// may take no memory from the node.
    pub memory_available_bytes: u64,
    /// Pools of hugetlb pages, ascending by page size; none where memory is not allowed.
    pub hugepages: Vec<HugePages>,
}

impl Node {
    /// Allowed CPUs, ascending.
    pub fn cpus(&self) -> Vec<usize> {
        let mut cpus = self.cores.concat();
        cpus.sort_unstable();
        cpus
    }
}

/// How much memory outside of hugetlb pools this process can still take, and what says so.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryBound {
    pub bytes: u64,
    pub by: String,
}

/// The host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Host {
    /// Nodes with an allowed CPU or allowed memory, ascending.
    pub nodes: Vec<Node>,
    /// False where the kernel has no NUMA support; node 0 is then the whole host.
    pub numa: bool,
    pub base_page_bytes: usize,
    /// Bytes of a transparent hugepage; `None` where they are off.
    pub transparent_bytes: Option<usize>,
    /// Bytes that this process may lock in memory; `None` without a limit.
    pub lock_bytes: Option<u64>,
    /// The tightest bound on memory.
    pub memory: MemoryBound,
}

impl Host {
    /// Reads this host.
    ///
    /// # Errors
    /// [`Error::Host`] naming the file that is missing or wrong.
    pub fn read() -> Result<Self> {
        Self::read_under(Path::new("/"))
    }

    /// Reads a host from the files under `root`, see the crate `numa`.
    ///
    /// # Errors
    /// As [`Host::read`].
    pub fn read_under(root: &Path) -> Result<Self> {
        let told = |e: std::io::Error| Error::Host(format!("cannot read the host: {e}"));
        let topology = Topology::read(root).map_err(told)?;
        let limits = Limits::read(root).map_err(told)?;
        Ok(Self::new(&topology, &limits, base_page_bytes()))
    }

    /// What `limits` leave of `topology`.
    pub fn new(topology: &Topology, limits: &Limits, base_page_bytes: usize) -> Self {
        let allowed = |id| limits.memory_nodes.as_ref().is_none_or(|nodes| nodes.contains(&id));
        let nodes: Vec<Node> = topology
            .nodes
            .iter()
            .map(|node| {
                let mut cores = node.cores.clone();
                for core in &mut cores {
                    core.retain(|cpu| limits.cpus.as_ref().is_none_or(|cpus| cpus.contains(cpu)));
                }
                cores.retain(|core| !core.is_empty());
                let memory = !topology.numa || allowed(node.id);
                Node {
                    id: node.id,
                    cores,
                    memory_available_bytes: if memory { node.memory_available_bytes } else { 0 },
                    hugepages: if memory { node.hugepages.clone() } else { Vec::new() },
                }
            })
            .filter(|node| !node.cores.is_empty() || node.memory_available_bytes > 0)
            .collect();
        Host {
            memory: memory_bound(topology, limits, &nodes),
            nodes,
            numa: topology.numa,
            base_page_bytes,
            transparent_bytes: topology.transparent_bytes,
            lock_bytes: limits.lock_bytes,
        }
    }

    /// Allowed CPUs of all nodes, ascending.
    pub fn cpus(&self) -> Vec<usize> {
        let mut cpus: Vec<usize> = self.nodes.iter().flat_map(Node::cpus).collect();
        cpus.sort_unstable();
        cpus
    }
}

fn memory_bound(topology: &Topology, limits: &Limits, nodes: &[Node]) -> MemoryBound {
    let mut bound = MemoryBound {
        bytes: topology.memory_available_bytes,
        by: "the free memory of the host (MemAvailable)".to_owned(),
    };
    if let Some(allowed) = &limits.memory_nodes
        && topology.nodes.iter().any(|node| !allowed.contains(&node.id))
    {
        let bytes = nodes.iter().map(|node| node.memory_available_bytes).sum();
        if bytes < bound.bytes {
            let list = numa::format_list(allowed);
            let by = format!("the free memory of the allowed nodes {list} (Mems_allowed)");
            bound = MemoryBound { bytes, by };
        }
    }
    if let Some(group) = &limits.cgroup
        && group.available_bytes < bound.bytes
    {
        bound = MemoryBound {
            bytes: group.available_bytes,
            by: format!("the control group ({} is {})", group.file.display(), group.limit_bytes),
        };
    }
    if let Some(left) = limits.address_bytes
        && left.saturating_sub(ADDRESS_RESERVE_BYTES) < bound.bytes
    {
        bound = MemoryBound {
            bytes: left.saturating_sub(ADDRESS_RESERVE_BYTES),
            by:
                "the limit of address space or data (ulimit -v, -d), less what threads and heap map"
                    .to_owned(),
        };
    }
    bound
}

/// Address space that stacks of threads, the allocator and loaded libraries map beside what they
/// use. Short of it a new thread can die in the C library, without an error that could be told.
const ADDRESS_RESERVE_BYTES: u64 = 192 << 20;

/// Bytes of a base page.
pub fn base_page_bytes() -> usize {
    // SAFETY: the call has no arguments and no effect.
    unsafe { crate::sys::berth_page_bytes() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use numa::MemoryLimit;

    fn topology() -> Topology {
        let node = |id: usize, cores: &[[usize; 2]]| numa::Node {
            id,
            cores: cores.iter().map(|core| core.to_vec()).collect(),
            memory_available_bytes: 100,
            hugepages: vec![HugePages { page_bytes: 2 << 20, total: 4, free: 3 }],
            ..Default::default()
        };
        Topology {
            nodes: vec![node(0, &[[0, 4], [1, 5]]), node(1, &[[2, 6], [3, 7]])],
            numa: true,
            memory_available_bytes: 190,
            transparent_bytes: None,
        }
    }

    fn limits() -> Limits {
        Limits {
            cpus: None,
            memory_nodes: Some(vec![0, 1]),
            cgroup: None,
            lock_bytes: None,
            address_bytes: None,
        }
    }

    #[test]
    fn all_is_allowed() {
        let host = Host::new(&topology(), &limits(), 4096);
        assert_eq!(host.cpus(), (0..8).collect::<Vec<_>>());
        assert_eq!(host.memory.bytes, 190);
        assert!(host.memory.by.contains("MemAvailable"));
    }

    #[test]
    fn a_process_bound_to_one_node_sees_that_node_alone() {
        let limits = Limits { cpus: Some(vec![0, 1, 5]), memory_nodes: Some(vec![0]), ..limits() };
        let host = Host::new(&topology(), &limits, 4096);
        assert_eq!(host.nodes.len(), 1);
        assert_eq!(host.nodes[0].cores, [vec![0], vec![1, 5]]);
        assert_eq!(host.memory.bytes, 100);
        assert!(host.memory.by.contains("allowed nodes 0"), "{}", host.memory.by);
    }

    #[test]
    fn cpus_without_memory_and_memory_without_cpus() {
        let limits = Limits { cpus: Some(vec![0, 4]), memory_nodes: Some(vec![1]), ..limits() };
        let host = Host::new(&topology(), &limits, 4096);
        assert_eq!(host.nodes.len(), 2);
        assert_eq!(host.nodes[0].memory_available_bytes, 0);
        assert!(host.nodes[0].hugepages.is_empty());
        assert!(host.nodes[1].cores.is_empty());
    }

    #[test]
    fn the_control_group_decides_where_it_is_tightest() {
        let mut limits = limits();
        let file = std::path::PathBuf::from("/sys/fs/cgroup/a/memory.max");
        limits.cgroup = Some(MemoryLimit { limit_bytes: 70, available_bytes: 60, file });
        let host = Host::new(&topology(), &limits, 4096);
        assert_eq!(host.memory.bytes, 60);
        assert!(host.memory.by.contains("/a/memory.max") && host.memory.by.contains("70"));
    }

    /// `core_affinity` asks the kernel in another way.
    #[test]
    fn this_host_has_the_cpus_of_the_affinity_mask() {
        let host = Host::read().unwrap();
        let mut cpus: Vec<usize> =
            core_affinity::get_core_ids().unwrap().iter().map(|core| core.id).collect();
        cpus.sort_unstable();
        assert_eq!(host.cpus(), cpus);
        assert!(host.base_page_bytes.is_power_of_two());
        assert!(host.memory.bytes > 0);
    }
}
