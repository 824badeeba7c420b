//! A·w and B·w straight from the compact witness and the compiled circuit.
//!
//! ```text
//! rows     | header | block 0 | block 1 | ... | one per input: x_i * 0 = 0 | zero, to the domain
//! threads  | 0           | 1            | ...                            n | shared likewise
//! ```

use std::ops::Range;

use blstrs::Scalar;
use ff::Field;

use super::ntt::Shared;
use crate::circuit::compiled::{Compiled, Part, Rows};
use crate::circuit::shape::{Shape, Witness};
use crate::sys;
use crate::team::Team;

/// Writes a = A·w and b = B·w over all rows in natural order, padded with zeros: both slices have
/// `compiled.shape.domain()` scalars. Values are canonical.
///
/// # Panics
/// If the witness is of another shape, or `compiled` points outside of it: both are made by this
/// program, never read from outside.
pub fn evaluate(
    team: &Team,
    compiled: &Compiled,
    witness: Witness<'_>,
    a: &mut [Scalar],
    b: &mut [Scalar],
) {
    let rows = Evaluation::new(compiled, witness);
    assert_eq!(a.len(), compiled.shape.domain(), "length of a");
    assert_eq!(b.len(), compiled.shape.domain(), "length of b");
    let (a, b) = (Shared::new(a), Shared::new(b));
    rows.share(team, &|range| {
        // SAFETY: the ranges of the threads are disjoint parts of 0..domain.
        let (a, b) = unsafe { (a.part(range.clone()), b.part(range.clone())) };
        rows.fill(|part| &part.a, true, range.start, a);
        rows.fill(|part| &part.b, false, range.start, b);
    });
}

/// Writes c = C·w, as [`evaluate`] does a and b. Proving has no need of it: for a satisfied
/// circuit c = a∘b, and this tells whether it is.
pub fn evaluate_c(team: &Team, compiled: &Compiled, witness: Witness<'_>, c: &mut [Scalar]) {
    let rows = Evaluation::new(compiled, witness);
    assert_eq!(c.len(), compiled.shape.domain(), "length of c");
    let c = Shared::new(c);
    rows.share(team, &|range| {
        // SAFETY: the ranges of the threads are disjoint parts of 0..domain.
        let c = unsafe { c.part(range.clone()) };
        rows.fill(|part| &part.c, false, range.start, c);
    });
}

struct Evaluation<'a> {
    compiled: &'a Compiled,
    witness: Witness<'a>,
    /// Position of the coefficient 1.
    one: usize,
    /// First column code that no row of a block may have.
    columns: u32,
}

impl<'a> Evaluation<'a> {
    fn new(compiled: &'a Compiled, witness: Witness<'a>) -> Self {
        let (shape, codes) = (&compiled.shape, &compiled.codes);
        assert_eq!(witness.shape, shape, "the witness is of this circuit");
        assert_eq!(witness.wides.len(), shape.wide_len(), "length of the wide plane");
        assert_eq!(witness.bits.len(), shape.word_len(), "length of the bit plane");
        assert!(codes.column_bits <= u32::BITS);
        let bits = |words: usize| u32::try_from(64 * words).expect("a part has below 2^32 bits");
        let header_wides = shape.header.wide_len() as u32;
        assert_eq!(codes.header_bits, header_wides, "codes of the header's wides");
        let header_bits = bits(shape.header.word_len());
        assert_eq!(codes.block_wides - codes.header_bits, header_bits, "codes of its bits");
        let block_wides = shape.block.wide_len() as u32;
        assert_eq!(codes.block_bits - codes.block_wides, block_wides, "codes of block wides");
        let columns = codes.block_bits.checked_add(bits(shape.block.word_len()));
        let columns = columns.expect("column codes fit 32 bits");
        let one = compiled.coefficients.iter().position(|c| *c == Scalar::ONE);
        let one = one.unwrap_or(compiled.coefficients.len());
        Evaluation { compiled, witness, one, columns }
    }

