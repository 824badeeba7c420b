//! Circuits: their sizes, recorded once, compiled to header and template.

pub mod assignment;
mod classify;
pub mod compile;
pub mod compiled;
pub mod kinds;
mod record;
pub mod shape;
pub mod synthesis;
#[cfg(test)]
pub(crate) mod tests;
