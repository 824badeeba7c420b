//! Control groups of version 2: a process that is held to one node, or to a limit.

use std::mem::ManuallyDrop;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use berth::groth16::Sums;
use berth::memory::heap::ProcessBytes;
use berth::prover::{Hooks, Priority, setup};

use super::cgroup::Group;
use super::running::{Built, build, config, window};
use super::{HUGE, STRICT, TwoNodes, WINDOW, common, free, kernel, planned, program, refused};
use super::{cpus, saw, slots_max};

/// Tells the child what to do, and the folder of its group.
const ROLE: &str = "TWO_NODES_ROLE";
const GROUP: &str = "TWO_NODES_GROUP";

/// Plain pages: the memory controller does not charge hugetlb pages. As many slots as make a plan
/// of which two per cent are more than what the kernel takes for the group itself.
const PLAIN: [(&str, &str); 3] =
    [("BERTH_NUMA", "strict"), ("BERTH_HUGEPAGES", "off"), ("BERTH_SLOTS", "200")];
const PROOFS: usize = 20;
/// Real lanes take long where the processor is emulated: for so many seconds they compute, then
/// they give the sums that they had, which are the same for the same request.
const SECONDS: u64 = 20;
const REAL_MIN: usize = 2;

/// A group with these controllers, where the host has version 2 of them.
fn group(tag: &str, files: &[&str]) -> Option<Group> {
    let group =
        Group::new(tag).filter(|group| files.iter().all(|file| group.folder().join(file).exists()));
    if group.is_none() {
        assert!(std::env::var_os("TWO_NODES").is_none(), "no control group with {files:?}");
        println!("not run: no control group of version 2 with {files:?} can be made here");
    }
    group
}

fn set(group: &Group, file: &str, value: &str) {
    let path = group.folder().join(file);
    std::fs::write(&path, value).unwrap_or_else(|e| panic!("{} = {value}: {e}", path.display()));
}

fn inside(group: &Group, mut command: Command) -> Command {
    group.hold(&mut command);
    command
}

/// This test program as a child with a role.
fn child(group: &Group, role: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "groups::a_child_does_its_part", "--nocapture"]);
    command.env(ROLE, role).env(GROUP, group.folder());
    inside(group, command)
}

/// The work of a child; nothing in a process that is none.
#[test]
fn a_child_does_its_part() {
    match std::env::var(ROLE).as_deref() {
        Ok("place") => place(),
        Ok("prove") => prove(),
        Ok(other) => panic!("no role {other}"),
        Err(_) => {}
    }
}

/// Builds a prover and prints the mappings of this process.
fn place() {
    let _built = build(&config(&STRICT), WINDOW);
    println!("\n{}", std::fs::read_to_string("/proc/self/numa_maps").unwrap());
}

/// Field case I-07.
#[test]
fn a_process_held_to_node_0_plans_for_it_alone() {
    let Some(_host) = TwoNodes::find() else { return };
    let Some(group) = group("nodes", &["cpuset.cpus", "cpuset.mems"]) else { return };
    set(&group, "cpuset.cpus", &numa::format_list(&cpus(0)));
    set(&group, "cpuset.mems", "0");
    let plan = common::json(&mut inside(&group, program("plan", &["--json"], &STRICT)));
    saw(format_args!("held to node 0: nodes {}", plan["nodes"]));
    let nodes = plan["nodes"].as_array().unwrap();
    assert!(nodes.len() == 1 && nodes[0]["node"] == 0, "{nodes:?}");

    let (code, stdout, stderr) = common::run(&mut child(&group, "place"));
    assert_eq!(code, 0, "{stderr}");
    let lines: Vec<&str> = stdout.lines().filter(|l| l.contains("kernelpagesize_kB")).collect();
    let huge = kernel::huge_pages(&kernel::mappings(&lines.join("\n")));
    let bytes = plan["arenas"].as_array().unwrap().iter().map(|a| a["bytes"].as_u64().unwrap());
    let pages = bytes.sum::<u64>() as usize / HUGE;
    saw(format_args!("hugepages by policy and node: {huge:?}, planned {pages}"));
    assert_eq!(huge.into_iter().collect::<Vec<_>>(), [(("bind:0".to_string(), 0), pages)]);

    let slots = (slots_max(&plan, 0) + 1).to_string();
    let settings = [STRICT[0], STRICT[1], ("BERTH_SLOTS", &*slots)];
    let need = format!("node 0: need {} hugepages of 2 MiB, free {}", free(0) + 1, free(0));
    refused(&mut inside(&group, program("prove", &[], &settings)), &[&need]);
}

