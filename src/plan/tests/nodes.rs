//! Which nodes get what.

use super::*;
use crate::host::{Gpu, HugetlbLimit};

/// A node of cores without siblings, with no hugepages.
pub(super) fn node(id: usize, cpus: &[usize], memory_available_bytes: u64) -> Node {
    let cores = cpus.iter().map(|cpu| vec![*cpu]).collect();
    Node { id, cores, memory_available_bytes, hugepages: pools(0, 0), distances: Vec::new() }
}

/// Nodes of four cores and 8 GiB each, no hugepages, no limit of locked memory.
pub(super) fn even(nodes: usize) -> Host {
    let nodes: Vec<Node> =
        (0..nodes).map(|id| node(id, &(4 * id..4 * id + 4).collect::<Vec<_>>(), 8 << 30)).collect();
    let bytes = (nodes.len() as u64) << 33;
    Host {
        memory: MemoryBound { bytes, by: "the free memory of the host".to_owned() },
        nodes,
        lock_bytes: None,
        ..fresh()
    }
}

fn ids(plan: &Plan) -> Vec<usize> {
    plan.nodes.iter().map(|node| node.node).collect()
}

fn slots(plan: &Plan) -> Vec<usize> {
    plan.nodes.iter().map(|node| node.slots).collect()
}

#[track_caller]
pub(super) fn warned(plan: &Plan, parts: &[&str]) {
    let there = plan.warnings.iter().any(|w| parts.iter().all(|part| w.contains(part)));
    assert!(there, "{parts:?} in {:#?}", plan.warnings);
}

#[test]
fn two_equal_nodes_have_a_lane_an_srs_and_slots_each() {
    for mode in ["auto", "strict"] {
        let plan = plan(&[("BERTH_NUMA", mode)], &even(2)).unwrap();
        assert_eq!((ids(&plan), slots(&plan)), (vec![0, 1], vec![5, 6]));
        assert_eq!(plan.nodes[0].synthesis_cpus, [3, 2, 1]);
        assert_eq!(plan.nodes[1].synthesis_cpus, [7, 6, 5, 4]);
        assert_eq!(plan.nodes[1].lane_cpus, [4, 5, 6, 7]);
        assert_eq!((plan.partition_workers, plan.slots, plan.classes[0].slots), (7, 11, 11));
        assert_eq!(plan.housekeeping_cpus, [0]);
        for (node, slots, cpus) in [(0, 5, [0, 1, 2, 3]), (1, 6, [4, 5, 6, 7])] {
            let arena = |purpose| plan.arena(purpose, node).unwrap();
            assert_eq!(arena(Purpose::Slots).need_bytes, slots * SLOT_BYTES);
            assert_eq!(arena(Purpose::Lane).need_bytes, 40 * MIB);
            assert_eq!(arena(Purpose::Srs).need_bytes, 100 * MIB + 64);
            let mode = if mode == "auto" { Mode::Auto } else { Mode::Strict };
            let arenas = plan.arenas.iter().filter(|arena| arena.node == node);
            assert!(arenas.clone().all(|arena| arena.bind == mode && arena.cpus == cpus));
            assert_eq!(arenas.count(), 3);
        }
        assert_eq!(plan.total_bytes, (2 * (2 + 40 + 102) + 3) * MIB);
    }
}

#[test]
fn eight_nodes() {
    let plan = plan(&[("BERTH_SLOTS", "43")], &even(8)).unwrap();
    assert_eq!((plan.nodes.len(), plan.arenas.len(), plan.partition_workers), (8, 24, 31));
    assert_eq!(slots(&plan).iter().sum::<usize>(), 43);
    assert!(slots(&plan).iter().all(|slots| (4..=6).contains(slots)), "{:?}", slots(&plan));
    assert_eq!(plan.nodes[7].synthesis_cpus, [31, 30, 29, 28]);
    assert_eq!(plan.housekeeping_cpus, [0]);
}

