//! Multi-scalar multiplication and sums of points on the CPU, inside the caller's memory.
//!
//! The bucket method (N. Pippenger, 1976; D. J. Bernstein and others, "Faster batch forgery
//! identification", 2012, section 4) with signed digits, so that a window of c bits has 2^(c-1)
//! buckets. What is particular here:
//!
//! - Bucket additions are affine and batched: one inversion serves thousands (`csrc/msm.h`).
//!   Points are first sorted by bucket (`msm/buckets.rs`), then a chunk of them is summed by
//!   rounds of pairs (`msm/tree.rs`). No batch meets a bucket twice, whatever the scalars are, and
//!   a bucket that takes all points is as fast as any other.
//! - A task is one window of one range of points; threads take tasks as they come. Its buckets are
//!   summed with batched additions too.
//! - Nothing is allocated: the plan (`msm/plan.rs`) cuts the work to what the scratch area holds.

mod buckets;
mod curve;
mod plan;
mod scratch;
mod sums;
#[cfg(test)]
mod tests;
mod tree;

use std::sync::atomic::{AtomicUsize, Ordering};

use blstrs::{G1Affine, G1Projective, G2Affine, G2Projective, Scalar};
use group::Group;

use self::buckets::{Buckets, Digits};
use self::curve::{Curve, G1, G2, Path};
use self::plan::Plan;
use self::scratch::Scratch;
pub use self::sums::{BoolRun, BoolRuns};
use crate::team::Team;

/// A reference to a point has 31 bits.
const POINTS_MAX: usize = 1 << 31;

/// Bytes of scratch that every function here works with, for a team of `threads` and `points`
/// points. More makes the products, not the sums, faster: up to 32 bytes a point and, for every
/// thread, 4 bytes a point and 14 MiB (28 MiB on G2) are put to use.
pub fn scratch_bytes(threads: usize, points: usize) -> usize {
    plan::least_bytes(threads, points)
}

/// The sum of scalars[i] × points[i] on G1.
///
/// # Panics
/// When the lengths differ or `scratch` is shorter than [`scratch_bytes`].
pub fn msm_g1(
    team: &Team,
    points: &[G1Affine],
    scalars: &[Scalar],
    scratch: &mut [u8],
) -> G1Projective {
    g1(multiply::<G1>(Path::best(), team, raw_g1(points), scalars, scratch))
}

/// The sum of scalars[i] × points[i] on G2.
///
/// # Panics
/// When the lengths differ or `scratch` is shorter than [`scratch_bytes`].
pub fn msm_g2(
    team: &Team,
    points: &[G2Affine],
    scalars: &[Scalar],
    scratch: &mut [u8],
) -> G2Projective {
    g2(multiply::<G2>(Path::best(), team, raw_g2(points), scalars, scratch))
}

/// The sum of the points on G1 whose witness bit is 1.
///
/// # Panics
/// When the slices of a run differ in length, a run leads past the end of `points`, or `scratch`
/// is shorter than [`scratch_bytes`].
pub fn sum_g1(
    team: &Team,
    points: &[G1Affine],
    runs: &dyn BoolRuns,
    scratch: &mut [u8],
) -> G1Projective {
    g1(sums::sum::<G1>(Path::best(), team, raw_g1(points), runs, Scratch::new(scratch)))
}

/// The sum of the points on G2 whose witness bit is 1.
///
/// # Panics
/// As [`sum_g1`].
pub fn sum_g2(
    team: &Team,
    points: &[G2Affine],
    runs: &dyn BoolRuns,
    scratch: &mut [u8],
) -> G2Projective {
    g2(sums::sum::<G2>(Path::best(), team, raw_g2(points), runs, Scratch::new(scratch)))
}

