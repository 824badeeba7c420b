//! Records the rows of a circuit: terms by column and coefficient number.
//!
//! Rows lie in chunks, which the compiler frees one by one as it packs them, so that the
//! recording and the compiled form are never in memory whole at the same time.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use bellperson::{Index, LinearCombination, SynthesisError, Variable};
use blstrs::Scalar;
use ff::Field;

use super::classify::{Bits, Classes, INPUT};
use super::synthesis::{Sink, Value};

/// A chunk is closed when its next row may not fit; its memory is taken at once and never grows.
const CHUNK_TERMS: usize = 1 << 18;
const CHUNK_ROWS: usize = 1 << 17;
/// In place of a number that has no room in 16 bits; it is then in `Chunk::large`.
const LARGE: u16 = u16::MAX;

/// The terms of one row in one matrix, in order: inputs, then aux, each ascending.
#[derive(Clone, Copy)]
pub(super) struct Terms<'a> {
    /// Aux indices, or input indices with the bit [`INPUT`].
    pub columns: &'a [u32],
    /// Numbers in the dictionary, [`LARGE`] where it stands in the chunk's list.
    pub coefficients: &'a [u16],
}

/// Some rows of one matrix.
#[derive(Default)]
pub(super) struct Chunk {
    /// Ends of the rows in `columns`.
    ends: Vec<u32>,
    columns: Vec<u32>,
    coefficients: Vec<u16>,
    /// Numbers that did not fit, in order.
    large: Vec<u32>,
}

impl Chunk {
    fn new() -> Self {
        Chunk {
            ends: Vec::with_capacity(CHUNK_ROWS),
            columns: Vec::with_capacity(CHUNK_TERMS),
            coefficients: Vec::with_capacity(CHUNK_TERMS),
            large: Vec::new(),
        }
    }

    fn has_room(&self, terms: usize) -> bool {
        self.ends.len() < CHUNK_ROWS && self.columns.len() + terms <= CHUNK_TERMS
    }

    pub fn rows(&self) -> usize {
        self.ends.len()
    }

    fn row(&self, row: usize) -> Terms<'_> {
        let from = if row == 0 { 0 } else { self.ends[row - 1] as usize };
        let to = self.ends[row] as usize;
        Terms { columns: &self.columns[from..to], coefficients: &self.coefficients[from..to] }
    }

    /// Calls `take` for every row with its (column, coefficient number) pairs.
    pub fn each_row(&self, mut take: impl FnMut(&mut dyn Iterator<Item = (u32, u32)>)) {
        let mut large = self.large.iter();
        for row in 0..self.rows() {
            let Terms { columns, coefficients } = self.row(row);
            take(&mut columns.iter().zip(coefficients).map(|(&column, &number)| {
                let number = if number == LARGE {
                    *large.next().expect("every LARGE has its number")
                } else {
                    u32::from(number)
                };
                (column, number)
            }));
        }
    }
}

/// One of A, B and C.
#[derive(Default)]
pub(super) struct Matrix {
    pub chunks: Vec<Chunk>,
    /// How often each coefficient occurs.
    pub counts: Vec<u64>,
    /// Aux columns and inputs with a coefficient here.
    pub dense_aux: Bits,
    pub dense_inputs: Bits,
}

impl Matrix {
    fn push(&mut self, dictionary: &mut Dictionary, terms: &LinearCombination<Scalar>) {
        if !self.chunks.last().is_some_and(|chunk| chunk.has_room(terms.len())) {
            self.chunks.push(Chunk::new());
        }
        let chunk = self.chunks.last_mut().expect("a chunk was just made if there was none");
        let mut last = None;
        for (variable, coefficient) in terms.iter() {
            let key = match variable.get_unchecked() {
                Index::Input(index) => (false, index),
                Index::Aux(index) => (true, index),
            };
            // What "one term per variable" rests on; bellpepper's linear combinations keep it.
            assert!(last < Some(key), "the terms of a row come merged and in order");
            last = Some(key);
            let Some(number) = dictionary.number(coefficient) else { continue };
            let (is_aux, index) = key;
            if is_aux {
                self.dense_aux.insert(index)
            } else {
                self.dense_inputs.insert(index)
            }
            chunk.columns.push(index as u32 | if is_aux { 0 } else { INPUT });
            if number < u32::from(LARGE) {
                chunk.coefficients.push(number as u16);
            } else {
                chunk.coefficients.push(LARGE);
                chunk.large.push(number);
            }
            if self.counts.len() <= number as usize {
                self.counts.resize(number as usize + 1, 0);
            }
            self.counts[number as usize] += 1;
        }
        chunk.ends.push(chunk.columns.len() as u32);
    }

