//! Witnesses: how a slot is filled, and how a filled slot is read.

pub mod compact;
pub mod generic;
#[cfg(test)]
mod tests;
