//! Small circuits of our own: chains of gates, random programs, and values that lie.

use bellperson::gadgets::boolean::{AllocatedBit, Boolean};
use bellperson::gadgets::num::AllocatedNum;
use bellperson::{Circuit, ConstraintSystem, LinearCombination, SynthesisError};
use blstrs::Scalar;
use ff::Field;
use proptest::prelude::*;

use super::{oracle, paddings_are_zero, planes, witness};
use crate::circuit::compile::compile_circuit;
use crate::circuit::compiled::Compiled;
use crate::witness::compact::check_rows;
use crate::witness::generic::fill_with;

/// A program of gates: a header, then the same gates once per block, over the header's variables
/// and the block's own.
#[derive(Clone, Debug)]
struct Program {
    header: Vec<Gate>,
    block: Vec<Gate>,
    /// Which blocks are made; their number gives them different values.
    blocks: std::ops::Range<usize>,
}

/// Operands are taken modulo the variables there are.
#[derive(Clone, Debug)]
enum Gate {
    Bit(bool),
    Not(usize),
    Xor(usize, usize),
    And(usize, usize),
    Ch(usize, usize, usize),
    Maj(usize, usize, usize),
    Num(u64),
    /// (x + c y + bit) * y = new.
    Mul(usize, usize, u64),
    /// As a public input.
    Input(usize),
}

#[derive(Clone, Default)]
struct Variables {
    bits: Vec<Boolean>,
    nums: Vec<AllocatedNum<Scalar>>,
}

fn at<T: Clone>(list: &[T], index: usize) -> Option<T> {
    (!list.is_empty()).then(|| list[index % list.len()].clone())
}

impl Variables {
    fn gate<CS>(&mut self, cs: &mut CS, gate: &Gate, salt: u64) -> Result<(), SynthesisError>
    where
        CS: ConstraintSystem<Scalar>,
    {
        let bit = |index: usize| at(&self.bits, index).unwrap_or(Boolean::Constant(true));
        let made = match *gate {
            Gate::Bit(value) => {
                AllocatedBit::alloc(&mut *cs, Some(value ^ (salt & 1 == 1)))?.into()
            }
            Gate::Not(a) => bit(a).not(),
            Gate::Xor(a, b) => Boolean::xor(&mut *cs, &bit(a), &bit(b))?,
            Gate::And(a, b) => Boolean::and(&mut *cs, &bit(a), &bit(b))?,
            Gate::Ch(a, b, c) => Boolean::sha256_ch(&mut *cs, &bit(a), &bit(b), &bit(c))?,
            Gate::Maj(a, b, c) => Boolean::sha256_maj(&mut *cs, &bit(a), &bit(b), &bit(c))?,
            Gate::Num(value) => {
                let value = Scalar::from(value) * Scalar::from(salt + 1);
                self.nums.push(AllocatedNum::alloc(&mut *cs, || Ok(value))?);
                return Ok(());
            }
            Gate::Mul(x, y, c) => return self.mul(cs, x, y, Scalar::from(c)),
            Gate::Input(x) => {
                return at(&self.nums, x).map_or(Ok(()), |num| num.inputize(&mut *cs));
            }
        };
        self.bits.push(made);
        Ok(())
    }

    fn mul<CS>(&mut self, cs: &mut CS, x: usize, y: usize, c: Scalar) -> Result<(), SynthesisError>
    where
        CS: ConstraintSystem<Scalar>,
    {
        let (Some(x), Some(y)) = (at(&self.nums, x), at(&self.nums, y)) else { return Ok(()) };
        let bit = self.bits.last().cloned().unwrap_or(Boolean::Constant(false));
        let bit_value = bit.get_value().map(|bit| Scalar::from(u64::from(bit)));
        let value = (|| {
            let (x, y) = (x.get_value()?, y.get_value()?);
            Some((x + c * y + bit_value?) * y)
        })();
        let product =
            AllocatedNum::alloc(&mut *cs, || value.ok_or(SynthesisError::AssignmentMissing))?;
        cs.enforce(
            || "product",
            |lc| lc + x.get_variable() + (c, y.get_variable()) + &bit.lc(CS::one(), Scalar::ONE),
            |lc| lc + y.get_variable(),
            |lc| lc + product.get_variable(),
        );
        self.nums.push(product);
        Ok(())
    }
}

