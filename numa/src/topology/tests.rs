use super::*;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

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

    /// A host with these online CPUs and 1 MB free of 4 MB.
    fn host(online: &str) -> Self {
        let fixture = Fixture::new();
        fixture.file("sys/devices/system/cpu/online", online);
        fixture
            .file("proc/meminfo", "MemTotal: 4000 kB\nMemFree: 1000 kB\nMemAvailable: 1500 kB\n");
        fixture
    }

    fn node(&self, id: usize, cpus: &str) {
        let folder = format!("sys/devices/system/node/node{id}");
        self.file(&format!("{folder}/cpulist"), cpus);
        let meminfo = ["MemTotal", "MemFree", "Active(file)", "Inactive(file)"]
            .iter()
            .zip([2000, 500, 100, 20])
            .map(|(key, kilobytes)| format!("Node {id} {key}:    {kilobytes} kB\n"))
            .collect::<String>();
        self.file(&format!("{folder}/meminfo"), &meminfo);
    }

    fn siblings(&self, cores: &[&[usize]]) {
        for core in cores {
            let list: Vec<String> = core.iter().map(usize::to_string).collect();
            for cpu in *core {
                let path = format!("sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
                self.file(&path, &format!("{}\n", list.join(",")));
            }
        }
    }

    fn pool(&self, folder: &str, kilobytes: usize, files: &[(&str, usize)]) {
        for (name, pages) in files {
            self.file(&format!("{folder}/hugepages-{kilobytes}kB/{name}"), &format!("{pages}\n"));
        }
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn two_nodes_with_siblings_and_an_offline_cpu() {
    let fixture = Fixture::host("0-6\n");
    fixture.node(0, "0-1,4-5\n");
    fixture.node(1, "2-3,6-7\n");
    fixture.siblings(&[&[0, 4], &[1, 5], &[2, 6], &[3, 7]]);
    let topology = Topology::read(fixture.root()).unwrap();
    assert!(topology.numa);
    assert_eq!(topology.memory_available_bytes, 1500 << 10);
    assert_eq!(topology.nodes.len(), 2);
    assert_eq!(topology.nodes[0].cores, [[0, 4], [1, 5]]);
    assert_eq!(topology.nodes[1].cores, [vec![2, 6], vec![3]]);
    assert_eq!(topology.nodes[1].cpus(), [2, 3, 6]);
    assert_eq!(topology.nodes[1].memory_available_bytes, 620 << 10);
    assert_eq!(topology.transparent_bytes, None);
}

#[test]
fn eight_nodes_one_of_them_without_cpus() {
    let fixture = Fixture::host("0-13\n");
    for id in 0..7 {
        fixture.node(id, &format!("{}-{}\n", 2 * id, 2 * id + 1));
    }
    fixture.node(7, "\n");
    let topology = Topology::read(fixture.root()).unwrap();
    assert_eq!(
        topology.nodes.iter().map(|node| node.id).collect::<Vec<_>>(),
        [0, 1, 2, 3, 4, 5, 6, 7]
    );
    assert_eq!(topology.nodes[6].cores, [[12], [13]]);
    assert!(topology.nodes[7].cores.is_empty());
}

#[test]
fn more_than_1024_cpus() {
    let fixture = Fixture::host("0-2303\n");
    fixture.node(0, "0-1151\n");
    fixture.node(1, "1152-2303\n");
    let topology = Topology::read(fixture.root()).unwrap();
    assert_eq!(topology.nodes[1].cores.len(), 1152);
    assert_eq!(topology.nodes[1].cpus().last(), Some(&2303));
}

#[test]
fn free_hugepages_are_those_that_no_mapping_was_promised() {
    let fixture = Fixture::host("0\n");
    fixture.node(0, "0\n");
    let node = "sys/devices/system/node/node0/hugepages";
    fixture.pool(node, 2048, &[("nr_hugepages", 40), ("free_hugepages", 30)]);
    fixture.pool(node, 1048576, &[("nr_hugepages", 4), ("free_hugepages", 4)]);
    let global = "sys/kernel/mm/hugepages";
    fixture.pool(global, 2048, &[("free_hugepages", 30), ("resv_hugepages", 12)]);
    let topology = Topology::read(fixture.root()).unwrap();
    assert_eq!(
        topology.nodes[0].hugepages,
        [
            HugePages { page_bytes: 2 << 20, total: 40, free: 18 },
            HugePages { page_bytes: 1 << 30, total: 4, free: 4 },
        ]
    );
}

#[test]
fn a_kernel_without_numa_is_one_node() {
    let fixture = Fixture::host("0-1\n");
    let global = "sys/kernel/mm/hugepages";
    let files = [("nr_hugepages", 9), ("free_hugepages", 8), ("resv_hugepages", 1)];
    fixture.pool(global, 2048, &files);
    let thp = "sys/kernel/mm/transparent_hugepage";
    fixture.file(&format!("{thp}/enabled"), "always [madvise] never\n");
    fixture.file(&format!("{thp}/hpage_pmd_size"), "2097152\n");
    let topology = Topology::read(fixture.root()).unwrap();
    assert!(!topology.numa);
    assert_eq!(topology.nodes[0].cores, [[0], [1]]);
    assert_eq!(topology.nodes[0].memory_total_bytes, 4000 << 10);
    assert_eq!(topology.nodes[0].hugepages[0].free, 7);
    assert_eq!(topology.transparent_bytes, Some(2 << 20));

    fixture.file(&format!("{thp}/enabled"), "always madvise [never]\n");
    assert_eq!(Topology::read(fixture.root()).unwrap().transparent_bytes, None);
}

#[test]
fn a_wrong_file_is_named() {
    let fixture = Fixture::host("zero\n");
    let error = Topology::read(fixture.root()).unwrap_err().to_string();
    assert!(error.contains("cpu/online") && error.contains("zero"), "{error}");

    let fixture = Fixture::host("0\n");
    fixture.node(0, "0\n");
    fixture.file("sys/devices/system/node/node0/meminfo", "Node 0 MemTotal: 5 kB\n");
    let error = Topology::read(fixture.root()).unwrap_err().to_string();
    assert!(error.contains("node0/meminfo") && error.contains("MemFree"), "{error}");
}

#[test]
fn this_host() {
    let topology = Topology::read(Path::new("/")).unwrap();
    assert!(topology.nodes.iter().any(|node| !node.cores.is_empty()));
    assert!(topology.memory_available_bytes > 0);
}
