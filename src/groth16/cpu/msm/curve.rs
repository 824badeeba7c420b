//! The two groups as the multi-scalar multiplication sees them: blst's raw points and the batched
//! additions of `csrc/msm.h`.

use blst::{blst_p1, blst_p1_affine, blst_p2, blst_p2_affine};

use super::scratch::Plain;
use crate::sys;

/// The top bit of a reference to a point: the negated point is meant.
pub const NEGATED: u32 = sys::BERTH_NEGATED;

/// One addition of a batch.
pub use crate::sys::berth_pair as Pair;

/// Which code does the batched additions. Both give the same points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    /// blst's field arithmetic.
    Portable,
    /// Eight additions on G1 at a time with AVX-512 IFMA; G2 as [`Path::Portable`].
    Ifma,
}

impl Path {
    /// The fastest path that this machine runs.
    pub fn best() -> Self {
        // SAFETY: the function only asks the processor what it can do.
        if unsafe { sys::berth_has_ifma() } { Path::Ifma } else { Path::Portable }
    }
}

/// A group: G1 or G2.
///
/// # Safety
/// `add_pairs_raw` must touch nothing but what its contract names.
pub unsafe trait Curve: Sync {
    /// A point as (x, y), the identity as (0, 0).
    type Affine: Plain + Sync;
    /// A point in Jacobian coordinates.
    type Point: Plain;

    /// The identity in both forms; as bytes, all zero.
    const ZERO: Self::Affine;
    const IDENTITY: Self::Point;
    /// Working memory of the batched additions per pair.
    const PAIR_WORK_BYTES: usize;
    /// Points that are summed at a time: buffers for them should stay in a core's second level
    /// cache (1 MiB on the machines this was measured on).
    const CHUNK: usize;

    fn is_zero(point: &Self::Affine) -> bool;
    fn negate(point: &mut Self::Affine);
    fn add(to: &mut Self::Point, other: &Self::Point);
    fn add_affine(to: &mut Self::Point, other: &Self::Affine);
    fn double(point: &mut Self::Point);

    /// # Safety
    /// For `count` pairs: `from` is valid for reads at every index that a pair refers to, `out`
    /// for writes at every `out`, `work` for `pair_work_bytes(count)` and aligned to 64 bytes; no
    /// point is written that another pair reads or writes.
    unsafe fn add_pairs_raw(
        path: Path,
        out: *mut Self::Affine,
        from: *const Self::Affine,
        pairs: &[Pair],
        work: *mut u64,
    );

    /// Bytes of working memory for a batch.
    fn pair_work_bytes(pairs: usize) -> usize {
        pairs.next_multiple_of(8) * Self::PAIR_WORK_BYTES
    }
}

fn check_pairs<C: Curve>(from: usize, to: usize, pairs: &[Pair], work: &[u64]) {
    assert!(
        size_of_val(work) >= C::pair_work_bytes(pairs.len())
            && work.as_ptr().addr().is_multiple_of(64)
    );
    debug_assert!(pairs.iter().all(|pair| {
        ((pair.a & !NEGATED) as usize) < from
            && ((pair.b & !NEGATED) as usize) < from
            && (pair.out as usize) < to
    }));
}

/// to[out] = ±from[a] ± from[b] for every pair; no two pairs have the same `out`.
pub fn add_into<C: Curve>(
    path: Path,
    to: &mut [C::Affine],
    from: &[C::Affine],
    pairs: &[Pair],
    work: &mut [u64],
) {
    check_pairs::<C>(from.len(), to.len(), pairs, work);
    // SAFETY: indices are in range, by construction of the pairs in this module's parents (and by
    // the check above in debug builds); `to` and `from` do not overlap; the work area was checked.
    unsafe { C::add_pairs_raw(path, to.as_mut_ptr(), from.as_ptr(), pairs, work.as_mut_ptr()) }
}

/// all[out] = ±all[a] ± all[b] for every pair; no pair reads or writes what another one writes.
pub fn add_within<C: Curve>(path: Path, all: &mut [C::Affine], pairs: &[Pair], work: &mut [u64]) {
    check_pairs::<C>(all.len(), all.len(), pairs, work);
    let all = all.as_mut_ptr();
    // SAFETY: as in `add_into`; both pointers come from the one exclusive borrow, and the pairs
    // are independent by construction.
    unsafe { C::add_pairs_raw(path, all, all, pairs, work.as_mut_ptr()) }
}

pub struct G1;

