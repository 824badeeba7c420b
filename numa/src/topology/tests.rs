use super::*;
use crate::fixture::Fixture;

/// Facts of `numactl --hardware` of a two-socket EPYC 9375F without SMT, in
/// github.com/egandro/proxmox-cpu-affinity issue 58.
const EPYC_TWO_NODES: &str = "\
online 0-63
node 0 0-31 773271 10 32
node 1 32-63 774028 32 10";

/// Facts of hwloc's test 16em64t-4s2c2t-offlines (github.com/open-mpi/hwloc, tests/hwloc/linux):
/// four sockets of two cores, hardware threads, CPUs 2, 5, 13 and 14 offline. The memory is
/// synthetic.
const XEON_OFFLINE: &str = "\
online 0-1,3-4,6-12,15
core 0,8
core 4,12
core 1,9
core 3,11
core 7,15
node 0 0-1,3-4,6-12,15 4096";

/// Facts of hwloc's test 16amd64-8n2c: eight sockets of two cores, all as far from each other.
const OPTERON_EIGHT_NODES: &str = "\
online 0-15
node 0 0-1 8190 10 20 20 20 20 20 20 20
node 1 2-3 8192 20 10 20 20 20 20 20 20
node 2 4-5 8192 20 20 10 20 20 20 20 20
node 3 6-7 8192 20 20 20 10 20 20 20 20
node 4 8-9 8192 20 20 20 20 10 20 20 20
node 5 10-11 8192 20 20 20 20 20 10 20 20
node 6 12-13 8192 20 20 20 20 20 20 10 20
node 7 14-15 8192 20 20 20 20 20 20 20 10";

/// Facts of `numactl -H` of a two-socket Xeon Max with sub-NUMA clusters, whose HBM is eight nodes
/// without CPUs, in github.com/oneapi-src/unified-memory-framework issue 1289; no distances.
const XEON_MAX_CLUSTERS: &str = "\
online 0-191
node 0 0-11,96-107 64132
node 1 12-23,108-119 64505
node 2 24-35,120-131 64505
node 3 36-47,132-143 64505
node 4 48-59,144-155 64505
node 5 60-71,156-167 64459
node 6 72-83,168-179 64505
node 7 84-95,180-191 64456
node 8 - 16384
node 9 - 16384
node 10 - 16384
node 11 - 16384
node 12 - 16384
node 13 - 16384
node 14 - 16384
node 15 - 16384";

/// Facts of `lscpu` of a GH200, whose GPU has eight nodes that hold nothing or the GPU's own
/// memory, in github.com/bytedance/xpu-perf issue 129. The sizes are synthetic.
const GRACE_HOPPER: &str = "\
online 0-71
node 0 0-71 491520
node 1 - 97280
node 2 - 0
node 3 - 0
node 4 - 0
node 5 - 0
node 6 - 0
node 7 - 0
node 8 - 0";

fn read_text(text: &str) -> Topology {
    Topology::read(Fixture::unpack(text).root()).unwrap()
}

fn core_counts(topology: &Topology) -> Vec<usize> {
    topology.nodes.iter().map(|node| node.cores.len()).collect()
}

#[test]
fn two_sockets_without_smt() {
    let topology = read_text(EPYC_TWO_NODES);
    assert_eq!(core_counts(&topology), [32, 32]);
    assert_eq!(topology.nodes[1].cpus(), (32..64).collect::<Vec<_>>());
    assert_eq!(topology.nodes[0].memory_total_bytes, 773_271 << 20);
    assert_eq!(topology.nodes[0].distances, [10, 32]);
    assert_eq!(topology.nodes[1].distances, [32, 10]);
}

#[test]
fn one_node_with_smt_and_offline_siblings() {
    let topology = read_text(XEON_OFFLINE);
    let cores = [&[0, 8][..], &[1, 9], &[3, 11], &[4, 12], &[6], &[7, 15], &[10]];
    assert_eq!(topology.nodes.len(), 1);
    assert_eq!(topology.nodes[0].cores, cores);
    assert!(topology.nodes[0].distances.is_empty());
}

#[test]
fn eight_sockets() {
    let topology = read_text(OPTERON_EIGHT_NODES);
    assert_eq!(core_counts(&topology), [2; 8]);
    for (id, node) in topology.nodes.iter().enumerate() {
        assert_eq!((node.id, node.cpus()), (id, vec![2 * id, 2 * id + 1]));
        let expected: Vec<u32> = (0..8).map(|other| if other == id { 10 } else { 20 }).collect();
        assert_eq!(node.distances, expected);
    }
}

