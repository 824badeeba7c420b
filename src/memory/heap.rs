//! The heap: the allocator of the program, closed for the threads of the data path, and the
//! figures of it and of the process.
//!
//! The figures of the heap mean something only where [`Heap`] is the global allocator: in the
//! program, the bench and the tests.

mod closed;

use std::io;

pub use closed::{Heap, abort_on_closed, close_thread, closed_allocations, opened};

use tikv_jemalloc_ctl::{arenas, epoch, raw, stats, thread};

/// Bytes that this thread has ever allocated and freed on the heap. Both only grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadBytes {
    pub allocated: u64,
    pub freed: u64,
}

/// The counters of the calling thread; reading them allocates nothing.
///
/// # Errors
/// jemalloc without statistics.
pub fn thread_bytes() -> io::Result<ThreadBytes> {
    Ok(ThreadBytes {
        allocated: thread::allocatedp::read().map_err(told)?.get(),
        freed: thread::deallocatedp::read().map_err(told)?.get(),
    })
}

/// The heap of the process, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeapBytes {
    /// In use by the program.
    pub allocated: usize,
    /// Of the pages that hold what is in use.
    pub active: usize,
    /// Of the allocator's own books.
    pub metadata: usize,
    /// In memory: `active`, `metadata` and pages that wait for their next use.
    pub resident: usize,
    /// Of addresses without memory, kept for later.
    pub retained: usize,
}

/// The heap of the process as it is now.
///
/// # Errors
/// jemalloc without statistics.
pub fn heap_bytes() -> io::Result<HeapBytes> {
    epoch::advance().map_err(told)?;
    Ok(HeapBytes {
        allocated: stats::allocated::read().map_err(told)?,
        active: stats::active::read().map_err(told)?,
        metadata: stats::metadata::read().map_err(told)?,
        resident: stats::resident::read().map_err(told)?,
        retained: stats::retained::read().map_err(told)?,
    })
}

/// Gives pages that the heap keeps for later back to the kernel: after set-up, so that what was
/// only needed to get ready does not count for ever.
///
/// # Errors
/// jemalloc without its control tree.
pub fn purge() -> io::Result<()> {
    // A decay time of 0 purges at once (jemalloc(3), arena.<i>.dirty_decay_ms); then it is put
    // back. An arena that no thread has used yet has no such setting.
    for arena in 0..arenas::narenas::read().map_err(told)? {
        for kind in ["dirty_decay_ms", "muzzy_decay_ms"] {
            let name = format!("arena.{arena}.{kind}\0");
            // SAFETY: the name ends with a zero byte and the setting is of the type ssize_t.
            if let Ok(before) = unsafe { raw::read::<isize>(name.as_bytes()) } {
                // SAFETY: as above.
                unsafe { raw::write::<isize>(name.as_bytes(), 0) }.map_err(told)?;
                // SAFETY: as above.
                unsafe { raw::write::<isize>(name.as_bytes(), before) }.map_err(told)?;
            }
        }
    }
    Ok(())
}

/// Memory of the process, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessBytes {
    /// In base and transparent pages, now.
    pub rss: u64,
    /// The part of `rss` that is no file's: what a control group counts for this process.
    pub anonymous: u64,
    /// The most that `rss` ever was; 0 where the kernel does not say.
    pub rss_peak: u64,
    /// In hugetlb pages, now.
    pub hugetlb: u64,
}

impl ProcessBytes {
    /// Reads /proc/self/status.
    ///
    /// # Errors
    /// No such file.
    pub fn read() -> io::Result<Self> {
        let status = std::fs::read_to_string("/proc/self/status")?;
        Ok(ProcessBytes {
            rss: numa::status_bytes(&status, "VmRSS"),
            anonymous: numa::status_bytes(&status, "RssAnon"),
            rss_peak: numa::status_bytes(&status, "VmHWM"),
            hugetlb: numa::status_bytes(&status, "HugetlbPages"),
        })
    }

    /// All memory now.
    pub fn current(&self) -> u64 {
        self.rss + self.hugetlb
    }

    /// The peak, with hugetlb pages, which are held from start to end.
    pub fn peak(&self) -> u64 {
        self.rss_peak.max(self.rss) + self.hugetlb
    }
}

fn told(error: tikv_jemalloc_ctl::Error) -> io::Error {
    io::Error::other(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[global_allocator]
    static HEAP: Heap = Heap;

    #[test]
    fn a_thread_sees_its_own_allocations_only() {
        let before = thread_bytes().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| drop(std::hint::black_box(vec![1u8; 1 << 20]))).join().unwrap();
        });
        let mine = thread_bytes().unwrap();
        assert!(mine.allocated - before.allocated < 1 << 20);
        let kept = std::hint::black_box(vec![1u8; 1 << 20]);
        let after = thread_bytes().unwrap();
        assert!(after.allocated - mine.allocated >= 1 << 20);
        drop(kept);
        assert!(thread_bytes().unwrap().freed - after.freed >= 1 << 20);
        assert_eq!(thread_bytes().unwrap(), thread_bytes().unwrap());
    }

    #[test]
    fn purged_memory_leaves_the_process() {
        let bytes = 64 << 20;
        let kept: Vec<Vec<u8>> = (0..1 << 10).map(|_| vec![1u8; bytes >> 10]).collect();
        let full = heap_bytes().unwrap();
        assert!(full.allocated >= bytes && full.resident >= bytes);
        drop(std::hint::black_box(kept));
        purge().unwrap();
        let purged = heap_bytes().unwrap();
        assert!(full.resident - purged.resident > bytes / 2, "{full:?} {purged:?}");
        // Its addresses stay, without memory.
        assert!(full.active >= bytes && purged.retained > 0, "{full:?} {purged:?}");
        assert!(purged.metadata > 0 && purged.metadata <= purged.resident, "{purged:?}");
    }

    #[test]
    fn the_peak_of_the_process_covers_what_it_has() {
        let before = ProcessBytes::read().unwrap();
        assert!(before.rss > 0 && before.peak() >= before.current());
        assert!(before.anonymous > 0 && before.anonymous < before.rss);
        let kept = std::hint::black_box(vec![1u8; 32 << 20]);
        let during = ProcessBytes::read().unwrap();
        assert!(during.peak() >= 32 << 20);
        drop(kept);
        // The kernel counts pages per CPU and sums up now and then, some hundred pages late.
        assert!(ProcessBytes::read().unwrap().peak() + (2 << 20) >= during.rss);
    }
}