/// Field case I-01: the whole program, and then many proofs in one process.
#[test]
fn proofs_under_a_limit_of_the_plan_and_two_per_cent_are_not_killed() {
    let Some(_host) = TwoNodes::find() else { return };
    let Some(group) = group("memory", &["memory.max", "memory.peak"]) else { return };
    let total = planned(&PLAIN)["total_bytes"].as_u64().unwrap();
    group.limit(total + total / 50);
    let proven = common::json(&mut inside(&group, program("prove", &["--json"], &PLAIN)));
    told(&group, &format!("berth prove, {total} planned, {} peak", proven["memory"]["peak_bytes"]));
    assert_eq!(proven["verified"], true);
    drop(group);

    let group = self::group("many", &["memory.max"]).unwrap();
    let (code, stdout, stderr) = common::run(&mut child(&group, "prove"));
    stdout.lines().filter(|line| line.contains("saw: ")).for_each(|line| println!("{line}"));
    told(&group, &format!("{PROOFS} proofs in one process, exit code {code}"));
    assert_eq!(code, 0, "{stdout}{stderr}");
}

/// Says how a group ended, and demands that nothing in it was killed.
fn told(group: &Group, what: &str) {
    let read = |file: &str| std::fs::read_to_string(group.folder().join(file)).unwrap();
    let limit = read("memory.max");
    let events = read("memory.events").trim().replace('\n', ", ");
    let peak = group.peak();
    saw(format_args!("{what}: memory.max {}, memory.peak {peak:?}, {events}", limit.trim()));
    assert_eq!(group.kills(), 0);
}

/// Sets the limit to what this process plans and two per cent, and proves.
fn prove() {
    let config = config(&PLAIN);
    let mut ready = setup::prepare(&config, &[WINDOW]).unwrap();
    let planned = ready.plan.total_bytes as u64;
    // The group is the parent's to remove.
    let group = Group::at(&std::env::var(GROUP).unwrap());
    ManuallyDrop::new(group).limit(planned + planned / 50);
    let show = |_: &str, _, _| {};
    let parameters = setup::find_or_make(&config, &ready, &show).unwrap();
    let (classes, lanes) = setup::build(&config, &mut ready, &parameters, &show).unwrap();
    let built = Built { plan: ready.plan, classes, lanes, witnesses: ready.witnesses };
    let (began, mut sums) = (Instant::now(), None::<Sums>);
    let real = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&real);
    let prover = built.start_around(Hooks::default(), move |lane, slot, call| {
        if let Some(sums) = sums
            && counted.load(Ordering::Relaxed) >= REAL_MIN
            && began.elapsed().as_secs() > SECONDS
        {
            slot.prove().release();
            return Ok(sums);
        }
        counted.fetch_add(1, Ordering::Relaxed);
        Ok(*sums.insert(call(lane, slot)?))
    });
    for _ in 0..PROOFS {
        let outcome = prover.submit(window(1), Priority::Normal).unwrap().wait().unwrap();
        assert_eq!(outcome.redone, 0);
    }
    let (peak, real) = (ProcessBytes::read().unwrap().peak(), real.load(Ordering::Relaxed));
    let rollup = std::fs::read_to_string("/proc/self/smaps_rollup").unwrap();
    let unasked = rollup.lines().find(|line| line.starts_with("AnonHugePages:")).unwrap();
    let mode = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").unwrap();
    saw(format_args!(
        "{PROOFS} verified proofs, {real} of them with sums of their own: {planned} bytes \
         planned, peak {peak}; transparent hugepages are {}, {unasked}",
        mode.trim()
    ));
    assert!(real >= REAL_MIN);
    assert!(peak <= planned + planned * 3 / 100, "peak {peak} of {planned} planned");
    // Where the kernel gives them unasked, they would be memory that no plan has counted.
    assert_eq!(unasked.split_whitespace().nth(1), Some("0"), "{unasked}");
    prover.stop();
}

#[test]
fn a_memory_limit_below_the_plan_is_refused_naming_it() {
    let Some(_host) = TwoNodes::find() else { return };
    let Some(group) = group("short", &["memory.max"]) else { return };
    let total = planned(&PLAIN)["total_bytes"].as_u64().unwrap();
    group.limit(total * 3 / 4);
    let limit = std::fs::read_to_string(group.folder().join("memory.max")).unwrap();
    let mut command = inside(&group, program("prove", &[], &PLAIN));
    refused(&mut command, &["memory.max", limit.trim()]);
    assert_eq!(group.kills(), 0);
}

#[test]
fn a_hugetlb_limit_below_the_plan_is_refused_naming_it() {
    let Some(_host) = TwoNodes::find() else { return };
    let Some(group) = group("pool", &["hugetlb.2MB.max"]) else { return };
    let plan = planned(&STRICT);
    let bytes = plan["arenas"].as_array().unwrap().iter().map(|a| a["bytes"].as_u64().unwrap());
    let bytes = bytes.sum::<u64>();
    // What is left of the limit suffices to the page.
    set(&group, "hugetlb.2MB.max", &bytes.to_string());
    let (code, _, stderr) = common::run(&mut child(&group, "place"));
    saw(format_args!("limit and plan of {bytes} bytes in hugepages: exit code {code}"));
    assert_eq!(code, 0, "{stderr}");
    set(&group, "hugetlb.2MB.max", &(bytes - HUGE as u64).to_string());
    refused(&mut inside(&group, program("prove", &[], &STRICT)), &["hugetlb.2MB.max"]);
}
