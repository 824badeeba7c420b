//! From a parameter file into an arena: windows by pread, points checked, each to its place.
//!
//! ```text
//! region | h, bit-reversed | l bits, wides | a bits, wides | b_g1 bits, wides | b_g2 bits, wides |
//! ```
//!
//! Every section starts on 64 bytes. Besides the region a team needs 0.8 MB of windows per thread
//! and, per query, 3 bits per aux variable of header and block; all are freed at the end.

use std::ops::Range;
use std::path::Path;
use std::sync::Mutex;

use blstrs::{G1Affine, G2Affine};

use super::key::VerifyingKey;
use super::layout::{self, Counts, G1_BYTES, G2_BYTES, Section};
use super::order::Order;
use super::points::Point;
use super::windows::{Check, Reader, plain_unit};
use crate::circuit::compiled::{Compiled, QueryName};
use crate::circuit::shape::PART_ALIGN;
use crate::error::Result;
use crate::memory::arena::Arena;
use crate::team::Team;

/// The sections of an SRS region: byte ranges in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SrsLayout {
    counts: Counts,
    /// Boolean points of l, a and b; the other points of a query are wide.
    bits: [usize; 3],
    h: Range<usize>,
    l: Range<usize>,
    a: Range<usize>,
    b_g1: Range<usize>,
    b_g2: Range<usize>,
}

impl SrsLayout {
    pub fn new(compiled: &Compiled) -> Self {
        let counts = Counts::of(compiled);
        let mut end = 0usize;
        let mut section = |points: usize, bytes: usize| {
            let start = end.next_multiple_of(PART_ALIGN);
            end = start + points * bytes;
            start..end
        };
        SrsLayout {
            counts,
            bits: [QueryName::L, QueryName::A, QueryName::B].map(|q| compiled.query_len(q).0),
            h: section(compiled.shape.domain(), G1_BYTES),
            l: section(counts.l as usize, G1_BYTES),
            a: section(counts.a as usize, G1_BYTES),
            b_g1: section(counts.b as usize, G1_BYTES),
            b_g2: section(counts.b as usize, G2_BYTES),
        }
    }

    /// Bytes of the region of a circuit's SRS, for the plan; a multiple of 64.
    pub fn bytes(compiled: &Compiled) -> usize {
        Self::new(compiled).len()
    }

    fn len(&self) -> usize {
        self.b_g2.end.next_multiple_of(PART_ALIGN)
    }

    fn section(&self, section: Section) -> Range<usize> {
        match section {
            Section::Ic => 0..0,
            Section::H => self.h.clone(),
            Section::L => self.l.clone(),
            Section::A => self.a.clone(),
            Section::BG1 => self.b_g1.clone(),
            Section::BG2 => self.b_g2.clone(),
        }
    }
}

/// A circuit's SRS in its region.
pub struct Srs {
    arena: Arena,
    layout: SrsLayout,
    key: VerifyingKey,
}

impl Srs {
    /// Reads `.params` and `.vk` of the compiled circuit into an arena of at least
    /// [`SrsLayout::bytes`] bytes. Every point is checked to be canonical, on its curve and not
    /// infinity; its order is checked by [`super::check::check_points`].
    /// `progress` is called with points done and points in all, from any thread of the team.
    ///
    /// # Errors
    /// [`crate::error::Error::Parameters`]: a file of another length or circuit, a bad point (the
    /// first in the file), or two verifying keys.
    pub fn load(
        params: &Path,
        vk: &Path,
        compiled: &Compiled,
        mut arena: Arena,
        team: &Team,
        progress: &(dyn Fn(u64, u64) + Sync),
    ) -> Result<Self> {
        let layout = SrsLayout::new(compiled);
        let region: &mut [u8] = arena.carve().take(layout.len());
        assert_eq!(region.as_ptr() as usize % PART_ALIGN, 0, "regions start on a cache line");
        let file = layout::open_params(params, &layout.counts)?;
        let key = VerifyingKey::read_both(&file, params, vk, &layout.counts)?;
        let [l, a, b] = [QueryName::L, QueryName::A, QueryName::B].map(|q| Order::new(compiled, q));
        let counts = &layout.counts;
        let reader = Reader::new(params, &file, counts, Check::Curve, progress);
        let target = Target { start: region.as_mut_ptr(), bytes: region.len() };
        let order = |section| match section {
            Section::L => &l,
            Section::A => &a,
            _ => &b,
        };
        let log = compiled.shape.log_domain();
        let units = reader.sections().map(|(section, plain)| match section {
            Section::H => (section, plain),
            _ => (section, order(section).units()),
        });
        reader.run(&units, team, Windows::default, |section, unit, windows| {
            let Windows { bytes, places } = windows;
            places.clear();
            let points = if section == Section::H {
                let points = plain_unit(layout.counts.h, unit);
                places.extend(points.clone().map(|i| i.reverse_bits() >> (usize::BITS - log)));
                points
            } else {
                order(section).walk(unit, |_, place| places.push(place));
                order(section).points(unit)
            };
            let to = layout.section(section);
            match section {
                Section::BG2 => reader.points(section, points, bytes, |k, points: &[G2Affine]| {
                    target.put(&to, &places[k..], points);
                }),
                _ => reader.points(section, points, bytes, |k, points: &[G1Affine]| {
                    target.put(&to, &places[k..], points);
                }),
            }
        })?;
        zero_gaps(region, &layout);
        Ok(Srs { arena, layout, key })
    }

