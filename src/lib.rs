//! Berth: Filecoin commit-phase-1 outputs to Groth16 proofs, in planned memory.
//!
//! The modules stand in the order that data moves; a module uses only those above it.
//!
//! ```text
//! request -> input -> circuit -> [slot: Free, Filling, Ready, Proving, Free] -> proof -> verify
//!            parse    compiled    synthesis threads      lane                   a, b, c  pairing
//!            check    once        (pinned)               (CPU arena)
//! ```

pub mod error;
pub mod files;
#[rustfmt::skip]
mod sys;
pub mod team;
pub mod input;
pub mod config;
pub mod host;
pub mod circuit;
pub mod plan;
pub mod memory;
pub mod witness;
pub mod srs;
pub mod groth16;
pub mod prover;
pub mod command;
pub mod fuzz;
