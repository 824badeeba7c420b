//! The whole circuit, said again by the published code and compared with the compiled rows.

use bellperson::{Index, LinearCombination, SynthesisError, Variable};
use blstrs::Scalar;
use ff::Field;

use crate::circuit::compiled::{Compiled, Query, Selection};
use crate::circuit::synthesis::{Sink, Value};

/// Compares every row, term for term, and at the end the queries; asks for no values.
pub struct Replay<'a> {
    compiled: &'a Compiled,
    boolean: [Selection; 2],
    inputs: usize,
    aux: usize,
    rows: usize,
    /// Columns that occur in A and in B: inputs, aux.
    dense: [[Vec<bool>; 2]; 2],
    /// Terms of A, B and C with the coefficient zero: said, but not compiled.
    zeros: [usize; 3],
    bad: Option<String>,
}

impl<'a> Replay<'a> {
    pub fn new(compiled: &'a Compiled) -> Self {
        let parts = [&compiled.header, &compiled.block];
        let boolean = parts.map(|part| Selection::new(part.boolean.clone()));
        let shape = &compiled.shape;
        let columns = || [vec![false; shape.inputs()], vec![false; shape.aux()]];
        let dense = [columns(), columns()];
        Replay { compiled, boolean, inputs: 1, aux: 0, rows: 0, dense, zeros: [0; 3], bad: None }
    }

    /// The part and row that comes next.
    pub fn next_row(&self) -> (usize, usize) {
        let shape = &self.compiled.shape;
        match self.rows.checked_sub(shape.header.rows) {
            None => (0, self.rows),
            Some(row) => (1 + row / shape.block.rows.max(1), row % shape.block.rows.max(1)),
        }
    }

    /// Is the variable of the header (0) or of a block (k + 1), and its index there?
    fn of(&self, variable: Variable) -> (usize, Index) {
        let (header, block) = (&self.compiled.shape.header, &self.compiled.shape.block);
        let split = |index: usize, header: usize, block: usize| match index.checked_sub(header) {
            None => (0, index),
            Some(index) => (1 + index / block, index % block),
        };
        match variable.get_unchecked() {
            Index::Input(index) => {
                let (part, index) = split(index, header.inputs, block.inputs);
                (part, Index::Input(index))
            }
            Index::Aux(index) => {
                let (part, index) = split(index, header.aux(), block.aux());
                (part, Index::Aux(index))
            }
        }
    }

    /// Position of a variable of a part in its bit plane (true) or wide plane.
    fn place(&self, part: usize, index: Index) -> (bool, usize) {
        match index {
            Index::Input(index) => (false, index),
            Index::Aux(index) => {
                let boolean = &self.boolean[part.min(1)];
                let before = boolean.rank(index);
                let inputs = self.compiled.shape.part(part).inputs;
                if boolean.contains(index) {
                    (true, before)
                } else {
                    (false, inputs + index - before)
                }
            }
        }
    }

    fn code(&self, row_part: usize, variable: Variable) -> usize {
        let codes = &self.compiled.codes;
        let (part, index) = self.of(variable);
        assert!(part == 0 || part == row_part, "a row of one block has a column of another");
        let (is_bit, position) = self.place(part, index);
        let base = match (part, is_bit) {
            (0, false) => 0,
            (0, true) => codes.header_bits,
            (_, false) => codes.block_wides,
            (_, true) => codes.block_bits,
        };
        base as usize + position
    }

    fn check(&mut self, matrices: [&LinearCombination<Scalar>; 3]) -> Result<(), String> {
        let (part, row) = self.next_row();
        if part >= self.compiled.shape.parts() {
            return Err("more rows than compiled".into());
        }
        let compiled = self.compiled.part(part);
        for (number, rows) in [&compiled.a, &compiled.b, &compiled.c].into_iter().enumerate() {
            let terms = || {
                let terms = matrices[number].iter();
                terms.filter(|(_, coefficient)| !coefficient.is_zero_vartime())
            };
            let stored = rows.terms(row, &self.compiled.codes).map(|(coefficient, column)| {
                (self.compiled.coefficients[coefficient as usize], column as usize)
            });
            if !terms().map(|(variable, c)| (*c, self.code(part, variable))).eq(stored) {
                return Err(format!("part {part}, row {row}, matrix {number}: terms differ"));
            }
            self.zeros[number] += matrices[number].len() - terms().count();
            if let Some([inputs, aux]) = self.dense.get_mut(number) {
                for (variable, _) in terms() {
                    match variable.get_unchecked() {
                        Index::Input(index) => inputs[index] = true,
                        Index::Aux(index) => aux[index] = true,
                    }
                }
            }
        }
        Ok(())
    }

    /// After the last row: nothing was different, nothing is missing, the queries are right.
    /// Gives the number of terms with the coefficient zero in A, B and C.
    pub fn finish(self) -> [usize; 3] {
        assert_eq!(self.bad, None);
        let shape = &self.compiled.shape;
        assert_eq!((self.inputs, self.aux), (shape.inputs(), shape.aux()));
        assert_eq!(self.rows, shape.rows());
        let [[_, a_aux], [b_inputs, b_aux]] = &self.dense;
        let counts = |query: fn(&crate::circuit::compiled::Part) -> &Query| {
            let of = |part| (query(part).bits.count, query(part).wides.count);
            let (header, block) = (of(&self.compiled.header), of(&self.compiled.block));
            header.0 + header.1 + shape.repeats * (block.0 + block.1)
        };
        let chosen = |dense: &[bool]| dense.iter().filter(|dense| **dense).count();
        assert_eq!(counts(|part| &part.l), shape.aux());
        assert_eq!(counts(|part| &part.a_query), shape.inputs() + chosen(a_aux));
        assert_eq!(counts(|part| &part.b_query), chosen(b_inputs) + chosen(b_aux));
        let is_in = |query: fn(&crate::circuit::compiled::Part) -> &Query, index: Index| {
            let (part, index) = self.of(Variable::new_unchecked(index));
            let query = query(self.compiled.part(part));
            let (is_bit, position) = self.place(part, index);
            if is_bit { query.bits.contains(position) } else { query.wides.contains(position) }
        };
        for (index, dense) in b_inputs.iter().enumerate() {
            assert_eq!(is_in(|part| &part.b_query, Index::Input(index)), *dense);
            assert!(is_in(|part| &part.a_query, Index::Input(index)));
        }
        for (index, (a, b)) in a_aux.iter().zip(b_aux).enumerate() {
            assert!(is_in(|part| &part.l, Index::Aux(index)), "aux {index} is in L");
            assert_eq!(is_in(|part| &part.a_query, Index::Aux(index)), *a, "aux {index} in A");
            assert_eq!(is_in(|part| &part.b_query, Index::Aux(index)), *b, "aux {index} in B");
        }
        self.zeros
    }
}

impl Sink for Replay<'_> {
    fn aux(&mut self, _: Value) -> Result<Variable, SynthesisError> {
        self.aux += 1;
        Ok(Variable::new_unchecked(Index::Aux(self.aux - 1)))
    }

    fn input(&mut self, _: Value) -> Result<Variable, SynthesisError> {
        self.inputs += 1;
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
        if self.bad.is_none() {
            self.bad = self.check([a, b, c]).err();
        }
        self.rows += 1;
    }
}
