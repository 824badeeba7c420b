//! NTTs over Fr of BLS12-381, in place, with no pass that only permutes.
//!
//! The inverse transform takes evaluations in natural order and leaves coefficients in
//! bit-reversed order; the forward transform goes back. A transform of 2^log elements is cut into
//! passes of at most 2^11 rows (formula: Cooley and Tukey, "An algorithm for the machine
//! calculation of complex Fourier series", 1965). A pass reads the data once: it takes a group of
//! eight columns into a scratch that fits the second-level cache, runs all its layers there, and
//! writes the group back.
//!
//! ```text
//! pass     rows   stride          top layer's twiddle of column q and row j
//! 0        R0     m / R0          w_(m)^q       * w_(R0)^j
//! 1        R1     m / (R0 R1)     w_(m / R0)^q  * w_(R1)^j
//! last     Rn     1               w_(Rn)^j
//! ```
//!
//! The twiddle of a lower layer is the square. On the coset 7 * <w> the power of 7 that belongs to
//! a layer is part of the column's factor (of the table, in the last pass), so that scaling by
//! powers of 7 costs nothing.

use std::marker::PhantomData;
use std::ops::Range;

use blst::blst_fr;
use blstrs::Scalar;

use crate::sys;
use crate::team::Team;
pub(super) use twiddles::GENERATOR;
use twiddles::{Direction, Pass, Twiddles, log_rows_max, passes};
pub use twiddles::{LOG_DOMAIN_MAX, Path, Points};

mod twiddles;

const LANES: usize = sys::BERTH_NTT_LANES as usize;
const LOG_ROWS_MAX: u32 = sys::BERTH_NTT_LOG_ROWS_MAX;
/// Scratch of one row, in scalars.
const ROW_SCALARS: usize = sys::BERTH_NTT_ROW_BYTES as usize / size_of::<Scalar>();
/// The scratch is aligned to a cache line, the table that holds it only to a word.
const CACHE_LINE: usize = 64;
const ALIGN_SCALARS: usize = CACHE_LINE / size_of::<Scalar>();

/// A domain of 2^log elements: its twiddles and the threads' scratch, in memory of the caller.
pub struct Domain<'a> {
    twiddles: Twiddles<'a>,
    /// One part per thread, each with room to align to a cache line.
    scratch: &'a mut [Scalar],
}

impl<'a> Domain<'a> {
    /// Scalars that the table of a domain takes when teams of up to `threads` threads use it:
    /// 10 * 2^(rows) per thread for the scratch, where 2^rows <= 2^11 is about the square root
    /// of the domain (cube root above 2^22), and about as much again for all twiddles.
    pub fn table_len(log: u32, threads: usize) -> usize {
        Twiddles::table_len(log) + threads * Self::scratch_len(log)
    }

    fn scratch_len(log: u32) -> usize {
        (ROW_SCALARS << log_rows_max(log)) + ALIGN_SCALARS
    }

    /// Fills `table` for teams of up to `threads` threads, on the fastest path of this CPU.
    ///
    /// # Panics
    /// If `log` is not in 1..=[`LOG_DOMAIN_MAX`] or the table has another length than
    /// [`Domain::table_len`]; later, if a team has more threads or data another length.
    pub fn new(log: u32, table: &'a mut [Scalar], threads: usize) -> Self {
        Self::with_path(log, table, threads, Path::detect())
    }

    /// As [`Domain::new`], on a chosen path. [`Path::Ifma`] needs a CPU that has it. Domains below
    /// 2^6 have too few columns for it and are always portable.
    pub fn with_path(log: u32, table: &'a mut [Scalar], threads: usize, path: Path) -> Self {
        assert_eq!(table.len(), Self::table_len(log, threads), "length of the domain's table");
        assert!(path == Path::Portable || Path::detect() == Path::Ifma, "no IFMA on this CPU");
        let (table, scratch) = table.split_at_mut(Twiddles::table_len(log));
        Domain { twiddles: Twiddles::new(log, table, path), scratch }
    }

    /// The domain has 2^log elements.
    pub fn log(&self) -> u32 {
        self.twiddles.log
    }

    /// Number of elements.
    #[allow(clippy::len_without_is_empty)] // a domain is never empty
    pub fn len(&self) -> usize {
        1 << self.log()
    }

    pub fn path(&self) -> Path {
        self.twiddles.path
    }

