//! What the plan advises, and that it stays short and quick on hosts of hundreds of nodes.

use std::cell::Cell;

use super::nodes::{even, node, warned};
use super::*;
use crate::host::HugetlbLimit;

fn limit(pages: u64, remedy: &str) -> HugetlbLimit {
    let (by, remedy) = ("the bound".to_owned(), remedy.to_owned());
    HugetlbLimit { page_bytes: 2 * MIB, available_bytes: pages << 21, by, remedy }
}

fn about_pages(host: &Host) -> Vec<String> {
    let plan = Plan::new(&Config::default(), host, &[need()]).unwrap();
    plan.warnings.into_iter().filter(|warning| warning.contains("hugepage")).collect()
}

/// The arenas need 1 + 20 + 51 pages.
#[test]
fn the_advice_is_what_is_missing() {
    for (free, missing, left) in [
        (0, "72 more free hugepages", "(0 are left free)"),
        (5, "67 more free hugepages", "(4 are left free)"),
        (22, "50 more free hugepages", "(1 is left free)"),
        (71, "1 more free hugepage of", "(50 are left free)"),
    ] {
        let [told] = &about_pages(&with_pools(free, 0))[..] else { panic!("{free}: one warning") };
        assert!(told.contains(missing) && told.contains(left), "{free}: {told}");
        assert!(told.contains("node0/hugepages/hugepages-2048kB/nr_hugepages"), "{told}");
        // With as many more there is nothing to advise.
        let more: usize = told["node 0: ".len()..].split(' ').next().unwrap().parse().unwrap();
        assert!(about_pages(&with_pools(free + more, 0)).is_empty());
    }
}

/// A transparent page can be far larger than 2 MiB; the advice counts what is used.
#[test]
fn the_advice_does_not_count_what_transparent_pages_round_up() {
    let host = Host { transparent_bytes: Some(512 * MIB), ..fresh() };
    assert!(about_pages(&host)[0].contains("72 more free hugepages"));
}

#[test]
fn where_a_limit_binds_the_advice_is_to_raise_it() {
    let raise = "raise the limit /sys/fs/cgroup/a/hugetlb.2MB.max";
    let bound =
        |pages, free| Host { hugetlb_limits: vec![limit(pages, raise)], ..with_pools(free, 0) };
    let [told] = &about_pages(&bound(71, 72))[..] else { panic!("one warning") };
    assert!(told.contains("72 hugepages of 2 MiB would hold all arenas, and 71 may"), "{told}");
    assert!(told.ends_with(raise) && !told.contains("reserve"), "{told}");
    assert!(about_pages(&bound(72, 72)).is_empty());
    // Both are short: both are told.
    let both = about_pages(&bound(71, 70));
    assert_eq!(both.len(), 2);
    assert!(both[0].contains("2 more free hugepages") && both[1].ends_with(raise), "{both:?}");
    // The refusal of a size that was asked for says so too.
    let error = refusal(&[("BERTH_HUGEPAGES", "2M")], &bound(71, 72));
    assert!(error.contains(raise) && !error.contains("reserve"), "{error}");
}

#[test]
fn nobody_is_told_to_reserve_more_than_the_node_has() {
    let mut host = fresh();
    host.nodes[0].memory_available_bytes = 72 << 21;
    assert!(about_pages(&host)[0].contains("reserve them early"));
    host.nodes[0].memory_available_bytes -= 1;
    let [told] = &about_pages(&host)[..] else { panic!("one warning") };
    assert!(!told.contains("reserve") && told.contains("144.0 MiB (150,994,943)"), "{told}");
}

#[test]
fn a_plan_above_memory_high_is_told_that_it_would_crawl() {
    let need_bytes = plan(&[], &fresh()).unwrap().total_bytes as u64;
    let by = "the control group (/a/memory.high is 9)".to_owned();
    let throttled = |bytes| {
        let throttle = Some(MemoryBound { bytes, by: by.clone() });
        Host { throttle, lock_bytes: None, ..fresh() }
    };
    for mode in ["auto", "strict"] {
        let vars = [("BERTH_NUMA", mode), ("BERTH_LOCK", mode)];
        let over = plan(&vars, &throttled(need_bytes - 1)).unwrap();
        warned(&over, &["throttled from 147.0 MiB", "/a/memory.high is 9", "MemoryHigh="]);
        let under = plan(&vars, &throttled(need_bytes)).unwrap();
        assert!(!under.warnings.iter().any(|w| w.contains("throttled")), "{:?}", under.warnings);
    }
    // What is beside the arenas counts, and pages of a pool do not.
    let beside = |bytes| {
        let plan = Plan::beside(&config(&[]), &throttled(bytes), &[need()], &|_| MIB).unwrap();
        plan.warnings.iter().any(|w| w.contains("throttled"))
    };
    assert!(beside(need_bytes + MIB as u64 - 1) && !beside(need_bytes + MIB as u64));
    let pooled = Host { nodes: with_pools(72, 0).nodes, ..throttled(3 << 20) };
    assert!(!plan(&[], &pooled).unwrap().warnings.iter().any(|w| w.contains("throttled")));
}

