//! A control group of a test's own, v1 or v2, whichever the host has.
#![allow(unused)] // each test file uses its own part

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A group below the root of the memory controller; removed on drop.
pub struct Group {
    folder: PathBuf,
    v2: bool,
}

impl Group {
    /// `None` where groups cannot be made: no memory controller here, or not root.
    pub fn new(tag: &str) -> Option<Group> {
        let name = format!("berth-test-{tag}-{}", std::process::id());
        let v1 = Path::new("/sys/fs/cgroup/memory");
        let v2 = Path::new("/sys/fs/cgroup");
        let (root, is_v2) = if v1.join("memory.limit_in_bytes").exists() {
            (v1, false)
        } else {
            // The root hands the controller on to its children only when told to.
            let _ = fs::write(v2.join("cgroup.subtree_control"), "+memory");
            (v2, true)
        };
        let group = Group { folder: root.join(name), v2: is_v2 };
        fs::create_dir(&group.folder).ok()?;
        group.limit_file().exists().then_some(group)
    }

    /// The group of a folder that another process made.
    pub fn at(folder: &str) -> Group {
        let folder = PathBuf::from(folder);
        let v2 = folder.join("memory.max").exists();
        Group { folder, v2 }
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The file that holds the limit.
    pub fn limit_file(&self) -> PathBuf {
        self.folder.join(if self.v2 { "memory.max" } else { "memory.limit_in_bytes" })
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
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.folder);
    }
}
