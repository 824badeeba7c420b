//! Small satisfied circuits: a header and equal blocks, of boolean and wide columns.
//!
//! Rows are drawn from a seed of the structure, the same for every block; values from a seed of
//! their own and the number of the block, so that one block alone has the values that it has in
//! the whole.

use std::ops::Range;

use bellperson::{Circuit, ConstraintSystem, LinearCombination, SynthesisError, Variable};
use blstrs::Scalar;
use ff::Field;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

/// Which columns a circuit has, besides its inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Columns {
    Boolean,
    Mixed,
    Wide,
    /// Three new wide ones in every row, so that there are more of them than rows.
    Many,
    /// None: rows over inputs alone.
    Inputs,
}

/// Rows of a part; the last `inputs` of them each make one public input equal to a column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Part {
    pub rows: usize,
    pub inputs: usize,
}

#[derive(Clone, Copy, Debug)]
pub struct Toy {
    pub header: Part,
    pub block: Part,
    pub repeats: usize,
    pub columns: Columns,
    /// All free values are zero, else random.
    pub zero: bool,
    pub seed: u64,
}

impl Toy {
    /// A circuit that is all header.
    pub fn whole(rows: usize, columns: Columns) -> Self {
        Toy {
            header: Part { rows, inputs: rows.min(3) / 2 },
            block: Part::default(),
            repeats: 0,
            columns,
            zero: false,
            seed: rows as u64,
        }
    }

    /// `rows` in all, in `repeats` blocks and what is left over before them.
    pub fn blocks(rows: usize, repeats: usize, columns: Columns) -> Self {
        let block = rows / repeats;
        Toy {
            header: Part { rows: rows - block * repeats, inputs: 0 },
            block: Part { rows: block, inputs: block.min(2) / 2 },
            repeats,
            ..Toy::whole(rows, columns)
        }
    }

    pub fn rows(&self) -> usize {
        self.header.rows + self.repeats * self.block.rows
    }

    /// The circuit with these blocks alone.
    pub fn with(self, blocks: Range<usize>) -> Blocks {
        Blocks { toy: self, blocks }
    }
}

/// A circuit with some of its blocks.
#[derive(Clone)]
pub struct Blocks {
    toy: Toy,
    blocks: Range<usize>,
}

impl Circuit<Scalar> for Blocks {
    fn synthesize<CS: ConstraintSystem<Scalar>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
        let toy = self.toy;
        let mut header = Pool::new(toy, 0);
        header.part(cs, toy.header)?;
        for block in self.blocks {
            let mut pool = Pool { columns: header.columns.clone(), ..Pool::new(toy, block + 1) };
            pool.part(cs, toy.block)?;
        }
        Ok(())
    }
}

#[derive(Clone, Copy)]
struct Column {
    variable: Variable,
    value: Scalar,
    boolean: bool,
}

/// The columns that a part's rows can speak of, and where rows and values come from.
struct Pool {
    toy: Toy,
    columns: Vec<Column>,
    rows: ChaCha8Rng,
    values: ChaCha8Rng,
}

impl Pool {
    fn new(toy: Toy, part: usize) -> Self {
        let rows = 2 * toy.seed + u64::from(part > 0);
        let values = (toy.seed << 20) + (1 << 50) + part as u64;
        Pool {
            toy,
            columns: Vec::new(),
            rows: ChaCha8Rng::seed_from_u64(rows),
            values: ChaCha8Rng::seed_from_u64(values),
        }
    }

    fn part<CS: ConstraintSystem<Scalar>>(
        &mut self,
        cs: &mut CS,
        part: Part,
    ) -> Result<(), SynthesisError> {
        for row in 0..part.rows {
            let boolean = self.draw(4) > 0;
            match self.toy.columns {
                _ if row + part.inputs >= part.rows => self.input_row(cs)?,
                Columns::Boolean => self.boolean_row(cs)?,
                Columns::Inputs => self.square_row(cs)?,
                Columns::Mixed if boolean => self.boolean_row(cs)?,
                _ => self.wide_row(cs)?,
            }
        }
        Ok(())
    }

    fn draw(&mut self, below: usize) -> usize {
        self.rows.next_u32() as usize % below
    }

    /// A new variable, whose value the rows around it decide.
    fn column<CS: ConstraintSystem<Scalar>>(
        &mut self,
        cs: &mut CS,
        value: Scalar,
        boolean: bool,
    ) -> Result<Column, SynthesisError> {
        let variable = cs.alloc(|| "", || Ok(value))?;
        let column = Column { variable, value, boolean };
        self.columns.push(column);
        Ok(column)
    }

