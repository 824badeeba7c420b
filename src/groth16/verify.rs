//! The pairing check: no proof leaves without it.
//!
//! e(A, B) = e(alpha, beta) e(ic_0 + Σ x_i ic_i, gamma) e(C, delta)

use blstrs::{Bls12, G1Affine, G1Projective, G2Affine, G2Prepared, Gt, Scalar};
use group::prime::PrimeCurveAffine;
use group::{Curve, Group};
use pairing::{MillerLoopResult, MultiMillerLoop};

use super::PROOF_BYTES;
use super::assemble::VerifyingKey;
use crate::error::{Error, Result};

/// A verifying key with the parts that do not depend on the proof worked out.
pub struct PreparedKey {
    alpha_beta: Gt,
    minus_gamma: G2Prepared,
    minus_delta: G2Prepared,
    ic: Vec<G1Affine>,
}

/// The three points of a proof, each on its curve, in its subgroup and not infinity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proof {
    pub a: G1Affine,
    pub b: G2Affine,
    pub c: G1Affine,
}

impl Proof {
    /// Reads the 192 bytes of one proof.
    ///
    /// # Errors
    /// [`Error::Input`] naming A, B or C when the bytes are no point of the right group or the
    /// point is infinity; `at` is the offset of the proof in its file.
    pub fn read(bytes: &[u8; PROOF_BYTES], at: usize) -> Result<Self> {
        let fault = |name: &str, offset: usize| {
            Error::input(
                format!("proof byte {}", at + offset),
                format!("{name} is not a point of its group, or it is infinity"),
            )
        };
        let g1 = |name: &str, offset: usize| {
            let part: &[u8; 48] = bytes[offset..offset + 48].try_into().expect("48 bytes");
            Option::<G1Affine>::from(G1Affine::from_compressed(part))
                .filter(|point| !bool::from(point.is_identity()))
                .ok_or_else(|| fault(name, offset))
        };
        let part: &[u8; 96] = bytes[48..144].try_into().expect("96 bytes");
        let b = Option::<G2Affine>::from(G2Affine::from_compressed(part))
            .filter(|point| !bool::from(point.is_identity()))
            .ok_or_else(|| fault("B", 48))?;
        Ok(Proof { a: g1("A", 0)?, b, c: g1("C", 144)? })
    }
}

impl PreparedKey {
    pub fn new(key: &VerifyingKey) -> Self {
        let alpha_beta = Bls12::multi_miller_loop(&[(&key.alpha_g1, &key.beta_g2.into())]);
        PreparedKey {
            alpha_beta: alpha_beta.final_exponentiation(),
            minus_gamma: (-key.gamma_g2).into(),
            minus_delta: (-key.delta_g2).into(),
            ic: key.ic.clone(),
        }
    }

    /// Does the proof hold for these public inputs (without the leading ONE)?
    ///
    /// # Errors
    /// [`Error::Parameters`] when the key is for another number of inputs.
    pub fn verify(&self, proof: &Proof, inputs: &[Scalar]) -> Result<bool> {
        if inputs.len() + 1 != self.ic.len() {
            return Err(Error::Parameters(format!(
                "the verifying key is for {} public inputs, the request has {}",
                self.ic.len() - 1,
                inputs.len()
            )));
        }
        let acc = (G1Projective::from(self.ic[0]) + msm(&self.ic[1..], inputs)).to_affine();
        let product = Bls12::multi_miller_loop(&[
            (&proof.a, &proof.b.into()),
            (&acc, &self.minus_gamma),
            (&proof.c, &self.minus_delta),
        ]);
        Ok(product.final_exponentiation() == self.alpha_beta)
    }
}

/// Σ scalars_i points_i on the calling thread alone, by blst's Pippenger.
fn msm(points: &[G1Affine], scalars: &[Scalar]) -> G1Projective {
    if points.is_empty() {
        return G1Projective::identity();
    }
    // blst wants no infinity among the points; ic has none (every input has a row of its own).
    let bytes: Vec<u8> = scalars.iter().flat_map(Scalar::to_bytes_le).collect();
    let point_list: [*const blst::blst_p1_affine; 2] = [points.as_ptr().cast(), std::ptr::null()];
    let scalar_list: [*const u8; 2] = [bytes.as_ptr(), std::ptr::null()];
    let mut sum = blst::blst_p1::default();
    // SAFETY: G1Affine is a transparent wrapper of blst_p1_affine; a list whose second entry is
    // null means that the rest follows contiguously; the scalars are 32 bytes each, and the
    // scratch has the size that blst asks for.
    unsafe {
        let words = blst::blst_p1s_mult_pippenger_scratch_sizeof(points.len()).div_ceil(8);
        let mut scratch = vec![0u64; words];
        blst::blst_p1s_mult_pippenger(
            &mut sum,
            point_list.as_ptr(),
            points.len(),
            scalar_list.as_ptr(),
            255,
            scratch.as_mut_ptr(),
        );
        std::mem::transmute::<blst::blst_p1, G1Projective>(sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ff::Field;

    fn points(n: u64) -> Vec<G1Affine> {
        (1..=n).map(|i| (G1Projective::generator() * Scalar::from(i * i + 1)).to_affine()).collect()
    }

    #[test]
    fn msm_is_the_naive_sum() {
        for n in [0, 1, 2, 31, 32, 33, 40, 328] {
            let points = points(n);
            let scalars: Vec<Scalar> =
                (0..n).map(|i| Scalar::from(i + 3).square().square() - Scalar::from(7)).collect();
            let naive: G1Projective = points.iter().zip(&scalars).map(|(p, s)| p * s).sum();
            assert_eq!(msm(&points, &scalars), naive, "{n} points");
        }
        assert_eq!(msm(&points(2), &[Scalar::ZERO; 2]), G1Projective::identity());
    }

    #[test]
    fn proof_bytes_are_checked() {
        let a = (G1Projective::generator() * Scalar::from(5)).to_affine();
        let b = (blstrs::G2Projective::generator() * Scalar::from(6)).to_affine();
        let mut bytes = [0u8; PROOF_BYTES];
        bytes[..48].copy_from_slice(&a.to_compressed());
        bytes[48..144].copy_from_slice(&b.to_compressed());
        bytes[144..].copy_from_slice(&a.to_compressed());
        assert_eq!(Proof::read(&bytes, 0).unwrap(), Proof { a, b, c: a });
        for (offset, name) in [(0, "A"), (48, "B"), (144, "C")] {
            let mut infinity = bytes;
            let end = if name == "B" { offset + 96 } else { offset + 48 };
            infinity[offset..end].fill(0);
            infinity[offset] = 0xc0;
            let message = Proof::read(&infinity, 192).unwrap_err().to_string();
            assert!(message.contains(name) && message.contains(&format!("{}", 192 + offset)));
            infinity[offset] = 0x00;
            assert!(Proof::read(&infinity, 0).is_err());
        }
    }
}
