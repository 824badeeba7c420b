//! Keeps what the published gadgets allocate, for the tests that compare columns.

use bellperson::gadgets::num::AllocatedNum;
use bellperson::{ConstraintSystem, Index, LinearCombination, SynthesisError, Variable};
use blstrs::Scalar;
use ff::Field;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::RngCore;

use super::bits::Pens;
use crate::circuit::shape::PartShape;

/// Values in order of allocation.
#[derive(Default)]
pub struct Recorder {
    pub inputs: Vec<Scalar>,
    pub wides: Vec<Scalar>,
    pub bits: Vec<bool>,
}

/// What the gadgets call the variables that berth's planes hold as bits.
const BIT_NAMES: [&str; 7] =
    ["boolean", "xor result", "and result", "and not result", "nor result", "ch", "maj"];

impl ConstraintSystem<Scalar> for Recorder {
    type Root = Self;

    fn alloc<F, A, AR>(&mut self, annotation: A, value: F) -> Result<Variable, SynthesisError>
    where
        F: FnOnce() -> Result<Scalar, SynthesisError>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        let (name, value) = (annotation().into(), value()?);
        if BIT_NAMES.contains(&&name[..]) {
            assert!(value == Scalar::ONE || value == Scalar::ZERO, "{name} is {value}");
            self.bits.push(value == Scalar::ONE);
        } else {
            self.wides.push(value);
        }
        Ok(Variable::new_unchecked(Index::Aux(self.bits.len() + self.wides.len() - 1)))
    }

    fn alloc_input<F, A, AR>(&mut self, _: A, value: F) -> Result<Variable, SynthesisError>
    where
        F: FnOnce() -> Result<Scalar, SynthesisError>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        self.inputs.push(value()?);
        Ok(Variable::new_unchecked(Index::Input(self.inputs.len())))
    }

    fn enforce<A, AR, LA, LB, LC>(&mut self, _: A, _: LA, _: LB, _: LC)
    where
        A: FnOnce() -> AR,
        AR: Into<String>,
        LA: FnOnce(LinearCombination<Scalar>) -> LinearCombination<Scalar>,
        LB: FnOnce(LinearCombination<Scalar>) -> LinearCombination<Scalar>,
        LC: FnOnce(LinearCombination<Scalar>) -> LinearCombination<Scalar>,
    {
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

impl Recorder {
    /// A variable of the gadget's caller, whose column is not of the gadget.
    pub fn given(&mut self, value: Scalar) -> AllocatedNum<Scalar> {
        let given = AllocatedNum::alloc(&mut *self, || Ok(value)).unwrap();
        self.wides.pop();
        given
    }

    /// Compares the columns that were recorded with those that `write` writes.
    #[track_caller]
    pub fn compare<T>(&self, write: impl FnOnce(&mut Pens) -> T) -> T {
        let (inputs, wides, bits) = (self.inputs.len(), self.wides.len(), self.bits.len());
        let shape = PartShape { inputs, wides, bits, rows: 0 };
        let mut wide_plane = vec![Scalar::from(7); shape.wide_len()];
        let mut bit_plane = vec![!0; shape.word_len()];
        let mut pens = Pens::new(&shape, &mut wide_plane, &mut bit_plane);
        let outcome = write(&mut pens);
        let counts = (pens.inputs.count(), pens.wides.count(), pens.bits.count());
        assert_eq!(counts, (inputs, wides, bits), "inputs, wides, bits");
        pens.finish().unwrap();
        let theirs = self.inputs.iter().chain(&self.wides);
        let wrong = wide_plane.iter().zip(theirs).position(|(ours, theirs)| ours != theirs);
        assert_eq!(wrong, None, "the first wide that differs");
        assert!(wide_plane[inputs + wides..].iter().all(|wide| *wide == Scalar::ZERO));
        let ours = |i: usize| bit_plane[i / 64] >> (i % 64) & 1 == 1;
        let wrong = (0..bits).position(|i| ours(i) != self.bits[i]);
        assert_eq!(wrong, None, "the first bit that differs");
        assert!((bits..64 * bit_plane.len()).all(|i| !ours(i)), "the padding");
        outcome
    }
}

/// A field element that is zero, one or the largest more often than by chance.
pub fn element(rng: &mut ChaCha8Rng) -> Scalar {
    match rng.next_u32() % 8 {
        0 => Scalar::ZERO,
        1 => Scalar::ONE,
        2 => -Scalar::ONE,
        _ => Scalar::random(rng),
    }
}
