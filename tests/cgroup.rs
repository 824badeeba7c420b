//! Proofs under a memory limit that is hardly more than the plan: nothing is killed.

#[path = "common/cgroup.rs"]
mod cgroup;
mod common;
#[path = "common/running.rs"]
mod running;

use std::process::Command;

use berth::input::class::{CircuitId, Kind, SectorSize};
use berth::memory::heap::{Heap, ProcessBytes};
use berth::prover::{Hooks, Priority, setup};
use cgroup::Group;
use running::{config, porep};

#[global_allocator]
static HEAP: Heap = Heap;

/// The folder of the group that the parent made, for the child.
const GROUP: &str = "CGROUP_OF_THIS_TEST";
/// What the child says last.
const END: &str = "proofs under the limit";
const PROOFS: usize = if cfg!(feature = "long-tests") { 20 } else { 2 };
const POREP: CircuitId = CircuitId { kind: Kind::Porep, sector: SectorSize::K2 };

/// Field case I-01. In plain pages: the controller does not charge hugetlb pages.
#[test]
fn proofs_under_a_limit_of_the_plan_and_two_per_cent() {
    if let Ok(folder) = std::env::var(GROUP) {
        return proofs_in(&folder);
    }
    let Some(group) = Group::new("plan") else {
        println!("not run: no control group can be made here");
        return;
    };
    // The parameters are made beforehand: making them is not a part of the plan.
    let made = common::run(&mut common::berth(&["params", "make-dev", "porep-2k"]));
    assert!(made.0 == 0 || made.2.contains("has dev parameters"), "{}", made.2);
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.arg("--nocapture").env(GROUP, group.folder());
    group.hold(&mut child);
    let (code, stdout, stderr) = common::run(&mut child);
    println!("{stdout}\ngroup: peak {:?}, killed {}", group.peak(), group.kills());
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(group.kills(), 0);
    assert!(stdout.contains(END), "the child came to its end: {stdout}");
}

/// In the child, everything that it takes is charged to the group from its start on.
fn proofs_in(folder: &str) {
    let config = config(&[("BERTH_HUGEPAGES", "off"), ("BERTH_PARTITION_WORKERS", "1")]);
    let mut ready = setup::prepare(&config, &[POREP]).unwrap();
    let planned = ready.plan.total_bytes as u64;
    let limit = planned + planned / 50;
    // The group is the parent's to remove.
    std::mem::ManuallyDrop::new(Group::at(folder)).limit(limit);
    let show = |_: &str, _, _| ();
    let parameters = setup::find_or_make(&config, &ready, &show).unwrap();
    let prover = setup::start(&config, &mut ready, &parameters, Hooks::default(), &show).unwrap();
    for _ in 0..PROOFS {
        let outcome =
            prover.submit(porep("porep-2kib.c1.json"), Priority::Normal).unwrap().wait().unwrap();
        assert_eq!(outcome.redone, 0);
    }
    prover.stop();
    let peak = ProcessBytes::read().unwrap().peak();
    println!("{END}: {PROOFS}, planned {planned}, limit {limit}, peak {peak}");
}