#[test]
fn memory_of_all_nodes_as_one_does_not_wrap() {
    let mut host = even(2);
    for node in &mut host.nodes {
        node.memory_available_bytes = 1 << 63;
        node.hugepages = pools(usize::MAX - 7, 0);
    }
    for mode in ["auto", "off"] {
        let plan = plan(&[("BERTH_NUMA", mode)], &host).unwrap();
        assert_eq!(plan.nodes[0].pools[0].free, usize::MAX - if mode == "off" { 0 } else { 7 });
    }
    host.nodes[1].cores.clear();
    // The lane goes to the node with most memory, which a product that wraps would hide.
    host.nodes[0].memory_available_bytes = 0;
    host.nodes[0].hugepages.clear();
    host.nodes[1].hugepages = pools(1 << 43, 0);
    host.nodes[1].memory_available_bytes = 0;
    host.nodes.push(node(2, &[], 8 << 30));
    assert_eq!(plan(&[], &host).unwrap().nodes[0].node, 1);
}

/// A plan, and how often it was laid out: the workspace of a lane is asked for once for each node
/// of each layout.
fn counted(host: &Host, lane_bytes: &dyn Fn(usize) -> usize) -> (Plan, usize) {
    let asked = Cell::new(0);
    let lane_bytes = &|threads| {
        asked.set(asked.get() + 1);
        lane_bytes(threads)
    };
    let plan = Plan::new(&config(&[]), host, &[ClassNeed { lane_bytes, ..need() }]).unwrap();
    (plan, asked.get())
}

#[test]
fn hundreds_of_nodes_are_few_warnings_and_few_layouts() {
    const NODES: usize = 512;
    let distances: Vec<(usize, u32)> = (0..NODES).map(|id| (id, 20)).collect();
    let half = |bytes| {
        let mut host = even(NODES);
        for node in &mut host.nodes {
            node.distances.clone_from(&distances);
            if node.id % 2 == 1 {
                node.memory_available_bytes = bytes;
            }
        }
        host
    };
    let per_thread = |threads| threads * 10 * MIB;
    // Half of the nodes lend to the others.
    let (plan, asked) = counted(&half(0), &per_thread);
    assert_eq!((plan.nodes.len(), plan.lane_cpus().len()), (NODES / 2, 4 * NODES));
    warned(&plan, &["node 1 lends its 4 cores", "likewise", "nodes 3,5,7,", ",511"]);
    warned(&plan, &["node 0: ", "more free hugepages", "likewise", "nodes 2,4,6,", ",510"]);
    assert!(plan.warnings.len() < 5, "{}", plan.warnings.len());
    assert!(asked <= NODES / 2 * (NODES / 2 + 2), "{asked}");
    // No lane has room for theirs.
    let mut host = half(0);
    for node in host.nodes.iter_mut().step_by(2) {
        node.memory_available_bytes = 145 << 20;
    }
    let (plan, asked) = counted(&host, &per_thread);
    assert_eq!(plan.lane_cpus().len(), 2 * NODES);
    warned(&plan, &["node 1 leaves its 4 cores idle", "likewise", "nodes 3,5,7,", ",511"]);
    assert!(plan.warnings.len() < 5, "{}", plan.warnings.len());
    assert!(asked <= NODES / 2 * (NODES / 2 + 2), "{asked}");
    // The host has room for 100 lanes, whose nodes take the cores of all.
    let mut host = half(8 << 30);
    host.memory.bytes = (100 * 144 + 3) << 20;
    let (plan, asked) = counted(&host, &|_| 40 * MIB);
    assert_eq!((plan.nodes.len(), plan.lane_cpus().len()), (100, 4 * NODES));
    assert!(plan.warnings.len() < 5, "{}", plan.warnings.len());
    assert!(asked <= 11 * NODES + 100 * (NODES - 100), "{asked}");
}
