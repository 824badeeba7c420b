//! Arenas: mapped as planned (`arena/place.rs`), then cut and carved.
//!
//! An arena can be divided into arenas that own their parts; the mapping goes when the last of
//! them does. Memory is zero after mapping.

use std::ptr::NonNull;
use std::sync::Arc;

use super::hugepage::Mapping;
use crate::circuit::shape::PART_ALIGN;

#[cfg(feature = "heap-arenas")]
mod control;
mod place;

/// Every piece of an arena starts on this, in bytes: one cache line.
pub const PIECE_ALIGN: usize = PART_ALIGN;

/// Types for which every pattern of bytes is a value, and which have no drop.
///
/// # Safety
/// Both must be true of the type, and its alignment must divide [`PIECE_ALIGN`].
pub unsafe trait Plain: Copy + Send + Sync + 'static {}

macro_rules! plain {
    ($($type:ty),* $(,)?) => {
        $(
            const _: () = assert!(PIECE_ALIGN.is_multiple_of(align_of::<$type>()));
            // SAFETY: integers, or structures of nothing but integers (blst's types are C
            // structures of 64-bit limbs, blstrs' are transparent over them).
            unsafe impl Plain for $type {}
        )*
    };
}

plain!(
    u8,
    u16,
    u32,
    u64,
    usize,
    blst::blst_fr,
    blst::blst_fp,
    blst::blst_fp2,
    blst::blst_p1,
    blst::blst_p1_affine,
    blst::blst_p2,
    blst::blst_p2_affine,
    blstrs::Scalar,
    blstrs::G1Affine,
    blstrs::G2Affine,
    blstrs::G1Projective,
    blstrs::G2Projective,
);

// SAFETY: an array has the patterns and the alignment of its elements.
unsafe impl<T: Plain, const N: usize> Plain for [T; N] {}

/// An exclusively owned range of a mapping.
pub struct Arena {
    mapping: Arc<Mapping>,
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: an arena owns its range; references into it come from `&self` and `&mut self` alone, as
// with a boxed slice of plain values.
unsafe impl Send for Arena {}
// SAFETY: as above.
unsafe impl Sync for Arena {}

impl Arena {
    /// Bytes of the range.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// First address, for registration with a device and for the tests.
    pub fn address(&self) -> *mut std::ffi::c_void {
        self.start.as_ptr().cast()
    }

    /// First address and bytes of the mapping that this is a piece of: whole pages.
    pub fn mapping(&self) -> (usize, usize) {
        (self.mapping.address().as_ptr() as usize, self.mapping.bytes())
    }

    /// Cuts the first `bytes`, rounded up to [`PIECE_ALIGN`], off as an arena of its own.
    ///
    /// # Panics
    /// If the arena is smaller than that: the plan has counted every piece.
    pub fn cut(&mut self, bytes: usize) -> Arena {
        let bytes = bytes.next_multiple_of(PIECE_ALIGN);
        assert!(bytes <= self.bytes, "cut {bytes} bytes out of {}", self.bytes);
        let piece = Arena { mapping: Arc::clone(&self.mapping), start: self.start, bytes };
        // SAFETY: the sum stays within the mapping, at most at its end.
        self.start = unsafe { self.start.add(bytes) };
        self.bytes -= bytes;
        piece
    }

    /// The arena as typed pieces to write, from its start on.
    pub fn carve(&mut self) -> Carve<'_> {
        Carve { start: self.start, left: self.bytes, arena: std::marker::PhantomData }
    }

    /// The arena as typed pieces to read: the same calls give the same pieces as with `carve`.
    pub fn view(&self) -> View<'_> {
        View { start: self.start, left: self.bytes, arena: std::marker::PhantomData }
    }
}

/// Hands out pieces of an arena to write; see [`Arena::carve`].
pub struct Carve<'a> {
    start: NonNull<u8>,
    left: usize,
    arena: std::marker::PhantomData<&'a mut Arena>,
}

impl<'a> Carve<'a> {
    /// The next `len` values, starting on [`PIECE_ALIGN`].
    ///
    /// # Panics
    /// If the arena is too small: the plan has counted every piece.
    pub fn take<T: Plain>(&mut self, len: usize) -> &'a mut [T] {
        let start = advance::<T>(&mut self.start, &mut self.left, len);
        // SAFETY: the range is within the arena, which is exclusively borrowed for 'a; it is
        // aligned, every pattern of bytes is a T, and no other piece overlaps it.
        unsafe { std::slice::from_raw_parts_mut(start.as_ptr(), len) }
    }

    /// Bytes that are left.
    pub fn left(&self) -> usize {
        self.left
    }
}

/// Hands out pieces of an arena to read; see [`Arena::view`].
pub struct View<'a> {
    start: NonNull<u8>,
    left: usize,
    arena: std::marker::PhantomData<&'a Arena>,
}

impl<'a> View<'a> {
    /// As [`Carve::take`].
    ///
    /// # Panics
    /// If the arena is too small.
    pub fn take<T: Plain>(&mut self, len: usize) -> &'a [T] {
        let start = advance::<T>(&mut self.start, &mut self.left, len);
        // SAFETY: as in `Carve::take`, borrowed to read.
        unsafe { std::slice::from_raw_parts(start.as_ptr(), len) }
    }
}

/// Bytes of the arena that a piece of `len` values takes.
pub const fn piece_bytes<T: Plain>(len: usize) -> usize {
    (len * size_of::<T>()).next_multiple_of(PIECE_ALIGN)
}

fn advance<T: Plain>(start: &mut NonNull<u8>, left: &mut usize, len: usize) -> NonNull<T> {
    let bytes = len
        .checked_mul(size_of::<T>())
        .and_then(|bytes| bytes.checked_next_multiple_of(PIECE_ALIGN))
        .filter(|bytes| bytes <= left)
        .unwrap_or_else(|| panic!("{len} values of {} do not fit {left}", size_of::<T>()));
    let piece = *start;
    // SAFETY: the sum stays within the arena, at most at its end.
    *start = unsafe { start.add(bytes) };
    *left -= bytes;
    piece.cast()
}

#[cfg(test)]
mod tests;
