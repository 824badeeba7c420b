//! A control group of one test alone, and programs that run in it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::common;

/// Lets another program run a command.
pub fn under(outer: &mut Command, command: &Command) {
    outer.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => outer.env(name, value),
            None => outer.env_remove(name),
        };
    }
}

/// What a group limits.
#[derive(Clone, Copy, Debug)]
pub enum Limit {
    /// Bytes of memory, hugetlb pages apart.
    Memory(u64),
    /// Bytes in hugetlb pages of 2 MiB.
    Huge2M(u64),
}

/// The group; it is removed on drop, when the programs in it have ended.
pub struct Group {
    folder: PathBuf,
    /// Whether the parent gave the controller to its groups for this one, in v2.
    given: Option<&'static str>,
}

impl Group {
    /// `None`, and a line that says so, where no group with this limit can be made. The tag and
    /// the process keep it apart from others.
    pub fn with_limit(tag: &str, limit: Limit) -> Option<Self> {
        let group = Self::try_with_limit(tag, limit);
        if group.is_none() {
            println!("not run: no control group with {limit:?} can be made here");
        }
        group
    }

    fn try_with_limit(tag: &str, limit: Limit) -> Option<Self> {
        let (controller, v1_file, v2_file, bytes) = match limit {
            Limit::Memory(bytes) => ("memory", "memory.limit_in_bytes", "memory.max", bytes),
            Limit::Huge2M(bytes) => {
                ("hugetlb", "hugetlb.2MB.limit_in_bytes", "hugetlb.2MB.max", bytes)
            }
        };
        let root = Path::new("/sys/fs/cgroup");
        let v1 = root.join(controller);
        let (base, file) = if v1.join("cgroup.procs").exists() {
            (v1, v1_file)
        } else if root.join("cgroup.controllers").exists() {
            (root.to_path_buf(), v2_file)
        } else {
            (root.join("unified"), v2_file)
        };
        let folder = base.join(format!("berth-{tag}-{}", std::process::id()));
        fs::create_dir(&folder).ok()?;
        let mut group = Group { folder, given: None };
        if file == v2_file && !group.folder.join(file).exists() {
            fs::write(base.join("cgroup.subtree_control"), format!("+{controller}")).ok()?;
            group.given = Some(controller);
        }
        fs::write(group.folder.join(file), bytes.to_string()).ok()?;
        Some(group)
    }

    /// The group's folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn parent(&self) -> &Path {
        self.folder.parent().expect("a group stands in another one")
    }

    /// Runs a command in the group to its end: exit code, standard output, standard error.
    pub fn run(&self, command: &Command) -> (i32, String, String) {
        // The shell moves itself into the group and becomes the program.
        let mut shell = Command::new("sh");
        shell.arg("-c").arg("echo $$ > \"$0/cgroup.procs\" && exec \"$@\"").arg(&self.folder);
        under(&mut shell, command);
        common::run(&mut shell)
    }

    /// Does something in the group, with this whole process, which ends up in the parent.
    pub fn inside<T>(&self, work: impl FnOnce() -> T) -> T {
        let process = std::process::id().to_string();
        fs::write(self.folder.join("cgroup.procs"), &process).unwrap();
        let made = work();
        fs::write(self.parent().join("cgroup.procs"), &process).unwrap();
        made
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let removed = fs::remove_dir(&self.folder);
        if let Some(controller) = self.given {
            let control = self.parent().join("cgroup.subtree_control");
            let _ = fs::write(control, format!("-{controller}"));
        }
        // A group that a process is still in cannot be removed.
        assert!(removed.is_ok() || std::thread::panicking(), "{removed:?}");
    }
}
