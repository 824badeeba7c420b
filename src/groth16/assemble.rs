//! The last additions of a proof: five sums, r and s to 192 bytes.

use blstrs::{Bls12, G1Affine, G1Projective, G2Affine, G2Projective, Scalar};
use group::Curve;
use group::prime::PrimeCurveAffine;

use super::{PROOF_BYTES, Sums};
use crate::error::{Error, Result};

/// The verifying key as bellperson holds it.
pub type VerifyingKey = bellperson::groth16::VerifyingKey<Bls12>;

/// The blinding of one proof.
#[derive(Clone, Copy)]
pub struct Blinding {
    pub r: Scalar,
    pub s: Scalar,
}

impl Blinding {
    /// A fresh pair from the operating system: the only place where the program draws one.
    ///
    /// # Errors
    /// [`Error::Host`] when the operating system gives no random bytes.
    pub fn draw() -> Result<Self> {
        Ok(Blinding { r: random_scalar()?, s: random_scalar()? })
    }
}

/// Uniform in Fr by rejection: 255 random bits until they are below the modulus.
fn random_scalar() -> Result<Scalar> {
    loop {
        let mut bytes = [0u8; 32];
        // SAFETY: the buffer has 32 writable bytes.
        let got = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
        if got != bytes.len() as isize {
            let why = std::io::Error::last_os_error();
            return Err(Error::Host(format!("getrandom gave no randomness for r and s: {why}")));
        }
        bytes[31] &= 0x7f;
        if let Some(scalar) = Option::from(Scalar::from_bytes_le(&bytes)) {
            return Ok(scalar);
        }
    }
}

/// The proof of one partition.
///
/// ```text
/// A = alpha + A' + r delta        B = beta + B' + s delta
/// C = H + L + s A + r (beta + B1' + s delta) - r s delta
/// ```
///
/// # Errors
/// [`Error::Parameters`] when delta is the identity: such a key would make proofs of anything.
pub fn assemble(key: &VerifyingKey, sums: &Sums, blinding: Blinding) -> Result<[u8; PROOF_BYTES]> {
    let Blinding { r, s } = blinding;
    if bool::from(key.delta_g1.is_identity()) || bool::from(key.delta_g2.is_identity()) {
        return Err(Error::Parameters(
            "delta of the verifying key is the identity; the file is not a Groth16 setup".into(),
        ));
    }
    let delta_g1 = G1Projective::from(key.delta_g1);
    let a = G1Projective::from(key.alpha_g1) + sums.a + delta_g1 * r;
    let b = G2Projective::from(key.beta_g2) + sums.b_g2 + G2Projective::from(key.delta_g2) * s;
    let b_g1 = G1Projective::from(key.beta_g1) + sums.b_g1 + delta_g1 * s;
    let c = sums.h + sums.l + a * s + b_g1 * r - delta_g1 * (r * s);
    Ok(to_bytes(&a.to_affine(), &b.to_affine(), &c.to_affine()))
}

fn to_bytes(a: &G1Affine, b: &G2Affine, c: &G1Affine) -> [u8; PROOF_BYTES] {
    let mut bytes = [0u8; PROOF_BYTES];
    bytes[..48].copy_from_slice(&a.to_compressed());
    bytes[48..144].copy_from_slice(&b.to_compressed());
    bytes[144..].copy_from_slice(&c.to_compressed());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blindings_differ() {
        let (x, y) = (Blinding::draw().unwrap(), Blinding::draw().unwrap());
        assert!(x.r != x.s && x.r != y.r && x.s != y.s);
    }
}
