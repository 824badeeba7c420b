use super::super::ntt::tests::{Random, canonical, team};
use super::*;
use crate::circuit::compiled::Codes;
use crate::circuit::shape::PartShape;
use proptest::prelude::*;

/// A term as a person would write it: the value of a column times a coefficient.
#[derive(Clone, Copy, Debug)]
enum Column {
    HeaderWide(usize),
    HeaderBit(usize),
    BlockWide(usize),
    BlockBit(usize),
}

type Row = Vec<(Column, usize)>;

/// A random circuit, and its matrices as lists: header rows and block rows of A, B and C.
struct Example {
    compiled: Compiled,
    rows: [[Vec<Row>; 2]; 3],
}

fn codes(shape: &Shape, column_bits: u32) -> Codes {
    let header_bits = shape.header.wide_len() as u32;
    let block_wides = header_bits + 64 * shape.header.word_len() as u32;
    let block_bits = block_wides + shape.block.wide_len() as u32;
    Codes { column_bits, header_bits, block_wides, block_bits }
}

fn random_row(random: &mut Random, shape: &Shape, block: bool, coefficients: usize) -> Row {
    let mut below = |n: usize| random.word() as usize % n;
    let terms = below(6);
    let mut row = Row::new();
    while row.len() < terms {
        let (header, part) = (&shape.header, &shape.block);
        let column = match below(if block { 4 } else { 2 }) {
            0 => Column::HeaderWide(below(header.inputs + header.wides)),
            1 if header.bits > 0 => Column::HeaderBit(below(header.bits)),
            2 => Column::BlockWide(below(part.inputs + part.wides)),
            3 if part.bits > 0 => Column::BlockBit(below(part.bits)),
            _ => continue,
        };
        row.push((column, below(coefficients)));
    }
    row
}

fn pack(codes: &Codes, rows: &[Row]) -> Rows {
    let escape = u32::MAX.checked_shr(codes.column_bits).unwrap_or(0);
    let mut packed = Rows { offsets: vec![0], words: Vec::new() };
    for row in rows {
        for &(column, coefficient) in row {
            let column = match column {
                Column::HeaderWide(i) => i as u32,
                Column::HeaderBit(i) => codes.header_bits + i as u32,
                Column::BlockWide(i) => codes.block_wides + i as u32,
                Column::BlockBit(i) => codes.block_bits + i as u32,
            };
            let short = (coefficient as u32).min(escape);
            packed.words.push(short.checked_shl(codes.column_bits).unwrap_or(0) | column);
            if short == escape {
                packed.words.push(coefficient as u32);
            }
        }
        packed.offsets.push(packed.words.len() as u32);
    }
    packed
}

/// `column_bits` of 32 escapes every coefficient, 28 leaves 15 codes before the escape.
fn example(random: &mut Random, repeats: usize, column_bits: u32) -> Example {
    let mut sizes = |inputs: usize| PartShape {
        inputs: inputs + random.word() as usize % 3,
        bits: random.word() as usize % 700,
        wides: 1 + random.word() as usize % 5,
        rows: 1 + random.word() as usize % 40,
    };
    let shape = Shape { header: sizes(1), block: sizes(0), repeats };
    let codes = codes(&shape, column_bits);
    let mut coefficients = vec![Scalar::ONE, -Scalar::ONE, Scalar::from(2)];
    coefficients.swap(0, random.word() as usize % 3);
    coefficients.extend((0..30).map(|_| random.scalar()));
    let rows: [[Vec<Row>; 2]; 3] = [(); 3].map(|_| {
        [(shape.header.rows, false), (shape.block.rows, true)].map(|(count, block)| {
            (0..count).map(|_| random_row(random, &shape, block, coefficients.len())).collect()
        })
    });
    let part = |n: usize| Part {
        a: pack(&codes, &rows[0][n]),
        b: pack(&codes, &rows[1][n]),
        c: pack(&codes, &rows[2][n]),
        ..Part::default()
    };
    let (header, block) = (part(0), part(1));
    Example { compiled: Compiled { shape, codes, coefficients, header, block }, rows }
}

/// Random planes with zero padding, which no row may count on.
fn planes(random: &mut Random, shape: &Shape) -> (Vec<Scalar>, Vec<u64>) {
    let mut wides = vec![Scalar::ZERO; shape.wide_len()];
    let mut bits = vec![0u64; shape.word_len()];
    for part in 0..shape.parts() {
        let sizes = shape.part(part);
        for i in 0..sizes.inputs + sizes.wides {
            wides[shape.wide_base(part) + i] = random.edgy();
        }
        for i in 0..sizes.bits {
            bits[shape.word_base(part) + i / 64] |= (random.word() & 1) << (i % 64);
        }
    }
    (wides, bits)
}

