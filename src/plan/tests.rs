use super::*;

mod nodes;
mod property;
mod refusals;
mod threads;
mod warnings;

use crate::circuit::shape::PartShape;
use crate::host::Node;
use numa::HugePages as Pool;

const MIB: usize = 1 << 20;

fn pools(of_2m: usize, of_1g: usize) -> Vec<Pool> {
    vec![
        Pool { page_bytes: 2 * MIB, total: of_2m + 7, free: of_2m },
        Pool { page_bytes: 1 << 30, total: of_1g, free: of_1g },
    ]
}

/// One node of two cores, 8 GiB, no hugepages, 8 MiB to lock: a fresh machine.
fn fresh() -> Host {
    Host {
        nodes: vec![Node {
            id: 0,
            cores: vec![vec![0], vec![1]],
            memory_available_bytes: 8 << 30,
            hugepages: pools(0, 0),
            distances: Vec::new(),
        }],
        numa: true,
        base_page_bytes: 4096,
        transparent_bytes: Some(2 * MIB),
        lock_bytes: Some(8 << 20),
        memory: MemoryBound { bytes: 8 << 30, by: "the free memory of the host".to_owned() },
        ..Host::default()
    }
}

fn with_pools(of_2m: usize, of_1g: usize) -> Host {
    let mut host = fresh();
    host.nodes[0].hugepages = pools(of_2m, of_1g);
    host
}

/// A slot of 64 x 32 + 64 x 8 bytes for the header and as much for each of 2 blocks.
fn need() -> ClassNeed<'static> {
    let part = PartShape { inputs: 4, bits: 4096, wides: 60, rows: 5000 };
    ClassNeed {
        id: "porep-2k".parse().unwrap(),
        shape: Shape { header: part, block: part, repeats: 2 },
        srs_bytes: 100 * MIB + 1,
        lane_bytes: &|_| 40 * MIB,
        compiled_bytes: 3 * MIB,
    }
}

const SLOT_BYTES: usize = 3 * (64 * 32 + 64 * 8);

fn config(vars: &[(&str, &str)]) -> Config {
    let vars = vars.iter().map(|(name, value)| ((*name).into(), (*value).into()));
    Config::from_env(vars).unwrap()
}

fn plan(vars: &[(&str, &str)], host: &Host) -> Result<Plan> {
    admitted(&config(vars), host, &[need()])
}

