//! A control group of a test's own, v1 or v2, whichever the host has.
#![allow(unused)] // each test file uses its own part

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A group below the root of a controller; removed on drop.
pub struct Group {
    folder: PathBuf,
    v2: bool,
    /// The file that holds the limit.
    limit_name: &'static str,
}

impl Group {
    /// A group that limits memory, hugetlb pages apart; `None` where groups cannot be made: no
    /// controller here, or not root.
    pub fn new(tag: &str) -> Option<Group> {
        Self::of("memory", ["memory.limit_in_bytes", "memory.max"], tag)
    }

    /// A group that limits bytes in hugetlb pages of 2 MiB, likewise.
    pub fn hugetlb_2m(tag: &str) -> Option<Group> {
        Self::of("hugetlb", ["hugetlb.2MB.limit_in_bytes", "hugetlb.2MB.max"], tag)
    }

    /// The limit's file is named as v1 and as v2 name it.
    fn of(controller: &str, [v1_name, v2_name]: [&'static str; 2], tag: &str) -> Option<Group> {
        let v1 = Path::new("/sys/fs/cgroup").join(controller);
        let (root, v2, limit_name) = if v1.join(v1_name).exists() {
            (v1, false, v1_name)
        } else {
            // Beside hierarchies of v1, v2 is mounted in a folder of its own.
            let roots = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"].map(PathBuf::from);
            let root = roots.into_iter().find(|root| root.join("cgroup.controllers").exists())?;
            // The root hands the controller on to its children only when told to.
            let _ = fs::write(root.join("cgroup.subtree_control"), format!("+{controller}"));
            (root, true, v2_name)
        };
        let folder = root.join(format!("berth-test-{tag}-{}", std::process::id()));
        fs::create_dir(&folder).ok()?;
        let group = Group { folder, v2, limit_name };
        group.limit_file().exists().then_some(group)
    }

    /// The memory group of a folder that another process made.
    pub fn at(folder: &str) -> Group {
        let folder = PathBuf::from(folder);
        let v2 = folder.join("memory.max").exists();
        let limit_name = if v2 { "memory.max" } else { "memory.limit_in_bytes" };
        Group { folder, v2, limit_name }
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The file that holds the limit.
    pub fn limit_file(&self) -> PathBuf {
        self.folder.join(self.limit_name)
    }

    pub fn limit(&self, bytes: u64) {
        fs::write(self.limit_file(), bytes.to_string()).unwrap();
    }

    /// The most that the group ever held; `None` where the kernel does not say (v2 before 5.19).
    pub fn peak(&self) -> Option<u64> {
        let name = if self.v2 { "memory.peak" } else { "memory.max_usage_in_bytes" };
        fs::read_to_string(self.folder.join(name)).ok()?.trim().parse().ok()
    }

    /// Processes of the group that the kernel killed for memory.
    pub fn kills(&self) -> u64 {
        let name = if self.v2 { "memory.events" } else { "memory.oom_control" };
        let text = fs::read_to_string(self.folder.join(name)).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
        line.expect("the kernel counts kills").trim().parse().unwrap()
    }

    /// Has the command run in this group from its first instruction on.
    pub fn hold(&self, command: &mut Command) {
        let file = self.folder.join("cgroup.procs");
        // SAFETY: between fork and exec only one file is written; the path was made before.
        unsafe {
            command.pre_exec(move || fs::write(&file, "0"));
        }
    }

    /// Does something with this whole process in the group; it ends up in the group above.
    pub fn inside<T>(&self, work: impl FnOnce() -> T) -> T {
        fs::write(self.folder.join("cgroup.procs"), "0").unwrap();
        let made = work();
        fs::write(self.folder.parent().unwrap().join("cgroup.procs"), "0").unwrap();
        made
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.folder);
    }
}
