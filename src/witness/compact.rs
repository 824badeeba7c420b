//! Reading the compact witness: expansion to the circuit's own order, and the check of its rows.

use std::fmt;

use blstrs::Scalar;
use ff::Field;

use crate::circuit::compiled::{Compiled, Place, Rows};
use crate::circuit::shape::Witness;

/// The values as a circuit allocates them: (inputs with ONE, aux).
pub fn expand(compiled: &Compiled, witness: &Witness) -> (Vec<Scalar>, Vec<Scalar>) {
    let shape = &compiled.shape;
    let (mut inputs, mut aux) =
        (Vec::with_capacity(shape.inputs()), Vec::with_capacity(shape.aux()));
    for part in 0..shape.parts() {
        let sizes = shape.part(part);
        let mut wides = witness.wides[shape.wide_base(part)..].iter();
        inputs.extend(wides.by_ref().take(sizes.inputs));
        let bits = &witness.bits[shape.word_base(part)..];
        let mut next_bit = 0;
        let boolean = &compiled.part(part).boolean;
        for index in 0..sizes.aux() {
            aux.push(if boolean[index / 64] >> (index % 64) & 1 == 1 {
                next_bit += 1;
                Scalar::from(bit(bits, next_bit - 1))
            } else {
                *wides.next().expect("a part has all its wides")
            });
        }
    }
    (inputs, aux)
}

fn bit(words: &[u64], at: usize) -> u64 {
    words[at / 64] >> (at % 64) & 1
}

/// A row that the witness does not satisfy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadRow {
    /// 0 is the header, k + 1 is block k.
    pub part: usize,
    /// Within the part.
    pub row: usize,
}

impl fmt::Display for BadRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let row = self.row;
        match self.part {
            0 => write!(f, "row {row} of the circuit's header does not hold"),
            part => write!(f, "row {row} of block {} does not hold", part - 1),
        }
    }
}

/// Does (A * w) o (B * w) = C * w hold in every row? One plain loop: for tests and for reports on
/// a proof that failed, not for proving.
///
/// # Errors
/// The first row that does not hold.
pub fn check_rows(compiled: &Compiled, witness: &Witness) -> Result<(), BadRow> {
    for part in 0..compiled.shape.parts() {
        let matrices = compiled.part(part);
        for row in 0..compiled.shape.part(part).rows {
            let value = |rows: &Rows| value(compiled, witness, part, rows, row);
            if value(&matrices.a) * value(&matrices.b) != value(&matrices.c) {
                return Err(BadRow { part, row });
            }
        }
    }
    Ok(())
}

/// The value of one row of one matrix: `rows` is of that part.
pub fn value(
    compiled: &Compiled,
    witness: &Witness,
    part: usize,
    rows: &Rows,
    row: usize,
) -> Scalar {
    let shape = &compiled.shape;
    let (wide_base, word_base) = (shape.wide_base(part), shape.word_base(part));
    let mut sum = Scalar::ZERO;
    for (coefficient, column) in rows.terms(row, &compiled.codes) {
        let coefficient = compiled.coefficients[coefficient as usize];
        match compiled.codes.place(column) {
            Place::HeaderWide(at) => sum += coefficient * witness.wides[at],
            Place::BlockWide(at) => sum += coefficient * witness.wides[wide_base + at],
            Place::HeaderBit(at) if bit(witness.bits, at) == 1 => sum += coefficient,
            Place::BlockBit(at) if bit(&witness.bits[word_base..], at) == 1 => sum += coefficient,
            Place::HeaderBit(_) | Place::BlockBit(_) => {}
        }
    }
    sum
}
