//! One window of one range of points: sort by digit, sum each bucket, sum the buckets by weight.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use super::curve::{Curve, NEGATED, Pair, Path, add_within};
use super::plan::Plan;
use super::scratch::Scratch;
use super::tree::{Run, Tree};

/// The absolute values of a part's scalars plus half a window in every window but the highest, so
/// that digits are read without carries; word by word, so that a window reads only what it needs.
/// The highest bit of the highest word tells a negative scalar.
#[derive(Clone, Copy)]
pub struct Digits<'a> {
    words: [&'a [AtomicU64]; 4],
    /// Half a window in every window but the highest.
    offset: [u64; 4],
    plan: Plan,
}

/// r / 2 rounded down and r, little-endian words.
const HALF: [u64; 4] =
    [0x7fffffff80000000, 0xa9ded2017fff2dff, 0x199cec0404d0ec02, 0x39f6d3a994cebea4];
const MODULUS: [u64; 4] =
    [0xffffffff00000001, 0x53bda402fffe5bfe, 0x3339d80809a1d805, 0x73eda753299d7d48];
const SIGN: u64 = 1 << 63;

impl<'a> Digits<'a> {
    pub fn new(plan: Plan, scratch: &mut Scratch<'a>) -> Self {
        let mut offset = [0; 4];
        for bit in (1..plan.windows()).map(|window| window * plan.bits - 1) {
            offset[bit / 64] |= 1 << (bit % 64);
        }
        Digits { words: [(); 4].map(|()| scratch.take_shared(plan.part)), offset, plan }
    }

    /// Writes scalar `i` of the part, given as an integer below r.
    pub fn write(&self, i: usize, scalar: [u64; 4]) {
        let negative = scalar.iter().rev().gt(HALF.iter().rev());
        let absolute = if negative { subtract(MODULUS, scalar) } else { scalar };
        let mut carry = 0;
        for (k, word) in absolute.into_iter().enumerate() {
            let (sum, over) = word.overflowing_add(self.offset[k]);
            let (sum, more) = sum.overflowing_add(carry);
            carry = u64::from(over | more);
            let sign = if k == 3 && negative { SIGN } else { 0 };
            self.words[k][i].store(sum | sign, Ordering::Relaxed);
        }
    }

    /// The digits of a range of scalars in a window: absolute value, and [`NEGATED`] or 0.
    fn read(&self, range: Range<usize>, window: usize) -> impl Iterator<Item = (usize, u32)> {
        let bits = self.plan.bits;
        let (word, shift) = (window * bits / 64, window * bits % 64);
        // The highest window ends below the sign, whatever its width.
        let width = bits.min(255 - window * bits);
        let mask = (1 << width) - 1;
        let half = if window + 1 == self.plan.windows() { 0 } else { 1 << (bits - 1) };
        let slice = |word: usize| self.words[word][range.clone()].iter();
        let load = |word: &AtomicU64| word.load(Ordering::Relaxed);
        slice(word).zip(slice((word + 1).min(3))).zip(slice(3)).map(move |((low, high), top)| {
            let both = u128::from(load(high)) << 64 | u128::from(load(low));
            let digit = (both >> shift) as i64 & mask;
            let digit = digit - half;
            let negative = (digit < 0) != (load(top) & SIGN != 0);
            (digit.unsigned_abs() as usize, if negative { NEGATED } else { 0 })
        })
    }
}

fn subtract(a: [u64; 4], b: [u64; 4]) -> [u64; 4] {
    let mut borrow = 0;
    std::array::from_fn(|k| {
        let (difference, under) = a[k].overflowing_sub(b[k]);
        let (difference, more) = difference.overflowing_sub(borrow);
        borrow = u64::from(under | more);
        difference
    })
}

/// A thread's memory for one window of one range.
pub struct Buckets<'a, C: Curve> {
    plan: Plan,
    tree: Tree<'a, C>,
    /// After sorting: where the references of each bucket end.
    ends: &'a mut [u32],
    /// References to the range's points, by bucket.
    sorted: &'a mut [u32],
    /// Bucket b is for the digits b + 1 and -(b + 1); then a place for each segment's sum.
    sums: &'a mut [C::Affine],
}

impl<'a, C: Curve> Buckets<'a, C> {
    pub fn new(path: Path, plan: Plan, scratch: &mut Scratch<'a>) -> Self {
        Buckets {
            plan,
            tree: Tree::new(path, scratch),
            ends: scratch.take(plan.buckets()),
            sorted: scratch.take(plan.range()),
            sums: scratch.take(plan.buckets() + plan.segments()),
        }
    }

