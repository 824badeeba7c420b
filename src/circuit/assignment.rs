//! Writes what a circuit assigns straight into the two planes of one part of a slot.

use bellperson::{Index, SynthesisError, Variable};
use blstrs::Scalar;
use ff::Field;

use super::compiled::Compiled;
use super::shape::PartShape;
use super::synthesis::{Sink, Value};

/// Why a circuit's values cannot be a witness of the compiled circuit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The aux variable of that number within the part must be 0 or 1 and is not.
    NotBoolean(usize),
    /// More inputs or aux variables than the part has.
    TooMany,
    /// Fewer inputs or aux variables than the part has.
    TooFew,
}

/// Fills one part; what the circuit allocates before it (the header, for a block) is left out.
pub struct Assignment<'a> {
    shape: PartShape,
    boolean: &'a [u64],
    wides: &'a mut [Scalar],
    bits: &'a mut [u64],
    /// Inputs and aux variables that come before the part.
    skip: (usize, usize),
    /// Inputs and aux variables so far, the skipped ones included.
    inputs: usize,
    aux: usize,
    /// Boolean aux variables of the part so far.
    bits_done: usize,
    /// The bits of the word that is not written yet.
    word: u64,
    fault: Option<Fault>,
}

impl<'a> Assignment<'a> {
    /// The planes are the part's own: `wide_len()` entries and `word_len()` words of its shape.
    pub fn new(
        compiled: &'a Compiled,
        part: usize,
        wides: &'a mut [Scalar],
        bits: &'a mut [u64],
    ) -> Self {
        let shape = *compiled.shape.part(part);
        assert_eq!(wides.len(), shape.wide_len(), "the wide plane is the part's");
        assert_eq!(bits.len(), shape.word_len(), "the bit plane is the part's");
        let header = &compiled.shape.header;
        let skip = if part == 0 { (0, 0) } else { (header.inputs, header.aux()) };
        if part == 0 {
            wides[0] = Scalar::ONE;
        }
        let boolean = &compiled.part(part).boolean;
        let (inputs, aux, bits_done, word) = (1, 0, 0, 0);
        Assignment { shape, boolean, wides, bits, skip, inputs, aux, bits_done, word, fault: None }
    }

    /// Writes the last bits and the paddings.
    ///
    /// # Errors
    /// The first fault that the circuit made, or that it made too few variables.
    pub fn finish(self) -> Result<(), Fault> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        let (inputs, aux) = (self.skip.0 + self.shape.inputs, self.skip.1 + self.shape.aux());
        if (self.inputs, self.aux) != (inputs, aux) {
            return Err(Fault::TooFew);
        }
        self.wides[self.shape.inputs + self.shape.wides..].fill(Scalar::ZERO);
        let whole_words = self.bits_done / 64;
        self.bits[whole_words..].fill(0);
        if !self.bits_done.is_multiple_of(64) {
            self.bits[whole_words] = self.word;
        }
        Ok(())
    }

    /// The fault that stopped the circuit, if one did.
    pub fn fault(&self) -> Option<Fault> {
        self.fault
    }

    fn fail<T>(&mut self, fault: Fault) -> Result<T, SynthesisError> {
        self.fault.get_or_insert(fault);
        Err(SynthesisError::Unsatisfiable)
    }

    /// Writes the value of aux variable `index` of the part.
    fn write(&mut self, index: usize, value: Scalar) -> Result<(), SynthesisError> {
        if index >= self.shape.aux() {
            return self.fail(Fault::TooMany);
        }
        if self.boolean[index / 64] >> (index % 64) & 1 == 0 {
            self.wides[self.shape.inputs + index - self.bits_done] = value;
            return Ok(());
        }
        let place = self.bits_done % 64;
        if value == Scalar::ONE {
            self.word |= 1 << place;
        } else if !value.is_zero_vartime() {
            return self.fail(Fault::NotBoolean(index));
        }
        if place == 63 {
            self.bits[self.bits_done / 64] = self.word;
            self.word = 0;
        }
        self.bits_done += 1;
        Ok(())
    }
}

impl Sink for Assignment<'_> {
    fn aux(&mut self, value: Value) -> Result<Variable, SynthesisError> {
        let index = self.aux;
        // Left out variables are computed all the same: the block builds on their values.
        let value = value()?;
        if index >= self.skip.1 {
            self.write(index - self.skip.1, value)?;
        }
        self.aux += 1;
        Ok(Variable::new_unchecked(Index::Aux(index)))
    }

    fn input(&mut self, value: Value) -> Result<Variable, SynthesisError> {
        let index = self.inputs;
        let value = value()?;
        if index >= self.skip.0 {
            let at = index - self.skip.0;
            if at >= self.shape.inputs {
                return self.fail(Fault::TooMany);
            }
            self.wides[at] = value;
        }
        self.inputs += 1;
        Ok(Variable::new_unchecked(Index::Input(index)))
    }

    fn wants_rows(&self) -> bool {
        false
    }

    fn row(
        &mut self,
        _: &bellperson::LinearCombination<Scalar>,
        _: &bellperson::LinearCombination<Scalar>,
        _: &bellperson::LinearCombination<Scalar>,
    ) {
    }
}
