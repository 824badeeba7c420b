//! Against naive sums and blstrs, on both paths.

mod edges;
mod sums;

use blstrs::{G1Affine, G1Projective, G2Affine, G2Projective, Scalar};
use ff::Field;
use group::{Curve as _, Group};
use proptest::prelude::*;

use super::curve::{self, Curve, G1, G2, NEGATED, Pair, Path};
use super::plan::Plan;
use super::scratch::Scratch;
use super::*;
use crate::team::Team;

/// A generator of test values: splitmix64 (G. Steele and others, 2014), seeded.
struct Values(u64);

impl Values {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e3779b97f4a7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58476d1ce4e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d049bb133111eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    fn scalar(&mut self) -> Scalar {
        let shift = Scalar::from(1 << 32).square();
        (0..4).fold(Scalar::ZERO, |sum, _| sum * shift + Scalar::from(self.next()))
    }

    fn scalars(&mut self, count: usize) -> Vec<Scalar> {
        (0..count).map(|_| self.scalar()).collect()
    }
}

/// Points g, g + d, g + 2 d, ... for random g and d.
macro_rules! points {
    ($name:ident, $affine:ty, $projective:ty) => {
        fn $name(values: &mut Values, count: usize) -> Vec<$affine> {
            let step = <$projective>::generator() * values.scalar();
            let mut point = <$projective>::generator() * values.scalar();
            let mut all = Vec::with_capacity(count);
            for _ in 0..count {
                all.push(point);
                point += step;
            }
            let mut affine = vec![<$affine>::default(); count];
            <$projective>::batch_normalize(&all, &mut affine);
            affine
        }
    };
}
points!(points_g1, G1Affine, G1Projective);
points!(points_g2, G2Affine, G2Projective);

fn paths() -> Vec<Path> {
    if Path::best() == Path::Ifma { vec![Path::Portable, Path::Ifma] } else { vec![Path::Portable] }
}

fn team(threads: usize) -> Team {
    Team::new("msm-test", &vec![None; threads]).expect("threads can be made")
}

#[test]
fn every_kind_of_addition_on_every_path() {
    let mut values = Values(1);
    let mut points = points_g1(&mut values, 40);
    points[7] = G1Affine::default();
    points[8] = points[3];
    points[9] = -points[3];
    for path in paths() {
        check_pairs_g1(path, &points, &mut values);
    }
}

/// All pairs of all signs of `points`, in batches of every length from 1 to 20 and long ones.
fn check_pairs_g1(path: Path, points: &[G1Affine], values: &mut Values) {
    let n = points.len() as u32;
    let mut pairs = Vec::new();
    for (a, b) in (0..n).flat_map(|a| (0..n).map(move |b| (a, b))) {
        for sign in 0..4 {
            let (a, b) = (a | ((sign & 1) * NEGATED), b | ((sign >> 1) * NEGATED));
            pairs.push(Pair { a, b, out: 0 });
        }
    }
    let mut at = 0;
    while at < pairs.len() {
        let count = if at < 3000 { values.below(20) + 1 } else { 1000 }.min(pairs.len() - at);
        let batch = &mut pairs[at..at + count];
        for (k, pair) in batch.iter_mut().enumerate() {
            pair.out = (count - 1 - k) as u32;
        }
        let mut out = vec![G1::ZERO; count];
        let mut bytes = vec![0; G1::pair_work_bytes(count) + 128];
        let work = Scratch::new(&mut bytes).take(G1::pair_work_bytes(count) / 8);
        curve::add_into::<G1>(path, &mut out, raw_g1(points), batch, work);
        for pair in batch.iter() {
            let meant = |reference: u32| {
                let point = points[(reference & !NEGATED) as usize];
                if reference & NEGATED != 0 { -point } else { point }
            };
            let want = (G1Projective::from(meant(pair.a)) + meant(pair.b)).to_affine();
            assert_eq!(&out[pair.out as usize], want.as_ref(), "{path:?} {pair:?}");
        }
        at += count;
    }
}

fn naive<A: Copy, P: Group + std::ops::Mul<Scalar, Output = P> + From<A>>(
    points: &[A],
    scalars: &[Scalar],
) -> P {
    points.iter().zip(scalars).map(|(&point, &scalar)| P::from(point) * scalar).sum()
}

