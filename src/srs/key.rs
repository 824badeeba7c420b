//! The verifying key: a `.vk` file, and the head of every `.params` file.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use blstrs::{Bls12, G1Affine, G2Affine};

use super::layout::{self, Counts, G1_BYTES, G2_BYTES, HEAD_BYTES, Section};
use super::points::{Point, Why};
use super::{file_error, io_error};
use crate::error::{Error, Result};

/// A Groth16 verifying key; no point is at infinity, all are in their subgroups.
#[derive(Clone, Debug, PartialEq)]
pub struct VerifyingKey {
    pub alpha_g1: G1Affine,
    pub beta_g1: G1Affine,
    pub beta_g2: G2Affine,
    pub gamma_g2: G2Affine,
    pub delta_g1: G1Affine,
    pub delta_g2: G2Affine,
    /// One point per public input, ONE first.
    pub ic: Vec<G1Affine>,
}

impl VerifyingKey {
    /// Reads a `.vk` file of a circuit with `inputs` public inputs, ONE included.
    ///
    /// # Errors
    /// [`Error::Parameters`] naming the file, the offset and what was expected.
    pub fn read(path: &Path, inputs: usize) -> Result<Self> {
        Self::parse(&vk_file(path, inputs)?, path)
    }

    /// Reads the head of an open `.params` file and the `.vk` file, which must be equal.
    pub(super) fn read_both(
        file: &File,
        params: &Path,
        vk: &Path,
        counts: &Counts,
    ) -> Result<Self> {
        let mut head = vec![0; counts.vk_bytes() as usize];
        file.read_exact_at(&mut head, 0)
            .map_err(|e| io_error(params, "verifying key, offset 0", &e))?;
        let key = Self::parse(&head, params)?;
        let other = vk_file(vk, counts.ic as usize)?;
        if let Some(at) = head.iter().zip(&other).position(|(a, b)| a != b) {
            return Err(Error::Parameters(format!(
                "the verifying key in {} is not that in {}: they differ first at offset {at} ({}); \
                 one of the two files is of another setup, fetch or make both again",
                params.display(),
                vk.display(),
                counts.locate(at as u64)
            )));
        }
        Ok(key)
    }

    /// Takes a key from the bytes of a whole `.vk` file; `path` is for messages.
    ///
    /// # Errors
    /// [`Error::Parameters`]: wrong length, or a point that is not in its group.
    pub fn parse(bytes: &[u8], path: &Path) -> Result<Self> {
        let first = HEAD_BYTES as usize + 4;
        if bytes.len() < first {
            let what = format!(
                "too short for a verifying key: expected at least {first} bytes, found {}",
                bytes.len()
            );
            return Err(file_error(path, what));
        }
        let inputs = u32::from_be_bytes(bytes[first - 4..first].try_into().expect("four bytes"));
        let length = first as u64 + u64::from(inputs) * G1_BYTES as u64;
        if bytes.len() as u64 != length {
            let what = format!(
                "section ic at offset {}: {inputs} points make a verifying key of {length} bytes, \
                 found {}",
                first - 4,
                bytes.len()
            );
            return Err(file_error(path, what));
        }
        let g1 = |offset: usize, name: &str| point::<G1Affine>(bytes, offset, name, path);
        let g2 = |offset: usize, name: &str| point::<G2Affine>(bytes, offset, name, path);
        Ok(VerifyingKey {
            alpha_g1: g1(0, "alpha_g1")?,
            beta_g1: g1(96, "beta_g1")?,
            beta_g2: g2(192, "beta_g2")?,
            gamma_g2: g2(384, "gamma_g2")?,
            delta_g1: g1(576, "delta_g1")?,
            delta_g2: g2(672, "delta_g2")?,
            ic: (0..inputs as usize)
                .map(|i| g1(first + i * G1_BYTES, &format!("ic[{i}]")))
                .collect::<Result<_>>()?,
        })
    }

    /// The bytes of the `.vk` file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let first = HEAD_BYTES as usize + 4;
        let mut bytes = vec![0; first + self.ic.len() * G1_BYTES];
        let g1 = [(0, self.alpha_g1), (96, self.beta_g1), (576, self.delta_g1)];
        for (at, point) in g1 {
            G1Affine::write(&mut bytes[at..at + G1_BYTES], &[point]);
        }
        let g2 = [(192, self.beta_g2), (384, self.gamma_g2), (672, self.delta_g2)];
        for (at, point) in g2 {
            G2Affine::write(&mut bytes[at..at + G2_BYTES], &[point]);
        }
        let inputs = u32::try_from(self.ic.len()).expect("inputs are counted in 32 bits");
        bytes[first - 4..first].copy_from_slice(&inputs.to_be_bytes());
        G1Affine::write(&mut bytes[first..], &self.ic);
        bytes
    }

    /// The same key as bellperson's verifier takes it.
    pub fn to_bellperson(&self) -> bellperson::groth16::VerifyingKey<Bls12> {
        bellperson::groth16::VerifyingKey {
            alpha_g1: self.alpha_g1,
            beta_g1: self.beta_g1,
            beta_g2: self.beta_g2,
            gamma_g2: self.gamma_g2,
            delta_g1: self.delta_g1,
            delta_g2: self.delta_g2,
            ic: self.ic.clone(),
        }
    }
}

