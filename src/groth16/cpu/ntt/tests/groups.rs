//! One group by itself: portable against IFMA.

use super::*;

const BYTES: usize = sys::BERTH_NTT_ROW_BYTES as usize;

/// Operands of one group of eight columns with tables of any content: nothing in the steps needs
/// the twiddles to be roots of unity.
struct Group {
    data: Vec<Scalar>,
    times: Vec<Scalar>,
    minus: Vec<Scalar>,
    inverse: Vec<Scalar>,
    forward: Vec<Scalar>,
    factors: Vec<Scalar>,
    scale: Vec<Scalar>,
}

impl Group {
    /// `fill` of 0 leaves the data zero, of 1 makes them sparse, else they are dense. Zeros take
    /// the sums of the vector path furthest from canonical: a difference of zeros is 2 r.
    fn random(log_rows: u32, fill: u32, random: &mut Random) -> Self {
        let rows = 1 << log_rows;
        let mut data = random.edgy_vec(LANES * rows);
        if fill < 2 {
            data.iter_mut().filter(|_| fill == 0 || !random.word().is_multiple_of(16)).for_each(
                |x| {
                    *x = Scalar::ZERO;
                },
            );
        }
        Group {
            data,
            times: random.edgy_vec(LANES * rows),
            minus: random.edgy_vec(LANES * rows),
            inverse: random.edgy_vec(rows),
            forward: random.edgy_vec(rows),
            factors: random.edgy_vec(LANES + 1),
            scale: random.edgy_vec(2),
        }
    }

    /// Runs what the bits of `steps` say on one path; results are the same on all.
    fn run(&self, log_rows: u32, steps: u32, path: Path) -> Vec<Scalar> {
        let scaled = |table: &[Scalar]| -> Vec<Scalar> {
            table.iter().map(|x| x * path.twiddle_factor()).collect()
        };
        let [times, inverse, forward, factors, scale] =
            [&self.times, &self.inverse, &self.forward, &self.factors, &self.scale]
                .map(|x| scaled(x));
        let has = |bit: u32| steps >> bit & 1 == 1;
        let or_null = |bit: u32, x: &[Scalar]| if has(bit) { ptr(x, 0) } else { std::ptr::null() };
        let rows = 1 << log_rows;
        let mut out = self.data.clone();
        let mut scratch = vec![0u64; BYTES / 8 * rows + 8];
        let scratch: *mut u8 = scratch.as_mut_ptr().cast();
        let group = sys::berth_ntt_group {
            in_: out.as_ptr().cast(),
            times: or_null(0, &times),
            out: out.as_mut_ptr().cast(),
            minus: or_null(1, &self.minus),
            scale: ptr(&scale, 0),
            inverse: or_null(2, &inverse),
            forward: or_null(3, &forward),
            lo: or_null(4, &factors),
            hi: if has(4) { ptr(&factors, LANES) } else { std::ptr::null() },
            row_stride: if has(5) { LANES } else { 1 },
            lane_stride: if has(5) { 1 } else { rows },
            log_rows,
            lanes: LANES as u32,
            scratch: scratch.wrapping_add(scratch.align_offset(CACHE_LINE)).cast(),
        };
        // SAFETY: all operands have 8 * 2^log_rows elements, tables 2^log_rows, the scratch a
        // cache line more than its bytes; the path is one that `paths` gives.
        unsafe { sys::berth_ntt_group(&group, path == Path::Ifma) };
        out
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn groups_are_the_same_on_all_paths(
        log_rows in 1..=LOG_ROWS_MAX,
        fill in 0..3u32,
        steps in 0..64u32,
        seed: u64,
    ) {
        let group = Group::random(log_rows, fill, &mut Random(seed));
        let first = group.run(log_rows, steps, Path::Portable);
        for path in paths() {
            let outcome = group.run(log_rows, steps, path);
            prop_assert!(outcome == first && canonical(&outcome), "{path:?}");
        }
    }
}

/// The furthest that the sums of the vector path go: every row of all eleven layers.
#[test]
fn eleven_layers_of_zeros_stay_zero() {
    for path in paths() {
        for steps in [4, 8, 12, 4 + 16, 8 + 16, 32 + 12] {
            let group = Group::random(LOG_ROWS_MAX, 0, &mut Random(u64::from(steps)));
            let outcome = group.run(LOG_ROWS_MAX, steps, path);
            assert!(outcome.iter().all(|x| bool::from(x.is_zero())), "{path:?}, steps {steps}");
        }
    }
}
