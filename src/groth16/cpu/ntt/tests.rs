use super::*;
use ff::{Field, PrimeField};
use proptest::prelude::*;

mod groups;

/// Small deterministic generator (splitmix64, public domain) with edge values mixed in.
pub(in crate::groth16::cpu) struct Random(pub u64);

impl Random {
    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ x >> 31
    }

    pub fn scalar(&mut self) -> Scalar {
        raw([self.word(), self.word(), self.word(), self.word() % R3])
    }

    /// Every eighth value or so is one at which carries and reductions turn.
    pub fn edgy(&mut self) -> Scalar {
        match self.word() % 40 {
            0 => Scalar::ZERO,
            1 => Scalar::ONE,
            2 => -Scalar::ONE,
            n @ 3..5 => raw(Edge::ALL[(n + self.word()) as usize % Edge::ALL.len()].0),
            _ => self.scalar(),
        }
    }

    pub fn edgy_vec(&mut self, len: usize) -> Vec<Scalar> {
        (0..len).map(|_| self.edgy()).collect()
    }
}

/// Little-endian limbs of a value as it lies in memory (Montgomery form, below r).
#[derive(Clone, Copy)]
struct Edge([u64; 4]);

impl Edge {
    const ALL: [Edge; 8] = [
        Edge([1, 0, 0, 0]),
        // r - 1
        Edge([0xffff_ffff_0000_0000, 0x53bd_a402_fffe_5bfe, 0x3339_d808_09a1_d805, R3]),
        // r - 2^32, and all ones below the top word
        Edge([0xffff_fffe_0000_0001, 0x53bd_a402_fffe_5bfe, 0x3339_d808_09a1_d805, R3]),
        Edge([u64::MAX, u64::MAX, u64::MAX, R3 - 1]),
        // single limbs of 52 bits, full
        Edge([(1 << 52) - 1, 0, 0, 0]),
        Edge([0xfff << 52, (1 << 40) - 1, 0, 0]),
        Edge([0, 0, 0xffff_fff0_0000_0000, 0xffff]),
        Edge([0, 0, 0, R3 & !0xffff]),
    ];
}

const R3: u64 = 0x73ed_a753_299d_7d48;

/// The scalar whose memory is `limbs`.
fn raw(limbs: [u64; 4]) -> Scalar {
    Scalar::from(blst::blst_fr { l: limbs })
}

pub(in crate::groth16::cpu) fn paths() -> Vec<Path> {
    if Path::detect() == Path::Ifma {
        vec![Path::Portable, Path::Ifma]
    } else {
        vec![Path::Portable]
    }
}

pub(in crate::groth16::cpu) fn team(threads: usize) -> Team {
    Team::new("test", &vec![None; threads]).unwrap()
}

pub(in crate::groth16::cpu) fn bitrev(i: usize, log: u32) -> usize {
    i.reverse_bits() >> (usize::BITS - log)
}

/// Is every value below r? Comparison of scalars is comparison of memory, so this matters.
pub(in crate::groth16::cpu) fn canonical(data: &[Scalar]) -> bool {
    let r = [0xffff_ffff_0000_0001, 0x53bd_a402_fffe_5bfe, 0x3339_d808_09a1_d805, R3];
    data.iter().all(|x| blst::blst_fr::from(*x).l.iter().rev().lt(r.iter().rev()))
}

