//! The twiddles of a domain, in a table of about the square root of its size.
//!
//! For each direction, inverse and forward:
//!
//! ```text
//! layers         layer s at [2^(s-1) ..]: w_(2^s)^j, for the rows of any pass
//! coset layers   the same times 7^(m / 2^s), for the last pass on the coset
//! per pass but the last, over blocks of n elements, with split s:
//!   lo           w_n^q, q < 2^s
//!   hi           w_n^(t 2^s)
//!   coset hi     w_n^(t 2^s) * 7^(m / n)
//! ```
//!
//! Column q of a pass has the factor lo[q mod 2^s] * hi[q / 2^s] in its top layer.

use blstrs::Scalar;
use ff::{Field, PrimeField};

use super::{LANES, LOG_ROWS_MAX};
use crate::sys;

/// Largest domain that is supported, as a power of two.
pub const LOG_DOMAIN_MAX: u32 = 28;
/// From this size on a group has eight columns in every pass; below, one group does it all.
const LOG_LANES_MIN: u32 = 6;
/// The coset is 7 * <w> (formats.md section 1).
pub(in crate::groth16::cpu) const GENERATOR: u64 = 7;

/// Which code does the arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    /// blst, one element at a time.
    Portable,
    /// AVX-512 IFMA, eight elements at a time.
    Ifma,
}

impl Path {
    /// The fastest path of this CPU.
    pub fn detect() -> Self {
        // SAFETY: the function only reads the CPU's feature bits.
        if unsafe { sys::berth_fr_has_ifma() } { Path::Ifma } else { Path::Portable }
    }

    /// Twiddles w are stored as blst scalars of value w * factor: IFMA divides a product by 2^260
    /// where blst divides it by 2^256.
    pub(super) fn twiddle_factor(self) -> Scalar {
        match self {
            Path::Portable => Scalar::ONE,
            Path::Ifma => Scalar::from(16),
        }
    }
}

/// The points at which polynomials are evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Points {
    /// The powers of w.
    Plain,
    /// 7 times the powers of w.
    Coset,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Inverse,
    Forward,
}

/// One pass: 2^log_rows rows at a distance of 2^log_stride elements.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pass {
    pub log_rows: u32,
    pub log_stride: u32,
}

impl Pass {
    /// Column factors are lo[q % 2^split] * hi[q / 2^split].
    pub(super) fn split(self) -> u32 {
        self.log_stride.div_ceil(2).max(LANES.trailing_zeros()).min(self.log_stride)
    }

    fn hi_len(self) -> usize {
        1 << (self.log_stride - self.split())
    }

    /// Scalars of the pass's factors for one direction: lo, hi, hi of the coset.
    fn factors_len(self) -> usize {
        if self.log_stride == 0 { 0 } else { (1 << self.split()) + 2 * self.hi_len() }
    }
}

/// The passes of a transform, in the order of the inverse one.
pub(super) fn passes(
    log: u32,
) -> impl DoubleEndedIterator<Item = Pass> + ExactSizeIterator + Clone {
    assert!((1..=LOG_DOMAIN_MAX).contains(&log), "a domain of 2^{log} elements is not supported");
    let count = if log < LOG_LANES_MIN { 1 } else { log.div_ceil(LOG_ROWS_MAX).max(2) };
    (0..count).map(move |n| Pass {
        log_rows: log * (n + 1) / count - log * n / count,
        log_stride: log - log * (n + 1) / count,
    })
}

pub(super) fn log_rows_max(log: u32) -> u32 {
    passes(log).map(|pass| pass.log_rows).max().expect("a transform has a pass")
}

/// Scalars of the layers of one direction, plain and of the last pass on the coset.
fn layers_len(log: u32) -> usize {
    let last = passes(log).next_back().expect("a transform has a pass");
    (1 << log_rows_max(log)) + (1 << last.log_rows)
}

fn direction_len(log: u32) -> usize {
    layers_len(log) + passes(log).map(Pass::factors_len).sum::<usize>()
}

pub(super) struct Twiddles<'a> {
    pub log: u32,
    pub path: Path,
    /// Those of the inverse direction, then of the forward one.
    table: &'a [Scalar],
}

