//! A circuit's column polynomials at tau: sums over the rows of coefficient times Lagrange value.

use std::sync::{Mutex, PoisonError};

use blstrs::Scalar;
use ff::{Field, PrimeField};

use crate::circuit::compiled::{Codes, Compiled, Part, Rows};
use crate::error::{Error, Result};
use crate::team::Team;

/// Values that share one inversion.
const BATCH: usize = 1024;

/// One of the three matrices of a circuit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Matrix {
    A,
    B,
    C,
}

impl Matrix {
    fn rows(self, part: &Part) -> &Rows {
        match self {
            Matrix::A => &part.a,
            Matrix::B => &part.b,
            Matrix::C => &part.c,
        }
    }
}

/// Per part, its wide columns, then its boolean ones (paddings included, and zero).
pub type Columns = Vec<Vec<Scalar>>;

/// Columns of a circuit, all zero.
pub fn zero_columns(compiled: &Compiled) -> Columns {
    (0..compiled.shape.parts())
        .map(|part| {
            let shape = compiled.shape.part(part);
            vec![Scalar::ZERO; shape.wide_len() + 64 * shape.word_len()]
        })
        .collect()
}

/// The m-th root of unity of the domain of m = 2^log points.
fn omega(log: u32) -> Scalar {
    (log..Scalar::S).fold(Scalar::ROOT_OF_UNITY, |root, _| root.square())
}

/// `L_j(tau) = (tau^m - 1) / m * w^j / (tau - w^j)` for j < len over the domain of m = 2^log.
///
/// # Errors
/// [`Error::Host`] when tau lies in the domain: the random numbers are not random.
pub fn lagrange(tau: Scalar, log: u32, len: usize, team: &Team) -> Result<Vec<Scalar>> {
    let m = Scalar::from(1u64 << log);
    let z = vanishing(tau, log);
    if bool::from(z.is_zero()) {
        return Err(Error::Host("the drawn tau is a root of unity; try again".to_string()));
    }
    let scale = z * Option::<Scalar>::from(m.invert()).expect("m is a power of two below r");
    let root = omega(log);
    let mut values = vec![Scalar::ZERO; len];
    each_chunk(team, &mut values, BATCH, &|number, chunk| {
        let mut powers = [Scalar::ZERO; BATCH];
        let mut power = root.pow_vartime([(number * BATCH) as u64]);
        let mut product = Scalar::ONE;
        for (value, here) in chunk.iter_mut().zip(&mut powers) {
            *here = power;
            *value = product;
            product *= tau - power;
            power *= root;
        }
        let inverse = Option::<Scalar>::from(product.invert()).expect("tau^m is not 1");
        let mut inverse = inverse * scale;
        for (value, here) in chunk.iter_mut().zip(&powers).rev() {
            *value *= inverse * here;
            inverse *= tau - here;
        }
    });
    Ok(values)
}

/// `tau^m - 1`.
pub fn vanishing(tau: Scalar, log: u32) -> Scalar {
    (0..log).fold(tau, |power, _| power.square()) - Scalar::ONE
}

/// Adds the column sums of one matrix to `columns`. The header's rows are done first, by one
/// thread; blocks are spread over the team, and each thread keeps header columns of its own
/// until the end, so extra memory is 32 bytes per header column and thread.
pub fn add_sums(
    compiled: &Compiled,
    matrix: Matrix,
    lagrange: &[Scalar],
    columns: &mut Columns,
    team: &Team,
) {
    let shape = &compiled.shape;
    let header_columns = shape.header.wide_len() + 64 * shape.header.word_len();
    assert_eq!(compiled.codes.header_bits as usize, shape.header.wide_len(), "codes as documented");
    assert_eq!(compiled.codes.block_wides as usize, header_columns, "codes as documented");
    let (header, blocks) = columns.split_first_mut().expect("a circuit has a header");
    let sums = Sums { codes: &compiled.codes, coefficients: &compiled.coefficients };
    sums.add(matrix.rows(&compiled.header), lagrange, header, &mut []);
    if matrix == Matrix::A {
        add_input_rows(compiled, lagrange, header, blocks);
    }
    let rest = Mutex::new(blocks.iter_mut().enumerate());
    let header = Mutex::new(header);
    team.run(&|_| {
        let mut own: Vec<Scalar> = Vec::new();
        loop {
            let next = rest.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some((k, block)) = next else { break };
            own.resize(header_columns, Scalar::ZERO);
            let first = shape.header.rows + k * shape.block.rows;
            sums.add(matrix.rows(&compiled.block), &lagrange[first..], &mut own, block);
        }
        let mut header = header.lock().unwrap_or_else(PoisonError::into_inner);
        for (sum, own) in header.iter_mut().zip(&own) {
            *sum += own;
        }
        super::waste::wipe(&mut own);
    });
}

