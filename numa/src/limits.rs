//! What this process may use of the host: CPUs, nodes, memory, locked memory.

use std::io::Result;
use std::path::{Path, PathBuf};

use crate::files::{kilobytes, parse_list, read, read_if_there, wrong};

/// Bit of `CAP_IPC_LOCK` in `CapEff` (linux/capability.h): locks memory without a limit.
const CAP_IPC_LOCK: u32 = 14;
/// A cgroup v1 limit from here on means none: it is `LONG_MAX` rounded down to a page.
const V1_UNLIMITED: u64 = 1 << 62;

/// The tightest memory limit of the control groups that this process is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryLimit {
    pub limit_bytes: u64,
    /// What the group may still take: the limit less what it uses, file pages apart.
    pub available_bytes: u64,
    /// The file that holds the limit.
    pub file: PathBuf,
}

/// What this process may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// CPUs that the affinity mask and the cpuset leave to this process, ascending; `None` where
    /// the kernel does not say (some sandboxes).
    pub cpus: Option<Vec<usize>>,
    /// Nodes that this process may take memory from, ascending; `None` where the kernel knows no
    /// nodes.
    pub memory_nodes: Option<Vec<usize>>,
    pub cgroup: Option<MemoryLimit>,
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
        let lock_bytes =
            if capabilities >> CAP_IPC_LOCK & 1 == 1 { None } else { lock_limit(root)? };
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
            cgroup: cgroup(root)?,
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

/// The tightest limit from the group of this process up to the root of its hierarchy, v1 or v2.
fn cgroup(root: &Path) -> Result<Option<MemoryLimit>> {
    let Some(groups) = read_if_there(&root.join("proc/self/cgroup"))? else { return Ok(None) };
    let Some(mounts) = read_if_there(&root.join("proc/self/mountinfo"))? else { return Ok(None) };
    let mut tightest: Option<MemoryLimit> = None;
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(group)) = (parts.next(), parts.next(), parts.next())
        else {
            continue;
        };
        let version = match controllers {
            "" => Version::V2,
            list if list.split(',').any(|name| name == "memory") => Version::V1,
            _ => continue,
        };
        let Some((mount, group)) = locate(&mounts, version, group) else { continue };
        let mount = under(root, &mount);
        for ancestor in Path::new(group.trim_start_matches('/')).ancestors() {
            let limit = version.limit(&mount.join(ancestor))?;
            if let Some(limit) = limit
                && tightest.as_ref().is_none_or(|t| limit.available_bytes < t.available_bytes)
            {
                tightest = Some(limit);
            }
        }
    }
    Ok(tightest)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Version {
    V1,
    V2,
}

impl Version {
    /// The limit that one group sets itself.
    fn limit(self, folder: &Path) -> Result<Option<MemoryLimit>> {
        let (limit_name, used_name, prefix) = match self {
            Version::V1 => ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_"),
            Version::V2 => ("memory.max", "memory.current", ""),
        };
        let file = folder.join(limit_name);
        let Some(text) = read_if_there(&file)? else { return Ok(None) };
        if text.trim_end() == "max" {
            return Ok(None);
        }
        let number = |path: &Path, text: &str| {
            text.trim_end().parse::<u64>().map_err(|_| wrong(path, text, "a number of bytes"))
        };
        let limit_bytes = number(&file, &text)?;
        if self == Version::V1 && limit_bytes >= V1_UNLIMITED {
            return Ok(None);
        }
        let used_path = folder.join(used_name);
        let used = number(&used_path, &read(&used_path)?)?;
        let stat = read_if_there(&folder.join("memory.stat"))?.unwrap_or_default();
        let stated = |key: &str| -> u64 {
            let values = stat.lines().filter_map(|line| {
                let name = line.strip_prefix(prefix)?;
                name.strip_prefix(key)?.strip_prefix(' ')?.trim().parse::<u64>().ok()
            });
            values.sum()
        };
        let file_bytes = stated("active_file") + stated("inactive_file");
        let available_bytes = limit_bytes.saturating_sub(used.saturating_sub(file_bytes));
        Ok(Some(MemoryLimit { limit_bytes, available_bytes, file }))
    }
}

