//! Multiples of one point, many at a time, written as a section of a parameter file.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use blstrs::Scalar;
use ff::Field;

use super::columns::each_chunk;
use super::waste::wipe;
use crate::error::{Error, Result};
use crate::srs::io_error;
use crate::srs::layout::{Counts, Section};
use crate::srs::order::UNIT;
use crate::srs::points::{BATCH, Point};
use crate::team::Team;

/// Multiples beyond which windows of 16 bits pay for their table.
const MANY: u64 = 1 << 18;

/// A window table of one point. Windows of 16 bits: 48 MiB for G1 and 96 MiB for G2; of 8 bits,
/// for few multiples: a hundredth of that, and twice the additions.
pub struct Table<P> {
    entries: Vec<P>,
    bits: u32,
}

impl<P: Point> Table<P> {
    /// A table for about as many multiples as stated.
    pub fn new(base: P, multiples: u64, team: &Team) -> Self {
        let bits = if multiples < MANY { 8 } else { 16 };
        let window = 1 << (bits - 1);
        let length = 256 / bits as usize * window;
        let mut entries = Vec::with_capacity(length);
        advise_huge(entries.spare_capacity_mut());
        entries.resize(length, P::default());
        each_chunk(team, &mut entries, window, &|number, entries| {
            P::fill_window(entries, &base.doubled(bits as usize * number));
        });
        Table { entries, bits }
    }

    /// One multiple per scalar.
    ///
    /// # Errors
    /// The index of the first scalar that is zero: its multiple has no affine form.
    pub fn multiply(&self, scalars: &[Scalar], out: &mut Vec<P>) -> Result<(), usize> {
        if let Some(zero) = scalars.iter().position(|s| bool::from(s.is_zero())) {
            return Err(zero);
        }
        out.clear();
        out.resize(scalars.len(), P::default());
        let mut bytes = [[0; 32]; BATCH];
        for (scalars, out) in scalars.chunks(BATCH).zip(out.chunks_mut(BATCH)) {
            for (scalar, bytes) in scalars.iter().zip(&mut bytes) {
                *bytes = scalar.to_bytes_le();
            }
            P::fixed_base(out, &self.entries, self.bits, &bytes[..scalars.len()]);
        }
        wipe(&mut bytes);
        Ok(())
    }
}

/// Asks for huge pages behind memory that is still untouched: entries are read at random, and
/// address translation would take as long as the additions. A refusal changes speed alone.
fn advise_huge<P>(memory: &mut [std::mem::MaybeUninit<P>]) {
    const HUGE: usize = 2 << 20;
    let range = memory.as_mut_ptr_range();
    let start = (range.start as usize).next_multiple_of(HUGE);
    let end = range.end as usize / HUGE * HUGE;
    if start < end {
        // SAFETY: whole pages of memory that this program owns; advice changes no content.
        unsafe { libc::madvise(start as *mut libc::c_void, end - start, libc::MADV_HUGEPAGE) };
    }
}

/// A parameter file that is being made.
pub struct Output<'a> {
    pub file: &'a File,
    pub path: &'a Path,
    pub counts: &'a Counts,
    pub team: &'a Team,
    /// Called with points done and points in all, from any thread.
    pub progress: &'a (dyn Fn(u64, u64) + Sync),
    pub done: std::sync::atomic::AtomicU64,
}

impl Output<'_> {
    /// Writes a section: its count, and the multiples of the scalars of each unit. `fill(unit,
    /// scalars)` gives the scalars and the index of the first in the section.
    pub fn section<P: Point>(
        &self,
        section: Section,
        table: &Table<P>,
        units: usize,
        fill: impl Fn(usize, &mut Vec<Scalar>) -> usize + Sync,
    ) -> Result<()> {
        let first_point = self.counts.first_point(section);
        let count = u32::try_from(self.counts.of_section(section)).map_err(|_| {
            Error::Parameters(format!("section {} has 2^32 points or more", section.name()))
        })?;
        self.write(&count.to_be_bytes(), first_point - 4)?;
        let next = AtomicUsize::new(0);
        let failed: Mutex<Option<Error>> = Mutex::new(None);
        self.team.run(&|_| {
            let mut scalars = Vec::with_capacity(UNIT);
            let (mut points, mut bytes) = (Vec::new(), Vec::new());
            loop {
                let unit = next.fetch_add(1, Ordering::Relaxed);
                if unit >= units {
                    return;
                }
                let first = fill(unit, &mut scalars);
                let multiplied = table.multiply(&scalars, &mut points);
                wipe(&mut scalars);
                scalars.clear();
                let written = match multiplied {
                    Ok(()) => {
                        bytes.resize(points.len() * P::BYTES, 0);
                        P::write(&mut bytes, &points);
                        self.write(&bytes, first_point + (first * P::BYTES) as u64)
                    }
                    Err(at) => Err(zero_polynomial(section, first + at)),
                };
                if let Err(error) = written {
                    next.store(units, Ordering::Relaxed);
                    failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                    return;
                }
                self.report(points.len() as u64);
            }
        });
        failed.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
    }

    pub fn write(&self, bytes: &[u8], offset: u64) -> Result<()> {
        self.file
            .write_all_at(bytes, offset)
            .map_err(|e| io_error(self.path, format!("cannot be written at offset {offset}"), &e))
    }

    fn report(&self, points: u64) {
        let c = self.counts;
        let done = self.done.fetch_add(points, Ordering::Relaxed) + points;
        (self.progress)(done, c.h + c.l + c.a + 2 * c.b);
    }
}

fn zero_polynomial(section: Section, index: usize) -> Error {
    Error::Parameters(format!(
        "{}[{index}] would be the point at infinity: the variable is in no constraint, so the \
         circuit has no parameters",
        section.name()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::srs::testing::{Random, random_g1, random_g2};
    use blstrs::{G1Affine, G1Projective, G2Affine, G2Projective};

    fn scalars() -> Vec<Scalar> {
        let mut random = Random(11);
        let mut scalars: Vec<Scalar> = (0..1100).map(|_| random.scalar()).collect();
        for e in 0..255u64 {
            let power = Scalar::from(2).pow_vartime([e]);
            scalars.extend([power, -power, power - Scalar::ONE, power * Scalar::from(0xffff)]);
        }
        scalars.retain(|s| !bool::from(s.is_zero()));
        scalars
    }

    #[test]
    fn multiples_by_table_are_those_of_the_library() {
        let team = Team::new("test", &[None; 2]).unwrap();
        let scalars = scalars();
        let (g1, g2) = (random_g1(3), random_g2(4));
        let by_library: (Vec<G1Affine>, Vec<G2Affine>) = scalars
            .iter()
            .map(|s| (G1Projective::from(g1) * s, G2Projective::from(g2) * s))
            .map(|(a, b)| (G1Affine::from(a), G2Affine::from(b)))
            .unzip();
        for multiples in [0, MANY] {
            let mut points: Vec<G1Affine> = Vec::new();
            Table::new(g1, multiples, &team).multiply(&scalars, &mut points).unwrap();
            assert!(points == by_library.0);
            let mut points: Vec<G2Affine> = Vec::new();
            Table::new(g2, multiples, &team).multiply(&scalars, &mut points).unwrap();
            assert!(points == by_library.1);
        }
    }

    #[test]
    fn a_zero_scalar_is_named() {
        let team = Team::new("test", &[None]).unwrap();
        let mut scalars = scalars();
        scalars[600] = Scalar::ZERO;
        let refused = Table::new(random_g1(3), 0, &team).multiply(&scalars, &mut Vec::new());
        assert_eq!(refused, Err(600));
    }
}