impl Circuit<Scalar> for Program {
    fn synthesize<CS: ConstraintSystem<Scalar>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
        let mut header = Variables::default();
        for gate in &self.header {
            header.gate(cs, gate, 0)?;
        }
        for block in self.blocks {
            let mut variables = header.clone();
            for gate in &self.block {
                variables.gate(cs, gate, block as u64)?;
            }
        }
        Ok(())
    }
}

impl Program {
    fn with(&self, blocks: std::ops::Range<usize>) -> Self {
        Program { blocks, ..self.clone() }
    }

    /// Compile, fill, check and compare.
    fn check(&self) -> Compiled {
        let repeats = self.blocks.end;
        let compiled = compile_circuit(self.with(0..0), Some((self.with(0..1), repeats))).unwrap();
        let mut planes = planes(&compiled);
        let shape = &compiled.shape;
        for part in 0..shape.parts() {
            let wides = &mut planes.0[shape.wide_base(part)..shape.wide_base(part + 1)];
            let bits = &mut planes.1[shape.word_base(part)..shape.word_base(part + 1)];
            let blocks = if part == 0 { 0..0 } else { part - 1..part };
            fill_with(&compiled, part, wides, bits, |mut cs| self.with(blocks).synthesize(&mut cs))
                .unwrap();
        }
        paddings_are_zero(&compiled, &planes);
        let witness = witness(&compiled, &planes);
        assert_eq!(check_rows(&compiled, &witness), Ok(()));
        oracle::compare(&compiled, witness, |mut cs| self.clone().synthesize(&mut cs));
        compiled
    }
}

/// All gates that make bits make boolean columns: of the wides, only the numbers are left.
#[test]
fn chains_of_gates_are_all_bits() {
    for rows in [1, 2, 3, 7, 63, 64, 65, 255, 256, 257, 511, 512, 513] {
        let mut header = vec![Gate::Bit(true)];
        header.extend((1..rows).map(|row| match row % 4 {
            1 => Gate::Bit(row % 3 == 0),
            2 => Gate::Xor(row - 1, row - 2),
            3 => Gate::And(row - 1, row - 2),
            _ => Gate::Ch(row - 1, row - 2, row - 3),
        }));
        let whole = Program { header, block: vec![], blocks: 0..0 };
        let compiled = whole.check();
        assert_eq!(compiled.shape.repeats, 0);
        assert_eq!(compiled.shape.header.rows, rows);
        assert_eq!(compiled.shape.header.wides, 0);
        let (header, block) = ([whole.header[0].clone()].into(), whole.header);
        let compiled = Program { header, block, blocks: 0..3 }.check();
        assert_eq!((compiled.shape.repeats, compiled.shape.block.wides), (3, 0));
    }
}

#[test]
fn majority_is_a_bit_whatever_is_negated() {
    for negated in 0..8 {
        let mut header: Vec<Gate> = (0..3).map(|bit| Gate::Bit(bit == 1)).collect();
        header.extend((0..3).map(|bit| match negated >> bit & 1 {
            0 => Gate::Xor(bit, (bit + 1) % 3),
            _ => Gate::Not(bit),
        }));
        header.push(Gate::Maj(3, 4, 5));
        let compiled = Program { header, block: vec![], blocks: 0..0 }.check();
        assert_eq!(compiled.shape.header.wides, 0, "negated {negated:03b}");
    }
}