    /// Calls `job` with ranges of 0..domain that cover it, first the rows, then the padding.
    fn share(&self, team: &Team, job: &(dyn Fn(Range<usize>) + Sync)) {
        let shape = &self.compiled.shape;
        let rows = shape.rows() + shape.inputs();
        team.split(rows, &|_, range| job(range));
        team.split(shape.domain() - rows, &|_, range| job(rows + range.start..rows + range.end));
    }

    /// Fills `out` with the rows from `first` on of the matrix that `select` picks. Rows of inputs
    /// hold the input if `inputs` says so, else zero.
    fn fill(
        &self,
        select: fn(&Part) -> &Rows,
        inputs: bool,
        mut first: usize,
        mut out: &mut [Scalar],
    ) {
        let shape = &self.compiled.shape;
        while first < shape.rows() && !out.is_empty() {
            let (part, row) = locate(first, shape.header.rows, shape.block.rows);
            let here = out.len().min(shape.part(part).rows - row);
            let (now, rest) = out.split_at_mut(here);
            self.rows(select, part, row, now);
            (first, out) = (first + here, rest);
        }
        for value in out {
            let input = first.checked_sub(shape.rows()).expect("all rows are done");
            *value =
                if inputs && input < shape.inputs() { self.input(input) } else { Scalar::ZERO };
            first += 1;
        }
    }

    /// Input `number` in global order.
    fn input(&self, number: usize) -> Scalar {
        let shape = &self.compiled.shape;
        let (part, entry) = locate(number, shape.header.inputs, shape.block.inputs);
        self.witness.wides[shape.wide_base(part) + entry]
    }

    /// Rows of one part.
    fn rows(&self, select: fn(&Part) -> &Rows, part: usize, first: usize, out: &mut [Scalar]) {
        let (shape, codes) = (&self.compiled.shape, &self.compiled.codes);
        let rows = select(self.compiled.part(part));
        assert_eq!(rows.offsets.len(), shape.part(part).rows + 1, "rows of part {part}");
        assert!(first + out.len() <= shape.part(part).rows);
        // The header's rows know nothing of any block.
        let (wide, bit) = self.planes(part);
        let columns = if part == 0 { codes.block_wides } else { self.columns };
        let matrix = sys::berth_rows {
            offsets: rows.offsets.as_ptr(),
            words: rows.words.as_ptr(),
            words_len: rows.words.len(),
            coefficients: self.compiled.coefficients.as_ptr().cast(),
            coefficients_len: self.compiled.coefficients.len(),
            one: self.one,
            column_bits: codes.column_bits,
            header_bits: codes.header_bits,
            block_wides: codes.block_wides,
            block_bits: codes.block_bits,
            columns,
            header_wide: self.witness.wides.as_ptr().cast(),
            header_bit: self.witness.bits.as_ptr(),
            block_wide: wide.as_ptr().cast(),
            block_bit: bit.as_ptr(),
        };
        // SAFETY: the rows exist (asserted above), offsets, columns and coefficients are checked by
        // the callee against lengths that equal those of the slices here (see `new` for the
        // planes), and `out` has as many scalars as rows are asked for.
        let inside =
            unsafe { sys::berth_rows_evaluate(&matrix, first, out.len(), out.as_mut_ptr().cast()) };
        assert!(inside, "the compiled circuit points outside of its witness (part {part})");
    }

    /// The planes of one part.
    fn planes(&self, part: usize) -> (&[Scalar], &[u64]) {
        let shape: &Shape = &self.compiled.shape;
        let sizes = shape.part(part);
        (
            &self.witness.wides[shape.wide_base(part)..][..sizes.wide_len()],
            &self.witness.bits[shape.word_base(part)..][..sizes.word_len()],
        )
    }
}

/// Part, and number within the part, of item `number` where the header has `header` of them and
/// each block `block`.
fn locate(number: usize, header: usize, block: usize) -> (usize, usize) {
    match number.checked_sub(header) {
        None => (0, number),
        Some(rest) => (1 + rest / block, rest % block),
    }
}

#[cfg(test)]
mod tests;
