//! Any bytes as the parameters of a tiny circuit.

use std::fs::File;
use std::io::Write;
use std::os::fd::{AsRawFd, FromRawFd};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use bellperson::{Circuit, ConstraintSystem, SynthesisError};
use blstrs::{G1Affine, G2Affine, Scalar};
use group::prime::PrimeCurveAffine;

use crate::circuit::compile::compile_circuit;
use crate::circuit::compiled::Compiled;
use crate::error::{Error, Result};
use crate::memory::arena::Arena;
use crate::plan::{ArenaPlan, Purpose};
use crate::srs::check::{Check, check_points};
use crate::srs::key::VerifyingKey;
use crate::srs::layout::{Counts, probe};
use crate::srs::read::{Srs, SrsLayout};
use crate::srs::setup::{Waste, write_params};
use crate::team::Team;

use super::MESSAGE_MAX;

/// Reads bytes as the `.params` file of a tiny circuit beside its `.vk` file, as a `.params` file
/// beside its own head, and as the `.vk` file beside the right `.params`; tells how many of the
/// readings were accepted.
///
/// # Panics
/// On a finding.
pub fn parameters(bytes: &[u8]) -> usize {
    let tiny = tiny();
    let head = &bytes[..bytes.len().min(tiny.vk.len())];
    [(bytes, &tiny.vk[..]), (bytes, head), (&tiny.params[..], bytes)]
        .into_iter()
        .filter(|(params, vk)| tiny.read(params, vk))
        .count()
}

/// The bytes of the tiny circuit's own `.params` and `.vk` files.
pub fn valid() -> (&'static [u8], &'static [u8]) {
    (&tiny().params, &tiny().vk)
}

/// The circuit, its files and the threads that read them.
struct Tiny {
    compiled: Compiled,
    counts: Counts,
    team: Team,
    params: Vec<u8>,
    vk: Vec<u8>,
}

fn tiny() -> &'static Tiny {
    static TINY: OnceLock<Tiny> = OnceLock::new();
    TINY.get_or_init(|| Tiny::new().expect("the tiny circuit has parameters"))
}

impl Tiny {
    /// With secrets that everyone may know, so that the files are the same every time.
    fn new() -> Result<Self> {
        let one = (Squares { blocks: 1 }, 2);
        let compiled = compile_circuit(Squares { blocks: 0 }, Some(one))?;
        let team = Team::new("berth-fuzz", &[None])?;
        let [alpha, beta, gamma, delta, tau] =
            [0x5eed_0001, 0x5eed_0003, 0x5eed_0007, 0x5eed_000f, 0x5eed_001f].map(Scalar::from);
        let waste = Waste { alpha, beta, gamma, delta, tau };
        let file = MemoryFile::new(&[]);
        let generators = (G1Affine::generator(), G2Affine::generator());
        let key = write_params(&compiled, waste, generators, &file.path, &team, &|_, _| ())?;
        let params = std::fs::read(&file.path).expect("a file in memory can be read");
        let counts = Counts::of(&compiled);
        Ok(Tiny { compiled, counts, team, params, vk: key.to_bytes() })
    }

    /// True if the files are accepted, which all ways of reading them must agree on.
    fn read(&self, params: &[u8], vk: &[u8]) -> bool {
        let (params_file, vk_file) = (MemoryFile::new(params), MemoryFile::new(vk));
        let (params_path, vk_path) = (&*params_file.path, &*vk_file.path);
        let counts = probe(params_path);
        let check =
            |check| check_points(params_path, vk_path, &self.counts, check, &self.team, &|_, _| ());
        let checked = check(Check::Curve);
        let loaded = self.load(params_path, vk_path);
        let srs = match (loaded, checked) {
            (Ok(srs), Ok(())) => srs,
            (Err(loading), Err(checking)) => {
                let (loading, checking) = (refused(loading), refused(checking));
                assert_eq!(loading, checking, "both ways name the same fault");
                assert!(check(Check::Subgroup).is_err(), "the longer check allows less");
                if let Err(error) = counts {
                    refused(error);
                }
                return false;
            }
            (loaded, checked) => panic!("loaded: {:?}, checked: {checked:?}", loaded.err()),
        };
        if let Err(error) = check(Check::Subgroup) {
            refused(error);
        }
        assert_eq!(counts.expect("it was loaded"), self.counts, "counts are the circuit's");
        let key = VerifyingKey::read(vk_path, self.counts.ic as usize).expect("it was loaded");
        assert!(key == *srs.key() && key.to_bytes() == vk, "the key is not that of the file");
        assert!(params.starts_with(vk), "the key is not the head of the parameters");
        assert_eq!(params.len() as u64, self.counts.params_bytes(), "accepted at another length");
        true
    }

    fn load(&self, params: &Path, vk: &Path) -> Result<Srs> {
        let plan = ArenaPlan::unplaced(Purpose::Srs, SrsLayout::bytes(&self.compiled));
        let (arena, _) = Arena::map(&plan).expect("a few pages can be mapped");
        Srs::load(params, vk, &self.compiled, arena, &self.team, &|_, _| ())
    }
}

/// Every refusal is the files' fault, and short; gives its text.
fn refused(error: Error) -> String {
    let text = error.to_string();
    assert!(matches!(error, Error::Parameters(_)), "an error of another kind: {text}");
    assert!(text.len() <= MESSAGE_MAX, "{} bytes of message: {text:.200}", text.len());
    text
}

/// A file that has no name but its descriptor's; gone when dropped.
struct MemoryFile {
    path: PathBuf,
    _file: File,
}

impl MemoryFile {
    fn new(bytes: &[u8]) -> Self {
        // SAFETY: the name is a C string that outlives the call.
        let descriptor = unsafe { libc::memfd_create(c"berth-fuzz".as_ptr(), libc::MFD_CLOEXEC) };
        assert!(descriptor >= 0, "no file in memory: {}", std::io::Error::last_os_error());
        // SAFETY: the descriptor is new, so it is owned here alone.
        let mut file = unsafe { File::from_raw_fd(descriptor) };
        file.write_all(bytes).expect("a file in memory takes a few bytes");
        let path = format!("/proc/self/fd/{}", file.as_raw_fd()).into();
        MemoryFile { path, _file: file }
    }
}

/// A header and blocks of one input, one boolean and one wide variable each: y = x^2 + b.
struct Squares {
    blocks: usize,
}

impl Circuit<Scalar> for Squares {
    fn synthesize<CS: ConstraintSystem<Scalar>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
        let unknown = || Err(SynthesisError::AssignmentMissing);
        for _ in 0..=self.blocks {
            let y = cs.alloc_input(|| "y", unknown)?;
            let b = cs.alloc(|| "b", unknown)?;
            let x = cs.alloc(|| "x", unknown)?;
            cs.enforce(|| "b is a bit", |lc| lc + CS::one() - b, |lc| lc + b, |lc| lc);
            cs.enforce(|| "y = x^2 + b", |lc| lc + x, |lc| lc + x, |lc| lc + y - b);
        }
        Ok(())
    }
}
