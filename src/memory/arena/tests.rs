use super::*;
use crate::circuit::shape::{PartShape, Shape};
use crate::config::{Config, Mode};
use crate::host::Host;
use crate::memory::SlotPool;
use crate::plan::{ArenaPlan, ClassNeed, Pages, Plan, Purpose};
use blstrs::{G2Affine, Scalar};

const MIB: usize = 1 << 20;

pub(super) fn plan_of(pages: Pages, bytes: usize) -> ArenaPlan {
    let page_bytes = match pages {
        Pages::Huge1G => 1 << 30,
        Pages::Huge2M | Pages::Transparent => 2 * MIB,
        Pages::Plain => 4096,
    };
    let node = Host::read().unwrap().nodes[0].clone();
    ArenaPlan {
        node: node.id,
        bytes: bytes.next_multiple_of(page_bytes),
        pages,
        page_bytes,
        bind: Mode::Auto,
        lock: Mode::Auto,
        cpus: node.cpus(),
        ..ArenaPlan::unplaced(Purpose::Lane, bytes)
    }
}

/// Lines of the mapping that starts at `address`, from /proc/self/smaps: its bytes, and the value
/// in bytes of a key.
pub(super) fn smaps(address: *mut std::ffi::c_void, key: &str) -> (usize, usize) {
    let smaps = std::fs::read_to_string("/proc/self/smaps").unwrap();
    let head = format!("{:x}-", address as usize);
    let mut lines = smaps.lines().skip_while(|line| !line.starts_with(&head));
    let range = lines.next().expect("the mapping is there").split(' ').next().unwrap();
    let (start, end) = range.split_once('-').unwrap();
    let number = |text| usize::from_str_radix(text, 16).unwrap();
    let value = lines
        .find_map(|line| line.strip_prefix(key)?.strip_prefix(':')?.trim().strip_suffix(" kB"))
        .unwrap_or_else(|| panic!("{key} is there"));
    (number(end) - number(start), value.trim().parse::<usize>().unwrap() * 1024)
}

fn check_whole(arena: &mut Arena, bytes: usize) {
    assert_eq!(arena.bytes(), bytes);
    let words = arena.carve().take::<u64>(bytes / 8);
    assert!(words.iter().all(|word| *word == 0));
    words.fill(u64::MAX);
    assert!(arena.view().take::<u8>(bytes).iter().all(|byte| *byte == 255));
}

#[test]
fn plain_pages_are_all_there_before_the_first_touch() {
    for bytes in [1, 4096, 3 * MIB + 5] {
        let plan = plan_of(Pages::Plain, bytes);
        let (mut arena, _) = Arena::map(&plan).unwrap();
        let (mapped, resident) = smaps(arena.address(), "Rss");
        assert_eq!(mapped, bytes.next_multiple_of(4096));
        assert_eq!(resident, mapped);
        check_whole(&mut arena, mapped);
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let start = arena.address() as usize;
        for guard in [format!("-{start:x} ---p"), format!("{:x}-", start + mapped)] {
            let line = maps.lines().find(|line| line.contains(&guard));
            assert!(line.is_some_and(|line| line.contains(" ---p ")), "{guard}: {line:?}");
        }
    }
}

#[test]
fn more_than_the_lock_limit_is_a_warning_or_under_strict_an_error() {
    let Some(limit) = Host::read().unwrap().lock_bytes else {
        eprintln!("not run: this process may lock all memory");
        return;
    };
    let mut plan = plan_of(Pages::Plain, limit as usize + MIB);
    let (_arena, warnings) = Arena::map(&plan).unwrap();
    assert!(warnings.len() == 1 && warnings[0].contains("LimitMEMLOCK"), "{warnings:?}");
    plan.lock = Mode::Strict;
    let error = Arena::map(&plan).map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("BERTH_LOCK=strict"), "{error}");
}

#[test]
fn transparent_pages_are_aligned_and_all_there() {
    let plan = plan_of(Pages::Transparent, 5 * MIB);
    let (mut arena, _) = Arena::map(&plan).unwrap();
    assert!((arena.address() as usize).is_multiple_of(2 * MIB));
    let (mapped, resident) = smaps(arena.address(), "Rss");
    assert_eq!((mapped, resident), (6 * MIB, 6 * MIB));
    check_whole(&mut arena, 6 * MIB);
}

#[test]
fn pages_lie_on_their_node_and_a_node_that_is_not_there_is_said() {
    let mut plan = plan_of(Pages::Plain, MIB);
    plan.lock = Mode::Off;
    plan.bind = Mode::Strict;
    let (_arena, warnings) = Arena::map(&plan).unwrap();
    assert!(warnings.is_empty(), "{warnings:?}");

    plan.node = 900;
    let error = Arena::map(&plan).map(|_| ()).unwrap_err();
    assert_eq!(error.exit_code(), 3);
    assert!(error.to_string().contains("node 900"), "{error}");
    plan.bind = Mode::Auto;
    let (_arena, warnings) = Arena::map(&plan).unwrap();
    assert!(warnings[0].contains("node 900"), "{warnings:?}");
    plan.node = 5000;
    assert_eq!(Arena::map(&plan).unwrap().1.len(), 1);
}