/// The rows that bellperson appends: x_i * 0 = 0 for every input in global order.
fn add_input_rows(
    compiled: &Compiled,
    lagrange: &[Scalar],
    header: &mut [Scalar],
    blocks: &mut [Vec<Scalar>],
) {
    let shape = &compiled.shape;
    let mut appended = lagrange[shape.rows()..].iter();
    let inputs = header[..shape.header.inputs]
        .iter_mut()
        .chain(blocks.iter_mut().flat_map(|block| &mut block[..shape.block.inputs]));
    for column in inputs {
        *column += appended.next().expect("one value per row, appended rows included");
    }
}

struct Sums<'a> {
    codes: &'a Codes,
    coefficients: &'a [Scalar],
}

impl Sums<'_> {
    /// Adds a part's rows, whose Lagrange values begin with the slice.
    fn add(&self, rows: &Rows, lagrange: &[Scalar], header: &mut [Scalar], block: &mut [Scalar]) {
        let bits = self.codes.column_bits;
        let escape = (1u32 << (32 - bits)) - 1;
        // Wides, then bits, without a gap: a column code is a position among the part's columns.
        let block_first = self.codes.block_wides as usize;
        for (ends, value) in rows.offsets.windows(2).zip(lagrange) {
            let mut words = rows.words[ends[0] as usize..ends[1] as usize].iter();
            while let Some(word) = words.next() {
                let code = word >> bits;
                let index = if code == escape {
                    *words.next().expect("an index follows an escape")
                } else {
                    code
                };
                let column = (word & ((1 << bits) - 1)) as usize;
                let term = self.coefficients[index as usize] * value;
                match column.checked_sub(block_first) {
                    None => header[column] += term,
                    Some(column) => block[column] += term,
                }
            }
        }
    }
}

/// Hands chunks of `len` items to the threads of a team, with the number of each chunk.
pub fn each_chunk<T: Send>(
    team: &Team,
    items: &mut [T],
    len: usize,
    job: &(dyn Fn(usize, &mut [T]) + Sync),
) {
    let chunks = Mutex::new(items.chunks_mut(len).enumerate());
    team.run(&|_| {
        loop {
            let next = chunks.lock().unwrap_or_else(PoisonError::into_inner).next();
            match next {
                Some((number, chunk)) => job(number, chunk),
                None => return,
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::srs::testing::Random;

    #[test]
    fn lagrange_values_interpolate() {
        let team = Team::new("test", &[None; 2]).unwrap();
        let tau = Random(5).scalar();
        for log in [1, 2, 9, 11] {
            let m = 1usize << log;
            let values = lagrange(tau, log, m, &team).unwrap();
            let sum: Scalar = values.iter().sum();
            assert_eq!(sum, Scalar::ONE, "the constant one");
            let power = |j: usize, e: u64| omega(log).pow_vartime([j as u64]).pow_vartime([e]);
            let e = m as u64 - 1;
            let top: Scalar = values.iter().enumerate().map(|(j, v)| *v * power(j, e)).sum();
            assert_eq!(top, tau.pow_vartime([e]), "the highest power");
        }
        assert!(lagrange(omega(3), 3, 8, &team).is_err());
    }
}
