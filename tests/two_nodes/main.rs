//! Two NUMA nodes for real: every slot on its node, every thread where it was pinned, and refusals
//! that name the node. `tests/two_nodes/run` boots a small machine that has two; on a host with two
//! nodes and free hugepages of 2 MiB on both the tests run as they are.
//!
//! What a test finds it prints, as `saw: ...`.

#[path = "../common/cgroup.rs"]
mod cgroup;
#[path = "../common/mod.rs"]
mod common;
mod groups;
mod kernel;
#[path = "../common/running.rs"]
mod running;

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use berth::groth16::Stage;
use berth::host::Host;
use berth::input::class::{CircuitId, Kind, SectorSize};
use berth::memory::heap::Heap;
use berth::memory::slot::SlotPool;
use berth::plan::Plan;
use berth::prover::{Hooks, Priority, Prover, What, setup};
use kernel::{Sightings, Thread};
use running::{build, config, holds, window};
use serde_json::Value;

#[global_allocator]
static HEAP: Heap = Heap;

const WINDOW: CircuitId = CircuitId { kind: Kind::Window, sector: SectorSize::K2 };
const HUGE: usize = 2 << 20;
/// Free hugepages on each node that the tests need: SRS, lane and slots of the tiny circuit.
const PAGES_MIN: usize = 24;
/// All local, in hugepages of 2 MiB, or not at all.
const STRICT: [(&str, &str); 2] = [("BERTH_NUMA", "strict"), ("BERTH_HUGEPAGES", "2M")];
/// Slots are divided as the synthesis threads are: of these each node gets half.
const EVEN: (&str, &str) = ("BERTH_PARTITION_WORKERS", "4");

/// What is printed is what the verdict stands on.
fn saw(what: impl std::fmt::Display) {
    println!("saw: {what}");
}

/// The host of two nodes, to one test at a time.
struct TwoNodes {
    _turn: MutexGuard<'static, ()>,
}

impl TwoNodes {
    /// `None`, and a line that says so, on any other host; `TWO_NODES=required` makes that a fault.
    fn find() -> Option<TwoNodes> {
        static TURN: Mutex<()> = Mutex::new(());
        let turn = TURN.lock().unwrap_or_else(|e| e.into_inner());
        let host = Host::read().unwrap();
        let ids: Vec<usize> = host.nodes.iter().map(|node| node.id).collect();
        let fit = |n: &usize| cpus(*n).len() >= 2 && free(*n) >= PAGES_MIN;
        if ids == [0, 1] && ids.iter().all(fit) {
            return Some(TwoNodes { _turn: turn });
        }
        let what = format!(
            "no two nodes with 2 CPUs and {PAGES_MIN} free hugepages of 2 MiB each here \
             (tests/two_nodes/run boots a machine that has them); nodes: {ids:?}"
        );
        assert!(std::env::var_os("TWO_NODES").is_none(), "{what}");
        println!("not run: {what}");
        None
    }
}

/// The CPUs of a node.
fn cpus(node: usize) -> Vec<usize> {
    let host = Host::read().unwrap();
    host.nodes
        .iter()
        .find(|found| found.id == node)
        .map(berth::host::Node::cpus)
        .unwrap_or_default()
}

/// Free hugepages of 2 MiB on a node.
fn free(node: usize) -> usize {
    let host = Host::read().unwrap();
    let pools = host.nodes.iter().filter(|found| found.id == node).flat_map(|n| &n.hugepages);
    pools.filter(|pool| pool.page_bytes == HUGE).map(|pool| pool.free).sum()
}

/// `berth COMMAND` for the tiny WindowPoSt request.
fn program(command: &str, more: &[&str], settings: &[(&str, &str)]) -> Command {
    let mut command = common::window(command, more);
    command.envs(settings.iter().copied());
    command
}

/// The plan as `berth plan --json` prints it.
fn planned(settings: &[(&str, &str)]) -> Value {
    common::json(&mut program("plan", &["--json"], settings))
}

