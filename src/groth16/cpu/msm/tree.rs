//! Sums of many short (or few long) lists of points at once, by rounds of independent additions.
//!
//! Each round adds the neighbours of every list in pairs, so a batch never holds a point twice,
//! however the points are spread over the lists: a list of n points takes log2 n rounds, and one
//! inversion serves a round.

use super::curve::{Curve, NEGATED, Pair, Path, add_into};
use super::scratch::{Plain, Scratch};

/// `count` consecutive points of a chunk, to be summed up for `list`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Run {
    pub list: u32,
    pub count: u32,
}

// SAFETY: two integers.
unsafe impl Plain for Run {}

/// Buffers for one chunk of at most [`Curve::CHUNK`] points.
pub struct Tree<'a, C: Curve> {
    path: Path,
    /// The chunk's runs: to be set up to the count given to [`Tree::sum`].
    pub runs: &'a mut [Run],
    pairs: &'a mut [Pair],
    work: &'a mut [u64],
    from: &'a mut [C::Affine],
    to: &'a mut [C::Affine],
}

impl<'a, C: Curve> Tree<'a, C> {
    pub fn new(path: Path, scratch: &mut Scratch<'a>) -> Self {
        Tree {
            path,
            runs: scratch.take(C::CHUNK),
            pairs: scratch.take(C::CHUNK / 2),
            work: scratch.take(C::pair_work_bytes(C::CHUNK / 2) / 8),
            from: scratch.take(C::CHUNK),
            to: scratch.take(C::CHUNK),
        }
    }

    /// Pairs and working memory for other batches of up to `CHUNK` / 2 additions.
    pub fn batch(&mut self) -> (Path, &mut [Pair], &mut [u64]) {
        (self.path, self.pairs, self.work)
    }

    /// Sums the points of each of the first `runs` runs, which lie one after the other in
    /// `references`, and tells each sum once. A run has at least one point.
    pub fn sum(
        &mut self,
        points: &[C::Affine],
        references: &[u32],
        mut runs: usize,
        mut done: impl FnMut(u32, C::Affine),
    ) {
        assert!(references.len() <= C::CHUNK);
        let mut first = true;
        while runs > 0 {
            let (mut kept, mut pairs, mut at, mut next) = (0, 0, 0, 0);
            for k in 0..runs {
                let Run { list, count } = self.runs[k];
                let last = at + count as usize - 1;
                if count == 1 {
                    let point =
                        if first { load::<C>(points, references[at]) } else { self.from[at] };
                    done(list, point);
                    at += 1;
                    continue;
                }
                for (a, b) in (at..last).step_by(2).zip((at + 1..).step_by(2)) {
                    let [a, b] = match first {
                        true => [references[a], references[b]],
                        false => [a as u32, b as u32],
                    };
                    self.pairs[pairs] = Pair { a, b, out: next };
                    pairs += 1;
                    next += 1;
                }
                if count % 2 == 1 {
                    self.to[next as usize] =
                        if first { load::<C>(points, references[last]) } else { self.from[last] };
                    next += 1;
                }
                at = last + 1;
                self.runs[kept] = Run { list, count: count.div_ceil(2) };
                kept += 1;
            }
            let from = if first { points } else { &*self.from };
            if pairs > 0 {
                add_into::<C>(self.path, self.to, from, &self.pairs[..pairs], self.work);
            }
            std::mem::swap(&mut self.from, &mut self.to);
            first = false;
            runs = kept;
        }
    }
}

/// The point that a reference means.
fn load<C: Curve>(points: &[C::Affine], reference: u32) -> C::Affine {
    let mut point = points[(reference & !NEGATED) as usize];
    if reference & NEGATED != 0 {
        C::negate(&mut point);
    }
    point
}