    /// A new wide variable of any value: often a small one, or one below the modulus.
    fn free<CS: ConstraintSystem<Scalar>>(
        &mut self,
        cs: &mut CS,
    ) -> Result<Column, SynthesisError> {
        let value = match self.values.next_u32() % 8 {
            _ if self.toy.zero => Scalar::ZERO,
            0 => Scalar::ZERO,
            1 => Scalar::ONE,
            2 => -Scalar::ONE,
            3 => Scalar::from(u64::from(self.values.next_u32())),
            _ => Scalar::random(&mut self.values),
        };
        self.column(cs, value, false)
    }

    /// A column times ONE is a new input.
    fn input_row<CS: ConstraintSystem<Scalar>>(
        &mut self,
        cs: &mut CS,
    ) -> Result<(), SynthesisError> {
        let column = match self.columns.last() {
            Some(column) => *column,
            None => self.free(cs)?,
        };
        let input = cs.alloc_input(|| "", || Ok(column.value))?;
        cs.enforce(|| "", |lc| lc + column.variable, |lc| lc + CS::one(), |lc| lc + input);
        Ok(())
    }

    /// A new bit, or the xor or and of two.
    fn boolean_row<CS: ConstraintSystem<Scalar>>(
        &mut self,
        cs: &mut CS,
    ) -> Result<(), SynthesisError> {
        let kind = self.draw(4);
        let (x, y) = match (self.bit(), self.bit()) {
            (Some(x), Some(y)) if kind > 1 && x.variable != y.variable => (x, y),
            _ => {
                let value = u64::from(!self.toy.zero && self.values.next_u32() % 2 == 1);
                let bit = self.column(cs, Scalar::from(value), true)?.variable;
                cs.enforce(|| "", |lc| lc + CS::one() - bit, |lc| lc + bit, |lc| lc);
                return Ok(());
            }
        };
        let and = x.value * y.value;
        if kind == 2 {
            let z = self.column(cs, and, true)?;
            cs.enforce(|| "", |lc| lc + x.variable, |lc| lc + y.variable, |lc| lc + z.variable);
        } else {
            let z = self.column(cs, x.value + y.value - and.double(), true)?;
            cs.enforce(
                || "",
                |lc| lc + x.variable + x.variable,
                |lc| lc + y.variable,
                |lc| lc + x.variable + y.variable - z.variable,
            );
        }
        Ok(())
    }

    fn bit(&mut self) -> Option<Column> {
        let at = self.rows.next_u32() as usize;
        let columns = &self.columns;
        let near = (0..columns.len().min(8)).map(|step| columns[(at + step) % columns.len()]);
        near.into_iter().find(|column| column.boolean)
    }

    /// A new wide column: the product of two sums.
    fn wide_row<CS: ConstraintSystem<Scalar>>(
        &mut self,
        cs: &mut CS,
    ) -> Result<(), SynthesisError> {
        if self.columns.is_empty() || self.toy.columns == Columns::Many {
            for _ in 0..3 {
                self.free(cs)?;
            }
        }
        let (a, value_a) = self.sum(CS::one(), 3);
        let others = self.draw(3);
        let (b, value_b) = self.sum(CS::one(), others);
        let product = self.column(cs, value_a * value_b, false)?.variable;
        cs.enforce(|| "", |_| a, |_| b, |lc| lc + product);
        Ok(())
    }

    /// A sum of the newest columns, two of any and ONE. A column that is named twice keeps a
    /// coefficient other than zero; one that is named once may have zero.
    fn sum(&mut self, one: Variable, newest: usize) -> (LinearCombination<Scalar>, Scalar) {
        let mut sum = LinearCombination::zero() + one;
        let mut value = Scalar::ONE;
        let len = self.columns.len();
        for number in 0..newest.min(len) + 2 {
            let is_new = number < newest.min(len);
            let at = if is_new { len - 1 - number } else { self.draw(len) };
            let coefficient = match (self.draw(3), is_new) {
                (0, true) => Scalar::random(&mut self.rows),
                (1, true) => Scalar::from(3),
                (_, true) => -Scalar::from(4),
                (0, false) => Scalar::ZERO,
                (1, false) => Scalar::ONE,
                (_, false) => -Scalar::ONE,
            };
            let column = self.columns[at];
            sum = sum + (coefficient, column.variable);
            value += coefficient * column.value;
        }
        (sum, value)
    }

    /// A new input: the square of the newest one, the first one's own.
    fn square_row<CS: ConstraintSystem<Scalar>>(
        &mut self,
        cs: &mut CS,
    ) -> Result<(), SynthesisError> {
        let root = self.columns.last().copied();
        let free = if self.toy.zero { Scalar::ZERO } else { Scalar::random(&mut self.values) };
        let value = root.map_or(free, |root| root.value.square());
        let variable = cs.alloc_input(|| "", || Ok(value))?;
        let (a, b) = root.map_or((variable, CS::one()), |root| (root.variable, root.variable));
        cs.enforce(|| "", |lc| lc + a, |lc| lc + b, |lc| lc + variable);
        self.columns.push(Column { variable, value, boolean: false });
        Ok(())
    }
}