#[test]
fn the_node_with_most_cores_is_first() {
    let mut host = even(2);
    host.nodes[1] = node(1, &[4, 5, 6, 7, 8, 9], 8 << 30);
    let plan = plan(&[], &host).unwrap();
    assert_eq!((ids(&plan), slots(&plan)), (vec![1, 0], vec![7, 6]));
    assert_eq!(plan.housekeeping_cpus, [4]);
}

#[test]
fn a_node_without_memory_lends_its_cores() {
    let mut host = even(3);
    host.nodes[0].memory_available_bytes = 0;
    host.nodes[0].hugepages.clear();
    let plan = plan(&[], &host).unwrap();
    assert_eq!(ids(&plan), [1, 2]);
    assert_eq!(plan.nodes[0].lane_cpus, [0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(plan.nodes[0].synthesis_cpus, [7, 6, 5, 3, 2, 1, 0]);
    // Threads that are far would fill the wrong node's caches, so they do not make pages present.
    assert_eq!(plan.arenas[0].cpus, [4, 5, 6, 7]);
    warned(&plan, &["node 0 lends its 4 cores to the lane on node 1", "0-3 has no memory"]);
    let error = refusal(&[("BERTH_NUMA", "strict")], &host);
    assert!(error.contains("node 0 with CPUs 0-3 has no memory"), "{error}");
    assert!(error.contains("BERTH_CPUS=4-11") && error.contains("--membind=1-2"), "{error}");
}

#[test]
fn a_small_node_lends_its_cores_with_its_numbers() {
    let mut host = even(2);
    host.nodes[1] = node(1, &[4, 5, 6, 7, 8, 9], 64 << 20);
    let small = plan(&[], &host).unwrap();
    assert_eq!((ids(&small), slots(&small)), (vec![0], vec![11]));
    assert!(small.arenas.iter().all(|arena| arena.node == 0 && arena.bind == Mode::Auto));
    warned(&small, &["node 1 lends its 6 cores", "has 64 MiB (67,108,864) free", "144 MiB"]);
    let error = refusal(&[("BERTH_NUMA", "strict")], &host);
    assert!(error.contains("node 1 has 64 MiB") && error.contains("need 144 MiB"), "{error}");
    assert!(error.contains("BERTH_CPUS=0-3") && error.contains("fewer BERTH_SLOTS"), "{error}");
    // In pages of its own pool it holds them.
    host.nodes[1].hugepages = pools(72, 0);
    assert_eq!(ids(&plan(&[("BERTH_NUMA", "strict")], &host).unwrap()), [1, 0]);
}

#[test]
fn where_no_node_holds_a_lane_it_is_bound_to_none() {
    let mut host = even(2);
    for node in &mut host.nodes {
        node.memory_available_bytes = 100 << 20;
    }
    let split = plan(&[], &host).unwrap();
    assert_eq!(ids(&split), [0]);
    assert!(split.arenas.iter().all(|arena| arena.bind == Mode::Off));
    assert_eq!(split.nodes[0].lane_cpus.len(), 8);
    warned(&split, &["node 0 has 100 MiB", "144 MiB", "not bound"]);
    warned(&split, &["node 1 lends its 4 cores to the lane on node 0", "node 1 has 100 MiB"]);
}

#[test]
fn cores_are_lent_to_the_nearest_lane() {
    let mut host = even(3);
    host.nodes[2].memory_available_bytes = 0;
    let lender = |host: &Host| {
        plan(&[], host).unwrap().nodes.iter().map(|n| n.lane_cpus.len()).collect::<Vec<_>>()
    };
    assert_eq!(lender(&host), [8, 4]);
    host.nodes[2].distances = vec![(0, 32), (1, 12), (2, 10)];
    assert_eq!(lender(&host), [4, 8]);
}

/// The memory controller does not charge hugetlb pages, so a node's pool may hold what the bound
/// on all other memory does not let the larger node have.
#[test]
fn one_lane_goes_where_it_fits() {
    let mut host = even(2);
    host.nodes[0] = node(0, &[0, 1, 2, 3, 8], 8 << 30);
    host.nodes[1].hugepages = pools(100, 0);
    host.memory.bytes = 140 << 20;
    let bounded = plan(&[], &host).unwrap();
    assert_eq!((ids(&bounded), bounded.nodes[0].ordinary_bytes), (vec![1], 0));
    warned(&bounded, &["node 0 lends its 5 cores to the lane on node 1", "140 MiB"]);
    // Likewise where the larger node is itself too small.
    let mut host = even(2);
    host.nodes[0] = node(0, &[0, 1, 2, 3, 8], 64 << 20);
    let one = plan(&[("BERTH_SLOTS", "1")], &host).unwrap();
    assert_eq!((ids(&one), one.arenas[0].bind), (vec![1], Mode::Auto));
    warned(&one, &["node 0 lends its 5 cores to the lane on node 1", "node 0 has 64 MiB"]);
}

#[test]
fn a_kernel_without_nodes_is_not_asked_to_bind() {
    for mode in ["auto", "strict"] {
        let host = Host { numa: false, ..fresh() };
        let plan = plan(&[("BERTH_NUMA", mode)], &host).unwrap();
        assert!(plan.arenas.iter().all(|arena| arena.bind == Mode::Off));
    }
}

#[test]
fn cores_are_left_idle_rather_than_that_a_lane_loses_its_place() {
    let mut host = even(2);
    host.nodes[0].memory_available_bytes = 0;
    host.nodes[1].memory_available_bytes = 144 << 20;
    // A thread more makes the lane larger than its node.
    let per_thread = ClassNeed { lane_bytes: &|threads| threads * 10 * MIB, ..need() };
    let plan = admitted(&config(&[]), &host, &[per_thread]).unwrap();
    assert_eq!((ids(&plan), plan.nodes[0].lane_cpus.len()), (vec![1], 4));
    assert!(plan.arenas.iter().all(|arena| arena.bind == Mode::Auto));
    warned(&plan, &["node 0 leaves its 4 cores idle"]);
    assert_eq!(plan.housekeeping_cpus, [0, 1, 2, 3, 4]);
}

#[test]
fn cores_on_one_node_and_memory_on_another() {
    let mut host = even(2);
    host.nodes[0].memory_available_bytes = 0;
    host.nodes[1].cores.clear();
    let plan = plan(&[], &host).unwrap();
    assert_eq!((ids(&plan), plan.nodes[0].lane_cpus.len()), (vec![1], 4));
    assert_eq!(plan.nodes[0].synthesis_cpus, [3, 2, 1]);
    warned(&plan, &["node 0 lends its 4 cores to the lane on node 1"]);
    let error = refusal(&[("BERTH_NUMA", "strict")], &host);
    assert!(error.contains("node 0 with CPUs 0-3"), "{error}");
}

#[test]
fn nodes_of_memory_alone_get_nothing() {
    let mut host = even(2);
    host.nodes[0].cores.clear();
    for mode in ["auto", "strict"] {
        let plan = plan(&[("BERTH_NUMA", mode)], &host).unwrap();
        assert!(plan.arenas.iter().all(|arena| arena.node == 1));
    }
}

#[test]
fn fewer_slots_or_workers_than_nodes() {
    for variable in ["BERTH_SLOTS", "BERTH_PARTITION_WORKERS"] {
        let one = plan(&[(variable, "1")], &even(2)).unwrap();
        assert_eq!(ids(&one), [0]);
        assert_eq!(one.nodes[0].lane_cpus.len(), 8);
        warned(&one, &["node 1 lends its 4 cores", &format!("{variable}=1")]);
        let strict = plan(&[(variable, "1"), ("BERTH_NUMA", "strict")], &even(2)).unwrap();
        assert_eq!((ids(&strict), strict.nodes[0].lane_cpus.len()), (vec![0], 4));
        warned(&strict, &["node 1 leaves its 4 cores idle", &format!("{variable}=1")]);
    }
    let three = plan(&[("BERTH_SLOTS", "3")], &even(2)).unwrap();
    assert_eq!(slots(&three), [1, 2]);
}

#[test]
fn a_lane_more_must_fit_the_host_and_the_limit() {
    let host = even(2);
    let total = plan(&[], &host).unwrap().total_bytes;
    let limit = |bytes: usize| bytes.to_string();
    let limited = plan(&[("BERTH_MEMORY_LIMIT", &limit(total - 1))], &host).unwrap();
    assert_eq!(ids(&limited), [0]);
    warned(&limited, &["node 1 lends", "with a lane there", "291 MiB", "BERTH_MEMORY_LIMIT"]);
    assert_eq!(ids(&plan(&[("BERTH_MEMORY_LIMIT", &limit(total))], &host).unwrap()), [0, 1]);
    // What is beside the arenas needs room too, and more of it with more threads.
    let beside = |limit: usize| {
        let limit = limit.to_string();
        let fixed = |nodes: &[NodePlan]| nodes.len() * MIB;
        Plan::beside(&config(&[("BERTH_MEMORY_LIMIT", &limit)]), &host, &[need()], &fixed).unwrap()
    };
    assert_eq!(ids(&beside(total + 2 * MIB)), [0, 1]);
    assert_eq!(ids(&beside(total + 2 * MIB - 1)), [0]);
    // Lent cores must not break the limit either.
    let alone = plan(&[("BERTH_CPUS", "0-3")], &host).unwrap().total_bytes;
    let per_thread = ClassNeed { lane_bytes: &|threads| threads * 10 * MIB, ..need() };
    let tight = config(&[("BERTH_MEMORY_LIMIT", &limit(alone))]);
    let tight = admitted(&tight, &host, &[per_thread]).unwrap();
    assert_eq!((ids(&tight), tight.nodes[0].lane_cpus.len()), (vec![0], 4));
    warned(&tight, &["node 1 leaves its 4 cores idle", "no other lane has room"]);
}

#[test]
fn a_lane_more_must_fit_the_control_group() {
    let mut group = even(2);
    let by = "the control group (/sys/fs/cgroup/a/memory.max is 9)".to_owned();
    group.memory = MemoryBound { bytes: 290 << 20, by };
    let grouped = plan(&[], &group).unwrap();
    assert_eq!(ids(&grouped), [0]);
    warned(&grouped, &["node 1 lends", "a/memory.max is 9"]);
    assert!(grouped.to_string().contains("of 290 MiB (304,087,040): the control group"));
    // Nothing is given up for this under strict.
    let error = refusal(&[("BERTH_NUMA", "strict")], &group);
    assert!(error.contains("a/memory.max") && error.contains("291 MiB"), "{error}");
    assert!(error.contains("fewer nodes need less"), "{error}");
}

#[test]
fn numa_off_takes_all_nodes_as_one() {
    let mut host = even(3);
    host.nodes[1].memory_available_bytes = 64 << 20;
    host.nodes[2] = node(2, &[8, 9, 10, 11, 12], 0);
    host.nodes[0].hugepages = pools(50, 0);
    host.nodes[1].hugepages = pools(22, 0);
    let plan = plan(&[("BERTH_NUMA", "off"), ("BERTH_HUGEPAGES", "2M")], &host).unwrap();
    assert_eq!((ids(&plan), plan.nodes[0].lane_cpus.len()), (vec![2], 13));
    assert!(plan.arenas.iter().all(|arena| arena.bind == Mode::Off && arena.cpus.len() == 13));
    assert_eq!(plan.nodes[0].pools, [PoolPlan { page_bytes: 2 * MIB, need: 72, free: 72 }]);
    assert_eq!(plan.housekeeping_cpus, [0]);
    assert!(plan.warnings.is_empty(), "{:?}", plan.warnings);
}

#[test]
fn each_node_climbs_its_own_ladder() {
    let mut host = even(2);
    host.nodes[1].hugepages = pools(71, 0);
    let plan = plan(&[], &host).unwrap();
    let pages: Vec<_> = plan.arenas.iter().map(|a| (a.node, a.pages)).collect();
    use Pages::*;
    let expected = [(0, Transparent), (0, Transparent), (0, Transparent), (1, Huge2M), (1, Huge2M)];
    assert_eq!((&pages[..5], pages[5]), (&expected[..], (1, Transparent)));
    assert_eq!(plan.nodes[1].ordinary_bytes, 102 * MIB);
    let text = plan.to_string();
    for part in [
        "node 0 gives 144 MiB (150,994,944) of 8 GiB",
        "node 1 gives 102 MiB (106,954,752) of 8 GiB",
        "node 1 gives 21 of 71 free reserved pages of 2 MiB",
        "node 0: 72 more free hugepages of 2 MiB would hold",
        "node 1: 1 more free hugepage of 2 MiB would hold",
        "(50 are left free)",
        "node 1: CPU lane of 4 threads on CPUs 4-7",
        "porep-2k: 6 slots x",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    let json = serde_json::to_value(&plan).unwrap();
    assert_eq!(json["nodes"][1]["pools"][0]["need"], 21);
    assert_eq!(json["nodes"][1]["slots"], 6);
}

#[test]
fn what_bounds_the_pools_of_all_nodes_together_is_kept() {
    let mut host = even(2);
    for node in &mut host.nodes {
        node.hugepages = pools(72, 0);
    }
    let by = "the control group (/a/hugetlb.2MB.max is 9)".to_owned();
    let remedy = "raise the limit /a/hugetlb.2MB.max".to_owned();
    let mut limit = HugetlbLimit { page_bytes: 2 * MIB, available_bytes: 144 << 21, by, remedy };
    host.hugetlb_limits = vec![limit.clone()];
    plan(&[("BERTH_HUGEPAGES", "2M")], &host).unwrap();
    limit.available_bytes -= 1;
    host.hugetlb_limits = vec![limit];
    let error = refusal(&[("BERTH_HUGEPAGES", "2M")], &host);
    assert!(error.contains("need 144 hugepages of 2 MiB, and 143"), "{error}");
    assert!(error.contains("node 1") && error.contains("/a/hugetlb.2MB.max"), "{error}");
    // `auto` takes the next rung for the arena that comes last.
    let auto = plan(&[], &host).unwrap();
    let pages: Vec<_> = auto.arenas.iter().map(|arena| arena.pages.hugetlb()).collect();
    assert_eq!(pages, [true, true, true, true, true, false]);
    warned(&auto, &["144 hugepages", "and 143 may", "raise the limit /a/hugetlb.2MB.max"]);
    assert!(!auto.warnings.iter().any(|w| w.contains("reserve")), "{:?}", auto.warnings);
}

#[test]
fn a_gpu_whose_node_has_no_slots() {
    let mut host = even(2);
    host.nodes[0].memory_available_bytes = 64 << 20;
    host.nodes[1].hugepages = pools(100, 0);
    let gpu = |address: &str, node| Gpu { address: address.to_owned(), node };
    host.gpus =
        vec![gpu("0000:17:00.0", Some(0)), gpu("0000:65:00.0", Some(1)), gpu("0000:ca:00.0", None)];
    let far = plan(&[], &host).unwrap();
    assert_eq!(ids(&far), [1]);
    warned(&far, &["GPU 0000:17:00.0 is on node 0, which has no slots", "those of node 1"]);
    assert!(!far.warnings.iter().any(|w| w.contains("65:00.0") || w.contains("ca:00.0")));
    let text = far.to_string();
    for line in [
        "GPU 0000:17:00.0 on node 0, with 0 slots, 0 partition workers",
        "GPU 0000:65:00.0 on node 1, with 9 slots, 7 partition workers",
        "GPU 0000:ca:00.0: its node is not known",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
    assert_eq!(serde_json::to_value(&far).unwrap()["gpus"][0]["address"], "0000:17:00.0");
    let cpu = plan(&[("BERTH_BACKEND", "cpu")], &host).unwrap();
    assert!(!cpu.warnings.iter().any(|w| w.contains("GPU")), "{:?}", cpu.warnings);
}