fn multiply<C: Curve>(
    path: Path,
    team: &Team,
    points: &[C::Affine],
    scalars: &[Scalar],
    scratch: &mut [u8],
) -> C::Point {
    assert_eq!(points.len(), scalars.len(), "every point has a scalar");
    assert!(points.len() <= POINTS_MAX, "{} points are more than {POINTS_MAX}", points.len());
    let plan = Plan::new::<C>(team.len(), points.len(), scratch.len());
    let plan = plan.expect("scratch has at least the bytes that scratch_bytes tells");
    multiply_as_planned::<C>(path, plan, team, points, scalars, scratch)
}

fn multiply_as_planned<C: Curve>(
    path: Path,
    plan: Plan,
    team: &Team,
    points: &[C::Affine],
    scalars: &[Scalar],
    scratch: &mut [u8],
) -> C::Point {
    let mut sum = C::IDENTITY;
    for (points, scalars) in points.chunks(plan.part).zip(scalars.chunks(plan.part)) {
        C::add(&mut sum, &multiply_part::<C>(path, plan, team, points, scalars, scratch));
    }
    sum
}

/// The sum over one part: the scalars as integers, then all windows of all ranges, then Horner's
/// rule over the windows.
fn multiply_part<C: Curve>(
    path: Path,
    plan: Plan,
    team: &Team,
    points: &[C::Affine],
    scalars: &[Scalar],
    scratch: &mut [u8],
) -> C::Point {
    let mut scratch = Scratch::new(scratch);
    let digits = Digits::new(plan, &mut scratch);
    team.split(scalars.len(), &|_, range| {
        for i in range {
            digits.write(i, integer(&scalars[i]));
        }
    });
    let shares = scratch.into_shares(team.len());
    let (next, windows) = (AtomicUsize::new(0), plan.windows());
    team.run(&|thread| {
        // SAFETY: the team gives each number to one thread, which lets go of the share here.
        let mut share = unsafe { shares.share(thread) };
        let sums = share.take::<C::Point>(windows);
        sums.fill(C::IDENTITY);
        let mut buckets = Buckets::<C>::new(path, plan, &mut share);
        loop {
            let task = next.fetch_add(1, Ordering::Relaxed);
            let (range, window) = (task / windows, task % windows);
            if range >= plan.ranges {
                break;
            }
            let at = |range: usize| (range * plan.range()).min(points.len());
            let sum = buckets.window(points, digits, at(range)..at(range + 1), window);
            C::add(&mut sums[window], &sum);
        }
    });
    let mut total = C::IDENTITY;
    for window in (0..windows).rev() {
        for _ in 0..plan.bits {
            C::double(&mut total);
        }
        for thread in 0..team.len() {
            // SAFETY: no thread is at work any more.
            let mut share = unsafe { shares.share(thread) };
            C::add(&mut total, &share.take::<C::Point>(windows)[window]);
        }
    }
    total
}

/// The scalar as an integer below r, little-endian words.
fn integer(scalar: &Scalar) -> [u64; 4] {
    let mut words = [0; 4];
    let scalar: blst::blst_fr = (*scalar).into();
    // SAFETY: blst writes the four words.
    unsafe { blst::blst_uint64_from_fr(words.as_mut_ptr(), &scalar) };
    words
}

fn raw_g1(points: &[G1Affine]) -> &[blst::blst_p1_affine] {
    // SAFETY: `G1Affine` is a transparent wrapper of `blst_p1_affine`.
    unsafe { std::slice::from_raw_parts(points.as_ptr().cast(), points.len()) }
}

fn raw_g2(points: &[G2Affine]) -> &[blst::blst_p2_affine] {
    // SAFETY: `G2Affine` is a transparent wrapper of `blst_p2_affine`.
    unsafe { std::slice::from_raw_parts(points.as_ptr().cast(), points.len()) }
}

fn g1(point: blst::blst_p1) -> G1Projective {
    let mut wrapped = G1Projective::identity();
    *wrapped.as_mut() = point;
    wrapped
}

fn g2(point: blst::blst_p2) -> G2Projective {
    let mut wrapped = G2Projective::identity();
    *wrapped.as_mut() = point;
    wrapped
}