#[test]
fn sub_numa_clusters_and_nodes_of_memory_alone() {
    let fixture = Fixture::unpack(XEON_MAX_CLUSTERS);
    for cpu in 0..96 {
        fixture.siblings(&[&[cpu, cpu + 96]]);
    }
    let topology = Topology::read(fixture.root()).unwrap();
    assert_eq!(core_counts(&topology), [[12; 8], [0; 8]].concat());
    assert_eq!(topology.nodes[7].cores[11], [95, 191]);
    assert!(topology.nodes[8..].iter().all(|node| node.memory_total_bytes == 16 << 30));
}

#[test]
fn nodes_of_a_gpu_have_no_cpus_and_may_have_no_memory() {
    let topology = read_text(GRACE_HOPPER);
    assert_eq!(core_counts(&topology), [72, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(topology.nodes[1].memory_available_bytes, 97_280 << 20);
    assert_eq!(topology.nodes[8].memory_total_bytes, 0);
}

/// Synthetic: 70 nodes with gaps between their ids, each of two cores and memory.
#[test]
fn more_than_64_nodes() {
    let nodes = (0..70)
        .map(|n| Node {
            id: 15 * n,
            cores: vec![vec![4 * n, 4 * n + 2], vec![4 * n + 1, 4 * n + 3]],
            memory_total_bytes: 1 << 30,
            ..Default::default()
        })
        .collect();
    let mut host =
        Topology { nodes, numa: true, memory_available_bytes: 1 << 40, ..Default::default() };
    host.nodes[69].distances = (0..70).map(|n| if n == 69 { 10 } else { 254 }).collect();
    for node in &mut host.nodes[..69] {
        node.distances = vec![10; 70];
    }
    let topology = Topology::read(Fixture::write(&host, &[]).root()).unwrap();
    assert_eq!(topology.nodes.len(), 70);
    assert_eq!(topology.nodes[69].id, 1035);
    assert_eq!(topology, host);
}

/// A generator of hosts: numbers below a bound, from a seed (splitmix64).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % bound as u64) as usize
    }

    /// Some ascending numbers, with gaps.
    fn ascending(&mut self, count: usize, gap_max: usize) -> Vec<usize> {
        let mut next = self.below(gap_max + 1);
        let numbers = (0..count).map(|_| {
            let number = next;
            next += 1 + self.below(gap_max + 1);
            number
        });
        numbers.collect()
    }

    /// A host, and CPUs of its nodes that are offline.
    fn host(&mut self) -> (Topology, Vec<(usize, usize)>) {
        let count = 1 + self.below(5);
        let gap_max = [0, 3, 20][self.below(3)];
        let ids = self.ascending(count, gap_max);
        let mut topology = Topology {
            numa: true,
            memory_available_bytes: (self.below(1 << 30) as u64) << 10,
            transparent_bytes: [None, Some(2 << 20), Some(512 << 20)][self.below(3)],
            hugepages: Vec::new(),
            nodes: ids.iter().map(|&id| Node { id, ..Default::default() }).collect(),
        };
        // CPUs go to nodes in any order, as firmware may number them, and so do the offline ones.
        let (cores, gap_max) = (1 + self.below(6), [0, 1, 700][self.below(3)]);
        let mut cpus = self.ascending(4 * cores + 3, gap_max);
        let offline = cpus.split_off(4 * cores);
        while !cpus.is_empty() {
            let siblings = 1 + self.below(cpus.len().min(4));
            let mut core: Vec<usize> =
                (0..siblings).map(|_| cpus.swap_remove(self.below(cpus.len()))).collect();
            core.sort_unstable();
            topology.nodes[self.below(count)].cores.push(core);
        }
        let offline = offline.into_iter().map(|cpu| (cpu, ids[self.below(count)])).collect();
        for node in &mut topology.nodes {
            node.cores.sort_unstable();
            let [total, free, file] =
                [1 << 30, 1 << 20, 1 << 10].map(|most| self.below(most) as u64);
            // A node without memory is all zeros.
            let there = u64::from(self.below(4) > 0);
            node.memory_free_bytes = (there * free) << 10;
            node.memory_available_bytes = (there * (free + file)) << 10;
            node.memory_total_bytes = (there * (total + free + file)) << 10;
            for page_bytes in [64 << 10, 2 << 20, 1 << 30] {
                if self.below(2) == 1 {
                    let total = self.below(1000);
                    let free = self.below(total + 1);
                    node.hugepages.push(HugePages { page_bytes, total, free });
                }
            }
            for pool in &node.hugepages {
                add(&mut topology.hugepages, *pool);
            }
            node.distances = (0..count).map(|_| 10 + self.below(246) as u32).collect();
        }
        (topology, offline)
    }
}

/// Counts a pool of a node in those of the host, which stay in order.
fn add(pools: &mut Vec<HugePages>, pool: HugePages) {
    match pools.iter_mut().find(|known| known.page_bytes == pool.page_bytes) {
        Some(known) => {
            known.total += pool.total;
            known.free += pool.free;
        }
        None => pools.push(pool),
    }
    pools.sort_unstable_by_key(|pool| pool.page_bytes);
}

