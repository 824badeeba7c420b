use std::sync::atomic::{AtomicU64, Ordering};

use super::*;
use crate::srs::find::{Directory, Search, find};
use crate::srs::testing::{Random, Scratch, Spec, random_g1, random_g2};

fn waste(seed: u64) -> Waste {
    let mut random = Random(seed);
    Waste {
        alpha: random.scalar(),
        beta: random.scalar(),
        gamma: random.scalar(),
        delta: random.scalar(),
        tau: random.scalar(),
    }
}

/// The file for given secrets, by us and by bellperson.
fn both(spec: &Spec, threads: usize) -> (Vec<u8>, Vec<u8>) {
    let scratch = Scratch::new("setup");
    let path = scratch.path("x.params");
    let team = Team::new("test", &vec![None; threads]).unwrap();
    let (g1, g2) = (random_g1(100), random_g2(101));
    let compiled = spec.compile();
    write_params(&compiled, waste(7), (g1, g2), &path, &team, &|_, _| ()).unwrap();
    let w = waste(7);
    let mut theirs = Vec::new();
    bellperson::groth16::generate_parameters::<blstrs::Bls12, _>(
        spec.clone(),
        g1.into(),
        g2.into(),
        w.alpha,
        w.beta,
        w.gamma,
        w.delta,
        w.tau,
    )
    .unwrap()
    .write(&mut theirs)
    .unwrap();
    (std::fs::read(path).unwrap(), theirs)
}

#[test]
fn files_are_those_of_bellperson_byte_for_byte() {
    for (seed, (header, block, repeats)) in
        [(1, 0, 0), (2, 0, 0), (255, 0, 0), (3, 1, 1), (30, 127, 2), (64, 100, 5)]
            .into_iter()
            .enumerate()
    {
        let mut spec = Spec::random(seed as u64, header, block, repeats);
        for spare_bits in [0, 18] {
            spec.spare_bits = spare_bits;
            let (ours, theirs) = both(&spec, 1 + seed % 3);
            assert!(ours == theirs, "{header} {block} {repeats} {spare_bits}");
        }
    }
}

#[test]
fn a_circuit_of_several_units_is_that_of_bellperson() {
    let (ours, theirs) = both(&Spec::random(8, 20, 4100, 1), 2);
    assert!(ours == theirs);
}

#[test]
fn bellperson_reads_the_file_with_all_its_checks() {
    let (ours, theirs) = both(&Spec::random(11, 20, 30, 2), 2);
    let parameters =
        bellperson::groth16::Parameters::<blstrs::Bls12>::read(&ours[..], true).unwrap();
    let mut again = Vec::new();
    parameters.write(&mut again).unwrap();
    assert!(again == theirs);
}

#[test]
fn files_without_a_marker_are_never_replaced() {
    let scratch = Scratch::new("setup-unmarked");
    let id = "window-2k".parse().unwrap();
    let team = Team::new("test", &[None]).unwrap();
    let compiled = Spec::random(9, 5, 0, 0).compile();
    for name in [names::params(id), names::vk(id)] {
        let path = scratch.path(&name);
        std::fs::write(&path, "official").unwrap();
        let text = make_dev(id, &compiled, scratch.dir(), false, &team, &|_, _| ())
            .unwrap_err()
            .to_string();
        assert!(text.contains(&name) && text.contains("without the marker"), "{text}");
        assert_eq!(std::fs::read(&path).unwrap(), b"official");
        std::fs::remove_file(&path).unwrap();
    }
}

#[test]
fn a_variable_in_no_constraint_is_refused() {
    let mut spec = Spec::random(9, 5, 0, 0);
    spec.header.vars.push(crate::srs::testing::Alloc::Wide);
    let scratch = Scratch::new("setup-free");
    let path = scratch.path("x.params");
    let team = Team::new("test", &[None]).unwrap();
    let generators = (random_g1(1), random_g2(2));
    let error =
        write_params(&spec.compile(), waste(1), generators, &path, &team, &|_, _| ()).unwrap_err();
    assert!(error.to_string().contains("no constraint"), "{error}");
}

