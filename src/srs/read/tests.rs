use proptest::prelude::*;

use super::*;
use crate::plan::{ArenaPlan, Purpose};
use crate::srs::check::{Check, check_points};
use crate::srs::setup::{Waste, write_params};
use crate::srs::testing::{Random, Scratch, Spec, outside_g1, random_g1, random_g2};
use std::fs::File;
use std::os::unix::fs::FileExt;

/// An arena for the SRS of a circuit, filled with what no point is.
fn arena(compiled: &Compiled) -> Arena {
    let plan = ArenaPlan::unplaced(Purpose::Srs, SrsLayout::bytes(compiled));
    let (mut arena, _) = Arena::map(&plan).unwrap();
    arena.carve().take::<u8>(SrsLayout::bytes(compiled)).fill(0xad);
    arena
}

/// Parameters of a random circuit in a scratch directory.
struct Case {
    scratch: Scratch,
    compiled: Compiled,
    team: Team,
}

impl Case {
    fn new(spec: &Spec) -> Self {
        let case = Case {
            scratch: Scratch::new("read"),
            compiled: spec.compile(),
            team: Team::new("test", &[None; 3]).unwrap(),
        };
        let mut random = Random(9);
        let waste = Waste {
            alpha: random.scalar(),
            beta: random.scalar(),
            gamma: random.scalar(),
            delta: random.scalar(),
            tau: random.scalar(),
        };
        let generators = (random_g1(1), random_g2(2));
        let key =
            write_params(&case.compiled, waste, generators, &case.params(), &case.team, &|_, _| ())
                .unwrap();
        std::fs::write(case.vk(), key.to_bytes()).unwrap();
        case
    }

    fn params(&self) -> std::path::PathBuf {
        self.scratch.path("x.params")
    }

    fn vk(&self) -> std::path::PathBuf {
        self.scratch.path("x.vk")
    }

    fn load(&self) -> Result<Srs> {
        let arena = arena(&self.compiled);
        Srs::load(&self.params(), &self.vk(), &self.compiled, arena, &self.team, &|_, _| ())
    }

    fn check(&self, check: Check) -> Result<()> {
        let counts = Counts::of(&self.compiled);
        check_points(&self.params(), &self.vk(), &counts, check, &self.team, &|_, _| ())
    }

    fn refusal(&self) -> String {
        let error = self.load().err().expect("a refusal");
        assert_eq!(error.exit_code(), 4);
        let text = error.to_string();
        for check in [Check::Curve, Check::Subgroup] {
            let other = self.check(check).unwrap_err().to_string();
            assert_eq!(other, text, "all ways say the same");
        }
        text
    }

    fn overwrite(&self, offset: u64, bytes: &[u8]) {
        let file = File::options().write(true).open(self.params()).unwrap();
        file.write_all_at(bytes, offset).unwrap();
    }
}

/// All points of a section of the file, by bellperson.
fn bellperson(case: &Case) -> bellperson::groth16::Parameters<blstrs::Bls12> {
    let file = std::io::BufReader::new(File::open(case.params()).unwrap());
    bellperson::groth16::Parameters::read(file, false).unwrap()
}

/// Checks the region against the file by loops that know nothing of ranks.
fn check_region(case: &Case) {
    let srs = case.load().unwrap();
    let file = bellperson(case);
    let log = case.compiled.shape.log_domain();
    assert_eq!(srs.h().len(), 1 << log);
    for (i, point) in file.h.iter().enumerate() {
        let mut reversed = 0;
        for bit in 0..log {
            reversed |= (i >> bit & 1) << (log - 1 - bit);
        }
        assert_eq!(srs.h()[reversed], *point);
    }
    assert_eq!(srs.h()[(1 << log) - 1].as_ref(), &blst::blst_p1_affine::default());
    let c = &case.compiled;
    check_query(c, QueryName::L, &file.l, srs.l_bits(), srs.l_wides());
    check_query(c, QueryName::A, &file.a, srs.a_bits(), srs.a_wides());
    check_query(c, QueryName::B, &file.b_g1, srs.b_g1_bits(), srs.b_g1_wides());
    check_query(c, QueryName::B, &file.b_g2, srs.b_g2_bits(), srs.b_g2_wides());
    assert_eq!(srs.key().to_bellperson(), file.vk);
}

/// Checks that every point of the file is where its variable is.
fn check_query<P: PartialEq + std::fmt::Debug>(
    compiled: &Compiled,
    name: QueryName,
    file: &[P],
    bits: &[P],
    wides: &[P],
) {
    assert_eq!((bits.len(), wides.len()), compiled.query_len(name));
    assert_eq!(file.len(), bits.len() + wides.len());
    for (point, place) in file.iter().zip(places(compiled, name)) {
        let found = bits.get(place).unwrap_or_else(|| &wides[place - bits.len()]);
        assert_eq!(found, point);
    }
}