/// Demands that the program ends with 3 and says all of `texts`, within a few seconds; gives what
/// it said.
#[track_caller]
fn refused(command: &mut Command, texts: &[&str]) -> String {
    let began = Instant::now();
    let (code, stdout, stderr) = common::run(command);
    let seconds = began.elapsed().as_secs_f32();
    let said = stderr.lines().find(|line| line.starts_with("berth: ")).unwrap_or(&stderr);
    saw(format_args!("exit code {code} after {seconds:.1} s: {said}"));
    assert_eq!(code, 3, "{stdout}{stderr}");
    for text in texts {
        assert!(said.contains(text), "{text:?} is not in {said:?}");
    }
    // Within a second on a processor of its own; this one may be emulated, and shared.
    assert!(seconds < 20.0, "{seconds} s");
    said.to_string()
}

/// Pages of the planned arenas by node.
fn planned_pages(plan: &Plan) -> BTreeMap<usize, usize> {
    let mut pages = BTreeMap::new();
    for arena in &plan.arenas {
        *pages.entry(arena.node).or_insert(0) += arena.bytes / arena.page_bytes;
    }
    pages
}

/// Addresses throughout the slots of a pool, all of which are home: the ends of every plane of
/// every part, and every base page between.
fn addresses(pool: &SlotPool) -> Vec<*const u8> {
    let mut found = Vec::new();
    let mut out = Vec::new();
    while let Some(slot) = pool.try_take() {
        for mut part in slot.fill().split() {
            let (wides, bits) = part.planes();
            for range in [wides.as_ptr_range().start.cast(), bits.as_ptr_range().start.cast()]
                .into_iter()
                .zip([size_of_val(wides), size_of_val(bits)])
            {
                let (start, bytes): (*const u8, usize) = range;
                let offsets = (0..bytes).step_by(4096).chain(bytes.checked_sub(1));
                found.extend(offsets.map(|offset| start.wrapping_add(offset)));
            }
            // Kept, or the next take would give the same slot again.
            out.push(part);
        }
    }
    found
}

#[test]
fn every_slot_sits_on_its_node() {
    let Some(_host) = TwoNodes::find() else { return };
    let before = [free(0), free(1)];
    let built = build(&config(&STRICT), WINDOW);
    let plan = &built.plan;
    let nodes: BTreeSet<usize> = plan.nodes.iter().map(|node| node.node).collect();
    saw(format_args!("a plan over nodes {nodes:?}, {} slots, {:?}", plan.slots, plan.warnings));
    assert_eq!(nodes, BTreeSet::from([0, 1]), "a strict plan uses both nodes");
    assert_eq!(plan.nodes.iter().map(|node| node.slots).sum::<usize>(), plan.slots);

    for (node, pool) in plan.nodes.iter().zip(&built.classes[0].pools) {
        let id = node.node;
        assert_eq!(pool.count(), node.slots);
        assert!(node.slots > 0);
        let addresses = addresses(pool);
        assert!(addresses.len() > 2 * node.slots);
        let moved: BTreeSet<i32> = kernel::nodes_by_move(&addresses).into_iter().collect();
        let policy: BTreeSet<i32> =
            addresses.iter().map(|address| kernel::node_by_policy(*address)).collect();
        let mapped = kernel::mapping_of(addresses[0] as usize);
        saw(format_args!(
            "node {id}: {} slots, {} addresses in them; move_pages: {moved:?}, \
             get_mempolicy: {policy:?}, numa_maps: {}",
            node.slots,
            addresses.len(),
            mapped.line
        ));
        assert_eq!(moved, BTreeSet::from([id as i32]));
        assert_eq!(policy, BTreeSet::from([id as i32]));
        assert_eq!(mapped.policy, format!("bind:{id}"));
        assert_eq!(mapped.page_bytes, HUGE);
        assert_eq!(mapped.pages.keys().copied().collect::<Vec<_>>(), [id]);
        assert_eq!(pool.occupancy().home, node.slots, "all are home again");
    }

    // Lanes and SRS too: the hugepages of this process are the plan's arenas, each on its node.
    let maps = std::fs::read_to_string("/proc/self/numa_maps").unwrap();
    let huge = kernel::huge_pages(&kernel::mappings(&maps));
    let expected: BTreeMap<(String, usize), usize> = planned_pages(plan)
        .into_iter()
        .map(|(node, pages)| ((format!("bind:{node}"), node), pages))
        .collect();
    saw(format_args!("hugepages by policy and node: {huge:?}, planned {expected:?}"));
    assert_eq!(huge, expected);
    let taken = [before[0] - free(0), before[1] - free(1)];
    assert_eq!(taken.to_vec(), planned_pages(plan).into_values().collect::<Vec<_>>());
    drop(built);
    saw(format_args!("free hugepages afterwards: {:?}, before: {before:?}", [free(0), free(1)]));
    assert_eq!([free(0), free(1)], before, "no mapping is left behind");
}

