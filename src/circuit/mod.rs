//! Circuits: their sizes, recorded once, compiled to header and template.

pub mod compiled;
pub mod shape;