    /// The sum of digit × point over the points of a range of the part, in one window.
    pub fn window(
        &mut self,
        points: &[C::Affine],
        digits: Digits<'_>,
        range: Range<usize>,
        window: usize,
    ) -> C::Point {
        self.sort(digits, range.clone(), window);
        if self.ends[self.plan.buckets() - 1] == 0 {
            return C::IDENTITY;
        }
        self.accumulate(&points[range]);
        self.reduce()
    }

    /// Counting sort of the range's points by bucket; points of digit 0 are left out.
    fn sort(&mut self, digits: Digits<'_>, range: Range<usize>, window: usize) {
        self.ends.fill(0);
        for (digit, _) in digits.read(range.clone(), window) {
            if digit != 0 {
                self.ends[digit - 1] += 1;
            }
        }
        let mut start = 0;
        for end in self.ends.iter_mut() {
            start += std::mem::replace(end, start);
        }
        for (reference, (digit, sign)) in (0..).zip(digits.read(range, window)) {
            if digit != 0 {
                let place = &mut self.ends[digit - 1];
                self.sorted[*place as usize] = reference | sign;
                *place += 1;
            }
        }
    }

    /// Sums up every bucket, a chunk of references at a time. A bucket that goes over the end of
    /// a chunk gets one more addition per chunk.
    fn accumulate(&mut self, points: &[C::Affine]) {
        let Buckets { tree, ends, sorted, sums, plan } = self;
        let (sums, spare) = sums.split_at_mut(plan.buckets() + 1);
        debug_assert_eq!(spare.len() + 1, plan.segments());
        sums.fill(C::ZERO);
        let path = tree.batch().0;
        let (mut start, mut at, mut runs) = (0, 0, 0);
        let mut flush = |chunk: Range<usize>, runs: usize, tree: &mut Tree<'_, C>| {
            tree.sum(points, &sorted[chunk], runs, |bucket, sum| {
                add_to::<C>(path, sums, bucket, sum);
            });
        };
        for (bucket, &end) in (0..).zip(ends.iter()) {
            let end = end as usize;
            while at < end {
                let count = (end - at).min(start + C::CHUNK - at);
                tree.runs[runs] = Run { list: bucket, count: count as u32 };
                runs += 1;
                at += count;
                if at == start + C::CHUNK {
                    flush(start..at, runs, tree);
                    (start, runs) = (at, 0);
                }
            }
        }
        flush(start..at, runs, tree);
    }

    /// The sum of (b + 1) × bucket b.
    ///
    /// The buckets are cut into segments, whose running sums S (of the buckets from the top down)
    /// and T (of the values of S) all go down one bucket at a time, in batches. Segment s of
    /// length l then stands for T + s l S.
    fn reduce(&mut self) -> C::Point {
        let (buckets, segments) = (self.plan.buckets(), self.plan.segments());
        let length = buckets / segments;
        let (path, pairs, work) = self.tree.batch();
        let pairs = &mut pairs[..segments];
        for s in 0..segments {
            self.sums[buckets + s] = self.sums[(s + 1) * length - 1];
        }
        for step in (0..length - 1).rev() {
            for (s, pair) in pairs.iter_mut().enumerate() {
                let running = ((s + 1) * length - 1) as u32;
                *pair = Pair { a: running, b: (s * length + step) as u32, out: running };
            }
            add_within::<C>(path, self.sums, pairs, work);
            for (s, pair) in pairs.iter_mut().enumerate() {
                let total = (buckets + s) as u32;
                *pair = Pair { a: total, b: ((s + 1) * length - 1) as u32, out: total };
            }
            add_within::<C>(path, self.sums, pairs, work);
        }
        let (mut running, mut weighted) = (C::IDENTITY, C::IDENTITY);
        for s in (1..segments).rev() {
            C::add_affine(&mut running, &self.sums[(s + 1) * length - 1]);
            C::add(&mut weighted, &running);
        }
        for _ in 0..length.ilog2() {
            C::double(&mut weighted);
        }
        for total in &self.sums[buckets..] {
            C::add_affine(&mut weighted, total);
        }
        weighted
    }
}

/// sums[bucket] += point, where the last of `sums` is free to use.
fn add_to<C: Curve>(path: Path, sums: &mut [C::Affine], bucket: u32, point: C::Affine) {
    if C::is_zero(&sums[bucket as usize]) {
        sums[bucket as usize] = point;
        return;
    }
    #[repr(align(64))]
    struct Work([u64; 96]);
    let spare = sums.len() - 1;
    sums[spare] = point;
    let pair = Pair { a: bucket, b: spare as u32, out: bucket };
    add_within::<C>(path, sums, &[pair], &mut Work([0; 96]).0);
}
