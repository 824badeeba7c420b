//! Groth16 parameters: found, checked, read into an arena as the lane wants them, or made for
//! trying and testing.
//!
//! ```text
//! find --> stamp --> layout --> key --> read: windows of the file -> points -> arena
//! names    digest    counts     .vk     order: file order <-> slot order
//!                                  \-> check: every point's order, kept by nobody
//! ```

pub mod check;
pub mod find;
pub mod key;
pub mod layout;
pub mod manifest;
pub mod marker;
pub mod names;
mod order;
mod points;
mod random;
pub mod read;
pub mod setup;
pub mod stamp;
#[cfg(test)]
mod testing;
mod windows;

use std::path::Path;

use crate::error::Error;

/// An error of parameters that begins with the file's path.
fn file_error(path: &Path, what: impl std::fmt::Display) -> Error {
    Error::Parameters(format!("{}: {what}", path.display()))
}