/// Both paths, teams of 1 and 3, the least scratch and much of it: all must give `want`.
fn check_g1(points: &[G1Affine], scalars: &[Scalar], want: G1Projective, what: &str) {
    for threads in [1, 3] {
        let team = team(threads);
        for bytes in [scratch_bytes(threads, points.len()), 40 << 20] {
            let mut scratch = vec![0xa5; bytes];
            for path in paths() {
                let got = multiply::<G1>(path, &team, raw_g1(points), scalars, &mut scratch);
                assert_eq!(g1(got), want, "{what}: {path:?} {threads} threads {bytes} bytes");
            }
        }
    }
}

#[test]
fn short_lengths_on_g1_and_g2() {
    let mut values = Values(2);
    for count in [0, 1, 2, 3, 7, 255, 256, 257] {
        let scalars = values.scalars(count);
        let points = points_g1(&mut values, count);
        check_g1(&points, &scalars, naive(&points, &scalars), &format!("{count} points"));
        let points = points_g2(&mut values, count);
        let mut scratch = vec![0xa5; scratch_bytes(2, count)];
        let got = msm_g2(&team(2), &points, &scalars, &mut scratch);
        assert_eq!(got, naive(&points, &scalars), "{count} points on G2");
    }
}

#[test]
fn lengths_around_a_power_of_two() {
    let mut values = Values(3);
    let all = points_g1(&mut values, (1 << 16) + 1);
    let all_scalars = values.scalars(all.len());
    let team = team(2);
    let mut scratch = vec![0xa5; scratch_bytes(2, all.len())];
    let mut much = vec![0xa5; 24 << 20];
    let projective: Vec<G1Projective> = all[..(1 << 16) - 1].iter().map(Into::into).collect();
    let mut want = G1Projective::multi_exp(&projective, &all_scalars[..projective.len()]);
    for count in [(1 << 16) - 1, 1 << 16, (1 << 16) + 1] {
        let (points, scalars) = (&all[..count], &all_scalars[..count]);
        assert_eq!(msm_g1(&team, points, scalars, &mut scratch), want, "{count} points");
        want += all[count % all.len()] * all_scalars[count % all.len()];
    }
    let got = multiply::<G1>(Path::Portable, &team, raw_g1(&all), &all_scalars, &mut much);
    want -= all[0] * all_scalars[0]; // the last round went once around
    assert_eq!(g1(got), want, "portable, more scratch");
}

#[test]
fn a_few_thousand_points_on_g2() {
    let mut values = Values(4);
    let points = points_g2(&mut values, 5000);
    let scalars = values.scalars(5000);
    let projective: Vec<G2Projective> = points.iter().map(Into::into).collect();
    let want = G2Projective::multi_exp(&projective, &scalars);
    let mut scratch = vec![0xa5; 24 << 20];
    assert_eq!(msm_g2(&team(2), &points, &scalars, &mut scratch), want);
}

/// Scalars whose digits are all at an edge, for every width of window.
#[test]
fn edge_scalars_in_every_window_width() {
    let mut values = Values(5);
    let half = -Scalar::ONE * Scalar::from(2).invert().unwrap();
    let mut scalars = vec![Scalar::ZERO, Scalar::ONE, -Scalar::ONE, half, half + Scalar::ONE];
    for bits in 1..255 {
        let power = Scalar::from(2).pow_vartime([bits]);
        scalars.extend([power, power - Scalar::ONE, -power]);
    }
    let points = points_g1(&mut values, scalars.len());
    let want: G1Projective = naive(&points, &scalars);
    let team = team(2);
    for bits in 2..=18 {
        for ranges in if bits < 12 { 1..=3 } else { 2..=2 } {
            let plan = Plan { part: 700, bits, ranges };
            let mut scratch = vec![0xa5; plan.bytes::<G1>(2)];
            let got = multiply_as_planned::<G1>(
                Path::best(),
                plan,
                &team,
                raw_g1(&points),
                &scalars,
                &mut scratch,
            );
            assert_eq!(g1(got), want, "{plan:?}");
        }
    }
}