/// The bytes of a `.vk` file, whose length must be that of `inputs` public inputs.
fn vk_file(path: &Path, inputs: usize) -> Result<Vec<u8>> {
    let (file, length) = layout::open(path)?;
    let wanted = Counts { ic: inputs as u64, h: 0, l: 0, a: 0, b: 0 }.vk_bytes();
    if length != wanted {
        let what = format!(
            "expected {wanted} bytes for the verifying key of a circuit with {inputs} inputs, \
             found {length}; fetch the file again"
        );
        return Err(file_error(path, what));
    }
    let mut bytes = vec![0; wanted as usize];
    file.read_exact_at(&mut bytes, 0).map_err(|e| io_error(path, "cannot be read", &e))?;
    Ok(bytes)
}

fn point<P: Point>(bytes: &[u8], offset: usize, name: &str, path: &Path) -> Result<P> {
    let mut point = [P::default()];
    match P::read(&mut point, &bytes[offset..offset + P::BYTES], true) {
        Ok(()) => Ok(point[0]),
        Err((_, why)) => Err(refused(path, name, offset as u64, why)),
    }
}

/// The error of a point that was refused.
pub(super) fn refused(path: &Path, name: &str, offset: u64, why: Why) -> Error {
    file_error(path, format!("{name} at offset {offset}: expected a point, found {why}"))
}

/// The error of the k-th point of a section.
pub(super) fn refused_in(
    path: &Path,
    section: Section,
    counts: &Counts,
    k: u64,
    why: Why,
) -> Error {
    let offset = counts.first_point(section) + k * section.point_bytes();
    refused(path, &format!("{}[{k}]", section.name()), offset, why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::srs::testing::{Scratch, random_g1, random_g2};

    fn key(inputs: usize) -> VerifyingKey {
        VerifyingKey {
            alpha_g1: random_g1(1),
            beta_g1: random_g1(2),
            beta_g2: random_g2(3),
            gamma_g2: random_g2(4),
            delta_g1: random_g1(5),
            delta_g2: random_g2(6),
            ic: (0..inputs as u64).map(|i| random_g1(7 + i)).collect(),
        }
    }

    #[test]
    fn bytes_are_those_of_bellperson() {
        let key = key(3);
        let mut bytes = Vec::new();
        key.to_bellperson().write(&mut bytes).unwrap();
        assert_eq!(key.to_bytes(), bytes);
        assert_eq!(VerifyingKey::parse(&bytes, Path::new("x.vk")).unwrap(), key);
    }

    #[test]
    fn damaged_keys_are_refused_by_name_and_offset() {
        let scratch = Scratch::new("key-damage");
        let path = scratch.path("x.vk");
        let bytes = key(3).to_bytes();
        let refusal = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            VerifyingKey::read(&path, 3).unwrap_err().to_string()
        };
        let text = refusal(&bytes[..bytes.len() - 1]);
        assert!(text.contains("expected 1156 bytes") && text.contains("found 1155"), "{text}");
        let with = |at: usize, byte: u8| {
            let mut bytes = bytes.clone();
            bytes[at] ^= byte;
            bytes
        };
        let text = refusal(&with(700, 1));
        assert!(text.contains("delta_g2 at offset 672") && text.contains("curve"), "{text}");
        let text = refusal(&with(868 + 96, 0x80));
        assert!(text.contains("ic[1] at offset 964"), "{text}");
        let text = refusal(&with(867, 1));
        assert!(text.contains("section ic at offset 864"), "{text}");
        let mut infinity = bytes.clone();
        infinity[576..672].fill(0);
        infinity[576] = 0x40;
        let text = refusal(&infinity);
        assert!(text.contains("delta_g1") && text.contains("infinity"), "{text}");
    }

    #[test]
    fn any_length_of_bytes_is_refused_or_read_and_never_panics() {
        let bytes = key(2).to_bytes();
        for length in 0..bytes.len() {
            assert!(VerifyingKey::parse(&bytes[..length], Path::new("x")).is_err());
        }
    }
}
