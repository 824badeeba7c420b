//! How a multi-scalar multiplication is cut: windows, ranges of points, parts; and what memory
//! each thread needs.

use super::curve::{Curve, G1, G2, Pair};
use super::scratch::{ALIGN, piece_bytes};
use super::tree::Run;

/// Bits that the digits of a scalar must reach: its absolute value is at most (r - 1) / 2, below
/// 2^254, and one bit is for the sign of the highest digit.
const SCALAR_BITS: usize = 255;

/// Windows of more bits than this have buckets that fit no cache.
const WINDOW_BITS_MAX: usize = 18;
/// Windows up to this many bits, and parts of at least this many points (or all), are what
/// [`least_bytes`] answers for.
const LEAST_WINDOW_BITS: usize = 10;
const LEAST_PART: usize = 1 << 14;
/// Running sums that are taken at a time in the bucket reduction.
const SEGMENTS_MAX: usize = 1024;

/// A cut of a multi-scalar multiplication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Points that are worked on at a time; their scalars are kept as integers.
    pub part: usize,
    /// Bits of a digit: 2^(bits - 1) buckets.
    pub bits: usize,
    /// Ranges that a part is cut into: a window of a range is the task of one thread.
    pub ranges: usize,
}

impl Plan {
    /// The fastest cut that fits `bytes`, if any does.
    pub fn new<C: Curve>(threads: usize, points: usize, bytes: usize) -> Option<Self> {
        let fitting = |plan: &Plan| plan.bytes::<C>(threads) <= bytes;
        let mut part = points.max(1);
        loop {
            let best = candidates(threads, part, WINDOW_BITS_MAX)
                .filter(fitting)
                .min_by_key(|plan| plan.cost(threads));
            if best.is_some() || part == 1 {
                return best;
            }
            part = part.div_ceil(2);
        }
    }

    /// Digits of a scalar.
    pub fn windows(&self) -> usize {
        SCALAR_BITS.div_ceil(self.bits)
    }

    pub fn buckets(&self) -> usize {
        1 << (self.bits - 1)
    }

    /// Running sums in the bucket reduction; a power of two, as the number of buckets is.
    pub fn segments(&self) -> usize {
        (self.buckets() / 16).clamp(1, SEGMENTS_MAX)
    }

    /// Points of the longest range.
    pub fn range(&self) -> usize {
        self.part.div_ceil(self.ranges)
    }

    /// Time of the slowest thread for one part, in batched additions. The weights are measured:
    /// sorting a point costs about a fifth of an addition, an inversion about 30.
    fn cost(&self, threads: usize) -> usize {
        let rounds = (self.windows() * self.ranges).div_ceil(threads);
        let (segments, buckets) = (self.segments(), self.buckets());
        let accumulate = self.range() * 6 / 5 + 30 * 12;
        let reduce = 2 * buckets + 2 * 30 * (buckets / segments) + 12 * segments;
        rounds * (accumulate + reduce)
    }

    /// Bytes of scratch for this cut.
    pub fn bytes<C: Curve>(&self, threads: usize) -> usize {
        let scalars = 4 * piece_bytes::<u64>(self.part);
        let thread = piece_bytes::<C::Point>(self.windows())
            + piece_bytes::<u32>(self.buckets())
            + piece_bytes::<u32>(self.range())
            + piece_bytes::<C::Affine>(self.buckets() + self.segments())
            + tree_bytes::<C>();
        ALIGN + scalars + threads * thread
    }
}

/// Bytes of a thread's [`super::tree::Tree`].
pub fn tree_bytes<C: Curve>() -> usize {
    const { assert!(SEGMENTS_MAX <= G1::CHUNK / 2 && SEGMENTS_MAX <= G2::CHUNK / 2) };
    2 * piece_bytes::<C::Affine>(C::CHUNK)
        + piece_bytes::<Pair>(C::CHUNK / 2)
        + piece_bytes::<u8>(C::pair_work_bytes(C::CHUNK / 2))
        + piece_bytes::<Run>(C::CHUNK)
}

/// Bytes of scratch with which every multiplication of `points` points and every sum works.
pub fn least_bytes(threads: usize, points: usize) -> usize {
    let part = points.clamp(1, LEAST_PART);
    let plan = Plan { part, bits: LEAST_WINDOW_BITS, ranges: 1 };
    let sum = threads
        * (piece_bytes::<blst::blst_p2>(1) + piece_bytes::<u32>(G1::CHUNK) + tree_bytes::<G2>());
    plan.bytes::<G1>(threads).max(plan.bytes::<G2>(threads)).max(ALIGN + sum)
}

fn candidates(threads: usize, part: usize, bits_max: usize) -> impl Iterator<Item = Plan> {
    (2..=bits_max)
        .flat_map(move |bits| (1..=4 * threads).map(move |ranges| Plan { part, bits, ranges }))
}

const _: () = assert!(size_of::<Run>() == 8);
