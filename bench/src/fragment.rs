//! Fragments physical memory: plenty stays free, hardly any of it in whole stretches of 2 MiB.
//!
//! ```text
//! take a transparent hugepage -> split it -> put one of its 512 pages into a pipe -> free the rest
//! ```
//!
//! The pipe's reference makes that page unmovable, so no compaction brings the stretch together
//! again. It costs one page for each 2 MiB, so memory never runs short, and all of it goes back
//! when the pipes close: with the process, however that ends.

use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd};
use std::time::{Duration, Instant};

mod probe;

pub use probe::Probe;
use probe::available_bytes;

use crate::failure::Failure;
use crate::output::print;

const STRETCH_BYTES: usize = 2 << 20;
/// Stretches that are taken at once.
const BATCH: usize = 16;
/// The tool stops rather than leave less than this available: 1 GiB.
const RESERVE_BYTES: u64 = 1 << 30;
/// The tool stops after so long: where other programs come and go, compaction always brings another
/// stretch together.
const TIME_MAX: Duration = Duration::from_secs(90);
/// As much as a plain user may give a pipe (/proc/sys/fs/pipe-max-size).
const PIPE_BYTES: libc::c_int = 1 << 20;

/// Fragmented memory, for as long as the value lives.
pub struct Fragments {
    /// Stretches of 2 MiB of which one page is held.
    pub stretches: usize,
    /// Both ends of each: a pipe without a reader would refuse the page.
    pipes: Vec<(File, File)>,
}

impl Fragments {
    /// Fragments all that the kernel gives hugepages for, or what is available but
    /// `keep_free_bytes`.
    ///
    /// # Errors
    /// Transparent hugepages that are off, and calls that the kernel refuses.
    pub fn make(keep_free_bytes: Option<u64>) -> Result<Self, String> {
        let budget = match keep_free_bytes {
            None => usize::MAX,
            Some(keep) => available_bytes()?.saturating_sub(keep) as usize / STRETCH_BYTES,
        };
        let mut made = Fragments { stretches: 0, pipes: Vec::new() };
        let mut compacted = false;
        let began = Instant::now();
        while made.stretches < budget
            && available_bytes()? > RESERVE_BYTES
            && began.elapsed() < TIME_MAX
        {
            let taken = made.take(BATCH.min(budget - made.stretches))?;
            made.stretches += taken;
            if taken > 0 {
                compacted = false;
            } else if compacted {
                break;
            } else {
                // Brings together what can still be moved, once, before giving up. Only root may;
                // for others what the faults themselves brought together has to do.
                compacted = true;
                let _ = std::fs::write("/proc/sys/vm/compact_memory", "1");
            }
        }
        if made.stretches == 0 && budget > 0 {
            return Err("the kernel gives no transparent hugepage: see \
                        /sys/kernel/mm/transparent_hugepage/enabled (madvise or always), or memory \
                        is as fragmented as it can be"
                .into());
        }
        Ok(made)
    }

    /// Takes up to `count` stretches; how many it got.
    fn take(&mut self, count: usize) -> Result<usize, String> {
        let area = Area::new(count)?;
        let huge = area.huge()? / STRETCH_BYTES;
        if huge == 0 {
            return Ok(0);
        }
        // Where a few came in base pages, one of these is held for nothing.
        for number in 0..count {
            let page = area.stretch(number);
            // The advice for a part of a hugepage splits it; held pages would not let it.
            advise(page, probe::BASE_PAGE_BYTES, libc::MADV_COLD)?;
            self.hold(page)?;
        }
        Ok(huge)
    }

    /// Puts a page into a pipe.
    fn hold(&mut self, page: *mut libc::c_void) -> Result<(), String> {
        if let Some((_, end)) = self.pipes.last()
            && splice(end, page)?
        {
            return Ok(());
        }
        self.pipes.push(pipe()?);
        let (_, end) = &self.pipes[self.pipes.len() - 1];
        if splice(end, page)? { Ok(()) } else { Err("an empty pipe takes no page".into()) }
    }
}

/// Runs the command: fragments, says what that did, and holds it until the process is ended.
pub fn run(keep_free_bytes: Option<u64>, hold: bool) -> Result<(), Failure> {
    let before = Probe::take()?;
    print(&format!("before    {before}\n"))?;
    let made = Fragments::make(keep_free_bytes)?;
    let after = Probe::take()?;
    print(&format!("after     {after}\n"))?;
    print(&format!(
        "held      one page in each of {} stretches of 2 MiB ({} MiB of pages)\n",
        made.stretches,
        (made.stretches * probe::BASE_PAGE_BYTES) >> 20
    ))?;
    if hold {
        print(&format!("holding   until this process ({}) is ended\n", std::process::id()))?;
        loop {
            std::thread::park();
        }
    }
    drop(made);
    Ok(print(&format!("released  {}\n", Probe::take()?))?)
}

/// An aligned mapping that asks for hugepages, all present; unmapped on drop.
struct Area {
    mapping: *mut libc::c_void,
    mapping_bytes: usize,
    start: usize,
}

