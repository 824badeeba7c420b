//! Arenas: mapped, placed, populated, checked and locked in that order, then carved.
//!
//! ```text
//! map -> mbind (before the first touch) -> populate -> ask where pages are -> mlock -> no fork
//! ```
//!
//! An arena can be divided into arenas that own their parts; the mapping goes when the last of
//! them does. Memory is zero after mapping.

use std::path::Path;
use std::ptr::NonNull;
use std::sync::Arc;

use super::hugepage::Mapping;
use crate::circuit::shape::PART_ALIGN;
use crate::config::Mode;
use crate::error::{Error, Result};
use crate::plan::{self, ArenaPlan};
use crate::sys;

/// Every piece of an arena starts on this, in bytes: one cache line.
pub const PIECE_ALIGN: usize = PART_ALIGN;
/// A thread more for every so many bytes when pages are made present.
const POPULATE_BYTES_PER_THREAD: usize = 64 << 20;
const POPULATE_THREADS_MAX: usize = 16;
/// Pages of an arena whose node is asked for.
const SAMPLES: usize = 64;

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
    /// Maps an arena as planned; the texts are warnings about what the host did not give.
    ///
    /// # Errors
    /// [`Error::Host`] where pages are short (node, size, need, free), and under strict settings
    /// where they lie on another node or cannot be locked.
    pub fn map(plan: &ArenaPlan) -> Result<(Self, Vec<String>)> {
        let mut warnings = Vec::new();
        let mapping = Mapping::new(plan.pages, plan.page_bytes, plan.bytes)
            .map_err(|errno| short(plan, "map", errno))?;
        let arena =
            Arena { start: mapping.address(), bytes: mapping.bytes(), mapping: Arc::new(mapping) };
        let bound = arena.bind(plan, &mut warnings)?;
        let errno = arena.populate(plan);
        if errno != 0 {
            // Gives back what it holds, so that the free pages in the error are what there is.
            drop(arena);
            return Err(short(plan, "populate", errno));
        }
        if bound {
            arena.check_node(plan, &mut warnings)?;
        }
        arena.lock(plan, &mut warnings)?;
        // SAFETY: the range is this mapping.
        let errno = unsafe { sys::berth_pages_dont_fork(arena.address(), arena.bytes) };
        if errno != 0 {
            warnings.push(format!("{plan}: cannot be kept out of children: {}", text(errno)));
        }
        Ok((arena, warnings))
    }

    /// Bytes of the range.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// First address, for registration with a device and for the tests.
    pub fn address(&self) -> *mut std::ffi::c_void {
        self.start.as_ptr().cast()
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

    /// True if the pages were bound to the planned node.
    fn bind(&self, plan: &ArenaPlan, warnings: &mut Vec<String>) -> Result<bool> {
        if plan.bind == Mode::Off {
            return Ok(false);
        }
        let node = plan.node as u32;
        // SAFETY: the range is this mapping.
        let errno = unsafe { sys::berth_pages_bind(self.address(), self.bytes, node) };
        if errno != 0 {
            let what = format!("{plan}: cannot be bound to its node: {}", text(errno));
            complain(plan.bind, "BERTH_NUMA", what, warnings)?;
        }
        Ok(errno == 0)
    }

    /// Makes every page present, by threads on the node's CPUs; 0 or an errno.
    fn populate(&self, plan: &ArenaPlan) -> i32 {
        let pages = self.bytes / plan.page_bytes;
        let threads = (self.bytes / POPULATE_BYTES_PER_THREAD)
            .min(plan.cpus.len())
            .clamp(1, POPULATE_THREADS_MAX);
        let range = |n: usize| {
            let (first, last) = (pages * n / threads, pages * (n + 1) / threads);
            first * plan.page_bytes..last * plan.page_bytes
        };
        if threads == 1 {
            return self.populate_range(plan.page_bytes, range(0));
        }
        std::thread::scope(|scope| {
            let spawned: Vec<_> = (0..threads)
                .map(|n| {
                    scope.spawn(move || {
                        // Only speed hangs on where this runs: the policy places the pages.
                        numa::pin_current_thread(plan.cpus[n * plan.cpus.len() / threads]);
                        self.populate_range(plan.page_bytes, range(n))
                    })
                })
                .collect();
            let outcomes = spawned.into_iter().map(|thread| thread.join());
            outcomes.map(|errno| errno.unwrap_or(libc::EFAULT)).fold(0, i32::max)
        })
    }

    fn populate_range(&self, page_bytes: usize, range: std::ops::Range<usize>) -> i32 {
        // SAFETY: the range is within the mapping.
        let start = unsafe { self.start.add(range.start) };
        // SAFETY: as above.
        let errno = unsafe { sys::berth_pages_populate(start.as_ptr().cast(), range.len()) };
        if errno != libc::EINVAL {
            return errno;
        }
        // A kernel before 5.14. Pages of a pool were reserved by the mapping.
        self.touch(page_bytes, range);
        0
    }

    /// Makes pages present by writing to them; for a new arena only, which is all zero.
    fn touch(&self, page_bytes: usize, range: std::ops::Range<usize>) {
        assert!(range.end <= self.bytes, "within the arena");
        // A transparent hugepage may still be many base pages.
        for offset in range.step_by(page_bytes.min(4096)) {
            // SAFETY: the offset is within the range, which nobody else uses yet.
            unsafe { self.start.add(offset).write_volatile(0) };
        }
    }

    /// Asks the kernel for the node of the first, the last and some pages between.
    fn check_node(&self, plan: &ArenaPlan, warnings: &mut Vec<String>) -> Result<()> {
        let pages = self.bytes / plan.page_bytes;
        let count = SAMPLES.min(pages);
        let addresses: Vec<*mut std::ffi::c_void> = (0..count)
            .map(|n| {
                let page = if count == 1 { 0 } else { n * (pages - 1) / (count - 1) };
                // SAFETY: the page is within the mapping.
                unsafe { self.start.add(page * plan.page_bytes).as_ptr().cast() }
            })
            .collect();
        let mut nodes = vec![0; count];
        // SAFETY: both lists have `count` entries.
        let errno =
            unsafe { sys::berth_pages_nodes(addresses.as_ptr(), nodes.as_mut_ptr(), count) };
        if errno != 0 {
            let what = format!("{plan}: the node of its pages cannot be asked: {}", text(errno));
            return complain(plan.bind, "BERTH_NUMA", what, warnings);
        }
        let astray = nodes.iter().filter(|node| **node != plan.node as i32).count();
        if astray > 0 {
            let what = format!("{plan}: {astray} of {count} pages asked for lie elsewhere");
            complain(plan.bind, "BERTH_NUMA", what, warnings)?;
        }
        Ok(())
    }

    fn lock(&self, plan: &ArenaPlan, warnings: &mut Vec<String>) -> Result<()> {
        if plan.lock == Mode::Off || plan.pages.hugetlb() {
            return Ok(());
        }
        // SAFETY: the range is this mapping.
        let errno = unsafe { sys::berth_pages_lock(self.address(), self.bytes) };
        if errno != 0 {
            let what = format!(
                "{plan}: cannot be locked in memory: {} (raise LimitMEMLOCK in the unit, or \
                 ulimit -l)",
                text(errno)
            );
            complain(plan.lock, "BERTH_LOCK", what, warnings)?;
        }
        Ok(())
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

/// An error under strict, else a warning.
fn complain(mode: Mode, name: &str, what: String, warnings: &mut Vec<String>) -> Result<()> {
    if mode == Mode::Strict {
        return Err(Error::Host(format!("{what} ({name}=strict)")));
    }
    warnings.push(what);
    Ok(())
}

/// The refusal of an arena that the host has no pages for, with what is free now.
fn short(plan: &ArenaPlan, step: &str, errno: i32) -> Error {
    if plan.pages.hugetlb() {
        let need = plan.bytes / plan.page_bytes;
        let free = numa::Topology::read(Path::new("/")).ok().and_then(|topology| {
            let node = topology.nodes.into_iter().find(|node| node.id == plan.node)?;
            node.hugepages.into_iter().find(|pool| pool.page_bytes == plan.page_bytes)
        });
        let free = free.map_or(0, |pool| pool.free);
        if free < need {
            return plan::short(plan.node, plan.page_bytes, need, free);
        }
    }
    Error::Host(format!("cannot {step} {plan}: {}", text(errno)))
}

fn text(errno: i32) -> std::io::Error {
    std::io::Error::from_raw_os_error(errno)
}

#[cfg(test)]
mod tests;
