//! The witness of the PoRep circuit, written for it: the columns of the published circuit code,
//! in its order, without that code. Nothing here allocates but the tables of constants, once.

pub mod bits;
pub mod sha256;
pub mod field;
pub mod poseidon;
pub mod path;
pub mod label;
pub mod block;
pub mod sparse;

use blstrs::Scalar;

use self::block::{Misfit, Roots, Sector, fill_block, fill_header};
use self::poseidon::Poseidon;
use crate::circuit::compiled::Compiled;
use crate::input::Porep;

/// Fills one part of one partition: the header (part 0) or the block of a challenge.
///
/// # Errors
/// A [`Misfit`]: what is described cannot satisfy the circuit.
pub fn fill_part(
    poseidon: &Poseidon,
    porep: &Porep,
    compiled: &Compiled,
    partition: usize,
    part: usize,
    wides: &mut [Scalar],
    bits: &mut [u64],
) -> Result<(), Misfit> {
    let challenges = porep.partitions.get(partition).ok_or(Misfit::Missing)?;
    // As the published circuit does it: the roots are those of the partition's first challenge.
    let first = challenges.first().ok_or(Misfit::Missing)?;
    let roots = Roots {
        replica_id: porep.replica_id.into(),
        comm_d: porep.comm_d.into(),
        comm_r: porep.comm_r.into(),
        comm_r_last: first.replica.root,
        comm_c: first.own.path.root,
    };
    let shape = compiled.shape.part(part);
    if part == 0 {
        return fill_header(poseidon, &roots, shape, wides, bits);
    }
    let challenge = challenges.get(part - 1).ok_or(Misfit::Missing)?;
    fill_block(poseidon, &Sector::of(porep.sector), &roots, challenge, shape, wides, bits)
}

#[cfg(test)]
mod oracle;
#[cfg(test)]
mod tests;