fn admitted(config: &Config, host: &Host, needs: &[ClassNeed<'_>]) -> Result<Plan> {
    let plan = Plan::new(config, host, needs)?;
    plan.admit()?;
    Ok(plan)
}

fn refusal(vars: &[(&str, &str)], host: &Host) -> String {
    match plan(vars, host) {
        Err(error @ Error::Host(_)) => error.to_string(),
        other => panic!("{vars:?} gave {other:?}"),
    }
}

#[test]
fn a_fresh_machine_gets_a_plan_with_warnings() {
    let plan = plan(&[], &fresh()).unwrap();
    assert_eq!(plan.partition_workers, 1);
    assert_eq!(plan.nodes[0].synthesis_cpus, [1]);
    assert_eq!(plan.nodes[0].lane_cpus, [0, 1]);
    assert_eq!((plan.slots, plan.slot_bytes), (3, SLOT_BYTES));
    let arenas: Vec<_> =
        plan.arenas.iter().map(|a| (a.purpose, a.need_bytes, a.bytes, a.pages)).collect();
    assert_eq!(
        arenas,
        [
            (Purpose::Slots, 3 * SLOT_BYTES, 2 * MIB, Pages::Transparent),
            (Purpose::Lane, 40 * MIB, 40 * MIB, Pages::Transparent),
            (Purpose::Srs, 100 * MIB + 64, 102 * MIB, Pages::Transparent),
        ]
    );
    assert_eq!(plan.total_bytes, (2 + 40 + 102 + 3) * MIB);
    assert!(plan.arenas.iter().all(|a| a.lock == Mode::Off && a.bind == Mode::Auto));
    let warnings = plan.warnings.join("\n");
    assert!(warnings.contains("72 more free hugepages of 2 MiB"), "{warnings}");
    assert!(warnings.contains("limit is 8 MiB (8,388,608)"), "{warnings}");
    assert_eq!(plan.housekeeping_cpus, [0]);
}

#[test]
fn no_transparent_pages_and_hugepages_off_are_plain() {
    let mut host = fresh();
    for vars in [&[("BERTH_HUGEPAGES", "off")][..], &[]] {
        let plan = plan(vars, &host).unwrap();
        assert!(plan.arenas.iter().all(|a| a.pages == Pages::Plain && a.page_bytes == 4096));
        assert_eq!(plan.arenas[0].bytes, (3 * SLOT_BYTES).next_multiple_of(4096));
        host.transparent_bytes = None;
    }
}

#[test]
fn auto_takes_the_best_pages_that_are_free_for_the_whole_arena() {
    let kinds = |host: &Host, srs_bytes| {
        let need = ClassNeed { srs_bytes, ..need() };
        let plan = Plan::new(&Config::default(), host, &[need]).unwrap();
        plan.arenas.iter().map(|arena| arena.pages).collect::<Vec<_>>()
    };
    use Pages::*;
    let all = 1 + 20 + 51;
    assert_eq!(kinds(&with_pools(all, 0), 100 * MIB + 1), [Huge2M, Huge2M, Huge2M]);
    assert_eq!(kinds(&with_pools(all - 1, 0), 100 * MIB + 1), [Huge2M, Huge2M, Transparent]);
    assert_eq!(kinds(&with_pools(20, 0), 100 * MIB + 1), [Huge2M, Transparent, Transparent]);
    assert_eq!(kinds(&with_pools(21, 2), 2 << 30), [Huge2M, Huge2M, Huge1G]);
    assert_eq!(kinds(&with_pools(21, 1), 2 << 30), [Huge2M, Huge2M, Transparent]);
    assert_eq!(kinds(&with_pools(0, 9), 1 << 29), [Transparent, Transparent, Transparent]);
}

#[test]
fn an_explicit_size_that_is_short_is_refused_with_node_size_need_and_free() {
    let need = 1 + 20 + 51;
    let error = refusal(&[("BERTH_HUGEPAGES", "2M")], &with_pools(need - 1, 9));
    assert!(error.contains("node 0: need 72 hugepages of 2 MiB, free 71"), "{error}");
    assert!(error.contains("vm.nr_hugepages"), "{error}");
    let error = refusal(&[("BERTH_HUGEPAGES", "1G")], &with_pools(999, 2));
    assert!(error.contains("node 0: need 3 hugepages of 1 GiB, free 2"), "{error}");

    let plan = plan(&[("BERTH_HUGEPAGES", "2M")], &with_pools(need, 0)).unwrap();
    assert!(plan.arenas.iter().all(|a| a.pages == Pages::Huge2M && a.lock == Mode::Off));
    assert!(plan.warnings.is_empty(), "{:?}", plan.warnings);
}

#[test]
fn a_budget_is_enforced_with_both_numbers_and_the_bound() {
    let total = plan(&[], &fresh()).unwrap().total_bytes;
    let limit = total.to_string();
    let limited = [("BERTH_MEMORY_LIMIT", &limit[..])];
    let plan = plan(&limited, &fresh()).unwrap();
    let limit = (total - 1).to_string();
    let error = refusal(&[("BERTH_MEMORY_LIMIT", &limit)], &fresh());
    assert!(error.contains("BERTH_MEMORY_LIMIT"), "{error}");
    assert!(error.contains("154,140,672") && error.contains("154,140,671"), "{error}");
    assert_eq!(total, 154_140_672);

    let mut host = fresh();
    host.memory = MemoryBound { bytes: 5 << 20, by: "the control group (x is 9)".to_owned() };
    let error = refusal(&[], &host);
    assert!(error.contains("the control group (x is 9)"), "{error}");
    assert!(error.contains("5 MiB") && error.contains("154,140,672"), "{error}");

    // The fixed part counts too, once it is known.
    assert_eq!(plan.clone().with_fixed(0).total_bytes, total);
    let error = plan.with_fixed(1).admit().unwrap_err().to_string();
    assert!(error.contains("154,140,673"), "{error}");
}

#[test]
fn hugetlb_pages_are_not_counted_against_free_memory() {
    let mut host = with_pools(1 + 20 + 51, 0);
    host.memory.bytes = (3 * MIB) as u64;
    host.nodes[0].memory_available_bytes = 4 * MIB as u64;
    let plan = plan(&[("BERTH_NUMA", "strict"), ("BERTH_LOCK", "strict")], &host).unwrap();
    assert_eq!(plan.total_bytes, 147 * MIB);
    assert!(plan.with_fixed(1).admit().is_err());
}

#[test]
fn a_refused_number_of_slots_comes_with_one_that_fits() {
    let mut host = fresh();
    host.memory.bytes = 150 * MIB as u64;
    let error = refusal(&[("BERTH_SLOTS", "5000")], &host);
    let fits = error.split("BERTH_SLOTS=").nth(1).unwrap();
    let fits = fits.split(' ').next().unwrap();
    plan(&[("BERTH_SLOTS", fits)], &host).unwrap();
}

#[test]
fn slots_differ_by_their_bytes_alone() {
    for slots in [1, 2, 4, 1000] {
        let text = slots.to_string();
        let plan = plan(&[("BERTH_SLOTS", &text)], &fresh()).unwrap();
        let arena = plan.arena(Purpose::Slots, 0).unwrap();
        assert_eq!(arena.need_bytes, slots * SLOT_BYTES);
        assert_eq!(arena.bytes, (slots * SLOT_BYTES).next_multiple_of(2 * MIB));
        assert_eq!(plan.total_bytes - arena.bytes, (40 + 102 + 3) * MIB);
    }
}

#[test]
fn locking() {
    let mut host = fresh();
    let error = refusal(&[("BERTH_LOCK", "strict")], &host);
    assert!(error.contains("144 MiB") && error.contains("8 MiB"), "{error}");
    let off = plan(&[("BERTH_LOCK", "off")], &host).unwrap();
    assert!(!off.warnings.join("\n").contains("locked"));
    host.lock_bytes = Some(144 << 20);
    let strict = plan(&[("BERTH_LOCK", "strict")], &host).unwrap();
    assert!(strict.arenas.iter().all(|arena| arena.lock == Mode::Strict));
    host.lock_bytes = None;
    assert!(plan(&[], &host).unwrap().arenas.iter().all(|arena| arena.lock == Mode::Auto));
}

#[test]
fn what_this_build_cannot_do_is_refused_or_said() {
    for vars in [("BERTH_BACKEND", "cuda"), ("BERTH_SRS", "device")] {
        let error = plan(&[vars], &fresh()).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().contains(vars.0), "{error}");
    }
    let native = config(&[("BERTH_WITNESS", "native")]);
    let porep = ClassNeed { id: "porep-2k".parse().unwrap(), ..need() };
    assert!(Plan::new(&native, &fresh(), &[porep]).is_ok());
    let window = ClassNeed { id: "window-2k".parse().unwrap(), ..need() };
    let error = Plan::new(&native, &fresh(), &[porep, window]).unwrap_err();
    assert_eq!(error.exit_code(), 2);
    let told = error.to_string();
    assert!(told.contains("BERTH_WITNESS=native") && told.contains("window-2k"), "{told}");
    let plan = plan(&[("BERTH_GPUS", "0"), ("BELLMAN_CUSTOM_GPU", "x")], &fresh()).unwrap();
    for name in ["BERTH_GPUS", "BELLMAN_CUSTOM_GPU"] {
        assert!(plan.warnings.iter().any(|w| w.contains(name)), "{:?}", plan.warnings);
    }
}