#[test]
fn an_arena_that_no_address_space_holds_is_an_error() {
    for bytes in [1 << 60, usize::MAX / 4096 * 4096] {
        let plan = ArenaPlan { bytes, ..plan_of(Pages::Plain, 4096) };
        let error = Arena::map(&plan).map(|_| ()).unwrap_err();
        assert_eq!(error.exit_code(), 3);
    }
}

#[test]
fn pieces_are_aligned_disjoint_and_found_again() {
    let (mut arena, _) = Arena::map(&plan_of(Pages::Plain, MIB)).unwrap();
    let mut first = arena.cut(1000);
    assert_eq!(first.bytes(), 1024);
    assert_eq!(arena.bytes(), MIB - 1024);
    let mut carve = first.carve();
    let (a, b, c) = (carve.take::<u8>(3), carve.take::<Scalar>(4), carve.take::<[u32; 3]>(5));
    assert!((b.as_ptr() as usize).is_multiple_of(64) && (c.as_ptr() as usize).is_multiple_of(64));
    a.fill(1);
    b.fill(Scalar::from(7));
    c.fill([2, 3, 4]);
    assert_eq!(carve.left(), 1024 - 64 - 128 - 64);
    arena.carve().take::<u64>(10).fill(u64::MAX);
    let mut view = first.view();
    assert_eq!(view.take::<u8>(3), [1, 1, 1]);
    assert_eq!(view.take::<Scalar>(4), [Scalar::from(7); 4]);
    assert_eq!(view.take::<[u32; 3]>(5), [[2, 3, 4]; 5]);
    assert_eq!(piece_bytes::<Scalar>(3), 128);
    // The mapping outlives its first owner.
    drop(arena);
    assert_eq!(first.view().take::<u8>(3), [1, 1, 1]);
}

#[test]
fn a_piece_that_does_not_fit_is_a_panic_not_an_overrun() {
    let (mut arena, _) = Arena::map(&plan_of(Pages::Plain, 4096)).unwrap();
    for len in [4096 / size_of::<G2Affine>() + 1, usize::MAX, usize::MAX / size_of::<G2Affine>()] {
        let take = std::panic::AssertUnwindSafe(|| arena.carve().take::<G2Affine>(len).len());
        assert!(std::panic::catch_unwind(take).is_err());
    }
}

/// Through the planner: what smaps shows is what the plan says. Reserved pages are the affair of
/// `tests/hugepages.rs`.
#[test]
fn the_slot_mapping_is_slots_times_slot_bytes_rounded_up_once() {
    let part = PartShape { inputs: 3, bits: 70_001, wides: 1001, rows: 9 };
    let shape = Shape { header: part, block: part, repeats: 4 };
    let need = ClassNeed {
        id: "window-2k".parse().unwrap(),
        shape,
        srs_bytes: 0,
        lane_bytes: &|_| 0,
        compiled_bytes: 0,
    };
    for (hugepages, page) in [("auto", None), ("off", Some(4096))] {
        let vars = [("BERTH_SLOTS", "7"), ("BERTH_HUGEPAGES", hugepages), ("BERTH_LOCK", "off")];
        let vars = vars.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        let config = Config::from_env(vars).unwrap();
        let mut host = Host::read().unwrap();
        host.nodes.iter_mut().for_each(|node| node.hugepages.clear());
        let plan = Plan::new(&config, &host, std::slice::from_ref(&need)).unwrap();
        assert_eq!(plan.arenas.len(), 1);
        let planned = plan.arena(Purpose::Slots, 0).unwrap();
        assert_eq!(planned.need_bytes, 7 * shape.slot_bytes());
        let page = page.unwrap_or(planned.page_bytes);
        let (arena, _) = Arena::map(planned).unwrap();
        let address = arena.address();
        let pool = SlotPool::new(arena, shape, plan.slots);
        let (mapped, resident) = smaps(address, "Rss");
        assert_eq!(mapped, (7 * shape.slot_bytes()).next_multiple_of(page));
        assert_eq!(resident, mapped);
        drop(pool);
    }
}

/// Zero hugepages and an explicit size: an error at once, no assertion (I-11).
#[test]
fn no_hugepages_at_all_is_a_plain_refusal() {
    let plan = plan_of(Pages::Huge1G, 1 << 40);
    let error = Arena::map(&plan).map(|_| ()).unwrap_err();
    assert_eq!(error.exit_code(), 3);
    let text = error.to_string();
    assert!(text.contains("need 1024 hugepages of 1 GiB, free "), "{text}");
}