// SAFETY: both C functions read, write and use `work` as declared in `csrc/msm.h`, which is the
// contract of the trait.
unsafe impl Curve for G1 {
    type Affine = blst_p1_affine;
    type Point = blst_p1;

    const ZERO: blst_p1_affine =
        blst_p1_affine { x: blst::blst_fp { l: [0; 6] }, y: blst::blst_fp { l: [0; 6] } };
    const IDENTITY: blst_p1 = blst_p1 { x: Self::ZERO.x, y: Self::ZERO.x, z: Self::ZERO.x };
    const PAIR_WORK_BYTES: usize = sys::BERTH_G1_PAIR_WORK as usize;
    const CHUNK: usize = 4096;

    fn is_zero(point: &blst_p1_affine) -> bool {
        point.x.l == [0; 6] && point.y.l == [0; 6]
    }

    fn negate(point: &mut blst_p1_affine) {
        let y: *mut _ = &mut point.y;
        // SAFETY: blst reads and writes the one field element, in place as it allows.
        unsafe { blst::blst_fp_cneg(y, y, true) }
    }

    fn add(to: &mut blst_p1, other: &blst_p1) {
        let to: *mut _ = to;
        // SAFETY: blst takes valid points of any value and works in place.
        unsafe { blst::blst_p1_add_or_double(to, to, other) }
    }

    fn add_affine(to: &mut blst_p1, other: &blst_p1_affine) {
        let to: *mut _ = to;
        // SAFETY: as in `add`.
        unsafe { blst::blst_p1_add_or_double_affine(to, to, other) }
    }

    fn double(point: &mut blst_p1) {
        let point: *mut _ = point;
        // SAFETY: as in `add`.
        unsafe { blst::blst_p1_double(point, point) }
    }

    unsafe fn add_pairs_raw(
        path: Path,
        out: *mut blst_p1_affine,
        from: *const blst_p1_affine,
        pairs: &[Pair],
        work: *mut u64,
    ) {
        let add = match path {
            Path::Portable => sys::berth_g1_add_pairs,
            Path::Ifma => sys::berth_g1_add_pairs_ifma,
        };
        // SAFETY: the caller keeps the contract, which is the C function's; `Path::Ifma` is only
        // made where the processor has the instructions.
        unsafe { add(out, from, pairs.as_ptr(), pairs.len(), work) }
    }
}

pub struct G2;

// SAFETY: as for G1.
unsafe impl Curve for G2 {
    type Affine = blst_p2_affine;
    type Point = blst_p2;

    const ZERO: blst_p2_affine = {
        let zero = blst::blst_fp2 { fp: [G1::ZERO.x; 2] };
        blst_p2_affine { x: zero, y: zero }
    };
    const IDENTITY: blst_p2 = blst_p2 { x: Self::ZERO.x, y: Self::ZERO.x, z: Self::ZERO.x };
    const PAIR_WORK_BYTES: usize = sys::BERTH_G2_PAIR_WORK as usize;
    const CHUNK: usize = 2048;

    fn is_zero(point: &blst_p2_affine) -> bool {
        [point.x, point.y].iter().all(|c| c.fp.iter().all(|part| part.l == [0; 6]))
    }

    fn negate(point: &mut blst_p2_affine) {
        let y: *mut _ = &mut point.y;
        // SAFETY: as for G1.
        unsafe { blst::blst_fp2_cneg(y, y, true) }
    }

    fn add(to: &mut blst_p2, other: &blst_p2) {
        let to: *mut _ = to;
        // SAFETY: as for G1.
        unsafe { blst::blst_p2_add_or_double(to, to, other) }
    }

    fn add_affine(to: &mut blst_p2, other: &blst_p2_affine) {
        let to: *mut _ = to;
        // SAFETY: as for G1.
        unsafe { blst::blst_p2_add_or_double_affine(to, to, other) }
    }

    fn double(point: &mut blst_p2) {
        let point: *mut _ = point;
        // SAFETY: as for G1.
        unsafe { blst::blst_p2_double(point, point) }
    }

    unsafe fn add_pairs_raw(
        _: Path,
        out: *mut blst_p2_affine,
        from: *const blst_p2_affine,
        pairs: &[Pair],
        work: *mut u64,
    ) {
        // SAFETY: the caller keeps the contract, which is the C function's.
        unsafe { sys::berth_g2_add_pairs(out, from, pairs.as_ptr(), pairs.len(), work) }
    }
}
