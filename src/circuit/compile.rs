//! Recordings to a [`Compiled`] circuit.

use bellperson::{Circuit, SynthesisError};
use blstrs::Scalar;

use super::classify::{Bits, INPUT};
use super::compiled::{Codes, Compiled, Part, Query, Rows, Selection};
use super::record::{Matrix, Recorder};
use super::shape::{PartShape, Shape};
use super::synthesis::Synthesis;
use crate::error::{Error, Result};

/// Compiles a circuit of a header and `repeats` blocks, from the circuit with no block and the
/// circuit with one; `None` for a circuit that is all header.
///
/// Only the circuits' structure is read: blank circuits without any value will do.
///
/// # Errors
/// [`Error::Config`] when a circuit fails, the second does not begin with the first, or the whole
/// is too large for 32-bit terms.
pub fn compile_circuit<H, B>(header: H, one: Option<(B, usize)>) -> Result<Compiled>
where
    H: Circuit<Scalar>,
    B: Circuit<Scalar>,
{
    let header = record(header)?;
    let one = match one {
        Some((one, repeats)) if repeats > 0 => {
            let one = record(one)?;
            check_prefix(&header, &one)?;
            Some((one, repeats))
        }
        _ => None,
    };
    assemble(header, one)
}

fn record(circuit: impl Circuit<Scalar>) -> Result<Recorder> {
    let mut recorder = Recorder::new();
    circuit
        .synthesize(&mut Synthesis::new(&mut recorder))
        .map_err(|e: SynthesisError| Error::Config(format!("the circuit cannot be made: {e}")))?;
    Ok(recorder)
}

/// Does the circuit with one block begin with the rows of the one without?
fn check_prefix(header: &Recorder, one: &Recorder) -> Result<()> {
    let fits = header.inputs <= one.inputs && header.aux <= one.aux && header.rows <= one.rows;
    let equal = header.matrices.iter().zip(&one.matrices).all(|(short, long)| {
        let short = first_rows(short, &header.dictionary.coefficients, header.rows);
        short == first_rows(long, &one.dictionary.coefficients, header.rows)
    });
    if fits && equal {
        Ok(())
    } else {
        Err(Error::Config("the circuit with one block does not begin with its header".into()))
    }
}

/// The first rows of a matrix: (column, coefficient) pairs.
fn first_rows(matrix: &Matrix, coefficients: &[Scalar], count: usize) -> Vec<Vec<(u32, Scalar)>> {
    let mut rows = Vec::with_capacity(count);
    for chunk in &matrix.chunks {
        if rows.len() >= count {
            break;
        }
        chunk.each_row(|terms| {
            if rows.len() < count {
                rows.push(terms.map(|(c, number)| (c, coefficients[number as usize])).collect());
            }
        });
    }
    rows
}

/// The columns and rows of `header` are the first ones of the circuit with one block, too.
fn assemble(mut header: Recorder, one: Option<(Recorder, usize)>) -> Result<Compiled> {
    let classes = std::mem::take(&mut header.classes.boolean);
    let (inputs, aux, rows) = (header.inputs, header.aux, header.rows);
    let (whole, repeats) = one.unwrap_or((header, 0));
    let header_columns = Columns::new(&classes, 0..aux, 0..inputs);
    let block_columns = Columns::new(&whole.classes.boolean, aux..whole.aux, inputs..whole.inputs);
    let shape = Shape {
        header: header_columns.shape(rows),
        block: block_columns.shape(whole.rows - rows),
        repeats,
    };
    let codes = Codes::new(&shape)
        .ok_or_else(|| Error::Config("the circuit has more than 2^31 columns".into()))?;
    let (coefficients, coefficient_codes) =
        by_frequency(&whole.dictionary.coefficients, &whole.matrices);
    let [a, b, _] = &whole.matrices;
    let mut compiled = Compiled {
        shape,
        codes,
        coefficients,
        header: header_columns.part(a, b),
        block: block_columns.part(a, b),
    };
    let packer = Packer {
        codes,
        coefficient_codes: &coefficient_codes,
        header_rows: rows,
        has_block: repeats > 0,
        columns: [&header_columns, &block_columns],
    };
    let [a, b, c] = whole.matrices.map(|matrix| packer.pack(matrix));
    (compiled.header.a, compiled.block.a) = a?;
    (compiled.header.b, compiled.block.b) = b?;
    (compiled.header.c, compiled.block.c) = c?;
    Ok(compiled)
}

/// The used coefficients, most frequent first, and the new number of each old one.
fn by_frequency(coefficients: &[Scalar], matrices: &[Matrix; 3]) -> (Vec<Scalar>, Vec<u32>) {
    let count = |number: usize| -> u64 {
        matrices.iter().filter_map(|matrix| matrix.counts.get(number)).sum()
    };
    let mut order: Vec<usize> =
        (0..coefficients.len()).filter(|&number| count(number) > 0).collect();
    order.sort_by_key(|&number| std::cmp::Reverse(count(number)));
    let mut codes = vec![0; coefficients.len()];
    for (code, &number) in order.iter().enumerate() {
        codes[number] = code as u32;
    }
    (order.iter().map(|&number| coefficients[number]).collect(), codes)
}

