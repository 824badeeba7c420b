//! What holds of every plan, over random hosts and settings.

use proptest::prelude::*;
use proptest::{collection::vec, option, sample::select};

use super::*;
use crate::host::HugetlbLimit;

fn hosts() -> impl Strategy<Value = Host> {
    let node = (0usize..6, 1usize..3, select(vec![0u64, 60, 150, 400, 4000]), 0usize..120);
    (vec(node, 1..9), select(vec![100u64, 600, 20_000]), option::of(0u64..400)).prop_map(
        |(nodes, memory, limit)| {
            let mut cpus = 0..;
            let mut next = |many: usize| cpus.by_ref().take(many).collect::<Vec<usize>>();
            let nodes = nodes.into_iter().enumerate();
            let nodes = nodes.map(|(id, (cores, siblings, memory, pages))| Node {
                // Numbers of nodes have gaps.
                id: 3 * id,
                cores: (0..cores).map(|_| next(siblings)).collect(),
                memory_available_bytes: memory << 20,
                hugepages: if memory > 0 { pools(pages, 0) } else { Vec::new() },
                distances: Vec::new(),
            });
            let limits = limit.map(|pages| HugetlbLimit {
                page_bytes: 2 * MIB,
                available_bytes: pages << 21,
                by: "the control group".to_owned(),
                remedy: "raise it".to_owned(),
            });
            let nodes: Vec<Node> = nodes.collect();
            let memory = MemoryBound { bytes: memory << 20, by: "the bound".to_owned() };
            Host { nodes, memory, hugetlb_limits: limits.into_iter().collect(), ..fresh() }
        },
    )
}

fn settings() -> impl Strategy<Value = Vec<(&'static str, String)>> {
    let number = || option::of(select(vec![1usize, 2, 3, 7, 40]));
    let mode = select(vec!["auto", "strict", "off"]);
    let pages = select(vec!["auto", "2M", "off"]);
    (mode, pages, number(), number()).prop_map(|(mode, pages, slots, workers)| {
        let mut vars = vec![("BERTH_NUMA", mode.to_owned()), ("BERTH_HUGEPAGES", pages.to_owned())];
        vars.extend(slots.map(|n| ("BERTH_SLOTS", n.to_string())));
        vars.extend(workers.map(|n| ("BERTH_PARTITION_WORKERS", n.to_string())));
        vars
    })
}

