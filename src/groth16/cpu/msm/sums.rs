//! Sums of the points whose witness bit is 1.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::POINTS_MAX;
use super::curve::{Curve, Path};
use super::scratch::{Scratch, Shares};
use super::tree::{Run, Tree};
use crate::team::Team;

/// The boolean columns of one part of a circuit, and where their points are.
///
/// Bit c of `bits` (bit c % 64 of word c / 64) is the witness of column c of the part; bit c of
/// `mask` tells whether the column has a point in the query.
#[derive(Clone, Copy, Debug)]
pub struct BoolRun<'a> {
    pub bits: &'a [u64],
    /// As long as `bits`.
    pub mask: &'a [u64],
    /// Points of the part before each word: the bits of `mask` in the words before it.
    pub rank: &'a [u32],
    /// Index of the part's first point in the query.
    pub first: usize,
}

/// All parts of a circuit, by number.
pub trait BoolRuns: Sync {
    /// Number of parts.
    fn count(&self) -> usize;
    /// Part `run` of them.
    fn run(&self, run: usize) -> BoolRun<'_>;
}

/// Words of witness that a thread takes at a time.
const BLOCK_WORDS: usize = 2048;

/// The sum, in shares of the scratch area.
pub fn sum<C: Curve>(
    path: Path,
    team: &Team,
    points: &[C::Affine],
    runs: &dyn BoolRuns,
    scratch: Scratch<'_>,
) -> C::Point {
    assert!(points.len() <= POINTS_MAX, "{} points are more than {POINTS_MAX}", points.len());
    let shares = scratch.into_shares(team.len());
    let next = AtomicUsize::new(0);
    team.run(&|thread| {
        // SAFETY: the team gives each number to one thread, which lets go of the share here.
        let mut share = unsafe { shares.share(thread) };
        let sum = &mut share.take::<C::Point>(1)[0];
        *sum = C::IDENTITY;
        let mut list = List::<C> {
            points,
            sum,
            references: share.take(C::CHUNK),
            held: 0,
            tree: Tree::new(path, &mut share),
        };
        let mut start = 0;
        let mut block = next.fetch_add(1, Ordering::Relaxed);
        for run in (0..runs.count()).map(|run| runs.run(run)) {
            assert!(run.bits.len() == run.mask.len() && run.bits.len() == run.rank.len());
            let end = start + run.bits.len().div_ceil(BLOCK_WORDS);
            while block < end {
                let at = (block - start) * BLOCK_WORDS;
                list.add(&run, at..(at + BLOCK_WORDS).min(run.bits.len()));
                block = next.fetch_add(1, Ordering::Relaxed);
            }
            start = end;
        }
        list.flush();
    });
    total::<C>(&shares, team.len())
}

/// The sum of what each thread left at the start of its share.
fn total<C: Curve>(shares: &Shares<'_>, threads: usize) -> C::Point {
    let mut total = C::IDENTITY;
    for thread in 0..threads {
        // SAFETY: no thread is at work any more.
        C::add(&mut total, &unsafe { shares.share(thread) }.take(1)[0]);
    }
    total
}

/// Points to sum up, a chunk at a time.
struct List<'a, C: Curve> {
    points: &'a [C::Affine],
    sum: &'a mut C::Point,
    references: &'a mut [u32],
    /// References gathered so far.
    held: usize,
    tree: Tree<'a, C>,
}

impl<C: Curve> List<'_, C> {
    /// Adds the points of the set bits in some words of a run.
    fn add(&mut self, run: &BoolRun<'_>, words: Range<usize>) {
        for word in words {
            let mask = run.mask[word];
            let mut bits = run.bits[word] & mask;
            let first = run.first + run.rank[word] as usize;
            while bits != 0 {
                let below = (bits & bits.wrapping_neg()) - 1;
                let point = first + (mask & below).count_ones() as usize;
                assert!(point < self.points.len(), "the query has {} points", self.points.len());
                self.references[self.held] = point as u32;
                self.held += 1;
                if self.held == C::CHUNK {
                    self.flush();
                }
                bits &= bits - 1;
            }
        }
    }

    fn flush(&mut self) {
        if self.held == 0 {
            return;
        }
        self.tree.runs[0] = Run { list: 0, count: self.held as u32 };
        let List { points, sum, references, held, tree } = self;
        tree.sum(points, &references[..*held], 1, |_, point| C::add_affine(sum, &point));
        self.held = 0;
    }
}
