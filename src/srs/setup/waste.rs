//! The secrets of a setup. Whoever knows them can forge proofs for its parameters.

use blstrs::Scalar;

use crate::error::Result;
use crate::srs::random;

/// The trapdoors and tau. Overwritten when dropped; copies that the compiler keeps in registers
/// and on the stack are beyond reach.
pub struct Waste {
    pub alpha: Scalar,
    pub beta: Scalar,
    pub gamma: Scalar,
    pub delta: Scalar,
    pub tau: Scalar,
}

impl Waste {
    /// Fresh secrets from the operating system.
    ///
    /// # Errors
    /// [`crate::error::Error::Host`] when the system has no random numbers.
    pub fn random() -> Result<Self> {
        Ok(Waste {
            alpha: random_scalar()?,
            beta: random_scalar()?,
            gamma: random_scalar()?,
            delta: random_scalar()?,
            tau: random_scalar()?,
        })
    }
}

impl Drop for Waste {
    fn drop(&mut self) {
        let Waste { alpha, beta, gamma, delta, tau } = self;
        for secret in [alpha, beta, gamma, delta, tau] {
            wipe(std::slice::from_mut(secret));
        }
    }
}

/// Overwrites secrets, or values that tell them; the compiler does not leave it out.
pub fn wipe<T: Copy + Default>(secrets: &mut [T]) {
    for secret in secrets {
        // SAFETY: a valid exclusive reference to plain data.
        unsafe { std::ptr::write_volatile(secret, T::default()) };
    }
    std::sync::atomic::compiler_fence(std::sync::atomic::Ordering::SeqCst);
}

/// Uniform and not zero: 512 bits, reduced.
fn random_scalar() -> Result<Scalar> {
    loop {
        let mut bytes = [0u8; 64];
        random::fill(&mut bytes)?;
        let mut reduced = blst::blst_scalar::default();
        let mut fr = blst::blst_fr::default();
        // SAFETY: all pointers are to live values of the stated sizes; a result below r, as the
        // reduction leaves it, is what `blst_fr_from_scalar` takes.
        let nonzero = unsafe {
            let nonzero =
                blst::blst_scalar_from_le_bytes(&mut reduced, bytes.as_ptr(), bytes.len());
            blst::blst_fr_from_scalar(&mut fr, &reduced);
            nonzero
        };
        if nonzero {
            return Ok(Scalar::from(fr));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ff::Field;

    #[test]
    fn secrets_differ_and_are_wiped() {
        let waste = Waste::random().unwrap();
        let all = [waste.alpha, waste.beta, waste.gamma, waste.delta, waste.tau];
        for (i, a) in all.iter().enumerate() {
            assert!(!bool::from(a.is_zero()));
            assert!(all[..i].iter().all(|b| b != a));
        }
        let mut secrets = all;
        wipe(&mut secrets);
        assert!(secrets.iter().all(|s| bool::from(s.is_zero())));
    }
}