#[test]
fn several_classes_share_the_arenas() {
    let second =
        ClassNeed { id: "window-2k".parse().unwrap(), lane_bytes: &|_| 50 * MIB, ..need() };
    let plan = Plan::new(&config(&[("BERTH_SLOTS", "2")]), &fresh(), &[need(), second]).unwrap();
    assert_eq!(plan.arena(Purpose::Slots, 0).unwrap().need_bytes, 4 * SLOT_BYTES);
    assert_eq!(plan.arena(Purpose::Lane, 0).unwrap().need_bytes, 50 * MIB);
    assert_eq!(plan.arena(Purpose::Srs, 0).unwrap().need_bytes, 200 * MIB + 128);
    assert_eq!(plan.compiled_bytes, 6 * MIB);
}

/// The real lengths of parameter files (I-51) are planned without any of them.
#[test]
fn real_sizes() {
    let mut host = fresh();
    for srs_bytes in [47_373_928_632, 60_780_374_232, 34_453_501_368, 192_050_232] {
        host.memory.bytes = srs_bytes as u64 + (1 << 30);
        host.nodes[0].memory_available_bytes = host.memory.bytes;
        let need = ClassNeed { srs_bytes, ..need() };
        let plan = admitted(&Config::default(), &host, std::slice::from_ref(&need)).unwrap();
        assert!(plan.total_bytes > srs_bytes);
        host.memory.bytes = srs_bytes as u64;
        assert!(admitted(&Config::default(), &host, &[need]).is_err());
    }
}