/// Runs `work` on a fresh domain.
pub(in crate::groth16::cpu) fn with_domain<T>(
    log: u32,
    threads: usize,
    path: Path,
    work: impl FnOnce(&Team, &mut Domain<'_>) -> T,
) -> T {
    // Garbage, so that an entry which is not filled shows.
    let mut table = vec![Scalar::from(3); Domain::table_len(log, threads)];
    let mut domain = Domain::with_path(log, &mut table, threads, path);
    work(&team(threads), &mut domain)
}

fn omega(log: u32) -> Scalar {
    (log..32).fold(Scalar::ROOT_OF_UNITY, |w, _| w.square())
}

fn shift(points: Points) -> Scalar {
    if points == Points::Coset { Scalar::from(7) } else { Scalar::ONE }
}

/// p(shift * w^k) for every k, by Horner's rule.
fn naive(coefficients: &[Scalar], points: Points) -> Vec<Scalar> {
    let w = omega(coefficients.len().trailing_zeros());
    let mut x = shift(points);
    let mut out = Vec::new();
    for _ in 0..coefficients.len() {
        out.push(coefficients.iter().rev().fold(Scalar::ZERO, |sum, c| sum * x + c));
        x *= w;
    }
    out
}

/// The textbook transform: permute, then layer by layer.
fn textbook(coefficients: &[Scalar], points: Points) -> Vec<Scalar> {
    let log = coefficients.len().trailing_zeros();
    let mut power = Scalar::ONE;
    let mut x = vec![Scalar::ZERO; coefficients.len()];
    for (i, c) in coefficients.iter().enumerate() {
        x[bitrev(i, log)] = power * c;
        power *= shift(points);
    }
    for layer in 0..log {
        let (half, w) = (1 << layer, omega(layer + 1));
        for block in x.chunks_mut(2 * half) {
            let mut power = Scalar::ONE;
            for j in 0..half {
                let (u, v) = (block[j], block[j + half] * power);
                (block[j], block[j + half]) = (u + v, u - v);
                power *= w;
            }
        }
    }
    x
}

/// The coefficients of evaluations over the powers of w.
pub(in crate::groth16::cpu) fn textbook_inverse(evaluations: &[Scalar]) -> Vec<Scalar> {
    let m = Scalar::from(evaluations.len() as u64).invert().unwrap();
    let mut x = textbook(evaluations, Points::Plain);
    x[1..].reverse();
    x.iter().map(|x| x * m).collect()
}

fn permuted(x: &[Scalar]) -> Vec<Scalar> {
    let log = x.len().trailing_zeros();
    (0..x.len()).map(|i| x[bitrev(i, log)]).collect()
}

/// Forward gives the evaluations, inverse gives m times the coefficients back.
fn check(log: u32, threads: usize, path: Path, oracle: fn(&[Scalar], Points) -> Vec<Scalar>) {
    let coefficients = Random(u64::from(log)).edgy_vec(1 << log);
    for points in [Points::Plain, Points::Coset] {
        let at = format!("2^{log}, {threads} threads, {path:?}, {points:?}");
        with_domain(log, threads, path, |team, domain| {
            let mut data = permuted(&coefficients);
            domain.forward(team, &mut data, points);
            assert!(data == oracle(&coefficients, points), "forward, {at}");
            assert!(canonical(&data), "forward, {at}");
            domain.inverse(team, &mut data, points);
            let m = Scalar::from(1 << log);
            let scaled: Vec<_> = permuted(&coefficients).iter().map(|c| c * m).collect();
            assert!(data == scaled, "inverse, {at}");
            assert!(canonical(&data), "inverse, {at}");
        });
    }
}

#[test]
fn small_transforms_equal_the_definition() {
    for path in paths() {
        for log in 1..=8 {
            check(log, 1 + log as usize % 3, path, naive);
        }
    }
}

#[test]
fn larger_transforms_equal_the_textbook() {
    for path in paths() {
        for log in 9..=14 {
            check(log, 1 + log as usize % 3, path, textbook);
        }
    }
}

#[test]
fn every_number_of_threads_gives_the_same() {
    for path in paths() {
        for threads in 1..=3 {
            check(7, threads, path, naive);
            check(10, threads, path, textbook);
        }
    }
}

#[test]
fn the_textbook_equals_the_definition() {
    let coefficients = Random(5).edgy_vec(1 << 6);
    for points in [Points::Plain, Points::Coset] {
        assert!(textbook(&coefficients, points) == naive(&coefficients, points));
    }
}

/// Constant inputs drive every lazy sum to its bound: one output gathers all of it.
#[test]
fn extreme_inputs_stay_within_the_lazy_bounds() {
    for path in paths() {
        for edge in Edge::ALL {
            let value = raw(edge.0);
            for log in [6, 11, 12, 13] {
                with_domain(log, 2, path, |team, domain| {
                    let mut data = vec![value; 1 << log];
                    domain.inverse(team, &mut data, Points::Plain);
                    let mut expected = vec![Scalar::ZERO; 1 << log];
                    expected[0] = value * Scalar::from(1 << log);
                    assert!(data == expected && canonical(&data), "inverse 2^{log}");
                    data.fill(value);
                    domain.forward(team, &mut data, Points::Plain);
                    expected[0] = value * Scalar::from(1 << log);
                    assert!(data == expected && canonical(&data), "forward 2^{log}");
                });
            }
        }
    }
}

/// The vector path holds representatives up to 35 r between steps. Inputs of up to 2^256 - 1, which
/// no caller gives, take its sums and its last reduction close to every multiple of r there is.
#[test]
fn values_above_the_modulus_are_reduced() {
    let r = [0xffff_ffff_0000_0001, 0x53bd_a402_fffe_5bfe, 0x3339_d808_09a1_d805, R3];
    let twice = [0xffff_fffe_0000_0002, 0xa77b_4805_fffc_b7fd, 0x6673_b010_1343_b00a, 2 * R3];
    let near = |x: [u64; 4], by: i64| [x[0].wrapping_add_signed(by), x[1], x[2], x[3]];
    let edges = [[0; 4], r, near(r, -1), near(r, 1), twice, near(twice, -1), near(twice, 1)];
    let mut random = Random(77);
    for path in paths().into_iter().filter(|path| *path == Path::Ifma) {
        for (log, kinds) in [(6, 8), (7, 8), (9, 2), (11, 9), (12, 1)] {
            let input: Vec<_> = (0..1 << log)
                .map(|_| match random.word() as usize % kinds {
                    0 => [u64::MAX; 4],
                    n @ 1..8 => edges[n - 1],
                    _ => [(); 4].map(|_| random.word()),
                })
                .map(raw)
                .collect();
            // Multiplication by one reduces, whatever the representative.
            let reduced: Vec<_> = input.iter().map(|x| x * Scalar::ONE).collect();
            with_domain(log, 2, path, |team, domain| {
                for points in [Points::Plain, Points::Coset] {
                    let (mut wild, mut tame) = (input.clone(), reduced.clone());
                    domain.forward(team, &mut wild, points);
                    domain.forward(team, &mut tame, points);
                    assert!(wild == tame && canonical(&wild), "forward 2^{log}");
                    let (mut wild, mut tame) = (input.clone(), reduced.clone());
                    domain.inverse(team, &mut wild, points);
                    domain.inverse(team, &mut tame, points);
                    assert!(wild == tame && canonical(&wild), "inverse 2^{log}");
                }
            });
        }
    }
}

/// Sizes with three passes are too large for a short test of every value: x^k at random places.
#[test]
fn three_passes_evaluate_a_monomial() {
    let (log, k) = (23, 5_000_011);
    for path in paths().into_iter().rev().take(1) {
        with_domain(log, 2, path, |team, domain| {
            let mut data = vec![Scalar::ZERO; 1 << log];
            data[bitrev(k, log)] = Scalar::ONE;
            domain.forward(team, &mut data, Points::Coset);
            let mut random = Random(1);
            for _ in 0..100 {
                let i = random.word() % (1 << log);
                let x = Scalar::from(7) * omega(log).pow_vartime([i]);
                assert_eq!(data[i as usize], x.pow_vartime([k as u64]));
            }
            domain.inverse(team, &mut data, Points::Coset);
            assert_eq!(data[bitrev(k, log)], Scalar::from(1 << log));
            assert_eq!(data.iter().filter(|x| !bool::from(x.is_zero())).count(), 1);
        });
    }
}

#[test]
fn the_table_is_small() {
    for log in 16..=LOG_DOMAIN_MAX {
        assert!(Domain::table_len(log, 2) <= (1 << log) / 4, "2^{log}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn both_paths_agree_and_invert(log in 1..13u32, threads in 1..4usize, seed: u64, coset: bool) {
        let points = if coset { Points::Coset } else { Points::Plain };
        let input = Random(seed).edgy_vec(1 << log);
        let mut outcomes = Vec::new();
        for path in paths() {
            let output = with_domain(log, threads, path, |team, domain| {
                let mut data = input.clone();
                domain.inverse(team, &mut data, points);
                let there = data.clone();
                domain.forward(team, &mut data, points);
                let scaled: Vec<_> = input.iter().map(|x| x * Scalar::from(1 << log)).collect();
                prop_assert!(data == scaled);
                prop_assert!(canonical(&there) && canonical(&data));
                Ok(there)
            });
            outcomes.push(output?);
        }
        prop_assert!(outcomes.windows(2).all(|pair| pair[0] == pair[1]));
    }
}