fn naive(example: &Example, matrix: usize, witness: Witness<'_>) -> Vec<Scalar> {
    let compiled = &example.compiled;
    let shape = &compiled.shape;
    let bit = |part: usize, i: usize| {
        Scalar::from(witness.bits[shape.word_base(part) + i / 64] >> (i % 64) & 1)
    };
    let mut out = Vec::new();
    for part in 0..shape.parts() {
        for row in &example.rows[matrix][part.min(1)] {
            out.push(row.iter().fold(Scalar::ZERO, |sum, &(column, coefficient)| {
                let value = match column {
                    Column::HeaderWide(i) => witness.wides[i],
                    Column::HeaderBit(i) => bit(0, i),
                    Column::BlockWide(i) => witness.wides[shape.wide_base(part) + i],
                    Column::BlockBit(i) => bit(part, i),
                };
                sum + value * compiled.coefficients[coefficient]
            }));
        }
    }
    for part in 0..shape.parts() {
        for i in 0..shape.part(part).inputs {
            let input = witness.wides[shape.wide_base(part) + i];
            out.push(if matrix == 0 { input } else { Scalar::ZERO });
        }
    }
    out.resize(shape.domain(), Scalar::ZERO);
    out
}

fn check(seed: u64, repeats: usize, column_bits: u32, threads: usize) {
    let mut random = Random(seed);
    let example = example(&mut random, repeats, column_bits);
    let shape = &example.compiled.shape;
    let (wides, bits) = planes(&mut random, shape);
    let witness = Witness { shape, wides: &wides, bits: &bits };
    // Garbage from the partition before must not show.
    let mut out = [(); 3].map(|_| vec![Scalar::from(9); shape.domain()]);
    let [a, b, c] = &mut out;
    let team = team(threads);
    evaluate(&team, &example.compiled, witness, a, b);
    evaluate_c(&team, &example.compiled, witness, c);
    for (matrix, out) in out.iter().enumerate() {
        assert!(*out == naive(&example, matrix, witness), "matrix {matrix} of {shape:?}");
        assert!(canonical(out));
    }
}

#[test]
fn a_circuit_without_blocks() {
    for threads in 1..=3 {
        check(1, 0, 28, threads);
    }
}

#[test]
fn more_threads_than_rows_and_every_coefficient_escaped() {
    check(2, 1, 32, 3);
    let mut random = Random(3);
    let mut tiny = example(&mut random, 0, 28);
    tiny.compiled.shape.header.rows = 1;
    tiny.compiled.header.a.offsets.truncate(2);
    tiny.compiled.header.b.offsets.truncate(2);
    let shape = tiny.compiled.shape;
    let (wides, bits) = planes(&mut random, &shape);
    let witness = Witness { shape: &shape, wides: &wides, bits: &bits };
    let mut out = [(); 2].map(|_| vec![Scalar::from(9); shape.domain()]);
    let [a, b] = &mut out;
    evaluate(&team(7), &tiny.compiled, witness, a, b);
    tiny.rows.iter_mut().for_each(|matrix| matrix[0].truncate(1));
    assert!(*a == naive(&tiny, 0, witness) && *b == naive(&tiny, 1, witness));
}

/// Every way to point outside is caught before it is followed.
#[test]
fn words_that_point_outside_are_refused() {
    type Spoil = fn(&mut Compiled);
    let spoils: [(&str, Spoil); 6] = [
        ("a column past the block's", |x| x.block.a.words[0] |= (1 << 28) - 1),
        ("a block's column in the header", |x| x.header.a.words[0] = x.codes.block_wides),
        ("a coefficient past the dictionary", |x| x.coefficients.truncate(0)),
        ("an offset past the words", |x| *x.block.b.offsets.last_mut().unwrap() += 9),
        ("an escape at the end", |x| {
            *x.header.a.words.last_mut().unwrap() = 0xf << 28;
            *x.header.a.offsets.last_mut().unwrap() = x.header.a.words.len() as u32;
        }),
        ("rows too few", |x| x.block.a.offsets.truncate(1)),
    ];
    for (what, spoil) in spoils {
        let mut random = Random(8);
        let mut compiled = example(&mut random, 2, 28).compiled;
        assert!(!compiled.header.a.words.is_empty() && !compiled.block.a.words.is_empty());
        let shape = compiled.shape;
        let (wides, bits) = planes(&mut random, &shape);
        spoil(&mut compiled);
        let outcome = std::panic::catch_unwind(|| {
            let witness = Witness { shape: &shape, wides: &wides, bits: &bits };
            let mut out = [(); 2].map(|_| vec![Scalar::ZERO; shape.domain()]);
            let [a, b] = &mut out;
            evaluate(&team(1), &compiled, witness, a, b);
        });
        assert!(outcome.is_err(), "{what}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn rows_equal_the_naive_sum(
        seed: u64,
        repeats in 0..5usize,
        column_bits in 27..=32u32,
        threads in 1..4usize,
    ) {
        check(seed, repeats, column_bits, threads);
    }
}
