//! Typed pieces of the caller's scratch bytes.

use std::marker::PhantomData;
use std::sync::atomic::AtomicU64;

/// Every piece starts on a cache line.
pub const ALIGN: usize = 64;

/// A type that any bytes are a valid value of, aligned to at most [`ALIGN`].
///
/// # Safety
/// That is what the implementer promises.
pub unsafe trait Plain: Copy {}

// SAFETY: integers, and C structs of nothing but integers without padding that matters.
unsafe impl Plain for u32 {}
// SAFETY: as above.
unsafe impl Plain for u64 {}
// SAFETY: as above.
unsafe impl Plain for crate::sys::berth_pair {}
// SAFETY: as above; arrays of u64.
unsafe impl Plain for blst::blst_p1_affine {}
// SAFETY: as above.
unsafe impl Plain for blst::blst_p2_affine {}
// SAFETY: as above.
unsafe impl Plain for blst::blst_p1 {}
// SAFETY: as above.
unsafe impl Plain for blst::blst_p2 {}

/// Bytes that a piece of `count` values takes of a scratch area.
pub const fn piece_bytes<T>(count: usize) -> usize {
    (count * size_of::<T>()).next_multiple_of(ALIGN)
}

/// What is left of a scratch area; pieces are taken from its start.
pub struct Scratch<'a>(&'a mut [u8]);

impl<'a> Scratch<'a> {
    /// The area from its first cache line on: up to [`ALIGN`] - 1 bytes are lost.
    pub fn new(bytes: &'a mut [u8]) -> Self {
        let skip = bytes.as_ptr().align_offset(ALIGN).min(bytes.len());
        Scratch(&mut bytes[skip..])
    }

    /// The next `count` values, with whatever value their bytes have.
    ///
    /// # Panics
    /// When the area is used up: the plan and its use disagree.
    pub fn take<T: Plain>(&mut self, count: usize) -> &'a mut [T] {
        const { assert!(align_of::<T>() <= ALIGN) };
        let area = std::mem::take(&mut self.0);
        let (piece, rest) = area.split_at_mut(piece_bytes::<T>(count));
        self.0 = rest;
        // SAFETY: `piece` starts on an `ALIGN` boundary, is long enough, is borrowed exclusively
        // for 'a, and any bytes are a valid `T`.
        unsafe { std::slice::from_raw_parts_mut(piece.as_mut_ptr().cast(), count) }
    }

    /// The next `count` words, to be shared by threads.
    pub fn take_shared(&mut self, count: usize) -> &'a [AtomicU64] {
        let words: &'a mut [u64] = self.take(count);
        // SAFETY: an AtomicU64 has the size and, on every 64-bit target, the alignment of a u64;
        // the exclusive borrow ends in this shared one.
        unsafe { std::slice::from_raw_parts(words.as_mut_ptr().cast(), count) }
    }

    /// Cuts what is left into one share of equal bytes per thread.
    pub fn into_shares(self, threads: usize) -> Shares<'a> {
        let bytes = self.0.len() / threads / ALIGN * ALIGN;
        Shares { base: self.0.as_mut_ptr(), bytes, threads, area: PhantomData }
    }
}

/// One share of a scratch area for each thread of a team.
pub struct Shares<'a> {
    base: *mut u8,
    bytes: usize,
    threads: usize,
    area: PhantomData<&'a mut [u8]>,
}

// SAFETY: the area is exclusively borrowed, and `share` hands every part to one user at a time.
unsafe impl Sync for Shares<'_> {}

impl Shares<'_> {
    /// The share of one thread.
    ///
    /// # Safety
    /// No other use of this thread's share may be alive.
    pub unsafe fn share(&self, thread: usize) -> Scratch<'_> {
        assert!(thread < self.threads);
        // SAFETY: inside the area, apart from every other thread's share; that it is the only use
        // of this one is the caller's promise.
        Scratch(unsafe {
            std::slice::from_raw_parts_mut(self.base.add(thread * self.bytes), self.bytes)
        })
    }
}
