//! Control groups, v1 and v2: what the memory and the hugetlb controller leave to this process.

use std::collections::BTreeMap;
use std::io::Result;
use std::path::{Component, Path, PathBuf};

use crate::files::{numbered, read, read_if_there, wrong};

/// A limit from here on means none: version 1 writes `LONG_MAX` rounded down to a page, or to a
/// hugetlb page, and so do version 2's files of hugetlb pages that nobody has written `max` to.
const UNLIMITED: u64 = 1 << 62;

/// The units in which the hugetlb controller names a size of pages.
const UNITS: [(&str, usize); 3] = [("KB", 1 << 10), ("MB", 1 << 20), ("GB", 1 << 30)];

/// The tightest memory limit of the control groups that this process is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryLimit {
    pub limit_bytes: u64,
    /// What the group may still take: the limit less what it uses, file pages apart.
    pub available_bytes: u64,
    /// The file that holds the limit.
    pub file: PathBuf,
}

/// The tightest limit on hugetlb pages of one size, over all nodes, of the control groups that this
/// process is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HugetlbLimit {
    pub page_bytes: usize,
    pub limit_bytes: u64,
    /// What the group may still take: the limit less what it uses.
    pub available_bytes: u64,
    /// The file that holds the limit.
    pub file: PathBuf,
}

/// The memory limit that leaves least; `None` without a limit.
pub(super) fn memory(root: &Path) -> Result<Option<MemoryLimit>> {
    tightest(root, |version, folder| memory_limit(version, folder, version.names().0))
}

/// The `memory.high` that leaves least; `None` without one. Only version 2 has it.
pub(super) fn memory_high(root: &Path) -> Result<Option<MemoryLimit>> {
    tightest(root, |version, folder| match version {
        Version::V1 => Ok(None),
        Version::V2 => memory_limit(version, folder, "high"),
    })
}

/// Of the limits that the groups set on memory, the one that leaves least.
fn tightest(
    root: &Path,
    limit: impl Fn(Version, &Path) -> Result<Option<MemoryLimit>>,
) -> Result<Option<MemoryLimit>> {
    let mut tightest: Option<MemoryLimit> = None;
    for (version, folder) in groups(root, "memory")? {
        if let Some(limit) = limit(version, &folder)?
            && tightest.as_ref().is_none_or(|t| limit.available_bytes < t.available_bytes)
        {
            tightest = Some(limit);
        }
    }
    Ok(tightest)
}

/// The limits on hugetlb pages that leave least, ascending by page size; sizes without a limit are
/// left out.
pub(super) fn hugetlb(root: &Path) -> Result<Vec<HugetlbLimit>> {
    let mut tightest: BTreeMap<usize, HugetlbLimit> = BTreeMap::new();
    for (version, folder) in groups(root, "hugetlb")? {
        for limit in hugetlb_limits(version, &folder)? {
            let known = tightest.entry(limit.page_bytes).or_insert_with(|| limit.clone());
            if limit.available_bytes < known.available_bytes {
                *known = limit;
            }
        }
    }
    Ok(tightest.into_values().collect())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Version {
    V1,
    V2,
}

impl Version {
    /// Names of the two files of a counter: its limit and its use.
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Version::V1 => ("limit_in_bytes", "usage_in_bytes"),
            Version::V2 => ("max", "current"),
        }
    }
}

/// A limit of one counter (`memory`, `hugetlb.2MB`) of one group, by the name of its file (`max`,
/// `high`), and what is used of it; `None` without a limit.
fn counter(
    version: Version,
    folder: &Path,
    counter: &str,
    limit: &str,
) -> Result<Option<(PathBuf, u64, u64)>> {
    let used = version.names().1;
    let file = folder.join(format!("{counter}.{limit}"));
    let Some(text) = read_if_there(&file)? else { return Ok(None) };
    if text.trim_end() == "max" {
        return Ok(None);
    }
    let number = |path: &Path, text: &str| {
        text.trim_end().parse::<u64>().map_err(|_| wrong(path, text, "a number of bytes"))
    };
    let limit_bytes = number(&file, &text)?;
    if limit_bytes >= UNLIMITED {
        return Ok(None);
    }
    let used_path = folder.join(format!("{counter}.{used}"));
    let used_bytes = number(&used_path, &read(&used_path)?)?;
    Ok(Some((file, limit_bytes, used_bytes)))
}