fn check(host: &Host, config: &Config, plan: &Plan) -> std::result::Result<(), TestCaseError> {
    // Totals are as set, and the sum of their parts.
    let slots: Vec<usize> = plan.nodes.iter().map(|node| node.slots).collect();
    let workers: Vec<usize> = plan.nodes.iter().map(|node| node.synthesis_cpus.len()).collect();
    prop_assert!(slots.iter().chain(&workers).all(|part| *part > 0));
    let sums: (usize, usize) = (slots.iter().sum(), workers.iter().sum());
    prop_assert_eq!(sums, (plan.slots, plan.partition_workers));
    prop_assert_eq!(config.slots.unwrap_or(plan.slots), plan.slots);
    prop_assert_eq!(config.partition_workers.unwrap_or(sums.1), sums.1);
    if config.slots.is_none() {
        prop_assert_eq!(plan.slots, plan.partition_workers + 2 * plan.nodes.len());
    }
    let arenas: usize = plan.arenas.iter().map(|arena| arena.bytes).sum();
    prop_assert_eq!(plan.total_bytes, arenas + plan.compiled_bytes);

    // Every arena is on a node with memory and a lane, once per purpose.
    prop_assert_eq!(plan.arenas.len(), 3 * plan.nodes.len());
    let node_of = |id| host.nodes.iter().find(|node: &&Node| node.id == id).unwrap();
    for arena in &plan.arenas {
        prop_assert!(plan.arena(arena.purpose, arena.node) == Some(arena));
        prop_assert!(config.numa == Mode::Off || node_of(arena.node).memory_available_bytes > 0);
        prop_assert!(arena.need_bytes <= arena.bytes);
        prop_assert!(arena.bytes - arena.need_bytes < arena.page_bytes);
    }
    let slots_need = |node| plan.arena(Purpose::Slots, node).unwrap().need_bytes;
    prop_assert!(plan.nodes.iter().all(|n| slots_need(n.node) == n.slots * SLOT_BYTES));

    // Pools hold what is taken out of them, on each node and together.
    let of_2m: usize = plan.nodes.iter().flat_map(|n| &n.pools).map(|pool| pool.need).sum();
    prop_assert!(plan.nodes.iter().flat_map(|n| &n.pools).all(|pool| pool.need <= pool.free));
    let hugetlb = plan.arenas.iter().filter(|arena| arena.pages.hugetlb());
    prop_assert_eq!(of_2m, hugetlb.map(|arena| arena.bytes / (2 * MIB)).sum::<usize>());
    let bound = host.hugetlb_limits.first().map_or(u64::MAX, |limit| limit.available_bytes);
    prop_assert!(of_2m as u64 * (2 << 20) <= bound);

    // CPUs are allowed ones; no lane shares one with another.
    let lanes = plan.lane_cpus();
    prop_assert!(lanes.windows(2).all(|pair| pair[0] < pair[1]));
    prop_assert!(lanes.iter().all(|cpu| host.cpus().contains(cpu)));
    for node in &plan.nodes {
        prop_assert!(node.synthesis_cpus.iter().all(|cpu| node.lane_cpus.contains(cpu)));
    }
    let synthesis: Vec<usize> =
        plan.nodes.iter().flat_map(|node| node.synthesis_cpus.clone()).collect();
    let all = plan.housekeeping_cpus == host.cpus();
    prop_assert!(!plan.housekeeping_cpus.is_empty());
    prop_assert!(all || !plan.housekeeping_cpus.iter().any(|cpu| synthesis.contains(cpu)));
    let mut once = synthesis.clone();
    once.sort_unstable();
    once.dedup();
    let cores: usize = host.nodes.iter().map(|node| node.cores.len()).sum();
    prop_assert!(
        once.len() == synthesis.len() || plan.partition_workers > cores.min(lanes.len()) / 2
    );

    // Bound means local: in memory of the node, and under strict by threads of the node too.
    for node in &plan.nodes {
        let here = plan.arenas.iter().filter(|arena| arena.node == node.node);
        let ordinary = here.filter(|arena| !arena.pages.hugetlb());
        let bound = ordinary.clone().all(|arena| arena.bind == config.numa);
        prop_assert_eq!(ordinary.map(|arena| arena.bytes).sum::<usize>(), node.ordinary_bytes);
        prop_assert!(config.numa == Mode::Off || bound == node.local() || node.ordinary_bytes == 0);
        if config.numa == Mode::Strict {
            prop_assert!(node.local() && bound);
            prop_assert_eq!(&node.lane_cpus, &node_of(node.node).cpus());
        }
    }
    prop_assert!(plan.nodes.len() == 1 || plan.nodes.iter().all(NodePlan::local));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn every_plan_holds(host in hosts(), vars in settings()) {
        let vars: Vec<(&str, &str)> = vars.iter().map(|(n, v)| (*n, v.as_str())).collect();
        let config = config(&vars);
        let per_thread = ClassNeed { lane_bytes: &|threads| (20 + 2 * threads) * MIB, ..need() };
        match Plan::new(&config, &host, &[per_thread]) {
            Ok(plan) => check(&host, &config, &plan)?,
            Err(Error::Host(what)) => {
                // Under auto and off, nothing but a size that was asked for can be refused, or a
                // host without CPUs or memory.
                let names = host.nodes.iter().any(|n| what.contains(&format!("node {}", n.id)));
                let bare = what.contains("no CPU") || what.contains("no node has memory");
                prop_assert!(bare || names, "{}", what);
                let asked = config.numa == Mode::Strict || config.hugepages == HugePages::Huge2M;
                prop_assert!(bare || asked, "{}", what);
            }
            Err(other) => prop_assert!(false, "{}", other),
        }
    }
}
