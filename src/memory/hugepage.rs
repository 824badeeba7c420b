//! Mappings of each page kind.
//!
//! hugepage-rs makes the 2 MiB mapping where that is the default hugepage size, the only one it
//! knows; other hugetlb sizes go to the kernel directly. Nothing is touched here.

use std::alloc::Layout;
use std::ffi::c_void;
use std::ptr::NonNull;

use crate::plan::Pages;
use crate::sys;

/// A private, zeroed, untouched mapping; unmapped on drop.
pub(super) struct Mapping {
    address: NonNull<u8>,
    bytes: usize,
    made: Made,
}

/// Who made the mapping, and takes it back.
enum Made {
    /// hugepage-rs.
    Crate(Layout),
    /// `berth_pages_map_huge`.
    Huge,
    /// `berth_pages_map`.
    Base,
    /// The C library's heap, in the control build; where its piece begins, or null.
    #[cfg(feature = "heap-arenas")]
    Heap(*mut c_void),
}

// SAFETY: a mapping is memory of the process, not of a thread; who may touch which part of it is
// for its owners to say.
unsafe impl Send for Mapping {}
// SAFETY: as above; the mapping itself is immutable.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `bytes`, a multiple of `page_bytes`; the error is an errno.
    pub(super) fn new(pages: Pages, page_bytes: usize, bytes: usize) -> Result<Self, i32> {
        assert!(bytes > 0 && bytes.is_multiple_of(page_bytes), "the plan rounds to pages");
        if pages == Pages::Huge2M && default_hugepage_bytes() == Some(page_bytes) {
            let layout = Layout::from_size_align(bytes, page_bytes).map_err(|_| libc::ENOMEM)?;
            // SAFETY: the layout is not empty.
            let address = unsafe { hugepage_rs::alloc(layout) };
            let address = NonNull::new(address).ok_or(libc::ENOMEM)?;
            return Ok(Mapping { address, bytes, made: Made::Crate(layout) });
        }
        let mut address: *mut c_void = std::ptr::null_mut();
        // SAFETY: `address` is a valid place for the result.
        let error = unsafe {
            match pages {
                Pages::Huge1G | Pages::Huge2M => {
                    sys::berth_pages_map_huge(bytes, page_bytes.ilog2(), &mut address)
                }
                Pages::Transparent => sys::berth_pages_map(bytes, page_bytes, true, &mut address),
                Pages::Plain => sys::berth_pages_map(bytes, page_bytes, false, &mut address),
            }
        };
        let made = if pages.hugetlb() { Made::Huge } else { Made::Base };
        match (error, NonNull::new(address.cast())) {
            (0, Some(address)) => Ok(Mapping { address, bytes, made }),
            (error, _) => Err(error),
        }
    }

    pub(super) fn address(&self) -> NonNull<u8> {
        self.address
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(feature = "heap-arenas")]
impl Mapping {
    /// Memory of the C library's heap, as it comes: it may hold anything.
    pub(super) fn from_heap(bytes: usize) -> Result<Self, i32> {
        let made = Made::Heap(std::ptr::null_mut());
        let mut mapping = Mapping { address: NonNull::dangling(), bytes, made };
        mapping.renew()?;
        Ok(mapping)
    }

    /// Gives it back and takes as much anew.
    pub(super) fn renew(&mut self) -> Result<(), i32> {
        let Made::Heap(piece) = &mut self.made else { panic!("a mapping is not the heap's") };
        // SAFETY: the piece is the heap's or null, and the caller has it exclusively.
        unsafe { libc::free(std::mem::replace(piece, std::ptr::null_mut())) };
        // Aligned by hand: glibc's aligned calls do not find what they gave back, and grow.
        let align = super::arena::PIECE_ALIGN;
        // SAFETY: any size may be asked for.
        *piece = unsafe { libc::malloc(self.bytes + align) };
        let start = NonNull::new(piece.cast::<u8>()).ok_or(libc::ENOMEM)?;
        // SAFETY: the piece has room for the alignment.
        self.address = unsafe { start.add(start.as_ptr().align_offset(align)) };
        Ok(())
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        let (address, bytes) = (self.address.as_ptr(), self.bytes);
        // SAFETY: the range is this mapping, taken back by whoever made it, and nobody has it any
        // more.
        let error = unsafe {
            match self.made {
                Made::Crate(layout) => {
                    hugepage_rs::dealloc(address, layout);
                    0
                }
                Made::Huge => sys::berth_pages_unmap_huge(address.cast(), bytes),
                Made::Base => sys::berth_pages_unmap(address.cast(), bytes),
                #[cfg(feature = "heap-arenas")]
                Made::Heap(piece) => {
                    libc::free(piece);
                    0
                }
            }
        };
        debug_assert_eq!(error, 0, "unmapping what was mapped");
    }
}

/// `Hugepagesize` of /proc/meminfo, the size that `MAP_HUGETLB` alone means; `None` without
/// hugetlb support, where hugepage-rs would panic.
fn default_hugepage_bytes() -> Option<usize> {
    let meminfo = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = meminfo.lines().find_map(|line| line.strip_prefix("Hugepagesize:"))?;
    let kilobytes: usize = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}
