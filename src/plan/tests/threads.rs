//! Which CPUs work, and how totals are divided.

use super::super::threads::apportion;
use super::nodes::{even, node};
use super::*;

#[test]
fn shares_are_in_proportion_and_nobody_goes_without() {
    for (total, weights, shares) in [
        (1, &[9][..], &[1][..]),
        (2, &[1, 1000], &[1, 1]),
        (11, &[8, 4], &[7, 4]),
        (12, &[8, 4], &[8, 4]),
        (15, &[8, 8], &[7, 8]),
        (3, &[1, 1, 100], &[1, 1, 1]),
        (8, &[1, 3], &[2, 6]),
        (63, &[8; 8], &[7, 8, 8, 8, 8, 8, 8, 8]),
        (65536, &[3, 1], &[49152, 16384]),
    ] {
        assert_eq!(apportion(total, weights), shares, "{total} over {weights:?}");
    }
}

#[test]
fn one_core_is_left_to_housekeeping_with_all_its_siblings() {
    let mut host = fresh();
    host.nodes[0].cores = (0..6).map(|core| vec![core, core + 6]).collect();
    let plan = plan(&[], &host).unwrap();
    assert_eq!(plan.partition_workers, 5);
    assert_eq!(plan.nodes[0].synthesis_cpus, [5, 4, 3, 2, 1]);
    assert_eq!(plan.nodes[0].lane_cpus, (0..12).collect::<Vec<_>>());
    assert_eq!(plan.housekeeping_cpus, [0, 6]);
    assert!(plan.to_string().contains("housekeeping on CPUs 0,6\n"), "{plan}");
}

#[test]
fn where_every_core_has_a_synthesis_thread_housekeeping_is_everywhere() {
    let all = plan(&[("BERTH_PARTITION_WORKERS", "2")], &fresh()).unwrap();
    assert_eq!(all.housekeeping_cpus, [0, 1]);
    let text = all.to_string();
    assert!(text.contains("housekeeping on CPUs 0-1, where synthesis is too"), "{text}");
    let one = plan(&[("BERTH_CPUS", "1")], &fresh()).unwrap();
    assert_eq!(
        (&one.nodes[0].synthesis_cpus[..], &one.housekeeping_cpus[..]),
        (&[1][..], &[1][..])
    );
}

#[test]
fn cpus_and_workers_as_told() {
    let host = even(2);
    let some = plan(&[("BERTH_CPUS", "2,6,7")], &host).unwrap();
    assert_eq!(some.partition_workers, 2);
    assert_eq!((some.nodes[0].node, &some.nodes[0].lane_cpus[..]), (1, &[6, 7][..]));
    assert_eq!((some.nodes[1].node, &some.nodes[1].lane_cpus[..]), (0, &[2][..]));
    assert_eq!(some.housekeeping_cpus, [6]);
    let setting = some.settings.iter().find(|row| row.name == "BERTH_CPUS").unwrap();
    assert_eq!(setting.value, "2,6,7");
    let many = plan(&[("BERTH_PARTITION_WORKERS", "5")], &fresh()).unwrap();
    assert_eq!(many.nodes[0].synthesis_cpus, [1, 0, 1, 0, 1]);
    assert_eq!(many.slots, 7);
    let error = plan(&[("BERTH_CPUS", "1,5,99")], &fresh()).unwrap_err();
    assert_eq!(error.exit_code(), 2);
    let error = error.to_string();
    assert!(error.contains("5,99") && error.contains("0-1"), "{error}");
}

#[test]
fn borrowed_cores_come_after_the_own_and_the_first_own_stays_free() {
    let mut host = even(2);
    host.nodes[1].memory_available_bytes = 0;
    let plan_of = |workers| plan(&[("BERTH_PARTITION_WORKERS", workers)], &host).unwrap();
    assert_eq!(plan_of("2").nodes[0].synthesis_cpus, [3, 2]);
    assert_eq!(plan_of("5").nodes[0].synthesis_cpus, [3, 2, 1, 7, 6]);
    let default = plan(&[], &host).unwrap();
    assert_eq!(default.nodes[0].synthesis_cpus, [3, 2, 1, 7, 6, 5, 4]);
    assert_eq!(default.housekeeping_cpus, [0]);
}

#[test]
fn more_than_1024_cpus_and_64_nodes() {
    let mut host = even(0);
    host.nodes = (0..72)
        .map(|id| node(id, &(0..32).map(|core| id * 32 + core).collect::<Vec<_>>(), 8 << 30))
        .collect();
    host.memory.bytes = 72 * (8 << 30);
    let plan = plan(&[], &host).unwrap();
    assert_eq!((plan.nodes.len(), plan.partition_workers), (72, 2303));
    assert_eq!(plan.lane_cpus(), (0..2304).collect::<Vec<_>>());
    assert_eq!((plan.housekeeping_cpus, plan.slots), (vec![0], 2303 + 2 * 72));
}
