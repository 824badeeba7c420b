//! Every refusal of a host with several nodes names the node, what it needs and what it has.

use super::nodes::even;
use super::*;

#[test]
fn a_pool_that_is_short_on_one_node() {
    for (short, mode) in [(0, "auto"), (1, "auto"), (1, "strict")] {
        let mut host = even(2);
        for node in &mut host.nodes {
            node.hugepages = pools(72, 0);
        }
        let vars = [("BERTH_HUGEPAGES", "2M"), ("BERTH_NUMA", mode)];
        plan(&vars, &host).unwrap();
        host.nodes[short].hugepages = pools(71, 9);
        let error = refusal(&vars, &host);
        let part = format!("node {short}: need 72 hugepages of 2 MiB, free 71");
        assert!(error.contains(&part) && error.contains("nr_hugepages"), "{error}");
        assert!(error.contains("BERTH_CPUS can leave the node out"), "{error}");
        // Without that node there is a plan.
        let cpus = if short == 0 { "4-7" } else { "0-3" };
        let rest = plan(&[vars[0], vars[1], ("BERTH_CPUS", cpus)], &host).unwrap();
        assert_eq!(rest.nodes.len(), 1);
    }
}

#[test]
fn all_reserved_pages_on_one_node() {
    let mut host = even(2);
    host.nodes[1].hugepages = pools(100, 0);
    let error = refusal(&[("BERTH_HUGEPAGES", "2M")], &host);
    assert!(error.contains("node 0: need 72 hugepages of 2 MiB, free 0"), "{error}");
    let auto = plan(&[], &host).unwrap();
    assert!(auto.arenas.iter().all(|a| a.pages.hugetlb() == (a.node == 1)));
}

/// A process bound to one node (I-07): its host has that node alone, and no other counts.
#[test]
fn strict_on_the_one_node_of_mems_allowed() {
    let mut host = even(1);
    host.nodes[0].memory_available_bytes = 150 << 20;
    let strict = [("BERTH_NUMA", "strict")];
    let plan = plan(&strict, &host).unwrap();
    assert!(plan.arenas.iter().all(|arena| arena.node == 0 && arena.bind == Mode::Strict));
    let error = refusal(&[strict[0], ("BERTH_SLOTS", "2000")], &host);
    assert!(error.contains("node 0 has 150 MiB") && error.contains("fewer BERTH_SLOTS"), "{error}");
    assert!(!error.contains("leave the node out"), "{error}");
}

/// The cpuset has CPUs of two nodes and memory of one.
#[test]
fn cpus_of_two_nodes_and_memory_of_one() {
    let mut host = even(2);
    host.nodes[1].memory_available_bytes = 0;
    host.nodes[1].hugepages.clear();
    let auto = plan(&[], &host).unwrap();
    assert!(auto.arenas.iter().all(|arena| arena.node == 0));
    let error = plan(&[("BERTH_NUMA", "strict")], &host).unwrap_err();
    assert_eq!(error.exit_code(), 3);
    let error = error.to_string();
    assert!(error.contains("node 1 with CPUs 4-7"), "{error}");
    assert!(error.contains("BERTH_CPUS=0-3, or numactl --cpunodebind=0 --membind=0"), "{error}");
    let left_out = plan(&[("BERTH_NUMA", "strict"), ("BERTH_CPUS", "0-3")], &host).unwrap();
    assert_eq!((left_out.nodes.len(), left_out.lane_cpus()), (1, vec![0, 1, 2, 3]));
}

#[test]
fn no_memory_and_no_cpu_at_all() {
    for mode in ["auto", "strict", "off"] {
        let mut host = even(2);
        for node in &mut host.nodes {
            node.memory_available_bytes = 0;
        }
        assert!(refusal(&[("BERTH_NUMA", mode)], &host).contains("no node has memory"));
        let mut host = even(2);
        for node in &mut host.nodes {
            node.cores.clear();
        }
        assert!(refusal(&[("BERTH_NUMA", mode)], &host).contains("no CPU"));
    }
}
