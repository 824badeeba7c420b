//! The kernel's pool of 2 MiB hugetlb pages on a node: what we add to it, we take out again.

use std::path::PathBuf;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex};

/// Bytes of the pages of this pool.
pub const PAGE_BYTES: usize = 2 << 20;

/// Pages that were added to a node's pool; a drop takes as many out again, so that what others
/// add meanwhile stays.
pub struct Added {
    file: PathBuf,
    pub pages: usize,
}

impl Added {
    /// Adds up to `pages` pages; how many came is in the value, since a pool that the kernel
    /// could not fill is no failure of the call.
    ///
    /// # Errors
    /// A pool that is not there or that this user may not change.
    pub fn up_to(node: usize, pages: usize) -> Result<Self, String> {
        let numa = format!("/sys/devices/system/node/node{node}/hugepages");
        let folder = if PathBuf::from(&numa).is_dir() { &numa } else { "/sys/kernel/mm/hugepages" };
        let file = PathBuf::from(folder).join("hugepages-2048kB/nr_hugepages");
        let before = read(&file)?;
        let mut added = Added { file, pages: 0 };
        added.write(before + pages)?;
        added.pages = read(&added.file)?.saturating_sub(before);
        Ok(added)
    }

    /// As [`Added::up_to`], but all of them or an error.
    pub fn all(node: usize, pages: usize) -> Result<Self, String> {
        let added = Self::up_to(node, pages)?;
        if added.pages < pages {
            return Err(format!(
                "node {node}: asked for {pages} hugepages of 2 MiB and got {}; reserve before \
                 memory is fragmented",
                added.pages
            ));
        }
        Ok(added)
    }

    fn write(&self, pages: usize) -> Result<(), String> {
        std::fs::write(&self.file, pages.to_string())
            .map_err(|e| format!("{}: {e} (reserving hugepages takes root)", self.file.display()))
    }
}

impl Drop for Added {
    fn drop(&mut self) {
        let put_back = read(&self.file).and_then(|now| self.write(now.saturating_sub(self.pages)));
        if let Err(why) = put_back {
            berth::tell!("berth-bench: {} hugepages stay in the pool: {why}", self.pages);
        }
    }
}

fn read(file: &PathBuf) -> Result<usize, String> {
    let text = std::fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))?;
    text.trim().parse().map_err(|e| format!("{}: {e}", file.display()))
}

/// Pages that a signal to end gives back, too.
pub type Kept = Arc<Mutex<Vec<Added>>>;

static SIGNALS: AtomicI32 = AtomicI32::new(-1);

/// A place for pages: SIGINT and SIGTERM first empty it and then end the process. Children have
/// their own way of ending, since handlers do not pass to them.
///
/// # Errors
/// A kernel that has no pipe to give.
pub fn keep_until_signal() -> Result<Kept, String> {
    let mut ends = [0; 2];
    // SAFETY: `ends` has room for both.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return Err(format!("pipe: {}", std::io::Error::last_os_error()));
    }
    SIGNALS.store(ends[1], Ordering::SeqCst);
    let kept: Kept = Arc::default();
    let inside = Arc::clone(&kept);
    std::thread::spawn(move || {
        let mut signal = 0u8;
        // SAFETY: one byte into a live value; the descriptor stays open to the end.
        if unsafe { libc::read(ends[0], (&raw mut signal).cast(), 1) } == 1 {
            inside.lock().unwrap_or_else(|e| e.into_inner()).clear();
            std::process::exit(128 + i32::from(signal));
        }
    });
    let handler: extern "C" fn(libc::c_int) = told;
    for signal in [libc::SIGINT, libc::SIGTERM] {
        // SAFETY: the handler does nothing but write to a pipe, which a handler may.
        unsafe { libc::signal(signal, handler as *const () as libc::sighandler_t) };
    }
    Ok(kept)
}

extern "C" fn told(signal: libc::c_int) {
    let number = signal as u8;
    // SAFETY: one byte out of a live value; write is among the calls that a handler may make.
    unsafe { libc::write(SIGNALS.load(Ordering::SeqCst), (&raw const number).cast(), 1) };
}