fn gate() -> impl Strategy<Value = Gate> {
    let at = || 0..64usize;
    prop_oneof![
        any::<bool>().prop_map(Gate::Bit),
        at().prop_map(Gate::Not),
        (at(), at()).prop_map(|(a, b)| Gate::Xor(a, b)),
        (at(), at()).prop_map(|(a, b)| Gate::And(a, b)),
        (at(), at(), at()).prop_map(|(a, b, c)| Gate::Ch(a, b, c)),
        (at(), at(), at()).prop_map(|(a, b, c)| Gate::Maj(a, b, c)),
        any::<u64>().prop_map(Gate::Num),
        (at(), at(), any::<u64>()).prop_map(|(x, y, c)| Gate::Mul(x, y, c)),
        at().prop_map(Gate::Input),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn random_programs(
        header in prop::collection::vec(gate(), 0..40),
        block in prop::collection::vec(gate(), 0..150),
        blocks in 1..4usize,
    ) {
        Program { header, block, blocks: 0..blocks }.check();
    }
}

/// One boolean column by its own row; the value is the prover's.
struct Lie(Scalar);

impl Circuit<Scalar> for Lie {
    fn synthesize<CS: ConstraintSystem<Scalar>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
        let wide = AllocatedNum::alloc(&mut *cs, || Ok(self.0))?;
        let bit = cs.alloc(|| "bit", || Ok(self.0))?;
        let one = |lc: LinearCombination<Scalar>| lc + CS::one();
        cs.enforce(|| "boolean", |lc| one(lc) - bit, |lc| lc + bit, |lc| lc);
        cs.enforce(|| "copy", one, |lc| lc + wide.get_variable(), |lc| lc + bit);
        Ok(())
    }
}

#[test]
fn a_boolean_column_with_another_value_is_refused() {
    let compiled = compile_circuit(Lie(Scalar::ONE), None::<(Lie, usize)>).unwrap();
    assert_eq!((compiled.shape.header.bits, compiled.shape.header.wides), (1, 1));
    for (value, right) in [(0, true), (1, true), (2, false), (u64::MAX, false)] {
        let (mut wides, mut bits) = planes(&compiled);
        let outcome = fill_with(&compiled, 0, &mut wides, &mut bits, |mut cs| {
            Lie(Scalar::from(value)).synthesize(&mut cs)
        });
        match outcome {
            Ok(()) => assert!(right),
            Err(said) => {
                assert!(!right);
                assert!(said.starts_with("variable 1 must be 0 or 1 and is not"), "{said}");
            }
        }
    }
}

/// More columns than a term has bits to spare for the numbers of the coefficients, and more
/// coefficients than 16 bits can number.
struct Many;

const COLUMNS: u64 = 1 << 17;
const COEFFICIENTS: u64 = 70_000;

impl Circuit<Scalar> for Many {
    fn synthesize<CS: ConstraintSystem<Scalar>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
        let values = (0..COLUMNS).map(|value| {
            cs.alloc(|| "", || Ok(Scalar::from(value))).map(|variable| (value, variable))
        });
        let variables = values.collect::<Result<Vec<_>, _>>()?;
        let sum = |size: u64| {
            variables
                .iter()
                .take(size as usize)
                .fold(LinearCombination::zero(), |sum, &(v, x)| sum + (Scalar::from(v + 1), x))
        };
        let total = |size: u64| -> Scalar { (0..size).map(|v| Scalar::from((v + 1) * v)).sum() };
        for size in [1, COEFFICIENTS, 2, COEFFICIENTS - 1] {
            let result = cs.alloc(|| "", || Ok(total(size)))?;
            cs.enforce(|| "", |_| sum(size), |lc| lc + CS::one(), |lc| lc + result);
        }
        Ok(())
    }
}

#[test]
fn coefficients_beyond_every_short_code() {
    let compiled = compile_circuit(Many, None::<(Many, usize)>).unwrap();
    assert!(u64::from(compiled.codes.escape()) < COEFFICIENTS);
    assert_eq!(compiled.coefficients.len() as u64, COEFFICIENTS);
    let mut planes = planes(&compiled);
    fill_with(&compiled, 0, &mut planes.0, &mut planes.1, |mut cs| Many.synthesize(&mut cs))
        .unwrap();
    let witness = witness(&compiled, &planes);
    assert_eq!(check_rows(&compiled, &witness), Ok(()));
    oracle::compare(&compiled, witness, |mut cs| Many.synthesize(&mut cs));
}
