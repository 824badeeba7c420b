//! From plan to pages: mapped, placed, populated, checked and locked, in that order.
//!
//! ```text
//! map -> mbind (before the first touch) -> populate -> ask where pages are -> mlock -> no fork
//! ```

use std::path::Path;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use super::Arena;
use crate::config::Mode;
use crate::error::{Error, Result};
use crate::host::base_page_bytes;
use crate::memory::hugepage::Mapping;
use crate::memory::transparent;
use crate::plan::{self, ArenaPlan, Pages};
use crate::sys;
use crate::team::Team;

/// Pages are made present in steps of so many bytes: progress is shown and a fault of another
/// thread seen after each. A thread more for every step, up to one per CPU of the node.
const STEP_BYTES: usize = 64 << 20;
/// Pages of an arena whose node is asked for.
const SAMPLES: usize = 64;

impl Arena {
    /// [`Arena::map_showing`] with nobody to watch.
    ///
    /// # Errors
    /// As there.
    pub fn map(plan: &ArenaPlan) -> Result<(Self, Vec<String>)> {
        Self::map_showing(plan, &|_, _| ())
    }

    /// Maps an arena as planned; the texts are warnings about what the host did not give. `show`
    /// hears the bytes that are present and the bytes in all: first 0, last all, from the threads
    /// that populate.
    ///
    /// # Errors
    /// [`Error::Host`] where pages are short (node, size, need, free), and under strict settings
    /// where they lie on another node or cannot be locked.
    pub fn map_showing(
        plan: &ArenaPlan,
        show: &(dyn Fn(u64, u64) + Sync),
    ) -> Result<(Self, Vec<String>)> {
        #[cfg(feature = "heap-arenas")]
        if plan.purpose != plan::Purpose::Srs {
            return Ok((Self::from_heap(plan)?, Vec::new()));
        }
        let mut warnings = Vec::new();
        let mapping = Mapping::new(plan.pages, plan.page_bytes, plan.bytes)
            .map_err(|errno| short(plan, "map", errno))?;
        let arena =
            Arena { start: mapping.address(), bytes: mapping.bytes(), mapping: Arc::new(mapping) };
        let bound = arena.bind(plan, &mut warnings)?;
        let populate = || arena.populate(plan, show);
        let errno = match plan.pages {
            Pages::Transparent => transparent::with(populate)?,
            _ => populate()?,
        };
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

    /// Makes every page present, by threads on the node's CPUs; 0 or an errno. Only speed hangs on
    /// where the threads run: the policy places the pages.
    fn populate(&self, plan: &ArenaPlan, show: &(dyn Fn(u64, u64) + Sync)) -> Result<i32> {
        let team = Team::new("pages", &populating_cpus(plan))?;
        let step_bytes = STEP_BYTES.next_multiple_of(plan.page_bytes);
        let (next, failed) = (AtomicUsize::new(0), AtomicI32::new(0));
        let (present, total) = (Mutex::new(0), self.bytes as u64);
        show(0, total);
        team.run(&|_| {
            while failed.load(Ordering::Relaxed) == 0 {
                let offset = next.fetch_add(step_bytes, Ordering::Relaxed);
                if offset >= self.bytes {
                    return;
                }
                let bytes = step_bytes.min(self.bytes - offset);
                match self.populate_step(plan, offset, bytes) {
                    0 => {
                        // Shown under the lock, so that the figures only rise.
                        let mut present = present.lock().unwrap_or_else(|e| e.into_inner());
                        *present += bytes as u64;
                        show(*present, total);
                    }
                    errno => failed.store(errno, Ordering::Relaxed),
                }
            }
        });
        Ok(failed.into_inner())
    }

    fn populate_step(&self, plan: &ArenaPlan, offset: usize, bytes: usize) -> i32 {
        assert!(offset + bytes <= self.bytes, "within the arena");
        // SAFETY: the offset is within the mapping.
        let start = unsafe { self.start.add(offset) }.as_ptr().cast();
        // SAFETY: the range is within the mapping.
        let errno = unsafe { sys::berth_pages_populate(start, bytes) };
        if errno != libc::EINVAL {
            return errno;
        }
        // A kernel before 5.14. A transparent page may still be many base pages.
        let step = if plan.pages.hugetlb() { plan.page_bytes } else { base_page_bytes() };
        // SAFETY: as above; the range is new, so zeros are what it holds already.
        unsafe { sys::berth_pages_populate_by_read(start, bytes, step) }
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

/// The CPU of each thread that makes pages present, spread over those of the node; one thread
/// wherever it is put where the plan names no CPU.
fn populating_cpus(plan: &ArenaPlan) -> Vec<Option<usize>> {
    let all = plan.cpus.len();
    if all == 0 {
        return vec![None];
    }
    let threads = (plan.bytes / STEP_BYTES).clamp(1, all);
    (0..threads).map(|n| Some(plan.cpus[n * all / threads])).collect()
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
    let refused = format!("cannot {step} {plan}: {}", text(errno));
    if !plan.pages.hugetlb() {
        return Error::Host(refused);
    }
    let need = plan.bytes / plan.page_bytes;
    let free = numa::Topology::read(Path::new("/")).ok().and_then(|topology| {
        let node = topology.nodes.into_iter().find(|node| node.id == plan.node)?;
        node.hugepages.into_iter().find(|pool| pool.page_bytes == plan.page_bytes)
    });
    let free = free.map_or(0, |pool| pool.free);
    if free < need {
        return plan::short(plan.node, plan.page_bytes, need, free);
    }
    Error::Host(format!(
        "{refused}; {free} are free on the node, so a control group holds them back (hugetlb \
         controller), or they came back just now"
    ))
}

fn text(errno: i32) -> std::io::Error {
    std::io::Error::from_raw_os_error(errno)
}

#[cfg(test)]
mod tests;
