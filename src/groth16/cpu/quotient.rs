//! The quotient h = (a b - c) / (X^m - 1) by six NTTs (formats.md section 11.2).

use blstrs::Scalar;
use ff::Field;

use super::ntt::{Domain, GENERATOR, Points, Steps};
use crate::error::{Error, Result};
use crate::memory::heap;
use crate::team::Team;

/// Takes the evaluations of a and b over `domain`, in natural order, and leaves the coefficients
/// of h in `a`, in bit-reversed order: h_i at position bitrev(i). Position m - 1 holds coefficient
/// m - 1, which is zero. `b` and `c` are scratch of the same length; all values are canonical.
///
/// c = a∘b is made here, not evaluated, and never goes to the coset: on 7 * <w> the divisor
/// X^m - 1 is the constant 7^m - 1, so h is (INTT of a b on the coset - INTT of c) / (7^m - 1).
///
/// # Errors
/// [`Error::Device`] when coefficient m - 1 is not zero. It is for any a and b, satisfied rows or
/// not, so something computed wrongly: memory or a core of this host cannot be trusted.
pub fn quotient(
    team: &Team,
    domain: &mut Domain<'_>,
    a: &mut [Scalar],
    b: &mut [Scalar],
    c: &mut [Scalar],
) -> Result<()> {
    let scale = scales(domain);
    let product =
        Steps { source: Some(a), times: Some(b), inverse: Some(Points::Plain), ..Steps::new(c) };
    domain.run(team, product);
    for factor in [&mut *a, &mut *b] {
        let to_coset = Steps {
            inverse: Some(Points::Plain),
            forward: Some(Points::Coset),
            ..Steps::new(factor)
        };
        domain.run(team, to_coset);
    }
    let from_coset = Steps {
        times: Some(b),
        inverse: Some(Points::Coset),
        minus: Some((c, &scale)),
        ..Steps::new(a)
    };
    domain.run(team, from_coset);
    self_check(a)
}

fn self_check(h: &[Scalar]) -> Result<()> {
    let last = h.last().expect("a domain is not empty");
    if bool::from(last.is_zero()) {
        return Ok(());
    }
    let told = || {
        format!(
            "CPU: self-check of the quotient failed (coefficient {} of h is not zero): the \
             arithmetic of this host went wrong; check its memory and cores",
            h.len() - 1
        )
    };
    Err(Error::Device(heap::opened(told)))
}

/// What the raw product polynomial and the raw c are multiplied by. Each inverse NTT left out its
/// factor 1/m (three meet in the product), and each product of data its divisor.
fn scales(domain: &Domain<'_>) -> [Scalar; 2] {
    let m = Scalar::from(domain.len() as u64);
    let on_coset = Scalar::from(GENERATOR).pow_vartime([domain.len() as u64]) - Scalar::ONE;
    let c = domain.product_divisor() * (on_coset * m).invert().expect("7 and m are no roots");
    let product = c * m.square().invert().expect("m is not zero");
    [domain.constant(product), domain.constant(c)]
}

#[cfg(test)]
mod tests;
