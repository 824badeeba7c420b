//! Points of a parameter file by windows: read by a team, decoded, checked, handed on.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::io_error;
use super::key::refused_in;
use super::layout::{Counts, Section};
use super::order::UNIT;
use super::points::Point;
use crate::error::{Error, Result};
use crate::team::Team;

/// Points that are decoded at once before they are handed on.
const BATCH: usize = 64;

/// How much of each point is examined: canonical form, curve and infinity, or its order as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    Curve,
    Subgroup,
}

/// A parameter file that is being read.
pub struct Reader<'a> {
    path: &'a Path,
    file: &'a File,
    counts: &'a Counts,
    check: Check,
    /// Called with points done and points in all.
    progress: &'a (dyn Fn(u64, u64) + Sync),
    done: AtomicU64,
    /// Offset of the first fault so far: nothing from there on is read any more.
    fault: AtomicU64,
}

impl<'a> Reader<'a> {
    pub fn new(
        path: &'a Path,
        file: &'a File,
        counts: &'a Counts,
        check: Check,
        progress: &'a (dyn Fn(u64, u64) + Sync),
    ) -> Self {
        let (done, fault) = (AtomicU64::new(0), AtomicU64::new(u64::MAX));
        Reader { path, file, counts, check, progress, done, fault }
    }

    /// The sections with points to read, and their units if read in the order of the file.
    pub fn sections(&self) -> [(Section, usize); 5] {
        [Section::H, Section::L, Section::A, Section::BG1, Section::BG2]
            .map(|section| (section, (self.counts.of_section(section) as usize).div_ceil(UNIT)))
    }

    /// Reads a range of a section's points through `bytes`, checks them and hands them over in
    /// batches, each with the index of its first point within the range.
    pub fn points<P: Point>(
        &self,
        section: Section,
        points: Range<usize>,
        bytes: &mut Vec<u8>,
        mut keep: impl FnMut(usize, &[P]),
    ) -> Result<(), Fault> {
        let offset = self.counts.first_point(section) + (points.start * P::BYTES) as u64;
        if offset >= self.fault.load(Ordering::Relaxed) {
            return Ok(());
        }
        bytes.resize(points.len() * P::BYTES, 0);
        self.file.read_exact_at(bytes, offset).map_err(|e| Fault {
            offset,
            error: io_error(
                self.path,
                format!("section {}, offset {offset}: cannot be read", section.name()),
                &e,
            ),
        })?;
        let mut batch = [P::default(); BATCH];
        for (number, bytes) in bytes.chunks(BATCH * P::BYTES).enumerate() {
            let batch = &mut batch[..bytes.len() / P::BYTES];
            P::read(batch, bytes, self.check == Check::Subgroup).map_err(|(k, why)| {
                let k = (points.start + number * BATCH + k) as u64;
                Fault {
                    offset: self.counts.first_point(section) + k * section.point_bytes(),
                    error: refused_in(self.path, section, self.counts, k, why),
                }
            })?;
            keep(number * BATCH, batch);
        }
        let read = points.len() as u64;
        let done = self.done.fetch_add(read, Ordering::Relaxed) + read;
        let c = self.counts;
        (self.progress)(done, c.h + c.l + c.a + 2 * c.b);
        Ok(())
    }

    /// Does all units of all sections on a team, each thread with a state of its own, which are
    /// returned; of several faults the first in the file is reported. Units are not in the order
    /// of the file: after a fault, all that begin before it are still read.
    pub fn run<S: Send>(
        &self,
        sections: &[(Section, usize)],
        team: &Team,
        state: impl Fn() -> S + Sync,
        unit: impl Fn(Section, usize, &mut S) -> Result<(), Fault> + Sync,
    ) -> Result<Vec<S>> {
        let total: usize = sections.iter().map(|(_, units)| units).sum();
        let next = AtomicUsize::new(0);
        let first: Mutex<Option<Fault>> = Mutex::new(None);
        let states = Mutex::new(Vec::with_capacity(team.len()));
        team.run(&|_| {
            let mut state = state();
            loop {
                let mut number = next.fetch_add(1, Ordering::Relaxed);
                if number >= total {
                    break;
                }
                let mut which = sections.iter();
                let section = loop {
                    let (section, units) = which.next().expect("the number is below the total");
                    match number.checked_sub(*units) {
                        Some(rest) => number = rest,
                        None => break *section,
                    }
                };
                if let Err(fault) = unit(section, number, &mut state) {
                    self.fault.fetch_min(fault.offset, Ordering::Relaxed);
                    let mut first = first.lock().unwrap_or_else(PoisonError::into_inner);
                    if first.as_ref().is_none_or(|other| fault.offset < other.offset) {
                        *first = Some(fault);
                    }
                }
            }
            states.lock().unwrap_or_else(PoisonError::into_inner).push(state);
        });
        match first.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some(fault) => Err(fault.error),
            None => Ok(states.into_inner().unwrap_or_else(PoisonError::into_inner)),
        }
    }
}

/// Points of a unit of a section that is read in the order of the file.
pub fn plain_unit(points: u64, unit: usize) -> Range<usize> {
    unit * UNIT..((unit + 1) * UNIT).min(points as usize)
}

/// Why a unit failed: at which byte of the file, for the choice of the first, and the error.
pub struct Fault {
    offset: u64,
    error: Error,
}