    fn last(&self) -> Terms<'_> {
        let chunk = self.chunks.last().expect("a row was pushed");
        chunk.row(chunk.rows() - 1)
    }
}

/// The limbs of a scalar, as blst keeps it: a cheap key.
fn limbs(scalar: &Scalar) -> [u64; 4] {
    blst::blst_fr::from(*scalar).l
}

/// Mixes four limbs that are, but for small numbers, as good as random.
#[derive(Default)]
struct LimbHasher(u64);

impl Hasher for LimbHasher {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks_exact(8) {
            self.write_u64(u64::from_le_bytes(chunk.try_into().expect("a chunk has 8 bytes")));
        }
    }

    fn write_u64(&mut self, limb: u64) {
        self.0 = (self.0.rotate_left(23) ^ limb).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }
}

/// Distinct coefficients, numbered as they come; 1, -1, 2 and -2 are the first four always.
pub(super) struct Dictionary {
    pub coefficients: Vec<Scalar>,
    small: [[u64; 4]; 4],
    numbers: HashMap<[u64; 4], u32, BuildHasherDefault<LimbHasher>>,
}

impl Dictionary {
    fn new() -> Self {
        let (one, two) = (Scalar::ONE, Scalar::ONE.double());
        let coefficients = vec![one, -one, two, -two];
        let small = std::array::from_fn(|number| limbs(&coefficients[number]));
        Dictionary { coefficients, small, numbers: HashMap::default() }
    }

    /// The number of a coefficient; none for zero.
    fn number(&mut self, coefficient: &Scalar) -> Option<u32> {
        let key = limbs(coefficient);
        if let Some(number) = self.small.iter().position(|small| *small == key) {
            return Some(number as u32);
        }
        if key == [0; 4] {
            return None;
        }
        let next = self.coefficients.len() as u32;
        let number = *self.numbers.entry(key).or_insert(next);
        if number == next {
            self.coefficients.push(*coefficient);
        }
        Some(number)
    }
}

/// The recording of a circuit; values are never asked for.
pub(super) struct Recorder {
    /// With ONE.
    pub inputs: usize,
    pub aux: usize,
    pub rows: usize,
    /// A, B and C.
    pub matrices: [Matrix; 3],
    pub dictionary: Dictionary,
    pub classes: Classes,
}

impl Recorder {
    pub fn new() -> Self {
        let mut recorder = Recorder {
            inputs: 0,
            aux: 0,
            rows: 0,
            matrices: Default::default(),
            dictionary: Dictionary::new(),
            classes: Classes::default(),
        };
        recorder.add_input();
        recorder
    }

    fn add_input(&mut self) {
        self.inputs += 1;
        for matrix in &mut self.matrices {
            matrix.dense_inputs.grow_to(self.inputs);
        }
    }
}

impl Sink for Recorder {
    fn aux(&mut self, _: Value) -> Result<Variable, SynthesisError> {
        let index = self.aux;
        self.aux += 1;
        if index.is_multiple_of(64) {
            self.classes.boolean.grow_to(self.aux);
            for matrix in &mut self.matrices {
                matrix.dense_aux.grow_to(self.aux);
            }
        }
        Ok(Variable::new_unchecked(Index::Aux(index)))
    }

    fn input(&mut self, _: Value) -> Result<Variable, SynthesisError> {
        self.add_input();
        Ok(Variable::new_unchecked(Index::Input(self.inputs - 1)))
    }

    fn wants_rows(&self) -> bool {
        true
    }

    fn row(
        &mut self,
        a: &LinearCombination<Scalar>,
        b: &LinearCombination<Scalar>,
        c: &LinearCombination<Scalar>,
    ) {
        let [matrix_a, matrix_b, matrix_c] = &mut self.matrices;
        matrix_a.push(&mut self.dictionary, a);
        matrix_b.push(&mut self.dictionary, b);
        matrix_c.push(&mut self.dictionary, c);
        self.classes.row(matrix_a.last(), matrix_b.last(), matrix_c.last());
        self.rows += 1;
    }
}
