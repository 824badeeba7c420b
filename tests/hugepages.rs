//! Arenas in reserved hugepages, on pages that the test reserves itself (root); a process of its
//! own, because the pool is one for the whole host.

#[path = "common/cgroup.rs"]
mod cgroup;
mod common;
#[path = "common/pool.rs"]
mod pool;
#[path = "common/running.rs"]
mod running;

use berth::circuit::shape::{PartShape, Shape};
use berth::config::{Config, HugePages, Mode};
use berth::host::Host;
use berth::memory::heap::ProcessBytes;
use berth::memory::{Arena, SlotPool};
use berth::plan::{ArenaPlan, ClassNeed, Pages, Plan, Purpose};
use berth::prover::setup;
use cgroup::Group;
use pool::{Held, Pool, free, mappings, numa_maps};

const MIB: usize = 1 << 20;

fn strict(pages: Pages, page_bytes: usize, bytes: usize) -> ArenaPlan {
    ArenaPlan {
        bytes: bytes.next_multiple_of(page_bytes),
        pages,
        page_bytes,
        bind: Mode::Strict,
        lock: Mode::Strict,
        cpus: Host::read().unwrap().nodes[0].cpus(),
        ..ArenaPlan::unplaced(Purpose::Lane, bytes)
    }
}

/// Bytes of the mapping at `address` and of its hugetlb pages, from /proc/self/smaps.
fn smaps(address: *mut std::ffi::c_void) -> (usize, usize) {
    let smaps = std::fs::read_to_string("/proc/self/smaps").unwrap();
    let head = format!("{:x}-", address as usize);
    let mut lines = smaps.lines().skip_while(|line| !line.starts_with(&head));
    let range = lines.next().expect("the mapping is there").split(' ').next().unwrap();
    let (start, end) = range.split_once('-').unwrap();
    let number = |text| usize::from_str_radix(text, 16).unwrap();
    let value = lines.find_map(|line| line.strip_prefix("Private_Hugetlb:")).unwrap();
    let kilobytes = value.trim().strip_suffix(" kB").unwrap();
    (number(end) - number(start), kilobytes.trim().parse::<usize>().unwrap() * 1024)
}

fn check_whole(arena: &mut Arena, bytes: usize) {
    assert_eq!(arena.bytes(), bytes);
    let words = arena.carve().take::<u64>(bytes / 8);
    assert!(words.iter().all(|word| *word == 0));
    words.fill(u64::MAX);
    assert!(arena.view().take::<u64>(bytes / 8).iter().all(|word| *word == u64::MAX));
}

fn class(shape: Shape, lane_bytes: &dyn Fn(usize) -> usize) -> ClassNeed<'_> {
    let id = "porep-2k".parse().unwrap();
    ClassNeed { id, shape, srs_bytes: 0, lane_bytes, compiled_bytes: 0 }
}

fn slot_shape() -> Shape {
    let part = PartShape { inputs: 3, bits: 70_001, wides: 1001, rows: 9 };
    Shape { header: part, block: part, repeats: 4 }
}

/// All steps in one test: they share the pool.
#[test]
fn reserved_hugepages() {
    if let Some(_pool) = Pool::with_free(2 * MIB, 6) {
        pages_of_2m();
    }
    if let Some(_pool) = Pool::with_free(2 * MIB, 24) {
        pages_that_another_takes_after_the_plan();
    }
    if let Some(_pool) = Pool::with_free(1 << 30, 1) {
        pages_of_1g();
    }
}

/// Every page lies on node 0, to which the mapping is bound, and has the planned size.
#[track_caller]
fn check_placement(arena: &Arena, page_bytes: usize) {
    let words = numa_maps(arena.address());
    let nodes: Vec<_> = words.iter().filter(|word| word.starts_with('N')).collect();
    assert_eq!(nodes, [&format!("N0={}", arena.bytes() / page_bytes)], "{words:?}");
    assert_eq!(words[0], "bind:0");
    let size = format!("kernelpagesize_kB={}", page_bytes / 1024);
    assert!(words.contains(&size), "{words:?}");
}