#[test]
fn equal_scalars_equal_points_opposite_points_and_identities() {
    let mut values = Values(6);
    let count = 2 * G1::CHUNK + 300; // one bucket goes over two ends of chunks
    let distinct = points_g1(&mut values, count);
    let one_scalar = vec![values.scalar(); count];
    let scalars = values.scalars(count);
    let equal = vec![distinct[0]; count];
    let opposite: Vec<_> =
        (0..count).map(|i| if i % 2 == 0 { distinct[i] } else { -distinct[i - 1] }).collect();
    let holes: Vec<_> =
        (0..count).map(|i| if i % 3 == 0 { G1Affine::default() } else { distinct[i] }).collect();
    let none = vec![G1Affine::default(); count];
    let few: Vec<_> = scalars.iter().enumerate().map(|(i, _)| scalars[i % 3]).collect();
    let multi_exp = |points: &[G1Affine], scalars: &[Scalar]| {
        // blstrs refuses identities
        let (points, scalars): (Vec<G1Projective>, Vec<Scalar>) = points
            .iter()
            .zip(scalars)
            .filter(|(point, _)| **point != G1Affine::default())
            .map(|(point, scalar)| (G1Projective::from(point), *scalar))
            .unzip();
        match points.is_empty() {
            true => G1Projective::identity(),
            false => G1Projective::multi_exp(&points, &scalars),
        }
    };
    let of_points = [
        ("distinct", &distinct),
        ("equal", &equal),
        ("opposite", &opposite),
        ("holes", &holes),
        ("none", &none),
    ];
    let zero = vec![Scalar::ZERO; count];
    let of_scalars = [("one", &one_scalar), ("random", &scalars), ("few", &few), ("zero", &zero)];
    for (points_are, points) in of_points {
        for (scalars_are, scalars) in of_scalars {
            let want = multi_exp(points, scalars);
            let team = team(2);
            let mut scratch = vec![0xa5; 12 << 20];
            for path in paths() {
                let got = multiply::<G1>(path, &team, raw_g1(points), scalars, &mut scratch);
                assert_eq!(g1(got), want, "{points_are} points, {scalars_are} scalars, {path:?}");
            }
        }
    }
}

#[test]
fn equal_and_opposite_points_on_g2() {
    let mut values = Values(7);
    let distinct = points_g2(&mut values, 300);
    let points: Vec<_> = (0..300)
        .map(|i| match i % 5 {
            0 => distinct[0],
            1 => -distinct[0],
            2 => G2Affine::default(),
            _ => distinct[i],
        })
        .collect();
    for scalars in [vec![values.scalar(); 300], values.scalars(300)] {
        let mut scratch = vec![0xa5; scratch_bytes(2, 300)];
        let got = msm_g2(&team(2), &points, &scalars, &mut scratch);
        assert_eq!(got, naive(&points, &scalars));
    }
}

#[test]
fn a_plan_fits_what_it_is_given_and_the_least_always_works() {
    for threads in [1, 2, 7, 64] {
        for points in [0, 1, 2, 1000, 1 << 14, (1 << 14) + 1, 100_000, 4_194_303, 150_000_000] {
            let least = scratch_bytes(threads, points);
            for bytes in [least, least * 3, least + (1 << 30)] {
                let g1 = Plan::new::<G1>(threads, points, bytes).expect("the least is enough");
                let g2 = Plan::new::<G2>(threads, points, bytes).expect("the least is enough");
                assert!(g1.bytes::<G1>(threads) <= bytes && g2.bytes::<G2>(threads) <= bytes);
                assert!(g1.part.min(g2.part) >= points.min(1 << 13));
            }
        }
    }
    assert_eq!(Plan::new::<G1>(2, 1 << 20, 1 << 16), None);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn any_mix_is_the_naive_sum(
        seed: u64,
        kinds in proptest::collection::vec((0..5u8, 0..6u8), 0..120),
        threads in 1..4usize,
        extra in 0..4_000_000usize,
    ) {
        let mut values = Values(seed);
        let fresh = points_g1(&mut values, kinds.len() + 1);
        let (mut points, mut scalars) = (Vec::new(), Vec::new());
        for (i, (point, scalar)) in kinds.into_iter().enumerate() {
            points.push(match point {
                0 => G1Affine::default(),
                1 => fresh[0],
                2 => -fresh[0],
                _ => fresh[i + 1],
            });
            scalars.push(match scalar {
                0 => Scalar::ZERO,
                1 => Scalar::ONE,
                2 => -Scalar::ONE,
                3 => Scalar::from(values.next() % 5),
                _ => values.scalar(),
            });
        }
        let mut scratch = vec![0xa5; scratch_bytes(threads, points.len()) + extra];
        let want: G1Projective = naive(&points, &scalars);
        for path in paths() {
            let got =
                multiply::<G1>(path, &team(threads), raw_g1(&points), &scalars, &mut scratch);
            prop_assert_eq!(g1(got), want);
        }
    }
}
