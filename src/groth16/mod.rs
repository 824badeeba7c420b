//! Groth16: from a filled slot to 192 verified bytes.
//!
//! A lane is a workspace in which one partition's arithmetic is done. Every backend takes the
//! same Ready slot and gives the same five points, so the bytes of a proof depend on the witness,
//! r and s alone.

pub mod assemble;
pub mod cpu;
pub mod verify;

use blstrs::{G1Projective, G2Projective};

use crate::circuit::compiled::Compiled;
use crate::error::Result;
use crate::memory::slot::{Ready, Slot};
use crate::srs::read::Srs;

/// The sums of one partition (formats: H, L, A', B1', B2' of the Groth16 equations).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sums {
    /// Σ h_i [h]_i over the m - 1 coefficients of the quotient.
    pub h: G1Projective,
    /// Σ w_j [l]_j over all aux variables.
    pub l: G1Projective,
    /// Σ x_i [a]_i + Σ w_j [a]_j over all inputs and the aux variables dense in A.
    pub a: G1Projective,
    /// The same over B's query in G1.
    pub b_g1: G1Projective,
    /// The same over B's query in G2.
    pub b_g2: G2Projective,
}

/// Bytes of one Groth16 proof: A (48), B (96), C (48), compressed.
pub const PROOF_BYTES: usize = 192;

/// What a lane does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    Idle,
    /// a = A·w, b = B·w.
    Rows,
    /// The coefficients of h.
    Quotient,
    /// The sum over the query of that name.
    H,
    L,
    A,
    BG1,
    BG2,
}

impl Stage {
    /// Every stage, in the order of a partition.
    pub const ALL: [Stage; 8] = [
        Stage::Idle,
        Stage::Rows,
        Stage::Quotient,
        Stage::H,
        Stage::L,
        Stage::A,
        Stage::BG1,
        Stage::BG2,
    ];

    /// The name in records.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Idle => "idle",
            Stage::Rows => "rows",
            Stage::Quotient => "quotient",
            Stage::H => "h",
            Stage::L => "l",
            Stage::A => "a",
            Stage::BG1 => "b_g1",
            Stage::BG2 => "b_g2",
        }
    }
}

/// A workspace for one partition's arithmetic. Allocates nothing after it is made.
pub trait Lane: Send {
    /// The name in results: `cpu` or `cuda`.
    fn backend(&self) -> &'static str;

    /// Bytes of host memory that it works in, from its making to its end.
    fn bytes(&self) -> usize;

    /// Takes a filled slot and gives the five sums; the slot is Free again as soon as its witness
    /// is not needed any more, also on an error. `at` is told each stage as it begins.
    ///
    /// # Errors
    /// [`Error::Device`](crate::error::Error::Device) when the lane's own checks fail.
    fn sums(
        &mut self,
        compiled: &Compiled,
        srs: &Srs,
        slot: Slot<Ready>,
        at: &dyn Fn(Stage),
    ) -> Result<Sums>;
}