fn pages_of_2m() {
    let all = free(2 * MIB);
    let (resident, before) = (ProcessBytes::read().unwrap().hugetlb, mappings());
    let (mut arena, warnings) = Arena::map(&strict(Pages::Huge2M, 2 * MIB, 10 * MIB - 1)).unwrap();
    assert!(warnings.is_empty(), "{warnings:?}");
    assert_eq!(free(2 * MIB), all - 5);
    assert_eq!(smaps(arena.address()), (10 * MIB, 10 * MIB));
    assert_eq!(ProcessBytes::read().unwrap().hugetlb - resident, 10 << 20);
    check_placement(&arena, 2 * MIB);
    check_whole(&mut arena, 10 * MIB);

    // Another tenant holds 5 pages now: what is refused says node, size, need, free (I-09, I-12).
    let need = all - 5 + 1;
    let error = Arena::map(&strict(Pages::Huge2M, 2 * MIB, need * 2 * MIB)).map(|_| ());
    let error = error.unwrap_err();
    assert_eq!(error.exit_code(), 3);
    let expected = format!("node 0: need {need} hugepages of 2 MiB, free {}", all - 5);
    assert!(error.to_string().contains(&expected), "{error}");
    assert_eq!(mappings(), before + 1, "what was refused leaves no mapping");

    // The planner sees the same, and `auto` goes on with other pages.
    let header = PartShape { wides: 9, ..PartShape::default() };
    let lane_bytes = |_| (need - 1) * 2 * MIB;
    let need = class(Shape { header, ..Shape::default() }, &lane_bytes);
    let host = Host::read().unwrap();
    let explicit = Config { hugepages: HugePages::Huge2M, ..Config::default() };
    let error = Plan::new(&explicit, &host, std::slice::from_ref(&need)).unwrap_err();
    assert!(error.to_string().contains(&expected), "{error}");
    let auto = Plan::new(&Config::default(), &host, &[need]).unwrap();
    assert_eq!(auto.arena(Purpose::Slots, 0).unwrap().pages, Pages::Huge2M);
    assert_ne!(auto.arena(Purpose::Lane, 0).unwrap().pages, Pages::Huge2M);

    drop(arena);
    assert_eq!((free(2 * MIB), mappings()), (all, before));
    slots_in_2m();
    pages_that_a_control_group_holds_back();
}

/// Field case I-12: whoever leaves the choice of pages to the plan gets another plan, and whoever
/// does not is refused.
fn pages_that_another_takes_after_the_plan() {
    let circuit = "window-2k".parse().unwrap();
    let show = |_: &str, _, _| ();
    let all = free(2 * MIB);
    let config = running::config(&[("BERTH_SLOTS", "1")]);
    let mut ready = setup::prepare(&config, &[circuit]).unwrap();
    let parameters = setup::find_or_make(&config, &ready, &show).unwrap();
    assert!(ready.plan.arenas.iter().any(|arena| arena.pages == Pages::Huge2M), "{}", ready.plan);
    let another = Held::map(2 * MIB, all, 0).unwrap();
    let built = setup::build(&config, &mut ready, &parameters, &show).unwrap();
    assert!(ready.plan.arenas.iter().all(|arena| !arena.pages.hugetlb()), "{}", ready.plan);
    drop((built, another));
    assert_eq!(free(2 * MIB), all);

    let config = running::config(&[("BERTH_SLOTS", "1"), ("BERTH_HUGEPAGES", "2M")]);
    let mut ready = setup::prepare(&config, &[circuit]).unwrap();
    let another = Held::map(2 * MIB, all, 0).unwrap();
    let refused = setup::build(&config, &mut ready, &parameters, &show).map(|_| ()).unwrap_err();
    assert_eq!(refused.exit_code(), 3);
    assert!(refused.to_string().contains("free 0"), "{refused}");
    drop(another);
}

/// The pages are free and promised, and still the kernel has fewer for this process: it finds out
/// when they are populated, where a touch would be a SIGBUS.
fn pages_that_a_control_group_holds_back() {
    let Some(group) = Group::hugetlb_2m("populate") else {
        println!("not run: no control group with a hugetlb limit can be made here");
        return;
    };
    group.limit(6 << 20);
    let (all, before) = (free(2 * MIB), mappings());
    let map =
        |pages: usize| Arena::map(&strict(Pages::Huge2M, 2 * MIB, pages * 2 * MIB)).map(|_| ());
    let (error, enough) = group.inside(|| (map(5).unwrap_err(), map(3)));
    assert_eq!(error.exit_code(), 3);
    let told = error.to_string();
    for part in ["populate lane on node 0: 10 MiB", "5 reserved pages of 2 MiB", "6 are free"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert!(told.contains("control group"), "{told}");
    enough.unwrap();
    assert_eq!((free(2 * MIB), mappings()), (all, before));
}

/// The slot mapping is slots x slot bytes, rounded up once, and all of it is in hugepages.
fn slots_in_2m() {
    let shape = slot_shape();
    let config = Config {
        hugepages: HugePages::Huge2M,
        slots: Some(7),
        lock: Mode::Strict,
        ..Config::default()
    };
    let plan = Plan::new(&config, &Host::read().unwrap(), &[class(shape, &|_| 0)]).unwrap();
    let planned = plan.arena(Purpose::Slots, 0).unwrap();
    let (arena, _) = Arena::map(planned).unwrap();
    let bytes = (7 * shape.slot_bytes()).next_multiple_of(2 * MIB);
    assert_eq!(smaps(arena.address()), (bytes, bytes));
    assert_eq!(planned.bytes, bytes);
    SlotPool::new(arena, shape, plan.slots).shutdown();
}

fn pages_of_1g() {
    let all = free(1 << 30);
    let (mut arena, _) = Arena::map(&strict(Pages::Huge1G, 1 << 30, 1 << 20)).unwrap();
    assert_eq!(free(1 << 30), all - 1);
    assert_eq!(smaps(arena.address()), (1 << 30, 1 << 30));
    assert!((arena.address() as usize).is_multiple_of(1 << 30));
    check_placement(&arena, 1 << 30);
    let mut piece = arena.cut(64 * MIB);
    check_whole(&mut piece, 64 * MIB);
    drop((arena, piece));
    assert_eq!(free(1 << 30), all);
}