    /// The same SRS in an arena of another node, copied by that node's threads.
    pub fn copy(&self, mut arena: Arena, team: &Team) -> Self {
        let from: &[u8] = self.arena.view().take(self.layout.len());
        let to: &mut [u8] = arena.carve().take(self.layout.len());
        let each = from.len().div_ceil(team.len());
        let pieces: Vec<Mutex<(&mut [u8], &[u8])>> =
            to.chunks_mut(each).zip(from.chunks(each)).map(Mutex::new).collect();
        team.run(&|n| {
            if let Some(piece) = pieces.get(n) {
                let (to, from) = &mut *piece.lock().unwrap_or_else(|e| e.into_inner());
                to.copy_from_slice(from);
            }
        });
        drop(pieces);
        Srs { arena, layout: self.layout.clone(), key: self.key.clone() }
    }

    pub fn key(&self) -> &VerifyingKey {
        &self.key
    }

    /// Where the points lie.
    pub fn arena(&self) -> &Arena {
        &self.arena
    }

    /// `tau^i (tau^m - 1) / delta` at position bitrev(i) of m; the last position holds zeros.
    pub fn h(&self) -> &[G1Affine] {
        self.view(&self.layout.h)
    }

    pub fn l_bits(&self) -> &[G1Affine] {
        &self.view(&self.layout.l)[..self.layout.bits[0]]
    }

    pub fn l_wides(&self) -> &[G1Affine] {
        &self.view(&self.layout.l)[self.layout.bits[0]..]
    }

    pub fn a_bits(&self) -> &[G1Affine] {
        &self.view(&self.layout.a)[..self.layout.bits[1]]
    }

    pub fn a_wides(&self) -> &[G1Affine] {
        &self.view(&self.layout.a)[self.layout.bits[1]..]
    }

    pub fn b_g1_bits(&self) -> &[G1Affine] {
        &self.view(&self.layout.b_g1)[..self.layout.bits[2]]
    }

    pub fn b_g1_wides(&self) -> &[G1Affine] {
        &self.view(&self.layout.b_g1)[self.layout.bits[2]..]
    }

    pub fn b_g2_bits(&self) -> &[G2Affine] {
        &self.view(&self.layout.b_g2)[..self.layout.bits[2]]
    }

    pub fn b_g2_wides(&self) -> &[G2Affine] {
        &self.view(&self.layout.b_g2)[self.layout.bits[2]..]
    }

    fn view<P: Point>(&self, range: &Range<usize>) -> &[P] {
        let region: &[u8] = self.arena.view().take(self.layout.len());
        let bytes = &region[range.clone()];
        // SAFETY: sections start on 64 bytes of an aligned region and hold whole points, which
        // `load` wrote; a point is limbs, so any bytes are a value of it.
        unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len() / P::BYTES) }
    }
}

/// What a thread works with: the bytes of a unit and the places of its points.
#[derive(Default)]
struct Windows {
    bytes: Vec<u8>,
    places: Vec<usize>,
}

/// Zeros in the last position of `h` and between the sections.
fn zero_gaps(region: &mut [u8], layout: &SrsLayout) {
    let ends = [
        (layout.h.end - G1_BYTES, layout.l.start),
        (layout.l.end, layout.a.start),
        (layout.a.end, layout.b_g1.start),
        (layout.b_g1.end, layout.b_g2.start),
        (layout.b_g2.end, layout.len()),
    ];
    for (from, to) in ends {
        region[from..to].fill(0);
    }
}

/// The region as all threads write it: every point of a section has a place of its own.
struct Target {
    start: *mut u8,
    bytes: usize,
}

// SAFETY: threads write through the pointer only by `put`, whose places are disjoint.
unsafe impl Sync for Target {}

impl Target {
    /// Puts point i of a section at `places[i]`. The places of all units are a permutation of the
    /// section's positions (h: of all but the last), and a unit is worked on by one thread.
    fn put<P: Point>(&self, section: &Range<usize>, places: &[usize], points: &[P]) {
        for (point, place) in points.iter().zip(places) {
            let at = section.start + place * P::BYTES;
            assert!(
                at + P::BYTES <= section.end && section.end <= self.bytes,
                "within the section"
            );
            // SAFETY: within the region (asserted), aligned since sections start on 64 bytes, and
            // no other thread writes this place.
            unsafe { self.start.add(at).cast::<P>().write(*point) };
        }
    }
}

#[cfg(test)]
mod tests;