#[test]
fn what_is_read_is_what_was_written() {
    let mut beyond_1024 = 0;
    for seed in 0..16 {
        let (host, offline) = Random(seed).host();
        let fixture = Fixture::write(&host, &offline);
        assert_eq!(Topology::read(fixture.root()).unwrap(), host, "seed {seed}");
        let cpus = host.nodes.iter().flat_map(|node| node.cpus());
        beyond_1024 += usize::from(cpus.max() > Some(1024));
    }
    assert!(beyond_1024 > 2, "{beyond_1024} hosts have a CPU beyond 1,024");
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

/// Synthetic.
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
    let node = "sys/devices/system/node";
    for (id, free) in [(0, 30), (1, 10)] {
        fixture.node(id, if id == 0 { "0\n" } else { "\n" });
        let folder = format!("{node}/node{id}/hugepages");
        fixture.pool(&folder, 2048, &[("nr_hugepages", 40), ("free_hugepages", free)]);
        fixture.pool(&folder, 1048576, &[("nr_hugepages", 4), ("free_hugepages", 4)]);
    }
    let global = "sys/kernel/mm/hugepages";
    let files = [("nr_hugepages", 80), ("free_hugepages", 40), ("resv_hugepages", 22)];
    fixture.pool(global, 2048, &files);
    let topology = Topology::read(fixture.root()).unwrap();
    let pool = |page_bytes, total, free| HugePages { page_bytes, total, free };
    assert_eq!(topology.hugepages, [pool(2 << 20, 80, 18)]);
    let pools = |node: usize| topology.nodes[node].hugepages.as_slice();
    assert_eq!(pools(0), [pool(2 << 20, 40, 18), pool(1 << 30, 4, 4)]);
    assert_eq!(pools(1), [pool(2 << 20, 40, 10), pool(1 << 30, 4, 4)]);

    fixture.file(&format!("{global}/hugepages-2048kB/resv_hugepages"), "some\n");
    let error = Topology::read(fixture.root()).unwrap_err().to_string();
    assert!(error.contains("2048kB/resv_hugepages") && error.contains("some"), "{error}");
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
    assert_eq!(topology.hugepages, topology.nodes[0].hugepages);
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
    for wrong in ["10 20\n", "\n", "near\n", "-10\n"] {
        fixture.distance(0, wrong);
        let error = Topology::read(fixture.root()).unwrap_err().to_string();
        assert!(error.contains("node0/distance") && error.contains("1 nodes"), "{error}");
    }
    fixture.distance(0, "10\n");
    assert_eq!(Topology::read(fixture.root()).unwrap().nodes[0].distances, [10]);
    fixture.file("sys/devices/system/node/node0/meminfo", "Node 0 MemTotal: 5 kB\n");
    let error = Topology::read(fixture.root()).unwrap_err().to_string();
    assert!(error.contains("node0/meminfo") && error.contains("MemFree"), "{error}");
}

#[test]
fn a_transparent_page_has_a_size_that_a_page_can_have() {
    let fixture = Fixture::host("0\n");
    let thp = "sys/kernel/mm/transparent_hugepage";
    fixture.file(&format!("{thp}/enabled"), "[always] madvise never\n");
    let read = |text: &str| {
        fixture.file(&format!("{thp}/hpage_pmd_size"), text);
        Topology::read(fixture.root())
    };
    for bytes in [4096usize, 2 << 20, 512 << 20, 1 << 40] {
        assert_eq!(read(&format!("{bytes}\n")).unwrap().transparent_bytes, Some(bytes));
    }
    for wrong in ["0", "1", "2048", "4095", "2097153", "2199023255552", "18446744073709551615"] {
        let error = read(&format!("{wrong}\n")).unwrap_err().to_string();
        assert!(error.contains("hpage_pmd_size") && error.contains(wrong), "{error}");
    }
}

/// The largest numbers that a line can hold in bytes.
#[test]
fn the_memory_of_a_node_does_not_wrap() {
    let fixture = Fixture::host("0\n");
    let most = (1u64 << 54) - 1;
    fixture.node_with(0, "0\n", [most; 3]);
    let node = &Topology::read(fixture.root()).unwrap().nodes[0];
    assert_eq!(node.memory_free_bytes, most << 10);
    assert_eq!(node.memory_available_bytes, u64::MAX);
}

#[test]
fn this_host() {
    let topology = Topology::read(Path::new("/")).unwrap();
    assert!(topology.nodes.iter().any(|node| !node.cores.is_empty()));
    assert!(topology.memory_available_bytes > 0);
}
