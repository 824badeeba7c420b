//! Nodes, cores, memory and hugepages.

use std::collections::BTreeSet;
use std::io::Result;
use std::path::Path;

use crate::files::{kilobytes, numbered, read, read_if_there, read_list, read_number};

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
        let mut nodes = Vec::new();
        for id in ids {
            nodes.push(node(&sys, id, &online)?);
        }
        if !numa {
            let free = kilobytes(&meminfo_path, &meminfo, "MemFree")?;
            nodes.push(Node {
                id: 0,
                cores: cores(&sys, &online)?,
                memory_total_bytes: kilobytes(&meminfo_path, &meminfo, "MemTotal")?,
                memory_free_bytes: free,
                memory_available_bytes: kilobytes(&meminfo_path, &meminfo, "MemAvailable")?,
                hugepages: hugepages(&root.join("sys/kernel/mm/hugepages"))?,
            });
        }
        keep_promises(&mut nodes, &root.join("sys/kernel/mm/hugepages"))?;
        Ok(Topology {
            nodes,
            numa,
            memory_available_bytes: kilobytes(&meminfo_path, &meminfo, "MemAvailable")?,
            transparent_bytes: transparent(&root.join("sys/kernel/mm/transparent_hugepage"))?,
        })
    }
}

fn node(sys: &Path, id: usize, online: &[usize]) -> Result<Node> {
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
        memory_available_bytes: free + bytes("Active(file)")? + bytes("Inactive(file)")?,
        hugepages: hugepages(&folder.join("hugepages"))?,
    })
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

/// Takes pages out of `free` that are promised to mappings: the kernel counts promises for all
/// nodes together (`resv_hugepages`), so no node may offer more than the host has unpromised.
fn keep_promises(nodes: &mut [Node], global: &Path) -> Result<()> {
    for pool in nodes.iter_mut().flat_map(|node| &mut node.hugepages) {
        let folder = global.join(format!("hugepages-{}kB", pool.page_bytes / 1024));
        if folder.exists() {
            let free = read_number(&folder.join("free_hugepages"))?;
            let promised = read_number(&folder.join("resv_hugepages"))?;
            pool.free = pool.free.min(free.saturating_sub(promised) as usize);
        }
    }
    Ok(())
}

fn transparent(folder: &Path) -> Result<Option<usize>> {
    let Some(enabled) = read_if_there(&folder.join("enabled"))? else { return Ok(None) };
    if enabled.contains("[never]") {
        return Ok(None);
    }
    Ok(Some(read_number(&folder.join("hpage_pmd_size"))? as usize))
}

#[cfg(test)]
pub(crate) mod tests;
