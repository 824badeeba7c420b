//! Nodes, cores, memory and hugepages.

use std::collections::BTreeSet;
use std::io::Result;
use std::path::Path;

use crate::files::{kilobytes, numbered, read, read_if_there, read_list, read_number, wrong};

/// The pool of hugetlb pages of one size on one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HugePages {
    pub page_bytes: usize,
    /// Pages in the pool.
    pub total: usize,
    /// Pages that are neither in use nor promised to a mapping that has not touched them yet.
    pub free: usize,
}

/// One NUMA node, or the whole host where the kernel knows no nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    pub id: usize,
    /// Online CPUs by physical core: the SMT siblings of each core, ascending; cores in order of
    /// their first CPU.
    pub cores: Vec<Vec<usize>>,
    pub memory_total_bytes: u64,
    /// Bytes that no page holds, hugetlb pools apart.
    pub memory_free_bytes: u64,
    /// Free bytes and the file pages that the kernel would give up for them.
    pub memory_available_bytes: u64,
    /// Ascending by page size.
    pub hugepages: Vec<HugePages>,
    /// How far this node is from each of [`Topology::nodes`], in their order: 10 for its own
    /// memory, 20 for memory that takes twice as long; empty where the kernel does not say.
    pub distances: Vec<u32>,
}

impl Node {
    /// Online CPUs, ascending.
    pub fn cpus(&self) -> Vec<usize> {
        let mut cpus: Vec<usize> = self.cores.concat();
        cpus.sort_unstable();
        cpus
    }
}

/// A host as sysfs shows it; what this process may use of it is in [`crate::Limits`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Topology {
    /// Ascending by id; nodes without CPUs or without memory included.
    pub nodes: Vec<Node>,
    /// False where the kernel has no NUMA support: then all is in one made-up node 0.
    pub numa: bool,
    /// Bytes that the kernel can give to new pages (`MemAvailable`).
    pub memory_available_bytes: u64,
    /// Pools of the whole host, ascending by page size. Their free pages can be fewer than those
    /// of the nodes together: the kernel counts promises to mappings for all nodes as one.
    pub hugepages: Vec<HugePages>,
    /// Bytes of a transparent hugepage; `None` where they are off.
    pub transparent_bytes: Option<usize>,
}

impl Topology {
    /// Reads the topology under `root`.
    ///
    /// # Errors
    /// A file that is missing, unreadable or not as the kernel writes it; the error names it.
    pub fn read(root: &Path) -> Result<Self> {
        let sys = root.join("sys/devices/system");
        let meminfo_path = root.join("proc/meminfo");
        let meminfo = read(&meminfo_path)?;
        let online = read_list(&sys.join("cpu/online"))?;
        let ids = numbered(&sys.join("node"), "node", "")?;
        let numa = !ids.is_empty();
        let pools = unpromised(&root.join("sys/kernel/mm/hugepages"))?;
        let mut nodes = Vec::new();
        for &id in &ids {
            let mut node = node(&sys, id, &online, ids.len())?;
            for pool in &mut node.hugepages {
                // No node may offer more than the host has.
                let host = pools.iter().find(|host| host.page_bytes == pool.page_bytes);
                pool.free = host.map_or(pool.free, |host| pool.free.min(host.free));
            }
            nodes.push(node);
        }
        if !numa {
            let free = kilobytes(&meminfo_path, &meminfo, "MemFree")?;
            nodes.push(Node {
                id: 0,
                cores: cores(&sys, &online)?,
                memory_total_bytes: kilobytes(&meminfo_path, &meminfo, "MemTotal")?,
                memory_free_bytes: free,
                memory_available_bytes: kilobytes(&meminfo_path, &meminfo, "MemAvailable")?,
                hugepages: pools.clone(),
                distances: Vec::new(),
            });
        }
        Ok(Topology {
            nodes,
            numa,
            memory_available_bytes: kilobytes(&meminfo_path, &meminfo, "MemAvailable")?,
            hugepages: pools,
            transparent_bytes: transparent(&root.join("sys/kernel/mm/transparent_hugepage"))?,
        })
    }
}

