//! The host as one value: what there is, less what this process may not use.

use std::path::Path;

use numa::{HugePages, Limits, MemoryLimit, Topology};

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
    /// Other nodes by id and how far each is, 10 for no way at all; empty where the kernel does
    /// not say.
    pub distances: Vec<(usize, u32)>,
}

impl Node {
    /// Allowed CPUs, ascending.
    pub fn cpus(&self) -> Vec<usize> {
        let mut cpus = self.cores.concat();
        cpus.sort_unstable();
        cpus
    }

    /// How far another node is; all are equally far where the kernel does not say.
    pub fn distance(&self, to: usize) -> u32 {
        self.distances.iter().find(|(id, _)| *id == to).map_or(u32::MAX, |(_, distance)| *distance)
    }
}

/// How much memory outside of hugetlb pools this process can still take, and what says so.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryBound {
    pub bytes: u64,
    pub by: String,
}

/// How many hugetlb pages of one size this process can still take from all nodes together, where
/// that can be less than what the pools of its nodes hold, and what says so.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HugetlbLimit {
    pub page_bytes: usize,
    pub available_bytes: u64,
    pub by: String,
    /// What to do about it, for messages.
    pub remedy: String,
}

/// A GPU that the PCI bus shows; whether a driver can use it is not known here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gpu {
    /// As the kernel writes it, `0000:65:00.0`.
    pub address: String,
    /// The node whose memory is nearest; `None` where the firmware does not say.
    pub node: Option<usize>,
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
    /// Memory that this process can take before its control group slows it down (`memory.high`);
    /// `None` where no group does.
    pub throttle: Option<MemoryBound>,
    /// The tightest bound for each size of hugetlb pages that has one, ascending by page size.
    pub hugetlb_limits: Vec<HugetlbLimit>,
    /// GPUs of NVIDIA, ascending by PCI address.
    pub gpus: Vec<Gpu>,
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
        let gpus = numa::pci::nvidia_gpus(root).map_err(told)?;
        let gpus = gpus.into_iter().map(|gpu| Gpu { address: gpu.address, node: gpu.node });
        Ok(Host { gpus: gpus.collect(), ..Self::new(&topology, &limits, base_page_bytes()) })
    }

    /// What `limits` leave of `topology`, apart from GPUs.
    pub fn new(topology: &Topology, limits: &Limits, base_page_bytes: usize) -> Self {
        let allowed = |id| limits.memory_nodes.as_ref().is_none_or(|nodes| nodes.contains(&id));
        let ids = topology.nodes.iter().map(|node| node.id);
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
                    distances: ids.clone().zip(node.distances.iter().copied()).collect(),
                }
            })
            .filter(|node| !node.cores.is_empty() || node.memory_available_bytes > 0)
            .collect();
        Host {
            memory: memory_bound(topology, limits, &nodes),
            throttle: limits.cgroup_high.as_ref().map(group_bound),
            hugetlb_limits: hugetlb_limits(topology, limits, &nodes),
            gpus: Vec::new(),
            nodes,
            numa: topology.numa,
            base_page_bytes,
            transparent_bytes: topology.transparent_bytes,
            lock_bytes: limits.lock_bytes,
        }
    }

    /// Takes over what another look at this host found in the pools of hugetlb pages.
    pub fn hugepages_of(&mut self, later: &Host) {
        for node in &mut self.nodes {
            if let Some(found) = later.nodes.iter().find(|found| found.id == node.id) {
                node.hugepages.clone_from(&found.hugepages);
            }
        }
        self.hugetlb_limits.clone_from(&later.hugetlb_limits);
    }

    /// Allowed CPUs of all nodes, ascending.
    pub fn cpus(&self) -> Vec<usize> {
        let mut cpus: Vec<usize> = self.nodes.iter().flat_map(Node::cpus).collect();
        cpus.sort_unstable();
        cpus
    }
}

fn group_bound(group: &MemoryLimit) -> MemoryBound {
    MemoryBound {
        bytes: group.available_bytes,
        by: format!("the control group ({} is {})", group.file.display(), group.limit_bytes),
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
        let bytes =
            nodes.iter().map(|node| node.memory_available_bytes).fold(0, u64::saturating_add);
        if bytes < bound.bytes {
            let list = numa::format_list(allowed);
            let by = format!("the free memory of the allowed nodes {list} (Mems_allowed)");
            bound = MemoryBound { bytes, by };
        }
    }
    if let Some(group) = &limits.cgroup
        && group.available_bytes < bound.bytes
    {
        bound = group_bound(group);
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

/// What binds all nodes together: the control groups, and the promises that the kernel made to
/// mappings, which it counts for the whole host. For each size of pages the tighter one.
fn hugetlb_limits(topology: &Topology, limits: &Limits, nodes: &[Node]) -> Vec<HugetlbLimit> {
    let groups = limits.hugetlb.iter().map(|group| HugetlbLimit {
        page_bytes: group.page_bytes,
        available_bytes: group.available_bytes,
        by: format!("the control group ({} is {})", group.file.display(), group.limit_bytes),
        remedy: format!("raise the limit {}", group.file.display()),
    });
    let bytes = |pool: &HugePages| (pool.free as u64).saturating_mul(pool.page_bytes as u64);
    let promises = topology.hugepages.iter().filter_map(|host| {
        let pools = nodes.iter().flat_map(|node| &node.hugepages);
        let pools = pools.filter(|pool| pool.page_bytes == host.page_bytes);
        let free = pools.map(bytes).fold(0, u64::saturating_add);
        let by = "the pages of all nodes that are not promised to mappings (resv_hugepages)";
        (bytes(host) < free).then(|| HugetlbLimit {
            page_bytes: host.page_bytes,
            available_bytes: bytes(host),
            by: by.to_owned(),
            remedy: "reserve as many more, or end what was promised them".to_owned(),
        })
    });
    let mut tightest: Vec<HugetlbLimit> = groups.chain(promises).collect();
    tightest.sort_by_key(|limit| (limit.page_bytes, limit.available_bytes));
    tightest.dedup_by_key(|limit| limit.page_bytes);
    tightest
}

/// Address space that stacks of threads, the allocator and loaded libraries map beside what they
/// use. Short of it a new thread can die in the C library, without an error that could be told.
const ADDRESS_RESERVE_BYTES: u64 = 192 << 20;

/// Bytes of a base page.
pub fn base_page_bytes() -> usize {
    // SAFETY: the call has no arguments and no effect.
    unsafe { crate::sys::berth_page_bytes() }
}

/// Can libcuda be opened? Nothing is initialized.
pub fn driver_present() -> bool {
    // SAFETY: opens the driver's library by name and closes it; its constructors are NVIDIA's and
    // run in every program that uses a card.
    unsafe { cudarc::driver::sys::is_culib_present() }
}

#[cfg(test)]
mod tests;
