//! Sums of products with one reduction.
//!
//! A product in Montgomery form is a multiplication of 4 by 4 words and a reduction that costs as
//! much again; a sum of products needs the reduction only once. Twelve products, the most that a
//! Poseidon state is mixed from, take nine words.

use blst::blst_fr;
use blstrs::Scalar;

/// The modulus r, lowest word first.
const MODULUS: [u64; 4] =
    [0xffff_ffff_0000_0001, 0x53bd_a402_fffe_5bfe, 0x3339_d808_09a1_d805, 0x73ed_a753_299d_7d48];
/// -1 / r modulo 2^64.
const FACTOR: u64 = 0xffff_fffe_ffff_ffff;

const _: () = assert!(MODULUS[0].wrapping_mul(FACTOR) == u64::MAX);

/// The sum of left[i] * right[i].
#[inline]
pub fn dot<const COUNT: usize>(left: &[Scalar; COUNT], right: &[Scalar; COUNT]) -> Scalar {
    let mut sum = [0; 9];
    for (left, right) in left.iter().zip(right) {
        add(&mut sum, &multiply(&words(left), &words(right)));
    }
    // r is less than 2^256 / 2, so that COUNT products are less than COUNT / 2 * r * 2^256. What
    // is left is below r * 2^256, which is what a reduction takes.
    const { assert!(COUNT <= 16) };
    if COUNT > 8 {
        subtract_once(&mut sum[4..], &shifted(2));
    }
    if COUNT > 4 {
        subtract_once(&mut sum[4..], &shifted(1));
    }
    if COUNT > 2 {
        subtract_once(&mut sum[4..], &shifted(0));
    }
    reduce(sum)
}

#[inline(always)]
fn words(scalar: &Scalar) -> [u64; 4] {
    blst_fr::from(*scalar).l
}

/// a * b + c + d, low word and high word.
#[inline(always)]
fn multiply_add(a: u64, b: u64, c: u64, d: u64) -> (u64, u64) {
    let all = u128::from(a) * u128::from(b) + u128::from(c) + u128::from(d);
    (all as u64, (all >> 64) as u64)
}

#[inline(always)]
fn multiply(left: &[u64; 4], right: &[u64; 4]) -> [u64; 8] {
    let mut product = [0; 8];
    for i in 0..4 {
        let mut carry = 0;
        for j in 0..4 {
            (product[i + j], carry) = multiply_add(left[i], right[j], product[i + j], carry);
        }
        product[i + 4] = carry;
    }
    product
}

#[inline(always)]
fn add(sum: &mut [u64; 9], product: &[u64; 8]) {
    let mut carry = false;
    for (sum, word) in sum.iter_mut().zip(product) {
        let (partial, first) = sum.overflowing_add(*word);
        let (total, second) = partial.overflowing_add(u64::from(carry));
        (*sum, carry) = (total, first | second);
    }
    sum[8] += u64::from(carry);
}

/// 2^count * r.
const fn shifted(count: u32) -> [u64; 5] {
    let mut words = [0; 5];
    let mut carry = 0;
    let mut i = 0;
    while i < 4 {
        let wide = (MODULUS[i] as u128) << count;
        words[i] = wide as u64 | carry;
        carry = (wide >> 64) as u64;
        i += 1;
    }
    words[4] = carry;
    words
}

/// Takes the subtrahend off unless it is more.
#[inline(always)]
fn subtract_once<const LEN: usize>(value: &mut [u64], subtrahend: &[u64; LEN]) {
    let mut difference = [0; LEN];
    let mut borrow = false;
    for i in 0..LEN {
        let (partial, first) = value[i].overflowing_sub(subtrahend[i]);
        let (total, second) = partial.overflowing_sub(u64::from(borrow));
        (difference[i], borrow) = (total, first | second);
    }
    for i in 0..LEN {
        value[i] = if borrow { value[i] } else { difference[i] };
    }
}

/// The sum divided by 2^256 modulo r; it is below r * 2^256.
#[inline(always)]
fn reduce(mut sum: [u64; 9]) -> Scalar {
    let mut carried = 0;
    for i in 0..4 {
        let multiple = sum[i].wrapping_mul(FACTOR);
        let mut carry = 0;
        for j in 0..4 {
            (sum[i + j], carry) = multiply_add(multiple, MODULUS[j], sum[i + j], carry);
        }
        let high = u128::from(sum[i + 4]) + u128::from(carry) + u128::from(carried);
        (sum[i + 4], carried) = (high as u64, (high >> 64) as u64);
    }
    // Below 2 r, so that nothing was carried out of the eight words.
    let mut l = [sum[4], sum[5], sum[6], sum[7]];
    subtract_once(&mut l, &MODULUS);
    Scalar::from(blst_fr { l })
}

#[cfg(test)]
mod tests {
    use rand_chacha::ChaCha8Rng;
    use rand_chacha::rand_core::SeedableRng;

    use super::*;
    use crate::witness::porep::oracle::element;

    /// The element whose Montgomery form is the largest number.
    fn largest() -> Scalar {
        let l = [MODULUS[0] - 1, MODULUS[1], MODULUS[2], MODULUS[3]];
        Scalar::from(blst_fr { l })
    }

    fn check<const COUNT: usize>(rng: &mut ChaCha8Rng) {
        let same = |left: [Scalar; COUNT], right: [Scalar; COUNT]| {
            let expected: Scalar = left.iter().zip(&right).map(|(left, right)| left * right).sum();
            // The words too: a sum that is not reduced fully is no column.
            assert_eq!(words(&dot(&left, &right)), words(&expected));
        };
        same([largest(); COUNT], [largest(); COUNT]);
        for _ in 0..1000 {
            let mut pick = || std::array::from_fn(|_| element(rng));
            same(pick(), pick());
            same(pick(), [largest(); COUNT]);
        }
    }

    #[test]
    fn dots_are_sums_of_products() {
        let rng = &mut ChaCha8Rng::seed_from_u64(9);
        check::<1>(rng);
        check::<2>(rng);
        check::<3>(rng);
        check::<4>(rng);
        check::<5>(rng);
        check::<8>(rng);
        check::<9>(rng);
        check::<12>(rng);
        check::<16>(rng);
    }
}