#[test]
fn dev_parameters_are_made_once_marked_and_found() {
    let scratch = Scratch::new("setup-dev");
    let official = Directory::new(scratch.path("official"), "test");
    let dev = Directory::new(scratch.path("cache/dev"), "test");
    let id = "winning-2k".parse().unwrap();
    let compiled = Spec::random(10, 50, 20, 2).compile();
    let team = Team::new("test", &[None; 2]).unwrap();
    let search = || find(id, &official, Some(&dev)).unwrap();
    assert!(matches!(search(), Search::Missing(_)));
    let last = AtomicU64::new(0);
    let made = make_dev(id, &compiled, &dev.path, false, &team, &|done, total| {
        assert!(done <= total);
        last.fetch_max(done, Ordering::Relaxed);
    })
    .unwrap();
    let counts = Counts::of(&compiled);
    assert_eq!(last.into_inner(), counts.h + counts.l + counts.a + 2 * counts.b);
    assert_eq!(search().required().unwrap(), made);
    let marker = Marker::read(&dev.path, id).unwrap();
    assert_eq!((marker.circuit.as_str(), marker.counts), ("winning-2k", counts));
    let mut names: Vec<_> =
        std::fs::read_dir(&dev.path).unwrap().map(|e| e.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names.len(), 3, "no temporary file is left: {names:?}");
    let first = std::fs::read(&made.params).unwrap();
    make_dev(id, &compiled, &dev.path, false, &team, &|_, _| panic!("nothing is made")).unwrap();
    assert!(std::fs::read(&made.params).unwrap() == first, "kept");
    std::fs::remove_file(&made.vk).unwrap();
    make_dev(id, &compiled, &dev.path, false, &team, &|_, _| ()).unwrap();
    let second = std::fs::read(&made.params).unwrap();
    assert!(second != first, "a new setup has new secrets");
    make_dev(id, &compiled, &dev.path, true, &team, &|_, _| ()).unwrap();
    assert!(std::fs::read(&made.params).unwrap() != second, "made anew when asked to");
    let check = crate::srs::check::Check::Subgroup;
    crate::srs::check::check_points(&made.params, &made.vk, &counts, check, &team, &|_, _| ())
        .unwrap();
}

#[test]
fn a_failed_setup_leaves_no_file_under_the_final_name() {
    let scratch = Scratch::new("setup-fail");
    let id = "window-2k".parse().unwrap();
    let mut spec = Spec::random(9, 5, 0, 0);
    spec.header.vars.push(crate::srs::testing::Alloc::Bit);
    let team = Team::new("test", &[None]).unwrap();
    assert!(make_dev(id, &spec.compile(), scratch.dir(), false, &team, &|_, _| ()).is_err());
    let left: Vec<_> =
        std::fs::read_dir(scratch.dir()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left.len(), 1, "the marker alone: {left:?}");
}

#[test]
fn two_that_make_the_same_parameters_take_turns() {
    let scratch = Scratch::new("setup-two");
    let id = "update-2k".parse().unwrap();
    let compiled = Spec::random(13, 30, 0, 0).compile();
    let calls = AtomicU64::new(0);
    let counts = Counts::of(&compiled);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let team = Team::new("test", &[None]).unwrap();
                let progress = |done, total| {
                    calls.fetch_add(u64::from(done == total), Ordering::Relaxed);
                };
                make_dev(id, &compiled, scratch.dir(), false, &team, &progress).unwrap();
            });
        }
    });
    assert_eq!(calls.into_inner(), 1, "made once");
    let found = pair(id, Origin::Dev, scratch.dir());
    let team = Team::new("test", &[None]).unwrap();
    let check = crate::srs::check::Check::Curve;
    crate::srs::check::check_points(&found.params, &found.vk, &counts, check, &team, &|_, _| ())
        .unwrap();
}

#[test]
fn dev_parameters_of_other_counts_are_made_anew() {
    let scratch = Scratch::new("setup-stale");
    let id = "update-2k".parse().unwrap();
    let team = Team::new("test", &[None]).unwrap();
    for aux in [10, 50] {
        let compiled = Spec::random(14, aux, 0, 0).compile();
        let found = make_dev(id, &compiled, scratch.dir(), false, &team, &|_, _| ()).unwrap();
        assert_eq!(crate::srs::layout::probe(&found.params).unwrap(), Counts::of(&compiled));
    }
}
