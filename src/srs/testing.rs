//! For tests: scratch directories, random points, and small circuits in two forms, compiled by
//! hand and as bellperson synthesizes them.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use bellperson::{Circuit, ConstraintSystem, LinearCombination, SynthesisError, Variable};
use blstrs::{G1Affine, G1Projective, G2Affine, G2Projective, Scalar};
use ff::Field;
use group::Group;

use crate::circuit::compiled::{Codes, Compiled, Part, Query, Rows, Selection};
use crate::circuit::shape::{PartShape, Shape};

/// A directory that goes with its value.
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new(name: &str) -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("berth-test-{}-{number}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }

    pub fn dir(&self) -> &Path {
        &self.0
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Numbers from a seed (splitmix64).
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    pub fn scalar(&mut self) -> Scalar {
        (0..4).fold(Scalar::ZERO, |sum, _| {
            sum * Scalar::from(u64::MAX) + sum + Scalar::from(self.next())
        })
    }
}

pub fn random_g1(seed: u64) -> G1Affine {
    (G1Projective::generator() * Random(seed).scalar()).into()
}

pub fn random_g2(seed: u64) -> G2Affine {
    (G2Projective::generator() * Random(seed).scalar()).into()
}

/// The first point (x, y) with small x that is on the curve but not of order r.
pub fn outside_g1() -> Vec<u8> {
    let mut bytes = [0; 48];
    bytes[0] = 0x80;
    for x in 1..=255 {
        bytes[47] = x;
        let mut point = blst::blst_p1_affine::default();
        // SAFETY: 48 bytes of a compressed point.
        let error = unsafe { blst::blst_p1_uncompress(&mut point, bytes.as_ptr()) };
        // SAFETY: a point that was just made.
        if error == blst::BLST_ERROR::BLST_SUCCESS && unsafe { !blst::blst_p1_affine_in_g1(&point) }
        {
            let mut out = vec![0; 96];
            // SAFETY: 96 bytes for an uncompressed point.
            unsafe { blst::blst_p1_affine_serialize(out.as_mut_ptr(), &point) };
            return out;
        }
    }
    unreachable!("half of all x have a point, almost none of them in the subgroup");
}

/// A variable as a block sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Var {
    pub header: bool,
    /// Index in the part's order of allocation, inputs and aux together.
    pub index: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alloc {
    Input,
    Bit,
    Wide,
}

pub type Row = [Vec<(Var, Scalar)>; 3];

/// One part of a test circuit. The header's first variable is ONE.
#[derive(Clone, Debug, Default)]
pub struct PartSpec {
    pub vars: Vec<Alloc>,
    pub rows: Vec<Row>,
}

/// A test circuit.
#[derive(Clone, Debug)]
pub struct Spec {
    pub header: PartSpec,
    pub block: PartSpec,
    pub repeats: usize,
    /// Bits of the column codes beyond the need: few coefficient codes are left, so escapes occur.
    pub spare_bits: u32,
}

impl Spec {
    /// A circuit of random rows; every variable is in C of a row of its own.
    pub fn random(seed: u64, header_aux: usize, block_aux: usize, repeats: usize) -> Self {
        let mut random = Random(seed);
        let coefficients: Vec<Scalar> = [Scalar::ONE, -Scalar::ONE, Scalar::from(2)]
            .into_iter()
            .chain((0..30).map(|_| random.scalar()))
            .collect();
        let mut part = |first: Vec<Alloc>, aux: usize, header: usize| {
            let mut vars = first;
            for _ in 0..aux {
                vars.push(if random.below(4) == 0 { Alloc::Wide } else { Alloc::Bit });
                if random.below(50) == 0 {
                    vars.push(Alloc::Input);
                }
            }
            let here = header == 0;
            let mut rows = Vec::new();
            for index in 0..vars.len() {
                let mut row = Row::default();
                for (matrix, terms) in row.iter_mut().enumerate() {
                    let mut used = HashMap::new();
                    let count = random.below(5) * usize::from(matrix != 1 || index % 3 == 0);
                    for _ in 0..count {
                        let of_header = here || random.below(3) == 0;
                        let bound = if here || !of_header { vars.len() } else { header };
                        let var = Var { header: of_header, index: random.below(bound) };
                        used.entry(var).or_insert(coefficients[random.below(33)]);
                    }
                    terms.extend(used);
                }
                row[2].retain(|(var, _)| *var != Var { header: here, index });
                row[2].push((Var { header: here, index }, Scalar::from(3)));
                rows.push(row);
            }
            PartSpec { vars, rows }
        };
        let header = part(vec![Alloc::Input], header_aux, 0);
        let block = if repeats == 0 {
            PartSpec::default()
        } else {
            part(vec![Alloc::Input], block_aux, header.vars.len())
        };
        Spec { header, block, repeats, spare_bits: 0 }
    }

    pub fn compile(&self) -> Compiled {
        let shape =
            Shape { header: self.header.shape(), block: self.block.shape(), repeats: self.repeats };
        let (h, b) = (&shape.header, &shape.block);
        let mut codes = Codes {
            header_bits: h.wide_len() as u32,
            block_wides: (h.wide_len() + 64 * h.word_len()) as u32,
            ..Codes::default()
        };
        codes.block_bits = codes.block_wides + b.wide_len() as u32;
        let columns = codes.block_bits as usize + 64 * b.word_len();
        codes.column_bits = columns.next_power_of_two().trailing_zeros() + self.spare_bits;
        let mut coder = Coder {
            codes,
            coefficients: Vec::new(),
            header: (&self.header, self.header.positions()),
            block: (&self.block, self.block.positions()),
        };
        let header_rows = coder.rows(&self.header);
        let block_rows = coder.rows(&self.block);
        let coefficients = coder.coefficients;
        let dense = |matrix: usize| -> HashSet<Var> {
            let rows = self.header.rows.iter().chain(&self.block.rows);
            rows.flat_map(|row| row[matrix].iter().map(|(var, _)| *var)).collect()
        };
        let (dense_a, dense_b) = (dense(0), dense(1));
        let part = |spec: &PartSpec, [a, b, c]: [Rows; 3], header: bool| Part {
            a,
            b,
            c,
            boolean: spec.boolean(),
            l: spec.query(|alloc, _| alloc != Alloc::Input),
            a_query: spec.query(|alloc, index| {
                alloc == Alloc::Input || dense_a.contains(&Var { header, index })
            }),
            b_query: spec.query(|_, index| dense_b.contains(&Var { header, index })),
        };
        Compiled {
            shape,
            codes,
            coefficients,
            header: part(&self.header, header_rows, true),
            block: part(&self.block, block_rows, false),
        }
    }
}

impl PartSpec {
    fn count(&self, kind: Alloc) -> usize {
        self.vars.iter().filter(|v| **v == kind).count()
    }

    fn shape(&self) -> PartShape {
        PartShape {
            inputs: self.count(Alloc::Input),
            bits: self.count(Alloc::Bit),
            wides: self.count(Alloc::Wide),
            rows: self.rows.len(),
        }
    }

    /// Positions of the variables in their planes, inputs and wides sharing one.
    fn positions(&self) -> Vec<usize> {
        let (mut input, mut bit, mut wide) = (0, 0, self.count(Alloc::Input));
        let next = |counter: &mut usize| {
            *counter += 1;
            *counter - 1
        };
        self.vars
            .iter()
            .map(|kind| match kind {
                Alloc::Input => next(&mut input),
                Alloc::Bit => next(&mut bit),
                Alloc::Wide => next(&mut wide),
            })
            .collect()
    }

    fn boolean(&self) -> Vec<u64> {
        let aux: Vec<_> = self.vars.iter().filter(|v| **v != Alloc::Input).collect();
        let mut words = vec![0; aux.len().div_ceil(64)];
        for (j, kind) in aux.iter().enumerate() {
            words[j / 64] |= u64::from(**kind == Alloc::Bit) << (j % 64);
        }
        words
    }

    fn query(&self, chosen: impl Fn(Alloc, usize) -> bool) -> Query {
        let shape = self.shape();
        let mut bits = vec![0; shape.word_len()];
        let mut wides = vec![0; shape.wide_len().div_ceil(64)];
        let positions = self.positions();
        for (index, kind) in self.vars.iter().enumerate() {
            if chosen(*kind, index) {
                let position = positions[index];
                let words = if *kind == Alloc::Bit { &mut bits } else { &mut wides };
                words[position / 64] |= 1 << (position % 64);
            }
        }
        Query { bits: Selection::new(bits), wides: Selection::new(wides) }
    }
}

struct Coder<'a> {
    codes: Codes,
    coefficients: Vec<Scalar>,
    header: (&'a PartSpec, Vec<usize>),
    block: (&'a PartSpec, Vec<usize>),
}

impl Coder<'_> {
    fn rows(&mut self, part: &PartSpec) -> [Rows; 3] {
        [0, 1, 2].map(|matrix| {
            let mut rows = Rows { offsets: vec![0], words: Vec::new() };
            for row in &part.rows {
                for &(var, coefficient) in &row[matrix] {
                    self.term(var, coefficient, &mut rows.words);
                }
                rows.offsets.push(rows.words.len() as u32);
            }
            rows
        })
    }

    fn term(&mut self, var: Var, coefficient: Scalar, words: &mut Vec<u32>) {
        let (part, positions) = if var.header { &self.header } else { &self.block };
        let base = match (var.header, part.vars[var.index] == Alloc::Bit) {
            (true, false) => 0,
            (true, true) => self.codes.header_bits,
            (false, false) => self.codes.block_wides,
            (false, true) => self.codes.block_bits,
        };
        let column = base + positions[var.index] as u32;
        let known = self.coefficients.iter().position(|c| *c == coefficient);
        let index = known.unwrap_or_else(|| {
            self.coefficients.push(coefficient);
            self.coefficients.len() - 1
        }) as u32;
        let escape = (1u32 << (32 - self.codes.column_bits)) - 1;
        words.push(index.min(escape) << self.codes.column_bits | column);
        if index >= escape {
            words.push(index);
        }
    }
}

impl Circuit<Scalar> for Spec {
    fn synthesize<CS: ConstraintSystem<Scalar>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
        let header = self.header.synthesize(cs, &[], true)?;
        for _ in 0..self.repeats {
            self.block.synthesize(cs, &header, false)?;
        }
        Ok(())
    }
}

impl PartSpec {
    fn synthesize<CS: ConstraintSystem<Scalar>>(
        &self,
        cs: &mut CS,
        header: &[Variable],
        is_header: bool,
    ) -> Result<Vec<Variable>, SynthesisError> {
        let mut vars = Vec::new();
        for (index, kind) in self.vars.iter().enumerate() {
            vars.push(match kind {
                Alloc::Input if is_header && index == 0 => CS::one(),
                Alloc::Input => cs.alloc_input(|| "", || Ok(Scalar::ONE))?,
                _ => cs.alloc(|| "", || Ok(Scalar::ONE))?,
            });
        }
        for row in &self.rows {
            let sum = |terms: &[(Var, Scalar)]| {
                terms.iter().fold(LinearCombination::zero(), |sum, &(var, coefficient)| {
                    let from = if var.header && !is_header { header } else { &vars };
                    sum + (coefficient, from[var.index])
                })
            };
            cs.enforce(|| "", |_| sum(&row[0]), |_| sum(&row[1]), |_| sum(&row[2]));
        }
        Ok(vars)
    }
}
