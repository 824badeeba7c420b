use super::super::ntt::Path;
use super::super::ntt::tests::{Random, bitrev, canonical, paths, textbook_inverse, with_domain};
use super::*;
use proptest::prelude::*;

/// h in natural order.
fn ours(a: &[Scalar], b: &[Scalar], threads: usize, path: Path) -> Vec<Scalar> {
    let log = a.len().trailing_zeros();
    let (mut a, mut b) = (a.to_vec(), b.to_vec());
    // c is scratch: garbage in it must not matter.
    let mut c = vec![Scalar::from(11); a.len()];
    with_domain(log, threads, path, |team, domain| {
        quotient(team, domain, &mut a, &mut b, &mut c).unwrap();
    });
    assert!(canonical(&a));
    (0..a.len()).map(|i| a[bitrev(i, log)]).collect()
}

/// The definition: a b - c as polynomials, divided by X^m - 1 with remainder 0.
fn schoolbook(a: &[Scalar], b: &[Scalar]) -> Vec<Scalar> {
    let m = a.len();
    let c: Vec<_> = a.iter().zip(b).map(|(a, b)| a * b).collect();
    let (a, b, c) = (textbook_inverse(a), textbook_inverse(b), textbook_inverse(&c));
    let mut dividend = vec![Scalar::ZERO; 2 * m];
    for (i, a) in a.iter().enumerate() {
        for (j, b) in b.iter().enumerate() {
            dividend[i + j] += a * b;
        }
    }
    for (i, c) in c.iter().enumerate() {
        dividend[i] -= c;
    }
    for i in (m..2 * m).rev() {
        let lead = dividend[i];
        dividend[i - m] += lead;
    }
    assert!(dividend[..m].iter().all(|x| bool::from(x.is_zero())), "no remainder");
    dividend.split_off(m)
}

#[test]
fn small_quotients_equal_polynomial_division() {
    for path in paths() {
        for log in 1..=8u32 {
            let mut random = Random(u64::from(log));
            let (a, b) = (random.edgy_vec(1 << log), random.edgy_vec(1 << log));
            let h = ours(&a, &b, 1 + log as usize % 3, path);
            assert!(h == schoolbook(&a, &b), "2^{log}, {path:?}");
            assert!(bool::from(h.last().unwrap().is_zero()));
        }
    }
}

/// h(x) (x^m - 1) = a(x) b(x) - c(x) at a point that no NTT uses.
#[test]
fn larger_quotients_satisfy_their_equation() {
    for path in paths() {
        for (log, threads) in [(9u32, 1), (11, 2), (12, 3), (14, 2)] {
            let mut random = Random(u64::from(log));
            let (a, b) = (random.edgy_vec(1 << log), random.edgy_vec(1 << log));
            let c: Vec<_> = a.iter().zip(&b).map(|(a, b)| a * b).collect();
            let h = ours(&a, &b, threads, path);
            let x = random.scalar();
            let at = |p: &[Scalar]| p.iter().rev().fold(Scalar::ZERO, |sum, c| sum * x + c);
            let [a, b, c] = [a, b, c].map(|values| at(&textbook_inverse(&values)));
            let z = x.pow_vartime([1 << log]) - Scalar::ONE;
            assert_eq!(at(&h) * z, a * b - c, "2^{log}, {path:?}");
        }
    }
}

#[test]
fn extreme_rows_make_no_difference() {
    for path in paths() {
        for (a, b) in [(0, 0), (1, 1), (0, 1)] {
            let value = |x| if x == 0 { Scalar::ZERO } else { -Scalar::ONE };
            let h = ours(&[value(a); 64], &[value(b); 64], 2, path);
            assert!(h.iter().all(|x| bool::from(x.is_zero())), "constants divide to nothing");
        }
    }
}

#[test]
fn a_wrong_last_coefficient_is_a_device_error() {
    let error = self_check(&[Scalar::ZERO, Scalar::ONE]).unwrap_err();
    assert!(matches!(error, Error::Device(_)));
    assert!(error.to_string().contains("coefficient 1"));
    self_check(&[Scalar::ONE, Scalar::ZERO]).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn paths_and_threads_agree(log in 1..13u32, seed: u64) {
        let mut random = Random(seed);
        let (a, b) = (random.edgy_vec(1 << log), random.edgy_vec(1 << log));
        let first = ours(&a, &b, 1, Path::Portable);
        for path in paths() {
            for threads in 1..=3 {
                prop_assert!(ours(&a, &b, threads, path) == first);
            }
        }
    }
}