fn node(sys: &Path, id: usize, online: &[usize], nodes: usize) -> Result<Node> {
    let folder = sys.join(format!("node/node{id}"));
    let mut cpus = read_list(&folder.join("cpulist"))?;
    cpus.retain(|cpu| online.binary_search(cpu).is_ok());
    let path = folder.join("meminfo");
    let meminfo = read(&path)?;
    let bytes = |key| kilobytes(&path, &meminfo, key);
    let free = bytes("MemFree")?;
    Ok(Node {
        id,
        cores: cores(sys, &cpus)?,
        memory_total_bytes: bytes("MemTotal")?,
        memory_free_bytes: free,
        memory_available_bytes: free
            .saturating_add(bytes("Active(file)")?)
            .saturating_add(bytes("Inactive(file)")?),
        hugepages: hugepages(&folder.join("hugepages"))?,
        distances: distances(&folder.join("distance"), nodes)?,
    })
}

/// One number for each node that is online, or none where there is no such file.
fn distances(path: &Path, nodes: usize) -> Result<Vec<u32>> {
    let Some(text) = read_if_there(path)? else { return Ok(Vec::new()) };
    let distances: Option<Vec<u32>> =
        text.split_whitespace().map(|distance| distance.parse().ok()).collect();
    distances
        .filter(|distances| distances.len() == nodes)
        .ok_or_else(|| wrong(path, &text, &format!("a distance to each of {nodes} nodes")))
}

/// Groups `cpus` by core; a CPU whose siblings the kernel does not tell is a core of its own.
fn cores(sys: &Path, cpus: &[usize]) -> Result<Vec<Vec<usize>>> {
    let mut left: BTreeSet<usize> = cpus.iter().copied().collect();
    let mut cores = Vec::new();
    while let Some(cpu) = left.pop_first() {
        let path = sys.join(format!("cpu/cpu{cpu}/topology/thread_siblings_list"));
        let siblings = if path.exists() { read_list(&path)? } else { Vec::new() };
        let mut core = vec![cpu];
        core.extend(siblings.into_iter().filter(|sibling| left.remove(sibling)));
        cores.push(core);
    }
    Ok(cores)
}

fn hugepages(folder: &Path) -> Result<Vec<HugePages>> {
    let mut pools = Vec::new();
    for kilobytes in numbered(folder, "hugepages-", "kB")? {
        let pool = folder.join(format!("hugepages-{kilobytes}kB"));
        pools.push(HugePages {
            page_bytes: kilobytes.saturating_mul(1024),
            total: read_number(&pool.join("nr_hugepages"))? as usize,
            free: read_number(&pool.join("free_hugepages"))? as usize,
        });
    }
    Ok(pools)
}

/// The pools of the whole host, without the pages that are promised to mappings.
fn unpromised(folder: &Path) -> Result<Vec<HugePages>> {
    let mut pools = hugepages(folder)?;
    for pool in &mut pools {
        let name = format!("hugepages-{}kB/resv_hugepages", pool.page_bytes / 1024);
        pool.free = pool.free.saturating_sub(read_number(&folder.join(name))? as usize);
    }
    Ok(pools)
}

fn transparent(folder: &Path) -> Result<Option<usize>> {
    let Some(enabled) = read_if_there(&folder.join("enabled"))? else { return Ok(None) };
    if enabled.contains("[never]") {
        return Ok(None);
    }
    let path = folder.join("hpage_pmd_size");
    let bytes = read_number(&path)?;
    // Arenas are rounded up to it, so a size that no page can have must not get further than here.
    if !bytes.is_power_of_two() || !(1 << 12..=1 << 40).contains(&bytes) {
        let expected = "a power of two from 4096 to 2^40";
        return Err(wrong(&path, &bytes.to_string(), expected));
    }
    Ok(Some(bytes as usize))
}

#[cfg(test)]
mod tests;
