//! Points of both groups behind one trait: their bytes in a file, and multiples of a fixed point.

use blst::{blst_p1_affine, blst_p2_affine};
use blstrs::{G1Affine, G2Affine};
use group::Group;

use crate::sys;

/// Why a point was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    Encoding,
    Infinity,
    NotOnCurve,
    NotInSubgroup,
}

impl std::fmt::Display for Why {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Why::Encoding => "not an uncompressed point with coordinates below the modulus",
            Why::Infinity => "the point at infinity",
            Why::NotOnCurve => "not on the curve",
            Why::NotInSubgroup => "on the curve but not in the subgroup of order r",
        })
    }
}

impl Why {
    fn from_code(code: u32) -> Self {
        match code {
            sys::BERTH_POINT_INFINITY => Why::Infinity,
            sys::BERTH_POINT_NOT_ON_CURVE => Why::NotOnCurve,
            sys::BERTH_POINT_NOT_IN_SUBGROUP => Why::NotInSubgroup,
            sys::BERTH_POINT_ENCODING => Why::Encoding,
            other => unreachable!("points.c has no reason {other}"),
        }
    }
}

/// Most points that one fixed-base call takes.
pub const BATCH: usize = sys::BERTH_FIXED_BASE_BATCH as usize;
/// An affine point of G1 or G2 in blst's Montgomery form.
pub trait Point: Copy + Default + Send + Sync + 'static {
    /// Bytes of an uncompressed point in a file; as many as in memory.
    const BYTES: usize;

    /// A sum of points, not normalized.
    type Sum: Copy + Send + Group + for<'a> std::ops::AddAssign<&'a Self>;

    /// Is a sum, whose summands are on the curve, of order r or infinity?
    fn in_subgroup(sum: &Self::Sum) -> bool;

    /// Reads `out.len()` points; on refusal, the index of the first bad one and the reason.
    fn read(out: &mut [Self], bytes: &[u8], subgroup: bool) -> Result<(), (usize, Why)>;

    /// Writes points, none at infinity.
    fn write(bytes: &mut [u8], points: &[Self]);

    /// `out[i] = scalars[i] * B` for at most [`BATCH`] canonical little-endian scalars, none zero,
    /// and a table of B with 256 / bits windows of `2^(bits - 1)` entries, each made by
    /// [`Point::fill_window`] from `2^(bits * window) * B`; `bits` is 8 or 16.
    fn fixed_base(out: &mut [Self], table: &[Self], bits: u32, scalars: &[[u8; 32]]);

    /// `entries[d - 1] = d * base`.
    fn fill_window(entries: &mut [Self], base: &Self);

    /// `2^doublings * self`.
    fn doubled(&self, doublings: usize) -> Self;
}

macro_rules! point {
    ($affine:ty, $projective:ty, $raw:ty, $bytes:literal, $read:ident, $write:ident, $fixed:ident,
     $to_affine:ident, $in_group:ident) => {
        impl Point for $affine {
            const BYTES: usize = $bytes;
            type Sum = $projective;

            fn in_subgroup(sum: &Self::Sum) -> bool {
                // SAFETY: a valid point.
                bool::from(sum.is_identity()) || unsafe { blst::$in_group(sum.as_ref()) }
            }

            fn read(out: &mut [Self], bytes: &[u8], subgroup: bool) -> Result<(), (usize, Why)> {
                assert_eq!(bytes.len(), out.len() * Self::BYTES, "bytes for all points");
                let (n, mut why) = (out.len(), 0);
                // SAFETY: both ranges have n points (asserted); the affine types of blstrs are
                // transparent over those of blst, and any bytes may be read.
                let done = unsafe {
                    sys::$read(
                        out.as_mut_ptr().cast::<$raw>(),
                        bytes.as_ptr(),
                        n,
                        subgroup.into(),
                        &mut why,
                    )
                };
                if done == n { Ok(()) } else { Err((done, Why::from_code(why))) }
            }

            fn write(bytes: &mut [u8], points: &[Self]) {
                assert_eq!(bytes.len(), points.len() * Self::BYTES, "bytes for all points");
                // SAFETY: both ranges have as many points (asserted), see `read` for the type.
                unsafe {
                    sys::$write(bytes.as_mut_ptr(), points.as_ptr().cast::<$raw>(), points.len());
                }
            }

            fn fixed_base(out: &mut [Self], table: &[Self], bits: u32, scalars: &[[u8; 32]]) {
                assert_eq!(out.len(), scalars.len(), "one point per scalar");
                assert!(out.len() <= BATCH, "a batch at most");
                assert!(bits == 8 || bits == 16, "whole bytes");
                assert_eq!(table.len(), (256 / bits as usize) << (bits - 1), "a whole table");
                assert!(scalars.iter().all(|s| s[31] < 0x74), "canonical scalars");
                // SAFETY: lengths are asserted, and below 2^255 every digit has its entry.
                let done = unsafe {
                    sys::$fixed(
                        out.as_mut_ptr().cast::<$raw>(),
                        table.as_ptr().cast::<$raw>(),
                        bits,
                        scalars.as_ptr().cast::<u8>(),
                        out.len(),
                    )
                };
                assert!(done == 1, "scalars below r never meet an exception of the addition");
            }

            fn fill_window(entries: &mut [Self], base: &Self) {
                let mut sum = <$projective>::identity();
                for run in entries.chunks_mut(BATCH) {
                    let mut projective = [<$projective>::identity(); BATCH];
                    for point in &mut projective[..run.len()] {
                        sum += base;
                        *point = sum;
                    }
                    // A null ends the list: the other points follow the first.
                    let list = [projective.as_ptr().cast(), std::ptr::null()];
                    // SAFETY: both ranges have the points of the run, whose types are transparent
                    // over those of blst; none is at infinity, being less than r times the base.
                    unsafe {
                        blst::$to_affine(run.as_mut_ptr().cast::<$raw>(), list.as_ptr(), run.len());
                    }
                }
            }

            fn doubled(&self, doublings: usize) -> Self {
                let mut point = <$projective>::from(self);
                for _ in 0..doublings {
                    point = point.double();
                }
                point.into()
            }
        }
    };
}

point!(
    G1Affine,
    blstrs::G1Projective,
    blst_p1_affine,
    96,
    berth_g1_read,
    berth_g1_write,
    berth_g1_fixed_base,
    blst_p1s_to_affine,
    blst_p1_in_g1
);
point!(
    G2Affine,
    blstrs::G2Projective,
    blst_p2_affine,
    192,
    berth_g2_read,
    berth_g2_write,
    berth_g2_fixed_base,
    blst_p2s_to_affine,
    blst_p2_in_g2
);