#[test]
fn the_json_form_has_the_stable_keys() {
    let plan = plan(&[("BERTH_SLOTS", "2")], &fresh()).unwrap();
    let json = serde_json::to_value(&plan).unwrap();
    assert_eq!(json["total_bytes"], plan.total_bytes);
    assert_eq!(json["slot_bytes"], SLOT_BYTES);
    assert_eq!(json["slots"], 2);
    assert_eq!(json["partition_workers"], 1);
    let arena = &json["arenas"][1];
    assert_eq!((&arena["node"], &arena["purpose"]), (&0.into(), &"lane".into()));
    assert_eq!((&arena["bytes"], &arena["page_bytes"]), (&(40 * MIB).into(), &(2 * MIB).into()));
    assert_eq!(json["classes"][0]["id"], "porep-2k");
    let settings = json["settings"].as_array().unwrap();
    assert_eq!(settings.len(), crate::config::SETTINGS.len());
    let row = settings.iter().find(|row| row["name"] == "BERTH_SLOTS").unwrap();
    assert_eq!(
        (&row["value"], &row["origin"]["environment"]),
        (&"2".into(), &"BERTH_SLOTS".into())
    );
}

#[test]
fn the_text_states_every_term_and_setting() {
    let plan = plan(&[], &fresh()).unwrap().with_fixed(5 * MIB);
    let text = plan.to_string();
    for part in [
        "slots on node 0: 2 MiB (2,097,152) in 1 transparent page of 2 MiB",
        "porep-2k: 3 slots x 7.5 KiB (7,680) = 22.5 KiB (23,040)",
        "lane on node 0: 40 MiB",
        "srs on node 0: 102 MiB",
        "compiled circuits: 3 MiB",
        "fixed (program, tables, threads): 5 MiB",
        "total: 152 MiB (159,383,552)",
        "  node 0 gives 144 MiB (150,994,944) of 8 GiB (8,589,934,592) that are free there",
        "outside of reserved pages: 152 MiB (159,383,552) of 8 GiB (8,589,934,592): the free \
         memory of the host",
        "node 0: 1 partition worker on CPUs 1",
        "node 0: CPU lane of 2 threads on CPUs 0-1",
        "housekeeping on CPUs 0\n",
        "BERTH_SLOTS = 3 (default)",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    for setting in &crate::config::SETTINGS {
        assert!(text.contains(setting.name));
    }
}
