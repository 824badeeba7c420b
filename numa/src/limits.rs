//! What this process may use of the host: CPUs, nodes, memory, locked memory.

use std::io::Result;
use std::path::Path;

use crate::files::{kilobytes, parse_list, read, read_if_there, wrong};

mod cgroup;

pub use cgroup::{HugetlbLimit, MemoryLimit};

/// Bit of `CAP_IPC_LOCK` in `CapEff` (linux/capability.h): locks memory without a limit.
const CAP_IPC_LOCK: u32 = 14;

/// What this process may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// CPUs that the affinity mask and the cpuset leave to this process, ascending; `None` where
    /// the kernel does not say (some sandboxes).
    pub cpus: Option<Vec<usize>>,
    /// Nodes that this process may take memory from, ascending; `None` where the kernel knows no
    /// nodes.
    pub memory_nodes: Option<Vec<usize>>,
    /// The memory limit of the control groups; `None` without one.
    pub cgroup: Option<MemoryLimit>,
    /// Where the control groups begin to slow this process down and to take its pages back
    /// (`memory.high`, version 2); `None` without such a mark.
    pub cgroup_high: Option<MemoryLimit>,
    /// Limits of the control groups on hugetlb pages, ascending by page size; sizes without a limit
    /// are left out.
    pub hugetlb: Vec<HugetlbLimit>,
    /// Bytes that this process may lock; `None` without a limit, 0 where the kernel does not say.
    pub lock_bytes: Option<u64>,
    /// Bytes of address space that this process may still map (ulimit -v, ulimit -d); `None`
    /// without a limit.
    pub address_bytes: Option<u64>,
}

impl Limits {
    /// Reads the limits of this process from the files under `root`.
    ///
    /// # Errors
    /// A file that is missing, unreadable or not as the kernel writes it; the error names it.
    pub fn read(root: &Path) -> Result<Self> {
        let path = root.join("proc/self/status");
        let status = read(&path)?;
        let list = |key: &str| match field(&status, key) {
            None => Ok(None),
            Some(text) => match parse_list(text) {
                Some(list) => Ok(Some(list)),
                None => Err(wrong(&path, text, &format!("a list of {key}"))),
            },
        };
        let capabilities = field(&status, "CapEff")
            .and_then(|text| u64::from_str_radix(text, 16).ok())
            .unwrap_or(0);
        let lifted = capabilities >> CAP_IPC_LOCK & 1 == 1 && initial_user_namespace(root)?;
        let lock_bytes = if lifted { None } else { lock_limit(root)? };
        let left = |name: &str, used: &str| -> Result<Option<u64>> {
            let used = crate::status_bytes(&status, used);
            Ok(limit(root, name)?.flatten().map(|most| most.saturating_sub(used)))
        };
        let (address, data) =
            (left("Max address space", "VmSize")?, left("Max data size", "VmData")?);
        let address_bytes = address.into_iter().chain(data).min();
        Ok(Limits {
            cpus: list("Cpus_allowed_list")?,
            memory_nodes: list("Mems_allowed_list")?,
            cgroup: cgroup::memory(root)?,
            cgroup_high: cgroup::memory_high(root)?,
            hugetlb: cgroup::hugetlb(root)?,
            lock_bytes,
            address_bytes,
        })
    }
}

/// The value of a line `Key:\tvalue`.
fn field<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (head, value) = line.split_once(':')?;
        (head == key).then(|| value.trim())
    })
}

/// The kernel asks for capabilities over locked memory in the initial user namespace, the one that
/// maps every user to itself; in another, as in a rootless container, they lift no limit. A kernel
/// without such namespaces has no map.
fn initial_user_namespace(root: &Path) -> Result<bool> {
    let map = read_if_there(&root.join("proc/self/uid_map"))?;
    Ok(map.is_none_or(|map| map.split_whitespace().eq(["0", "0", "4294967295"])))
}

/// What may be locked; 0 where the kernel does not say.
fn lock_limit(root: &Path) -> Result<Option<u64>> {
    match limit(root, "Max locked memory")? {
        Some(limit) => Ok(limit),
        None if root.join("proc/self/limits").exists() => {
            let path = root.join("proc/self/limits");
            Err(wrong(&path, &read(&path)?, "a line \"Max locked memory\""))
        }
        None => Ok(Some(0)),
    }
}

/// A soft limit of this process: `Some(None)` is unlimited, `None` where the kernel does not say.
fn limit(root: &Path, name: &str) -> Result<Option<Option<u64>>> {
    let path = root.join("proc/self/limits");
    let Some(text) = read_if_there(&path)? else { return Ok(None) };
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let Some(soft) = line.and_then(|line| line.split_whitespace().next()) else { return Ok(None) };
    if soft == "unlimited" {
        return Ok(Some(None));
    }
    let bytes = soft.parse().map_err(|_| wrong(&path, soft, "a number of bytes"))?;
    Ok(Some(Some(bytes)))
}

