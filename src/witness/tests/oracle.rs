//! The whole circuit with values, as the published code makes them, compared with ours.

use bellperson::{Index, LinearCombination, SynthesisError, Variable};
use blstrs::Scalar;
use ff::Field;

use crate::circuit::compiled::Compiled;
use crate::circuit::shape::Witness;
use crate::circuit::synthesis::{Sink, Synthesis, Value};
use crate::circuit::tests::replay::Replay;
use crate::witness::compact;

/// Keeps every value, and compares A * w, B * w and C * w of every row.
struct Oracle<'a> {
    compiled: &'a Compiled,
    witness: Witness<'a>,
    replay: Replay<'a>,
    inputs: Vec<Scalar>,
    aux: Vec<Scalar>,
    bad: Option<String>,
}

/// Runs the whole circuit and compares rows and values with the compiled circuit and the witness.
/// Gives the number of terms with the coefficient zero in A, B and C.
pub fn compare(
    compiled: &Compiled,
    witness: Witness,
    circuit: impl FnOnce(Synthesis<'_>) -> Result<(), SynthesisError>,
) -> [usize; 3] {
    let (inputs, aux, replay) = (vec![Scalar::ONE], Vec::new(), Replay::new(compiled));
    let mut oracle = Oracle { compiled, witness, replay, inputs, aux, bad: None };
    circuit(Synthesis::new(&mut oracle)).unwrap();
    assert_eq!(oracle.bad, None);
    let zeros = oracle.replay.finish();
    same_values(compiled, witness, &oracle.inputs, &oracle.aux);
    zeros
}

fn same_values(compiled: &Compiled, witness: Witness, inputs: &[Scalar], aux: &[Scalar]) {
    let (our_inputs, our_aux) = compact::expand(compiled, &witness);
    assert!(our_inputs == inputs, "inputs differ");
    assert_eq!(our_aux.len(), aux.len());
    let wrong = our_aux.iter().zip(aux).position(|(ours, theirs)| ours != theirs);
    assert_eq!(wrong, None, "the first aux variable that differs");
}

/// Runs the whole circuit and compares its values, not its rows, with the witness.
pub fn compare_values(
    compiled: &Compiled,
    witness: Witness,
    circuit: impl FnOnce(Synthesis<'_>) -> Result<(), SynthesisError>,
) {
    let mut values = Values { inputs: vec![Scalar::ONE], aux: Vec::new() };
    circuit(Synthesis::new(&mut values)).unwrap();
    same_values(compiled, witness, &values.inputs, &values.aux);
}

/// Keeps every value.
struct Values {
    inputs: Vec<Scalar>,
    aux: Vec<Scalar>,
}

impl Sink for Values {
    fn aux(&mut self, value: Value) -> Result<Variable, SynthesisError> {
        self.aux.push(value()?);
        Ok(Variable::new_unchecked(Index::Aux(self.aux.len() - 1)))
    }

    fn input(&mut self, value: Value) -> Result<Variable, SynthesisError> {
        self.inputs.push(value()?);
        Ok(Variable::new_unchecked(Index::Input(self.inputs.len() - 1)))
    }

    fn wants_rows(&self) -> bool {
        false
    }

    fn row(
        &mut self,
        _: &LinearCombination<Scalar>,
        _: &LinearCombination<Scalar>,
        _: &LinearCombination<Scalar>,
    ) {
    }
}

impl Oracle<'_> {
    fn check(&self, matrices: [&LinearCombination<Scalar>; 3]) -> Option<String> {
        let (part, row) = self.replay.next_row();
        if part >= self.compiled.shape.parts() {
            return Some("more rows than compiled".into());
        }
        let compiled = self.compiled.part(part);
        let ours = [&compiled.a, &compiled.b, &compiled.c]
            .map(|rows| compact::value(self.compiled, &self.witness, part, rows, row));
        let theirs = matrices.map(|terms| terms.eval(&self.inputs, &self.aux));
        let holds = theirs[0] * theirs[1] == theirs[2];
        (ours != theirs || !holds).then(|| format!("part {part}, row {row}: values differ"))
    }
}

impl Sink for Oracle<'_> {
    fn aux(&mut self, value: Value) -> Result<Variable, SynthesisError> {
        self.aux.push(value()?);
        self.replay.aux(value)
    }

    fn input(&mut self, value: Value) -> Result<Variable, SynthesisError> {
        self.inputs.push(value()?);
        self.replay.input(value)
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
            self.bad = self.check([a, b, c]);
        }
        self.replay.row(a, b, c);
    }
}