/// The limit of that name that one group itself sets on memory.
fn memory_limit(version: Version, folder: &Path, limit: &str) -> Result<Option<MemoryLimit>> {
    let Some((file, limit_bytes, used)) = counter(version, folder, "memory", limit)? else {
        return Ok(None);
    };
    // Version 1 counts a group apart from the groups below it unless a key says total.
    let prefix = if version == Version::V1 { "total_" } else { "" };
    let stat = read_if_there(&folder.join("memory.stat"))?.unwrap_or_default();
    let stated = |key: &str| -> u64 {
        let values = stat.lines().filter_map(|line| {
            let name = line.strip_prefix(prefix)?;
            name.strip_prefix(key)?.strip_prefix(' ')?.trim().parse::<u64>().ok()
        });
        values.fold(0, u64::saturating_add)
    };
    let file_bytes = stated("active_file").saturating_add(stated("inactive_file"));
    let available_bytes = limit_bytes.saturating_sub(used.saturating_sub(file_bytes));
    Ok(Some(MemoryLimit { limit_bytes, available_bytes, file }))
}

/// The limits that one group itself sets on hugetlb pages. There are two counters for a size: pages
/// in use, and pages that mappings were promised (`rsvd`). A mapping that is then touched counts in
/// both, so both bind.
fn hugetlb_limits(version: Version, folder: &Path) -> Result<Vec<HugetlbLimit>> {
    let mut limits = Vec::new();
    for (unit, unit_bytes) in UNITS {
        let limit = version.names().0;
        for rsvd in ["", ".rsvd"] {
            let suffix = format!("{unit}{rsvd}.{limit}");
            for size in numbered(folder, "hugetlb.", &suffix)? {
                let name = format!("hugetlb.{size}{unit}{rsvd}");
                if let Some((file, limit_bytes, used)) = counter(version, folder, &name, limit)? {
                    limits.push(HugetlbLimit {
                        page_bytes: size.saturating_mul(unit_bytes),
                        limit_bytes,
                        available_bytes: limit_bytes.saturating_sub(used),
                        file,
                    });
                }
            }
        }
    }
    Ok(limits)
}

/// Folders of the groups that may limit this process through `controller`: from its own group up to
/// the root of the hierarchy, of version 1, of version 2 or, on a host that mixes them, of both.
fn groups(root: &Path, controller: &str) -> Result<Vec<(Version, PathBuf)>> {
    let mut folders = Vec::new();
    let Some(groups) = read_if_there(&root.join("proc/self/cgroup"))? else { return Ok(folders) };
    let Some(mounts) = read_if_there(&root.join("proc/self/mountinfo"))? else {
        return Ok(folders);
    };
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(group)) = (parts.next(), parts.next(), parts.next())
        else {
            continue;
        };
        let version = match controllers {
            "" => Version::V2,
            list if list.split(',').any(|name| name == controller) => Version::V1,
            _ => continue,
        };
        let Some((mount, below)) = locate(&mounts, version, controller, Path::new(group)) else {
            continue;
        };
        let mount = root.join(mount.strip_prefix("/").unwrap_or(&mount));
        folders.extend(below.ancestors().map(|ancestor| (version, mount.join(ancestor))));
    }
    Ok(folders)
}

/// Where the hierarchy is mounted, and the group's path below that. In a container the mount may
/// show only a part of the hierarchy (field 4 of mountinfo, proc_pid_mountinfo(5)); a mount that
/// shows the group goes before one that does not, whose own root is then the nearest we see.
fn locate<'a>(
    mounts: &str,
    version: Version,
    controller: &str,
    group: &'a Path,
) -> Option<(PathBuf, &'a Path)> {
    let mut nearest = None;
    for line in mounts.lines() {
        let Some((before, after)) = line.split_once(" - ") else { continue };
        let mut before = before.split(' ').skip(3);
        let (Some(shown), Some(mount)) = (before.next(), before.next()) else { continue };
        let mut after = after.split(' ');
        let kind = after.next();
        let right = match version {
            Version::V2 => kind == Some("cgroup2"),
            Version::V1 => {
                let options = after.nth(1).unwrap_or_default();
                kind == Some("cgroup") && options.split(',').any(|option| option == controller)
            }
        };
        if !right {
            continue;
        }
        let (shown, mount) = (unescape(shown), unescape(mount));
        // A group outside of this process's namespace is written with leading `..`.
        if let Ok(below) = group.strip_prefix(shown)
            && !below.components().any(|part| part == Component::ParentDir)
        {
            return Some((mount, below));
        }
        nearest = nearest.or(Some((mount, Path::new(""))));
    }
    nearest
}

/// A path as mountinfo writes it, which separates its fields by blanks: blank, tab, end of line and
/// backslash stand there as `\` and three octal digits.
fn unescape(field: &str) -> PathBuf {
    let mut path = field.to_owned();
    // The backslash last, so that what it gives is not taken for the begin of another.
    for (written, meant) in [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")] {
        path = path.replace(written, meant);
    }
    PathBuf::from(path)
}

#[cfg(test)]
mod tests;