/// The columns of a part and their places in the planes.
struct Columns {
    aux: std::ops::Range<usize>,
    inputs: std::ops::Range<usize>,
    /// Over the part's aux variables.
    boolean: Selection,
}

impl Columns {
    fn new(classes: &Bits, aux: std::ops::Range<usize>, inputs: std::ops::Range<usize>) -> Self {
        let boolean = Selection::new(slice(classes, aux.clone()));
        Columns { aux, inputs, boolean }
    }

    fn shape(&self, rows: usize) -> PartShape {
        let bits = self.boolean.count;
        PartShape { inputs: self.inputs.len(), bits, wides: self.aux.len() - bits, rows }
    }

    /// Is the aux variable boolean, and its position among its like in the part?
    fn place(&self, aux: usize) -> (bool, usize) {
        let index = aux - self.aux.start;
        let before = self.boolean.rank(index);
        if self.boolean.contains(index) { (true, before) } else { (false, index - before) }
    }

    /// The part without its rows.
    fn part(&self, a: &Matrix, b: &Matrix) -> Part {
        Part {
            boolean: self.boolean.words.clone(),
            l: self.query(|_| false, |_| true),
            a_query: self.query(|_| true, |aux| a.dense_aux.contains(aux)),
            b_query: self
                .query(|input| b.dense_inputs.contains(input), |aux| b.dense_aux.contains(aux)),
            ..Part::default()
        }
    }

    fn query(&self, input: impl Fn(usize) -> bool, aux: impl Fn(usize) -> bool) -> Query {
        let shape = self.shape(0);
        let (mut bits, mut wides) = (Bits::default(), Bits::default());
        bits.grow_to(shape.bits);
        wides.grow_to(shape.inputs + shape.wides);
        for index in self.inputs.clone().filter(|&index| input(index)) {
            wides.insert(index - self.inputs.start);
        }
        for index in self.aux.clone().filter(|&index| aux(index)) {
            match self.place(index) {
                (true, position) => bits.insert(position),
                (false, position) => wides.insert(shape.inputs + position),
            }
        }
        Query { bits: Selection::new(bits.words), wides: Selection::new(wides.words) }
    }
}

/// The bits of a range, from bit 0 on.
fn slice(bits: &Bits, range: std::ops::Range<usize>) -> Vec<u64> {
    let mut cut = Bits::default();
    cut.grow_to(range.len());
    for (to, from) in range.enumerate() {
        if bits.contains(from) {
            cut.insert(to);
        }
    }
    cut.words
}

/// Packs the terms of a matrix.
struct Packer<'a> {
    codes: Codes,
    coefficient_codes: &'a [u32],
    header_rows: usize,
    has_block: bool,
    /// Of the header and of the block.
    columns: [&'a Columns; 2],
}

impl Packer<'_> {
    /// The header's rows and the block's; frees the recording on the way.
    fn pack(&self, matrix: Matrix) -> Result<(Rows, Rows)> {
        let escape = self.codes.escape();
        let words: u64 = matrix
            .counts
            .iter()
            .zip(self.coefficient_codes)
            .map(|(count, &code)| if code < escape { *count } else { 2 * count })
            .sum();
        if words > u64::from(u32::MAX) {
            return Err(Error::Config("the circuit has more than 2^32 terms".into()));
        }
        let rows: usize = matrix.chunks.iter().map(|chunk| chunk.rows()).sum();
        let mut parts = [Rows::default(), Rows::default()];
        let main = usize::from(rows > self.header_rows);
        parts[main].words.reserve_exact(words as usize);
        parts[main].offsets.reserve_exact(rows + 1);
        parts[0].offsets.push(0);
        if self.has_block {
            parts[1].offsets.push(0);
        }
        let mut row = 0;
        for chunk in matrix.chunks {
            chunk.each_row(|terms| {
                let part = &mut parts[usize::from(row >= self.header_rows)];
                for (column, number) in terms {
                    let code = self.coefficient_codes[number as usize];
                    let field = code.min(escape) << self.codes.column_bits;
                    part.words.push(field | self.column(column));
                    if code >= escape {
                        part.words.push(code);
                    }
                }
                part.offsets.push(part.words.len() as u32);
                row += 1;
            });
        }
        let [mut header, mut block] = parts;
        for rows in [&mut header, &mut block] {
            rows.words.shrink_to_fit();
            rows.offsets.shrink_to_fit();
        }
        Ok((header, block))
    }

    fn column(&self, column: u32) -> u32 {
        let index = (column & !INPUT) as usize;
        let [header, block] = self.columns;
        let code = if column & INPUT != 0 {
            if index < header.inputs.end {
                index
            } else {
                self.codes.block_wides as usize + index - header.inputs.end
            }
        } else if index < header.aux.end {
            match header.place(index) {
                (true, position) => self.codes.header_bits as usize + position,
                (false, position) => header.inputs.end + position,
            }
        } else {
            match block.place(index) {
                (true, position) => self.codes.block_bits as usize + position,
                (false, position) => {
                    self.codes.block_wides as usize + block.inputs.len() + position
                }
            }
        };
        code as u32
    }
}