/// The CPU of every pinned thread, by the thread's name.
fn pins(plan: &Plan) -> BTreeMap<String, usize> {
    let synthesis = plan.nodes.iter().flat_map(|node| &node.synthesis_cpus).enumerate();
    let mut pins: BTreeMap<String, usize> =
        synthesis.map(|(n, cpu)| (format!("synthesis-{n}"), *cpu)).collect();
    for node in &plan.nodes {
        for (n, cpu) in node.lane_cpus.iter().enumerate() {
            pins.insert(format!("lane{}-{n}", node.node), *cpu);
        }
    }
    pins
}

fn pinned(threads: &[Thread], pins: &BTreeMap<String, usize>) -> bool {
    pins.iter().all(|(name, cpu)| {
        let found = threads.iter().find(|thread| thread.name == *name);
        found.is_some_and(|thread| thread.allowed == cpu.to_string() && thread.cpu == *cpu)
    })
}

/// Where threads were found while two proofs were made, which verify.
fn watch_two_proofs(prover: &Prover) -> Sightings {
    let ticket = prover.submit(window(2), Priority::Normal).unwrap();
    let waiter = std::thread::spawn(move || ticket.wait().unwrap());
    let mut sightings = Sightings::default();
    while !waiter.is_finished() {
        sightings.look();
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(holds(prover, &waiter.join().unwrap(), &window(2)), "both proofs verify");
    sightings
}

#[test]
fn threads_run_where_they_were_pinned() {
    let Some(_host) = TwoNodes::find() else { return };
    // One slot on each node: of two partitions each node makes one.
    let settings = [STRICT[0], STRICT[1], ("BERTH_SLOTS", "2")];
    let config = config(&settings);
    let mut ready = setup::prepare(&config, &[WINDOW]).unwrap();
    let show = |_: &str, _, _| {};
    let parameters = setup::find_or_make(&config, &ready, &show).unwrap();
    // Nodes of the plan whose lane has summed, with the number of sums.
    let worked = Arc::new(Mutex::new(BTreeMap::<usize, usize>::new()));
    let inside = Arc::clone(&worked);
    let hooks = Hooks {
        event: Box::new(move |event| {
            if let What::Lane { stage: Stage::H, .. } = event.what {
                *inside.lock().unwrap().entry(event.node).or_insert(0) += 1;
            }
        }),
        ..Hooks::default()
    };
    // In a thread of its own, since that and what it starts unpinned stay where they are put.
    let starter = std::thread::Builder::new().name("starter".into()).spawn(move || {
        setup::keep_house(&ready.plan);
        let prover = setup::start(&config, &mut ready, &parameters, hooks, &show).unwrap();
        (prover, ready.plan)
    });
    let (prover, plan) = starter.unwrap().join().unwrap();
    let pins = pins(&plan);
    for node in &plan.nodes {
        let all: BTreeSet<usize> =
            node.synthesis_cpus.iter().chain(&node.lane_cpus).copied().collect();
        saw(format_args!("node {}: planned CPUs {all:?}, it has {:?}", node.node, cpus(node.node)));
        assert!(all.iter().all(|cpu| cpus(node.node).contains(cpu)));
    }
    let began = Instant::now();
    while !pinned(&kernel::threads(), &pins) {
        assert!(began.elapsed().as_secs() < 30, "{:?} are not {pins:?}", kernel::threads());
        std::thread::sleep(Duration::from_millis(10));
    }

    let sightings = watch_two_proofs(&prover);
    let threads = kernel::threads();
    for (name, cpu) in &pins {
        let thread = threads.iter().find(|thread| thread.name == *name).unwrap();
        let seen = &sightings.cpus[name];
        saw(format_args!(
            "{name}: planned on CPU {cpu}, allowed {}, found on {seen:?} in {} looks, {} ticks",
            thread.allowed, sightings.looks, thread.ticks
        ));
        assert_eq!(thread.allowed, cpu.to_string());
        assert_eq!(*seen, BTreeSet::from([*cpu]));
        assert!(thread.ticks > 0 || name.starts_with("synthesis"), "{name} has done nothing");
    }
    let house = numa::format_list(&plan.housekeeping_cpus);
    let finish = threads.iter().find(|thread| thread.name == "finish-0").unwrap();
    saw(format_args!("finish-0: housekeeping is on CPUs {house}, allowed {}", finish.allowed));
    assert_eq!(finish.allowed, house);
    assert!(!plan.nodes.iter().any(|n| n.synthesis_cpus.contains(&finish.cpu)), "{finish:?}");
    let worked = worked.lock().unwrap().clone();
    saw(format_args!("partitions by the lane of each node of the plan: {worked:?}"));
    assert_eq!(worked, BTreeMap::from([(0, 1), (1, 1)]), "the lanes of both nodes have worked");
    prover.stop();
}

/// The most slots on each node for which a node's hugepages suffice, from a plan that fits.
fn slots_max(plan: &Value, node: usize) -> usize {
    let arenas = plan["arenas"].as_array().unwrap();
    let others = arenas.iter().filter(|arena| arena["node"] == node && arena["purpose"] != "slots");
    let others: usize = others.map(|arena| arena["bytes"].as_u64().unwrap() as usize / HUGE).sum();
    (free(node) - others) * HUGE / plan["slot_bytes"].as_u64().unwrap() as usize
}

#[test]
fn a_strict_plan_too_big_for_the_hugepages_of_node_0_names_it() {
    let Some(_host) = TwoNodes::find() else { return };
    let plan = planned(&[STRICT[0], STRICT[1], EVEN]);
    let (fit, other) = (slots_max(&plan, 0), slots_max(&plan, 1));
    saw(format_args!("hugepages for {fit} slots on node 0, {other} on node 1"));
    assert!(fit + 4 <= other, "node 0 is the smaller one");
    let with = |each: usize| (2 * each).to_string();
    let slots = with(fit);
    let plan = planned(&[STRICT[0], STRICT[1], EVEN, ("BERTH_SLOTS", &slots)]);
    saw(format_args!("BERTH_SLOTS={slots} fits: nodes {}", plan["nodes"]));
    let before = free(0);
    for (command, more) in [("plan", &["--json"][..]), ("prove", &[])] {
        let slots = with(fit + 1);
        let settings = [STRICT[0], STRICT[1], EVEN, ("BERTH_SLOTS", &*slots)];
        let need = format!("node 0: need {} hugepages of 2 MiB, free {before}", before + 1);
        refused(&mut program(command, more, &settings), &[&need]);
    }
    assert_eq!(free(0), before, "nothing is left behind");
}

#[test]
fn a_strict_plan_too_big_for_the_memory_of_node_0_names_it() {
    let Some(_host) = TwoNodes::find() else { return };
    let host = Host::read().unwrap();
    let [first, second] = [0, 1].map(|n: usize| host.nodes[n].memory_available_bytes as usize);
    let plain = [("BERTH_NUMA", "strict"), ("BERTH_HUGEPAGES", "off"), EVEN];
    let plan = planned(&plain);
    let slot_bytes = plan["slot_bytes"].as_u64().unwrap() as usize;
    // Half between what the nodes have: too much for the one, and the other holds it.
    let each = (first + second) / 2 / slot_bytes;
    saw(format_args!("node 0 has {first} bytes free, node 1 {second}; {each} slots on each"));
    assert!(first + 64 * slot_bytes < second, "node 0 is the smaller one");
    let slots = (2 * each).to_string();
    let settings = [plain[0], plain[1], EVEN, ("BERTH_SLOTS", &*slots)];
    refused(&mut program("plan", &[], &settings), &["host: node 0 has", "BERTH_NUMA=strict"]);
}
