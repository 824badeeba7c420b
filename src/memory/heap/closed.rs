//! The allocator of the program, and the threads that it is closed for.
//!
//! After start-up the data path allocates nothing. A thread of it says so once, by closing itself:
//! from then on each allocation there is counted, and in tests it ends the process. A figure for
//! production, an end for tests: a prover that asks for some bytes once is late, not wrong.
//!
//! Freeing on a closed thread is allowed and not counted: where the last owner of a thing lets go
//! of it is not that thread's choice (the input of a request that failed, for one). That the data
//! path of a good proof frees nothing either is for jemalloc's own counters to show
//! ([`super::thread_bytes`]).

use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use jemallocator::Jemalloc;

/// jemalloc behind the check of closed threads. Where it is not the global allocator, threads may
/// be closed just the same, and nothing is counted.
pub struct Heap;

thread_local! {
    /// No destructor and a constant start: reading it is one load and never allocates.
    static CLOSED: Cell<bool> = const { Cell::new(false) };
}

/// Allocations on closed threads.
static REFUSED: AtomicU64 = AtomicU64::new(0);
/// Is such an allocation the end of the process?
static ABORTS: AtomicBool = AtomicBool::new(false);

/// Closes the heap for the calling thread, for good: what it does from now on is to allocate
/// nothing.
pub fn close_thread() {
    CLOSED.set(true);
}

/// Does something that has to allocate, on a thread that may be closed: the way of an error. The
/// thread is as it was afterwards, also after a panic.
pub fn opened<T>(work: impl FnOnce() -> T) -> T {
    struct Back(bool);
    impl Drop for Back {
        fn drop(&mut self) {
            CLOSED.set(self.0);
        }
    }
    let _back = Back(CLOSED.replace(false));
    work()
}

/// Allocations of all closed threads so far; each is a fault of this program.
pub fn closed_allocations() -> u64 {
    REFUSED.load(Ordering::Relaxed)
}

/// Makes an allocation on a closed thread the end of the process (SIGABRT, with one line on
/// standard error), or no longer. For tests.
pub fn abort_on_closed(on: bool) {
    ABORTS.store(on, Ordering::Relaxed);
}

#[inline]
fn asked(bytes: usize) {
    if CLOSED.get() {
        refused(bytes);
    }
}

#[cold]
#[inline(never)]
fn refused(bytes: usize) {
    // The panic count is up before a message is formatted, a hook runs or a payload is boxed, so
    // this lets all of that through. What the panicking code itself made before is not let through.
    if std::thread::panicking() {
        return;
    }
    REFUSED.fetch_add(1, Ordering::Relaxed);
    if ABORTS.load(Ordering::Relaxed) {
        tell(bytes);
        // Not a panic: an allocator must not unwind.
        std::process::abort();
    }
}

/// One line on standard error, made without the heap.
fn tell(bytes: usize) {
    let mut name = [0u8; 16];
    // SAFETY: PR_GET_NAME writes at most 16 bytes, with the zero that ends them.
    unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
    let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
    let mut line = [0u8; 128];
    let mut rest = &mut line[..];
    // The line is long enough for any name and number.
    let _ = rest.write_all(b"berth: thread ");
    let _ = rest.write_all(name);
    let _ = writeln!(rest, " asks for {bytes} bytes, and the heap is closed for it");
    let left = rest.len();
    // SAFETY: the bytes of the line that were written above. There is nobody to tell of an error.
    unsafe { libc::write(2, line.as_ptr().cast(), line.len() - left) };
}

// SAFETY: every call goes to jemalloc as it came; the check before it neither allocates nor
// unwinds.
unsafe impl GlobalAlloc for Heap {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        asked(layout.size());
        // SAFETY: the caller's promise.
        unsafe { Jemalloc.alloc(layout) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        asked(layout.size());
        // SAFETY: the caller's promise.
        unsafe { Jemalloc.alloc_zeroed(layout) }
    }

    /// Counts as an allocation of the new size, also where the block can stay where it is.
    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        asked(new_size);
        // SAFETY: the caller's promise.
        unsafe { Jemalloc.realloc(block, layout, new_size) }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { Jemalloc.dealloc(block, layout) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hint::black_box;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Mutex;

    const MANY: u64 = 1 << 16;

    fn allocate(times: u64) {
        for _ in 0..times {
            drop(black_box(Box::new(1u64)));
        }
    }

    /// What is counted while `work` runs on a closed thread. The count is the process's, and the
    /// lanes of other tests may add a few to it; those of this file take turns, and `MANY` tells
    /// its own from those.
    fn counted(work: impl FnOnce() + Send) -> u64 {
        static TURN: Mutex<()> = Mutex::new(());
        let _turn = TURN.lock().unwrap_or_else(|e| e.into_inner());
        let run = || {
            close_thread();
            let before = closed_allocations();
            work();
            closed_allocations() - before
        };
        std::thread::scope(|scope| scope.spawn(run).join()).unwrap()
    }

    #[test]
    fn a_closed_thread_is_counted_and_another_is_not() {
        assert!(counted(|| allocate(MANY)) >= MANY);
        let other = || std::thread::scope(|scope| scope.spawn(|| allocate(MANY)).join().unwrap());
        assert!(counted(other) < MANY);
    }

    #[test]
    fn every_way_to_allocate_is_counted() {
        let grow = || {
            let layout = Layout::new::<u64>();
            for _ in 0..MANY {
                // SAFETY: a block of this layout, grown once and freed with the size that it has.
                unsafe {
                    let block = std::alloc::alloc_zeroed(layout);
                    let block = std::alloc::realloc(black_box(block), layout, 64);
                    let grown = Layout::from_size_align_unchecked(64, layout.align());
                    std::alloc::dealloc(black_box(block), grown);
                }
            }
        };
        assert!(counted(grow) >= 2 * MANY);
    }

    #[test]
    fn freeing_is_not_counted() {
        let blocks: Vec<Box<u64>> = (0..MANY).map(Box::new).collect();
        assert!(counted(move || drop(blocks)) < MANY);
    }

    #[test]
    fn an_opened_thread_is_not_counted_and_closes_again() {
        assert!(counted(|| opened(|| allocate(MANY))) < MANY);
        let nested = || {
            opened(|| opened(|| ()));
            allocate(MANY);
        };
        assert!(counted(nested) >= MANY);
        let unwound = || {
            let outcome = catch_unwind(AssertUnwindSafe(|| opened(|| panic!("out of here"))));
            assert!(outcome.is_err());
            allocate(MANY);
        };
        assert!(counted(unwound) >= MANY);
        // A thread that was never closed is not closed by it.
        opened(|| ());
        assert!(!CLOSED.get());
    }

    #[test]
    fn a_panicking_thread_allocates() {
        struct Late;
        impl Drop for Late {
            fn drop(&mut self) {
                allocate(MANY);
            }
        }
        let panicking = || {
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                let _late = Late;
                panic!("{}", "a message that is formatted");
            }));
            assert!(outcome.is_err());
        };
        assert!(counted(panicking) < MANY);
    }
}
