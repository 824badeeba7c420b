//! Witnesses: how a slot is filled, and how a filled slot is read.

pub mod compact;
pub mod generic;
pub mod porep;

use blstrs::Scalar;

use self::porep::poseidon::Poseidon;
use crate::circuit::compiled::Compiled;
use crate::config::WitnessMaker;
use crate::error::Result;
use crate::input::Input;
use crate::input::class::Kind;
use crate::memory::heap;

/// How the witnesses of a prover are made, with the tables for it.
pub struct Witnesses {
    maker: WitnessMaker,
    poseidon: Poseidon,
}

impl Witnesses {
    /// Makes the tables; nothing else here that native code needs is on the heap.
    pub fn new(maker: WitnessMaker) -> Self {
        Witnesses { maker, poseidon: Poseidon::published() }
    }

    /// Fills one part of one partition's witness: the header (part 0) or block k (part k + 1), by
    /// native code where that is chosen and exists, else by the published code.
    ///
    /// `wides` and `bits` are that part's pieces of the planes, `wide_len()` entries and
    /// `word_len()` words of its shape, paddings included. Native code allocates nothing; the heap
    /// is opened for the published code, and for an error.
    ///
    /// # Errors
    /// [`Error::Input`](crate::error::Error::Input) with partition, challenge and part.
    pub fn fill_part(
        &self,
        input: &Input,
        compiled: &Compiled,
        partition: usize,
        part: usize,
        wides: &mut [Scalar],
        bits: &mut [u64],
    ) -> Result<()> {
        match input.vanilla.porep() {
            Some(porep) if self.maker.is_native(Kind::Porep) => {
                let tables = &self.poseidon;
                porep::fill_part(tables, porep, compiled, partition, part, wides, bits)
                    .map_err(|misfit| heap::opened(|| misfit.error(partition, part)))
            }
            _ => heap::opened(|| generic::fill_part(input, compiled, partition, part, wides, bits)),
        }
    }
}

#[cfg(test)]
mod tests;
