//! The hugetlb pool of node 0 in the hands of one test, on pages that the test reserves (root).
#![allow(unused)] // each test file uses its own part

use std::ffi::c_void;
use std::fs::{self, File};
use std::io::{Error, Result};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// A private mapping of hugetlb pages, untouched.
pub struct Held {
    pub address: *mut c_void,
    pub bytes: usize,
}

impl Held {
    /// `flags` beside those that ask for hugetlb pages of this size.
    pub fn map(page_bytes: usize, pages: usize, flags: i32) -> Result<Held> {
        let size = (page_bytes.ilog2() as i32) << libc::MAP_HUGE_SHIFT;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_HUGETLB | size | flags;
        let (access, bytes) = (libc::PROT_READ | libc::PROT_WRITE, pages * page_bytes);
        // SAFETY: a new mapping where the kernel likes it.
        let address = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, flags, -1, 0) };
        if address == libc::MAP_FAILED {
            return Err(Error::last_os_error());
        }
        Ok(Held { address, bytes })
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // SAFETY: the range is this mapping, and nobody has it any more.
        unsafe { libc::munmap(self.address, self.bytes) };
    }
}

/// A pool in which a test has the number of free pages that it asked for; one test of the host at
/// a time, and the pool is put back on drop.
pub struct Pool {
    page_bytes: usize,
    added: usize,
    /// Free pages that were there and are too many for the test.
    _surplus: Option<Held>,
    /// Locked until it is closed.
    _lock: File,
}

impl Pool {
    /// `None`, and a line that says why, where that cannot be had.
    pub fn with_free(page_bytes: usize, free: usize) -> Option<Pool> {
        let pool = Self::try_with_free(page_bytes, free);
        if let Err(why) = &pool {
            println!("not run: no {free} free pages of {page_bytes} bytes can be had: {why}");
        }
        pool.ok()
    }

    fn try_with_free(page_bytes: usize, wanted: usize) -> Result<Pool> {
        let lock = File::options().read(true).write(true).open(count_file(page_bytes))?;
        // SAFETY: the descriptor is open.
        if unsafe { libc::flock(lock.as_raw_fd(), libc::LOCK_EX) } != 0 {
            return Err(Error::last_os_error());
        }
        let mut pool = Pool { page_bytes, added: 0, _surplus: None, _lock: lock };
        let free = pool.free();
        if free > wanted {
            pool._surplus = Some(Held::map(page_bytes, free - wanted, libc::MAP_POPULATE)?);
        } else if free < wanted {
            let before = read(&count_file(page_bytes));
            pool.added = wanted - free;
            fs::write(count_file(page_bytes), (before + pool.added).to_string())?;
            // The kernel gives as many as it finds.
            let found = read(&count_file(page_bytes)).saturating_sub(before);
            pool.added = pool.added.min(found);
        }
        match pool.free() {
            free if free == wanted => Ok(pool),
            free => Err(Error::other(format!("{free} are free now"))),
        }
    }

    /// Pages that a new mapping may have.
    pub fn free(&self) -> usize {
        free(self.page_bytes)
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let file = count_file(self.page_bytes);
        // Not below nothing: others may have taken pages out of the pool meanwhile.
        let _ = fs::write(&file, read(&file).saturating_sub(self.added).to_string());
    }
}

/// Pages of node 0 that a new mapping may have: neither in use nor promised.
pub fn free(page_bytes: usize) -> usize {
    let of = |folder: &str, file: &str| {
        let pool = format!("hugepages/hugepages-{}kB", page_bytes / 1024);
        read(&Path::new(folder).join(pool).join(file))
    };
    let (node, host) = ("/sys/devices/system/node/node0", "/sys/kernel/mm");
    let unpromised = of(host, "free_hugepages").saturating_sub(of(host, "resv_hugepages"));
    of(node, "free_hugepages").min(unpromised)
}

fn count_file(page_bytes: usize) -> PathBuf {
    let pool = format!("hugepages-{}kB", page_bytes / 1024);
    format!("/sys/devices/system/node/node0/hugepages/{pool}/nr_hugepages").into()
}

fn read(path: &Path) -> usize {
    fs::read_to_string(path).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}

/// How many mappings of hugetlb pages this process has.
pub fn mappings() -> usize {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    maps.lines().filter(|line| line.contains("anon_hugepage")).count()
}

/// What `numa_maps` says of the mapping at `address`: words such as `bind:0`, `N0=5`.
pub fn numa_maps(address: *mut c_void) -> Vec<String> {
    let maps = fs::read_to_string("/proc/self/numa_maps").unwrap();
    let head = format!("{:x} ", address as usize);
    let line = maps.lines().find_map(|line| line.strip_prefix(&head)).expect("it is mapped");
    line.split(' ').map(str::to_owned).collect()
}
