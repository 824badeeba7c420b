//! The one constraint system that runs the published circuits.
//!
//! Everything we want of a circuit (its rows, its witness, a comparison) is a [`Sink`] behind one
//! type, so that the compiler translates each circuit once, and not once per purpose.

use bellperson::{ConstraintSystem, LinearCombination, SynthesisError, Variable};
use blstrs::Scalar;

/// Computes the value of a variable; called at most once.
pub type Value<'a> = &'a mut dyn FnMut() -> Result<Scalar, SynthesisError>;

/// Takes what a circuit says, in the order it says it.
pub trait Sink: Send {
    /// The next aux variable.
    ///
    /// # Errors
    /// Any error stops the circuit.
    fn aux(&mut self, value: Value) -> Result<Variable, SynthesisError>;

    /// The next public input; the input ONE is there before the circuit begins.
    ///
    /// # Errors
    /// Any error stops the circuit.
    fn input(&mut self, value: Value) -> Result<Variable, SynthesisError>;

    /// Are rows wanted? If not, no linear combination is ever built.
    fn wants_rows(&self) -> bool;

    /// The row A * B = C.
    fn row(
        &mut self,
        a: &LinearCombination<Scalar>,
        b: &LinearCombination<Scalar>,
        c: &LinearCombination<Scalar>,
    );
}

/// A constraint system that hands everything on to a [`Sink`].
pub struct Synthesis<'a> {
    sink: &'a mut dyn Sink,
    wants_rows: bool,
}

impl<'a> Synthesis<'a> {
    /// For one run of a circuit.
    pub fn new(sink: &'a mut dyn Sink) -> Self {
        let wants_rows = sink.wants_rows();
        Synthesis { sink, wants_rows }
    }
}

/// Makes a closure that may be called once into one that the trait object can call.
fn once<F>(f: F) -> impl FnMut() -> Result<Scalar, SynthesisError>
where
    F: FnOnce() -> Result<Scalar, SynthesisError>,
{
    let mut f = Some(f);
    move || f.take().map_or(Err(SynthesisError::AssignmentMissing), |f| f())
}

impl ConstraintSystem<Scalar> for Synthesis<'_> {
    type Root = Self;

    fn alloc<F, A, AR>(&mut self, _: A, f: F) -> Result<Variable, SynthesisError>
    where
        F: FnOnce() -> Result<Scalar, SynthesisError>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        self.sink.aux(&mut once(f))
    }

    fn alloc_input<F, A, AR>(&mut self, _: A, f: F) -> Result<Variable, SynthesisError>
    where
        F: FnOnce() -> Result<Scalar, SynthesisError>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        self.sink.input(&mut once(f))
    }

    fn enforce<A, AR, LA, LB, LC>(&mut self, _: A, a: LA, b: LB, c: LC)
    where
        A: FnOnce() -> AR,
        AR: Into<String>,
        LA: FnOnce(LinearCombination<Scalar>) -> LinearCombination<Scalar>,
        LB: FnOnce(LinearCombination<Scalar>) -> LinearCombination<Scalar>,
        LC: FnOnce(LinearCombination<Scalar>) -> LinearCombination<Scalar>,
    {
        if self.wants_rows {
            let zero = LinearCombination::zero;
            self.sink.row(&a(zero()), &b(zero()), &c(zero()));
        }
    }

    fn push_namespace<NR, N>(&mut self, _: N)
    where
        NR: Into<String>,
        N: FnOnce() -> NR,
    {
    }

    fn pop_namespace(&mut self) {}

    fn get_root(&mut self) -> &mut Self::Root {
        self
    }
}