    /// What a product of two data elements comes out divided by (see [`Steps::times`]).
    pub(super) fn product_divisor(&self) -> Scalar {
        self.path().twiddle_factor()
    }

    /// A constant in the form in which [`Steps::minus`] takes it.
    pub(super) fn constant(&self, value: Scalar) -> Scalar {
        value * self.path().twiddle_factor()
    }

    /// Evaluations at `points` in natural order to coefficients in bit-reversed order, times the
    /// size of the domain: `data[bitrev(i)]` becomes m * c_i.
    pub fn inverse(&mut self, team: &Team, data: &mut [Scalar], points: Points) {
        let steps = Steps { inverse: Some(points), ..Steps::new(data) };
        self.run(team, steps);
    }

    /// Coefficients in bit-reversed order to evaluations at `points` in natural order.
    pub fn forward(&mut self, team: &Team, data: &mut [Scalar], points: Points) {
        let steps = Steps { forward: Some(points), ..Steps::new(data) };
        self.run(team, steps);
    }

    /// Runs `steps` over the whole domain.
    pub(super) fn run(&mut self, team: &Team, steps: Steps<'_>) {
        assert!(steps.inverse.is_some() || (steps.times.is_none() && steps.source.is_none()));
        assert!(steps.minus.is_none() || (steps.inverse.is_some() && steps.forward.is_none()));
        let count = passes(self.log()).len();
        if let Some(points) = steps.inverse {
            for (n, pass) in passes(self.log()).enumerate() {
                let (first, last) = (n == 0, n + 1 == count);
                let job = Job {
                    inverse: Some(points),
                    forward: steps.forward.filter(|_| last),
                    times: steps.times.filter(|_| first),
                    source: steps.source.filter(|_| first),
                    minus: if last { steps.minus } else { None },
                };
                self.pass(team, &mut *steps.data, n, pass, job);
            }
        }
        if let Some(points) = steps.forward {
            for (n, pass) in passes(self.log()).enumerate().rev() {
                if n + 1 == count && steps.inverse.is_some() {
                    continue; // done with the inverse transform's last pass
                }
                let job = Job { forward: Some(points), ..Job::default() };
                self.pass(team, &mut *steps.data, n, pass, job);
            }
        }
    }
}

/// A transform with what is done on its way into and out of the cache.
pub(super) struct Steps<'a> {
    /// What is transformed, in place.
    pub data: &'a mut [Scalar],
    /// With an inverse transform: read this instead of `data`.
    pub source: Option<&'a [Scalar]>,
    /// With an inverse transform: its input is multiplied by this, element by element, and
    /// divided by [`Domain::product_divisor`].
    pub times: Option<&'a [Scalar]>,
    /// Done first.
    pub inverse: Option<Points>,
    /// Done after the inverse, if both are there.
    pub forward: Option<Points>,
    /// With an inverse transform alone: its output x becomes x * k0 - y * k1, for y of this slice
    /// and [`Domain::constant`]s [k0, k1].
    pub minus: Option<(&'a [Scalar], &'a [Scalar; 2])>,
}

impl<'a> Steps<'a> {
    pub fn new(data: &'a mut [Scalar]) -> Self {
        Steps { data, source: None, times: None, inverse: None, forward: None, minus: None }
    }
}

/// What one pass does.
#[derive(Clone, Copy, Default)]
struct Job<'a> {
    inverse: Option<Points>,
    forward: Option<Points>,
    times: Option<&'a [Scalar]>,
    source: Option<&'a [Scalar]>,
    minus: Option<(&'a [Scalar], &'a [Scalar; 2])>,
}

/// A slice that the threads of a team share; each uses its own part.
#[derive(Clone, Copy)]
pub(super) struct Shared<'a> {
    start: *mut Scalar,
    len: usize,
    owner: PhantomData<&'a mut [Scalar]>,
}

// SAFETY: only the address is shared; `part` makes its callers keep the parts apart.
unsafe impl Sync for Shared<'_> {}

impl<'a> Shared<'a> {
    pub fn new(slice: &'a mut [Scalar]) -> Self {
        Shared { start: slice.as_mut_ptr(), len: slice.len(), owner: PhantomData }
    }

    /// # Safety
    /// While the part lives, no other part that overlaps it may live.
    pub unsafe fn part(self, range: Range<usize>) -> &'a mut [Scalar] {
        assert!(range.start <= range.end && range.end <= self.len);
        // SAFETY: the range lies inside the slice, which is borrowed mutably for 'a; the caller
        // keeps the parts apart.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(range.start), range.len()) }
    }

    /// Element `at`, for a callee that strides through the slice.
    fn at(self, at: usize) -> *mut Scalar {
        assert!(at < self.len);
        self.start.wrapping_add(at)
    }
}