impl<'a> Twiddles<'a> {
    /// Scalars of the table.
    pub(super) fn table_len(log: u32) -> usize {
        2 * direction_len(log)
    }

    /// Fills `table`. Domains that are too small for the lanes of the IFMA path are portable.
    pub(super) fn new(log: u32, table: &'a mut [Scalar], path: Path) -> Self {
        let path = if log < LOG_LANES_MIN { Path::Portable } else { path };
        let (inverse, forward) = table.split_at_mut(direction_len(log));
        fill_direction(log, inverse, Direction::Inverse, path);
        fill_direction(log, forward, Direction::Forward, path);
        Twiddles { log, path, table }
    }

    fn direction(&self, direction: Direction) -> &[Scalar] {
        let (inverse, forward) = self.table.split_at(direction_len(self.log));
        if direction == Direction::Inverse { inverse } else { forward }
    }

    /// The layers' table of a pass in a direction.
    pub(super) fn layers(&self, pass: Pass, direction: Direction, points: Points) -> &[Scalar] {
        let (plain, rest) = self.direction(direction).split_at(1 << log_rows_max(self.log));
        if pass.log_stride == 0 && points == Points::Coset { rest } else { plain }
    }

    /// Column factors lo and hi of a pass.
    pub(super) fn factors(
        &self,
        n: usize,
        direction: Direction,
        points: Points,
    ) -> (&[Scalar], &[Scalar]) {
        let before: usize = passes(self.log).take(n).map(Pass::factors_len).sum();
        let pass = passes(self.log).nth(n).expect("pass n exists");
        let at = layers_len(self.log) + before;
        let (lo, hi) = self.direction(direction)[at..].split_at(1 << pass.split());
        (lo, if points == Points::Coset { &hi[pass.hi_len()..] } else { hi })
    }
}

/// A primitive root of unity of order 2^log, or its inverse.
fn root(log: u32, direction: Direction) -> Scalar {
    let root = match direction {
        Direction::Inverse => Scalar::ROOT_OF_UNITY_INV,
        Direction::Forward => Scalar::ROOT_OF_UNITY,
    };
    (log..Scalar::S).fold(root, |root, _| root.square())
}

/// The generator of the coset, or its inverse.
fn generator(direction: Direction) -> Scalar {
    let generator = Scalar::from(GENERATOR);
    match direction {
        Direction::Inverse => generator.invert().expect("7 is not zero"),
        Direction::Forward => generator,
    }
}

/// table[i] = first * step^i
fn fill_powers(table: &mut [Scalar], first: Scalar, step: Scalar) {
    let mut power = first;
    for entry in table {
        *entry = power;
        power *= step;
    }
}

fn fill_direction(log: u32, table: &mut [Scalar], direction: Direction, path: Path) {
    let one = path.twiddle_factor();
    let power_of_7 = |exponent: u64| generator(direction).pow_vartime([exponent]);
    let (plain, table) = table.split_at_mut(1 << log_rows_max(log));
    plain[0] = one;
    for s in 1..=log_rows_max(log) {
        fill_powers(&mut plain[1 << (s - 1)..1 << s], one, root(s, direction));
    }
    let last = passes(log).next_back().expect("a transform has a pass");
    let (coset, mut table) = table.split_at_mut(1 << last.log_rows);
    coset[0] = one;
    for s in 1..=last.log_rows {
        let first = one * power_of_7(1 << (log - s));
        fill_powers(&mut coset[1 << (s - 1)..1 << s], first, root(s, direction));
    }
    for pass in passes(log).filter(|pass| pass.log_stride > 0) {
        let log_block = pass.log_rows + pass.log_stride;
        let (lo, rest) = table.split_at_mut(1 << pass.split());
        let (hi, rest) = rest.split_at_mut(pass.hi_len());
        let (hi_coset, rest) = rest.split_at_mut(pass.hi_len());
        let w = root(log_block, direction);
        let step = w.pow_vartime([1 << pass.split()]);
        fill_powers(lo, one, w);
        fill_powers(hi, one, step);
        fill_powers(hi_coset, one * power_of_7(1 << (log - log_block)), step);
        table = rest;
    }
    assert!(table.is_empty(), "every entry is filled");
}