/// Where the hierarchy is mounted, and the group's path below that. In a container the mount may
/// show only a part of the hierarchy (field 4 of mountinfo, proc_pid_mountinfo(5)).
fn locate<'a>(mounts: &str, version: Version, group: &'a str) -> Option<(PathBuf, &'a str)> {
    for line in mounts.lines() {
        let Some((before, after)) = line.split_once(" - ") else { continue };
        let before: Vec<&str> = before.split(' ').collect();
        let after: Vec<&str> = after.split(' ').collect();
        let (Some(shown), Some(mount), Some(kind)) = (before.get(3), before.get(4), after.first())
        else {
            continue;
        };
        let right = match version {
            Version::V2 => *kind == "cgroup2",
            Version::V1 => {
                let options = after.get(2).copied().unwrap_or_default();
                *kind == "cgroup" && options.split(',').any(|option| option == "memory")
            }
        };
        if right {
            // A group outside of what is shown: the mount's own root is the nearest that we see.
            let below = group.strip_prefix(shown.trim_end_matches('/')).unwrap_or("");
            return Some((PathBuf::from(mount), below));
        }
    }
    None
}

fn under(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

/// Bytes of a line of `/proc/self/status` such as `VmHWM`; 0 where the kernel has no such line.
pub fn status_bytes(status: &str, key: &str) -> u64 {
    kilobytes(Path::new("/proc/self/status"), status, key).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::tests::Fixture;

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
    }

    #[test]
    fn cgroup_v2_takes_the_tightest_ancestor() {
        let fixture = fixture();
        fixture.file("proc/self/cgroup", "0::/a/b\n");
        fixture.file(
            "proc/self/mountinfo",
            "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n",
        );
        fixture.file("sys/fs/cgroup/a/memory.max", "1000\n");
        fixture.file("sys/fs/cgroup/a/memory.current", "700\n");
        fixture.file(
            "sys/fs/cgroup/a/memory.stat",
            "anon 500\nfile 450\nactive_file 100\ninactive_file 50\n",
        );
        fixture.file("sys/fs/cgroup/a/b/memory.max", "max\n");
        let limit = Limits::read(fixture.root()).unwrap().cgroup.unwrap();
        assert_eq!((limit.limit_bytes, limit.available_bytes), (1000, 450));
        assert!(limit.file.ends_with("sys/fs/cgroup/a/memory.max"));

        fixture.file("sys/fs/cgroup/a/b/memory.max", "100\n");
        fixture.file("sys/fs/cgroup/a/b/memory.current", "40\n");
        let limit = Limits::read(fixture.root()).unwrap().cgroup.unwrap();
        assert_eq!((limit.limit_bytes, limit.available_bytes), (100, 60));
    }

    #[test]
    fn cgroup_v1_beside_an_empty_v2() {
        let fixture = fixture();
        fixture.file("proc/self/cgroup", "4:cpu,memory:/docker/x\n3:cpuset:/\n0::/\n");
        fixture.file(
            "proc/self/mountinfo",
            "34 31 0:31 /docker/x /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n\
             35 31 0:32 /docker/x /sys/fs/cgroup/memory rw - cgroup cgroup rw,cpu,memory\n\
             41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
        );
        let memory = "sys/fs/cgroup/memory";
        fixture.file(&format!("{memory}/memory.limit_in_bytes"), "9223372036854771712\n");
        assert_eq!(Limits::read(fixture.root()).unwrap().cgroup, None);
        fixture.file(&format!("{memory}/memory.limit_in_bytes"), "5000\n");
        fixture.file(&format!("{memory}/memory.usage_in_bytes"), "6000\n");
        let limit = || Limits::read(fixture.root()).unwrap().cgroup.unwrap();
        assert_eq!((limit().limit_bytes, limit().available_bytes), (5000, 0));
        let stat = "cache 9\nactive_file 7\ntotal_active_file 1500\ntotal_inactive_file 500\n";
        fixture.file(&format!("{memory}/memory.stat"), stat);
        assert_eq!((limit().limit_bytes, limit().available_bytes), (5000, 1000));
    }

    #[test]
    fn this_process() {
        let limits = Limits::read(Path::new("/")).unwrap();
        assert!(limits.cpus.is_none_or(|cpus| !cpus.is_empty()));
    }
}