fn ptr(slice: &[Scalar], at: usize) -> *const blst_fr {
    slice[at..].as_ptr().cast()
}

fn opt_ptr(slice: Option<&[Scalar]>, at: usize) -> *const blst_fr {
    slice.map_or(std::ptr::null(), |slice| ptr(slice, at))
}

impl Domain<'_> {
    /// Runs one pass over all groups of columns, shared by the team.
    fn pass(&mut self, team: &Team, data: &mut [Scalar], n: usize, pass: Pass, job: Job<'_>) {
        let m = self.len();
        let others = [job.times, job.source, job.minus.map(|(minus, _)| minus)];
        assert_eq!(data.len(), m, "the data fill the domain");
        assert!(others.into_iter().flatten().all(|other| other.len() == m));
        let scratch_len = Self::scratch_len(self.log());
        assert!(team.len() * scratch_len <= self.scratch.len(), "scratch for every thread");
        let (scratch, out) = (Shared::new(self.scratch), Shared::new(data));
        let (twiddles, lanes) = (&self.twiddles, LANES.min(m >> pass.log_rows));
        let groups = (m >> pass.log_rows) / lanes;
        team.split(groups, &|thread, range: Range<usize>| {
            // SAFETY: threads have different numbers, so their parts are disjoint.
            let scratch = unsafe { scratch.part(thread * scratch_len..(thread + 1) * scratch_len) };
            let scratch = scratch.as_mut_ptr().cast::<u8>();
            let scratch = scratch.wrapping_add(scratch.align_offset(CACHE_LINE));
            for number in range {
                let group = twiddles.group(n, pass, job, number, lanes, out, scratch);
                // SAFETY: the group's elements lie inside slices of m elements; groups of a pass
                // are disjoint, so nobody else touches them in `out`; tables cover 2^log_rows
                // rows; the path was checked against the CPU when the domain was made.
                unsafe { sys::berth_ntt_group(&group, twiddles.path == Path::Ifma) };
            }
        });
    }
}

impl Twiddles<'_> {
    #[allow(clippy::too_many_arguments)] // one call, and each is a different thing
    fn group(
        &self,
        n: usize,
        pass: Pass,
        job: Job<'_>,
        number: usize,
        lanes: usize,
        out: Shared<'_>,
        scratch: *mut u8,
    ) -> sys::berth_ntt_group {
        let stride = 1 << pass.log_stride;
        // Lanes are neighbours: columns where there are some, whole blocks of rows in the last
        // pass.
        let (column, block, lane_stride) = if pass.log_stride == 0 {
            (0, number * lanes, 1 << pass.log_rows)
        } else {
            let per_block = stride / lanes;
            (number % per_block * lanes, number / per_block, 1)
        };
        let at = (block << (pass.log_rows + pass.log_stride)) + column;
        let layers = |direction, points: Option<Points>| {
            points.map_or(std::ptr::null(), |p| ptr(self.layers(pass, direction, p), 0))
        };
        let (mut lo, mut hi) = (std::ptr::null(), std::ptr::null());
        if pass.log_stride > 0 {
            let (direction, points) = match job.inverse {
                Some(points) => (Direction::Inverse, points),
                None => (Direction::Forward, job.forward.expect("a pass has a direction")),
            };
            let factors = self.factors(n, direction, points);
            lo = ptr(factors.0, column % (1 << pass.split()));
            hi = ptr(factors.1, column >> pass.split());
        }
        let out = out.at(at);
        sys::berth_ntt_group {
            in_: job.source.map_or(out.cast_const().cast(), |source| ptr(source, at)),
            times: opt_ptr(job.times, at),
            out: out.cast(),
            minus: opt_ptr(job.minus.map(|(minus, _)| minus), at),
            scale: job.minus.map_or(std::ptr::null(), |(_, scale)| ptr(scale, 0)),
            inverse: layers(Direction::Inverse, job.inverse),
            forward: layers(Direction::Forward, job.forward),
            lo,
            hi,
            row_stride: stride,
            lane_stride,
            log_rows: pass.log_rows,
            lanes: lanes as u32,
            scratch: scratch.cast(),
        }
    }
}

#[cfg(test)]
pub(super) mod tests;