/// Places in file order; `order`'s own tests hold it against a naive loop.
fn places(compiled: &Compiled, name: QueryName) -> Vec<usize> {
    let order = Order::new(compiled, name);
    let mut places = vec![usize::MAX; order.len()];
    for unit in 0..order.units() {
        let mut points = order.points(unit);
        order.walk(unit, |_, place| places[points.next().unwrap()] = place);
    }
    places
}

#[test]
fn every_point_comes_to_its_place() {
    check_region(&Case::new(&Spec::random(1, 300, 4200, 2)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn sizes_around_powers_of_two(log in 0u32..9, off in -1i64..=1, repeats in 0usize..3) {
        let aux = ((1i64 << log) + off).max(1) as usize;
        check_region(&Case::new(&Spec::random(log as u64, aux, aux, repeats)));
    }
}

#[test]
fn damaged_points_are_named_by_section_index_and_offset() {
    let case = Case::new(&Spec::random(2, 40, 60, 2));
    let counts = Counts::of(&case.compiled);
    let whole = std::fs::read(case.params()).unwrap();
    for (section, k) in
        [(Section::H, 5), (Section::L, 7), (Section::A, 2), (Section::BG1, 1), (Section::BG2, 3)]
    {
        let size = section.point_bytes();
        let offset = counts.first_point(section) + k * size;
        let mut infinity = vec![0; size as usize];
        infinity[0] = 0x40;
        let mut compressed = whole[offset as usize..][..size as usize].to_vec();
        compressed[0] |= 0x80;
        let zeros = vec![0; size as usize];
        let high = [0x1f; 192][..size as usize].to_vec();
        let cases = [
            (infinity, "infinity"),
            (compressed, "uncompressed"),
            (zeros, "not on the curve"),
            (high, "below the modulus"),
        ];
        for (bytes, why) in cases {
            case.overwrite(offset, &bytes);
            let text = case.refusal();
            let place = format!("{}[{k}] at offset {offset}", section.name());
            assert!(text.contains(&place) && text.contains(why), "{text}");
        }
        std::fs::write(case.params(), &whole).unwrap();
    }
}

#[test]
fn of_two_bad_points_the_first_is_named() {
    let case = Case::new(&Spec::random(3, 100, 100, 2));
    let counts = Counts::of(&case.compiled);
    for section in [Section::BG2, Section::A, Section::L] {
        case.overwrite(counts.first_point(section), &[0x1f; 48]);
        let text = case.refusal();
        assert!(text.contains(&format!(": {}[0] at", section.name())), "{text}");
    }
}

#[test]
fn a_point_outside_the_subgroup_is_found_by_the_full_check_alone() {
    let case = Case::new(&Spec::random(4, 30, 0, 0));
    let counts = Counts::of(&case.compiled);
    let offset = counts.first_point(Section::L) + 96 * 3;
    case.overwrite(offset, &outside_g1());
    case.load().map(|_| ()).unwrap();
    case.check(Check::Curve).unwrap();
    let text = case.check(Check::Subgroup).unwrap_err().to_string();
    assert!(text.contains(&format!("l[3] at offset {offset}")), "{text}");
    assert!(text.contains("subgroup"), "{text}");
}

#[test]
fn keys_of_two_setups_are_refused_by_the_place_they_differ() {
    let case = Case::new(&Spec::random(5, 30, 10, 1));
    let mut key = VerifyingKey::read(&case.vk(), case.compiled.shape.inputs()).unwrap();
    key.ic[1] = random_g1(77);
    std::fs::write(case.vk(), key.to_bytes()).unwrap();
    let text = case.refusal();
    for part in ["x.params", "x.vk", "ic[1]", "offset 964", "another setup"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn lengths_are_checked_before_any_point() {
    let case = Case::new(&Spec::random(6, 30, 10, 1));
    let whole = std::fs::read(case.params()).unwrap();
    std::fs::write(case.params(), &whole[..whole.len() - 1]).unwrap();
    assert!(case.refusal().contains("b_g2"));
    std::fs::write(case.params(), [&whole[..], &[0]].concat()).unwrap();
    assert!(case.refusal().contains("1 bytes too many"));
    std::fs::write(case.params(), "<html>").unwrap();
    assert!(case.refusal().contains("<html>"));
    std::fs::write(case.params(), "").unwrap();
    assert!(case.refusal().contains("empty"));
    std::fs::remove_file(case.params()).unwrap();
    assert!(case.refusal().contains("No such file"));
    std::fs::create_dir(case.params()).unwrap();
    assert!(case.refusal().contains("directory"));
}

/// The blocks' inputs stand before the header's aux variables in the file, but are read later.
#[test]
fn of_several_bad_points_the_first_in_the_file_is_named() {
    let case = Case::new(&Spec::random(5, 30, 10, 4));
    let inputs = case.compiled.shape.inputs() as u64;
    let first = Counts::of(&case.compiled).first_point(Section::A);
    for k in [inputs, inputs - 1] {
        case.overwrite(first + k * G1_BYTES as u64, &[0xff; G1_BYTES]);
        let text = case.refusal();
        assert!(text.contains(&format!(": a[{k}] at")), "{text}");
    }
}
