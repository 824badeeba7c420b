//! Hosts made of files in a temporary folder.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::{Topology, format_list};

const NODES: &str = "sys/devices/system/node";
const CPUS: &str = "sys/devices/system/cpu";

/// A folder of made-up sysfs and procfs files, removed on drop.
pub(crate) struct Fixture(PathBuf);

impl Fixture {
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("numa-fixture-{}-{number}", std::process::id());
        let root = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&root).unwrap();
        Fixture(root)
    }

    pub(crate) fn root(&self) -> &Path {
        &self.0
    }

    pub(crate) fn file(&self, path: &str, text: &str) {
        let path = self.0.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub(crate) fn remove(&self, path: &str) {
        std::fs::remove_file(self.0.join(path)).unwrap();
    }

    /// A host with these online CPUs and 1 MB free of 4 MB.
    pub(crate) fn host(online: &str) -> Self {
        let fixture = Fixture::new();
        fixture.file(&format!("{CPUS}/online"), online);
        fixture
            .file("proc/meminfo", "MemTotal: 4000 kB\nMemFree: 1000 kB\nMemAvailable: 1500 kB\n");
        fixture
    }

    pub(crate) fn node(&self, id: usize, cpus: &str) {
        self.node_with(id, cpus, [2000, 500, 120]);
    }

    /// Kilobytes in total, free, and of file pages.
    pub(crate) fn node_with(&self, id: usize, cpus: &str, [total, free, file]: [u64; 3]) {
        self.file(&format!("{NODES}/node{id}/cpulist"), cpus);
        let meminfo = ["MemTotal", "MemFree", "MemUsed", "Active(file)", "Inactive(file)"]
            .iter()
            .zip([total, free, total - free, file - file / 3, file / 3])
            .map(|(key, kilobytes)| format!("Node {id} {key}:    {kilobytes} kB\n"))
            .collect::<String>();
        self.file(&format!("{NODES}/node{id}/meminfo"), &meminfo);
    }

    /// Files of cores with more than one CPU; the others need none.
    pub(crate) fn siblings(&self, cores: &[&[usize]]) {
        for core in cores.iter().filter(|core| core.len() > 1) {
            for cpu in *core {
                let path = format!("{CPUS}/cpu{cpu}/topology/thread_siblings_list");
                self.file(&path, &format!("{}\n", format_list(core)));
            }
        }
    }

    pub(crate) fn pool(&self, folder: &str, kilobytes: usize, files: &[(&str, usize)]) {
        for (name, pages) in files {
            self.file(&format!("{folder}/hugepages-{kilobytes}kB/{name}"), &format!("{pages}\n"));
        }
    }

    /// The host of a text: a line `online LIST`, a line `core LIST` for each physical core with
    /// more than one CPU, a line `node ID LIST MEGABYTES DISTANCE...` for each node (`-` for an
    /// empty list), and lines of notes, which begin with `#`.
    pub(crate) fn unpack(text: &str) -> Self {
        let mut fixture = Fixture::new();
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let words: Vec<&str> = line.split(' ').collect();
            let list = |word: &str| crate::parse_list(word.trim_matches('-')).unwrap();
            match words[..] {
                ["online", online] => fixture = Fixture::host(&format!("{online}\n")),
                ["core", core] => fixture.siblings(&[&list(core)]),
                ["node", id, cpus, megabytes, ref distances @ ..] => {
                    let total = megabytes.parse::<u64>().unwrap() << 10;
                    let id = id.parse().unwrap();
                    fixture.node_with(
                        id,
                        &format!("{}\n", cpus.trim_matches('-')),
                        [total, total, 0],
                    );
                    if !distances.is_empty() {
                        fixture.distance(id, &format!("{}\n", distances.join(" ")));
                    }
                }
                _ => panic!("not a line of a fixture: {line:?}"),
            }
        }
        fixture
    }

    pub(crate) fn distance(&self, id: usize, text: &str) {
        self.file(&format!("{NODES}/node{id}/distance"), text);
    }

    /// The files that the kernel would write for this topology, with these CPUs offline; free
    /// memory of a node counts as half file pages.
    pub(crate) fn write(topology: &Topology, offline: &[(usize, usize)]) -> Self {
        let mut online = topology.nodes.iter().flat_map(|node| node.cpus()).collect::<Vec<_>>();
        online.sort_unstable();
        let fixture = Fixture::host(&format!("{}\n", format_list(&online)));
        let available = topology.memory_available_bytes >> 10;
        fixture.file("proc/meminfo", &format!("MemTotal: 9 kB\nMemAvailable: {available} kB\n"));
        for node in &topology.nodes {
            let mut cpus = node.cpus();
            cpus.extend(offline.iter().filter(|(_, id)| *id == node.id).map(|(cpu, _)| cpu));
            cpus.sort_unstable();
            let [total, free, available] =
                [node.memory_total_bytes, node.memory_free_bytes, node.memory_available_bytes]
                    .map(|bytes| bytes >> 10);
            let list = format!("{}\n", format_list(&cpus));
            fixture.node_with(node.id, &list, [total, free, available - free]);
            fixture.siblings(&node.cores.iter().map(Vec::as_slice).collect::<Vec<_>>());
            let folder = format!("{NODES}/node{}/hugepages", node.id);
            for pool in &node.hugepages {
                let files = [("nr_hugepages", pool.total), ("free_hugepages", pool.free)];
                fixture.pool(&folder, pool.page_bytes >> 10, &files);
            }
            let distances: Vec<String> = node.distances.iter().map(u32::to_string).collect();
            fixture.distance(node.id, &format!("{}\n", distances.join(" ")));
        }
        for pool in &topology.hugepages {
            // Half of what is not free for the taking is promised.
            let promised = (pool.total - pool.free) / 2;
            let free = pool.free + promised;
            let files = [
                ("nr_hugepages", pool.total),
                ("free_hugepages", free),
                ("resv_hugepages", promised),
            ];
            fixture.pool("sys/kernel/mm/hugepages", pool.page_bytes >> 10, &files);
        }
        let thp = "sys/kernel/mm/transparent_hugepage";
        match topology.transparent_bytes {
            None => fixture.file(&format!("{thp}/enabled"), "always madvise [never]\n"),
            Some(bytes) => {
                fixture.file(&format!("{thp}/enabled"), "[always] madvise never\n");
                fixture.file(&format!("{thp}/hpage_pmd_size"), &format!("{bytes}\n"));
            }
        }
        fixture
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