impl Area {
    fn new(stretches: usize) -> Result<Self, String> {
        let bytes = stretches * STRETCH_BYTES;
        // One stretch more, to start on a boundary.
        let mapping_bytes = bytes + STRETCH_BYTES;
        let (access, kind) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping anywhere; nothing else is changed.
        let mapping =
            unsafe { libc::mmap(std::ptr::null_mut(), mapping_bytes, access, kind, -1, 0) };
        if mapping == libc::MAP_FAILED {
            return Err(last("mmap"));
        }
        let start = (mapping as usize).next_multiple_of(STRETCH_BYTES);
        let area = Area { mapping, mapping_bytes, start };
        let address = area.stretch(0);
        advise(address, bytes, libc::MADV_HUGEPAGE)?;
        advise(address, bytes, libc::MADV_POPULATE_WRITE)?;
        Ok(area)
    }

    fn stretch(&self, number: usize) -> *mut libc::c_void {
        (self.start + number * STRETCH_BYTES) as *mut libc::c_void
    }

    /// Bytes of the mapping that are in hugepages.
    fn huge(&self) -> Result<usize, String> {
        let smaps = std::fs::read_to_string("/proc/self/smaps")
            .map_err(|e| format!("/proc/self/smaps: {e}"))?;
        Ok(probe::anonymous_huge_bytes(&smaps, self.start))
    }
}

impl Drop for Area {
    fn drop(&mut self) {
        // SAFETY: the range is this mapping, and nobody has an address in it any more.
        unsafe { libc::munmap(self.mapping, self.mapping_bytes) };
    }
}

fn advise(address: *mut libc::c_void, bytes: usize, advice: libc::c_int) -> Result<(), String> {
    // SAFETY: the range is within a mapping of ours that holds nothing; no advice used here takes
    // a page away.
    match unsafe { libc::madvise(address, bytes, advice) } {
        0 => Ok(()),
        _ => Err(last("madvise")),
    }
}

fn pipe() -> Result<(File, File), String> {
    let mut ends = [0; 2];
    // SAFETY: `ends` has room for both.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC | libc::O_NONBLOCK) } != 0 {
        return Err(last("pipe"));
    }
    // SAFETY: both are new descriptors that nobody else owns.
    let (read, write) = unsafe { (File::from_raw_fd(ends[0]), File::from_raw_fd(ends[1])) };
    // A pipe that stays small holds fewer pages, and there are more of them.
    // SAFETY: the descriptor is open; the argument is a number.
    unsafe { libc::fcntl(ends[1], libc::F_SETPIPE_SZ, PIPE_BYTES) };
    Ok((read, write))
}

/// Puts a page into the pipe by reference; false where the pipe is full.
fn splice(end: &File, page: *mut libc::c_void) -> Result<bool, String> {
    let piece = libc::iovec { iov_base: page, iov_len: probe::BASE_PAGE_BYTES };
    // SAFETY: the page is present in a mapping of ours; the kernel takes a reference of its own.
    let taken = unsafe { libc::vmsplice(end.as_raw_fd(), &piece, 1, libc::SPLICE_F_NONBLOCK) };
    if taken == probe::BASE_PAGE_BYTES as isize {
        return Ok(true);
    }
    match std::io::Error::last_os_error().raw_os_error() {
        Some(libc::EAGAIN) => Ok(false),
        _ => Err(last("vmsplice")),
    }
}

fn last(call: &str) -> String {
    format!("{call}: {}", std::io::Error::last_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Four stretches: enough to see that each stays in pieces, few enough for any machine.
    #[test]
    fn a_held_page_keeps_its_stretch_apart_and_goes_back() {
        const COUNT: usize = 4;
        let mut made = Fragments { stretches: 0, pipes: Vec::new() };
        // Without a hugepage to take there is nothing to fragment; the tool says so.
        let taken = made.take(COUNT).unwrap();
        assert!(taken <= COUNT);
        assert_eq!(made.pipes.len(), usize::from(taken > 0));
        let Some((read, _)) = made.pipes.last() else { return };
        let mut waiting: libc::c_int = 0;
        // SAFETY: FIONREAD writes one int.
        assert_eq!(unsafe { libc::ioctl(read.as_raw_fd(), libc::FIONREAD, &mut waiting) }, 0);
        assert_eq!(waiting as usize, COUNT * probe::BASE_PAGE_BYTES);
    }

    #[test]
    fn a_full_pipe_is_followed_by_another() {
        let area = Area::new(1).unwrap();
        let mut made = Fragments { stretches: 0, pipes: Vec::new() };
        let pages = STRETCH_BYTES / probe::BASE_PAGE_BYTES;
        for number in 0..pages {
            // SAFETY: the offset is within the stretch.
            made.hold(unsafe { area.stretch(0).add(number * probe::BASE_PAGE_BYTES) }).unwrap();
        }
        assert!(made.pipes.len() > 1, "{}", made.pipes.len());
    }
}