/// Bytes of a line of `/proc/self/status` such as `VmHWM`; 0 where the kernel has no such line.
pub fn status_bytes(status: &str, key: &str) -> u64 {
    kilobytes(Path::new("/proc/self/status"), status, key).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Fixture;

    const STATUS: &str = "Name:\tx\nCapEff:\t0000000000000000\nCpus_allowed_list:\t0-1,4\n\
                          Mems_allowed_list:\t1\n";
    const LIMITS: &str = "Limit  Soft Limit  Hard Limit  Units\n\
                          Max locked memory         8388608              8388608     bytes\n";

    fn fixture() -> Fixture {
        let fixture = Fixture::new();
        fixture.file("proc/self/status", STATUS);
        fixture.file("proc/self/limits", LIMITS);
        fixture
    }

    #[test]
    fn cpus_nodes_and_lock_limit() {
        let fixture = fixture();
        let limits = Limits::read(fixture.root()).unwrap();
        assert_eq!(limits.cpus, Some(vec![0, 1, 4]));
        assert_eq!(limits.memory_nodes, Some(vec![1]));
        assert_eq!(limits.lock_bytes, Some(8 << 20));
        assert_eq!(limits.cgroup, None);

        fixture.file("proc/self/limits", "Max locked memory  unlimited unlimited bytes\n");
        assert_eq!(Limits::read(fixture.root()).unwrap().lock_bytes, None);
        fixture.file("proc/self/limits", "Max locked memory  many many bytes\n");
        let error = Limits::read(fixture.root()).unwrap_err().to_string();
        assert!(error.contains("many") && error.contains("proc/self/limits"), "{error}");
    }

    #[test]
    fn a_sandbox_that_says_little() {
        let fixture = Fixture::new();
        fixture.file("proc/self/status", "Name:\tx\n");
        let limits = Limits::read(fixture.root()).unwrap();
        let nothing = Limits {
            cpus: None,
            memory_nodes: None,
            cgroup: None,
            cgroup_high: None,
            hugetlb: Vec::new(),
            lock_bytes: Some(0),
            address_bytes: None,
        };
        assert_eq!(limits, nothing);
    }

    #[test]
    fn the_lock_capability_lifts_the_limit() {
        let fixture = fixture();
        let status = STATUS.replace("0000000000000000", "0000000000004000");
        fixture.file("proc/self/status", &status);
        assert_eq!(Limits::read(fixture.root()).unwrap().lock_bytes, None);

        // It counts in the initial user namespace alone.
        let with_map = |map: &str| {
            fixture.file("proc/self/uid_map", map);
            Limits::read(fixture.root()).unwrap().lock_bytes
        };
        assert_eq!(with_map("         0          0 4294967295\n"), None);
        for other in ["0 1000 1\n", "0 100000 65536\n", "0 0 1\n", "0 0 1\n1 1 4294967294\n", ""] {
            assert_eq!(with_map(other), Some(8 << 20), "{other:?}");
        }
    }

    /// A kernel for many nodes and CPUs writes its lists alike; the masks beside them are not read.
    #[test]
    fn more_nodes_than_64_and_more_cpus_than_1024() {
        let fixture = fixture();
        let status = "Cpus_allowed:\tff,ffffffff\nCpus_allowed_list:\t0,1024-2303,8191\n\
                      Mems_allowed:\t00000000,00000001\nMems_allowed_list:\t0-63,65,1023\n";
        fixture.file("proc/self/status", status);
        let limits = Limits::read(fixture.root()).unwrap();
        let cpus = limits.cpus.unwrap();
        assert_eq!((cpus.len(), cpus[1], cpus.last()), (1282, 1024, Some(&8191)));
        let nodes = limits.memory_nodes.unwrap();
        assert_eq!((nodes.len(), &nodes[63..]), (66, &[63, 65, 1023][..]));

        fixture.file("proc/self/status", "Mems_allowed_list:\t0-65535\n");
        let nodes = Limits::read(fixture.root()).unwrap().memory_nodes.unwrap();
        assert_eq!(nodes, (0..65_536).collect::<Vec<_>>());
        fixture.file("proc/self/status", "Mems_allowed_list:\t0-65536\n");
        let error = Limits::read(fixture.root()).unwrap_err().to_string();
        assert!(error.contains("Mems_allowed_list") && error.contains("0-65536"), "{error}");
    }

    #[test]
    fn this_process() {
        let limits = Limits::read(Path::new("/")).unwrap();
        assert!(limits.cpus.is_none_or(|cpus| !cpus.is_empty()));
    }
}
