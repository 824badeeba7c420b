//! `params check`: every point of a parameter file, kept by nobody.
//!
//! That a point has order r costs some hundred times as much to test as that it is on the curve,
//! hours for the largest files. So points are first thrown at random into buckets and only the
//! buckets' sums are tested: if any point is outside the subgroup then, whatever the others do,
//! at most one choice of its bucket hides it, so a round misses it with probability 1 / buckets at
//! most. A bad sum is followed by a search point by point, which names the first bad one.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use blstrs::{G1Affine, G2Affine};
use group::Group;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

use super::file_error;
use super::key::VerifyingKey;
use super::layout::{self, Counts, Section};
use super::points::Point;
use super::random;
pub use super::windows::Check;
use super::windows::{Reader, plain_unit};
use crate::error::Result;
use crate::team::Team;

/// Independent throws of each point; with 2^12 buckets a bad file passes once in 2^60.
const ROUNDS: usize = 5;
const BUCKET_BITS: usize = 12;

/// Checks every point of a parameter file, and that its verifying key is that of the `.vk` file.
/// `counts` are the circuit's, or those that [`layout::probe`] found. `progress` is called with
/// points done and points in all, from any thread of the team. Memory: about 10 MB per thread.
///
/// # Errors
/// [`crate::error::Error::Parameters`] as for [`super::read::Srs::load`];
/// [`crate::error::Error::Host`] without random numbers.
pub fn check_points(
    params: &Path,
    vk: &Path,
    counts: &Counts,
    check: Check,
    team: &Team,
    progress: &(dyn Fn(u64, u64) + Sync),
) -> Result<()> {
    // Below this the sums are more work than the points.
    let few = ((team.len() * 2 * ROUNDS) << BUCKET_BITS) as u64;
    check_beyond(few, params, vk, counts, check, team, progress)
}

/// [`check_points`] with sums for files of more than `few` points.
fn check_beyond(
    few: u64,
    params: &Path,
    vk: &Path,
    counts: &Counts,
    check: Check,
    team: &Team,
    progress: &(dyn Fn(u64, u64) + Sync),
) -> Result<()> {
    let file = layout::open_params(params, counts)?;
    VerifyingKey::read_both(&file, params, vk, counts)?;
    let mut seed = [0; 32];
    random::fill(&mut seed)?;
    let streams = AtomicU64::new(0);
    let pass = |check, sums: bool| -> Result<Vec<State>> {
        let reader = Reader::new(params, &file, counts, check, progress);
        let state = || State::new(seed, streams.fetch_add(1, Ordering::Relaxed), sums);
        reader.run(&reader.sections(), team, state, |section, unit, state| {
            let points = plain_unit(counts.of_section(section), unit);
            let State { bytes, random, g1, g2 } = state;
            match section {
                Section::BG2 => {
                    reader.points(section, points, bytes, |_, batch| g2.add(batch, random))
                }
                _ => reader.points(section, points, bytes, |_, batch| g1.add(batch, random)),
            }
        })
    };
    let points = counts.h + counts.l + counts.a + 2 * counts.b;
    if check == Check::Curve || points <= few {
        return pass(check, false).map(drop);
    }
    let states = pass(Check::Curve, true)?;
    let states = Mutex::new(states.into_iter());
    let bad = AtomicBool::new(false);
    team.run(&|_| {
        let next = states.lock().unwrap_or_else(PoisonError::into_inner).next();
        if next.is_some_and(|state| !state.g1.good() || !state.g2.good()) {
            bad.store(true, Ordering::Relaxed);
        }
    });
    if !bad.into_inner() {
        return Ok(());
    }
    pass(Check::Subgroup, false)?;
    Err(file_error(
        params,
        "sums of points were not in the subgroup, but now each point is: the file, or the memory \
         of this machine, is not to be trusted",
    ))
}

/// What a thread of a pass works with.
struct State {
    bytes: Vec<u8>,
    random: ChaCha8Rng,
    g1: Sums<G1Affine>,
    g2: Sums<G2Affine>,
}

impl State {
    fn new(seed: [u8; 32], stream: u64, sums: bool) -> Self {
        let mut random = ChaCha8Rng::from_seed(seed);
        random.set_stream(stream);
        State { bytes: Vec::new(), random, g1: Sums::new(sums), g2: Sums::new(sums) }
    }
}

/// Sums of points in random buckets, round by round; none where they are not wanted.
struct Sums<P: Point>(Vec<P::Sum>);

impl<P: Point> Sums<P> {
    fn new(wanted: bool) -> Self {
        Sums(if wanted { vec![P::Sum::identity(); ROUNDS << BUCKET_BITS] } else { Vec::new() })
    }

    fn add(&mut self, points: &[P], random: &mut ChaCha8Rng) {
        if self.0.is_empty() {
            return;
        }
        for point in points {
            let mut bits = random.next_u64();
            for round in self.0.chunks_mut(1 << BUCKET_BITS) {
                round[bits as usize % (1 << BUCKET_BITS)] += point;
                bits >>= BUCKET_BITS;
            }
        }
    }

    fn good(&self) -> bool {
        self.0.iter().all(P::in_subgroup)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::srs::setup::{Waste, write_params};
    use crate::srs::testing::{Scratch, Spec, outside_g1, random_g1, random_g2};
    use std::os::unix::fs::FileExt;

    #[test]
    fn a_file_checked_by_sums_is_accepted_or_its_bad_point_named() {
        let scratch = Scratch::new("check");
        let [params, vk] = ["x.params", "x.vk"].map(|name| scratch.path(name));
        let compiled = Spec::random(12, 40, 50, 2).compile();
        let counts = Counts::of(&compiled);
        let team = Team::new("test", &[None; 2]).unwrap();
        let (waste, bases) = (Waste::random().unwrap(), (random_g1(1), random_g2(2)));
        let key = write_params(&compiled, waste, bases, &params, &team, &|_, _| ()).unwrap();
        std::fs::write(&vk, key.to_bytes()).unwrap();
        let check = |check| check_beyond(0, &params, &vk, &counts, check, &team, &|_, _| ());
        check(Check::Subgroup).unwrap();
        let file = std::fs::File::options().write(true).open(&params).unwrap();
        file.write_all_at(&outside_g1(), counts.first_point(Section::A) + 5 * 96).unwrap();
        check(Check::Curve).unwrap();
        let text = check(Check::Subgroup).unwrap_err().to_string();
        assert!(text.contains("a[5]") && text.contains("subgroup"), "{text}");
    }

    #[test]
    fn one_point_outside_spoils_the_sums() {
        let mut random = ChaCha8Rng::from_seed([7; 32]);
        let mut sums = Sums::new(true);
        let points: Vec<G1Affine> = (0..70).map(random_g1).collect();
        sums.add(&points, &mut random);
        assert!(sums.good());
        let mut outside = [G1Affine::default()];
        G1Affine::read(&mut outside, &outside_g1(), false).unwrap();
        sums.add(&outside, &mut random);
        assert!(!sums.good());
        let mut sums = Sums::new(true);
        sums.add(&[random_g2(1), random_g2(2)], &mut random);
        assert!(sums.good());
    }

    #[test]
    fn points_that_cancel_are_parted() {
        let mut random = ChaCha8Rng::from_seed([8; 32]);
        let mut outside = [G1Affine::default()];
        G1Affine::read(&mut outside, &outside_g1(), false).unwrap();
        let mut sums = Sums::new(true);
        sums.add(&[outside[0], -outside[0]], &mut random);
        assert!(!sums.good());
    }
}
