//! The sidecar file that marks dev parameters: `STEM.dev.json`.
//!
//! It is written before the parameters themselves, so that dev parameters never lie anywhere
//! without it.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::layout::Counts;
use super::{file_error, io_error, names};
use crate::error::Result;
use crate::files::write_whole;
use crate::input::class::CircuitId;

/// What a marker says about the parameters beside it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Marker {
    /// The circuit, such as `porep-2k`.
    pub circuit: String,
    /// For the reader who finds the file.
    pub notice: String,
    pub counts: Counts,
    /// Seconds since 1970, UTC.
    pub created_unix: u64,
    /// Version of the program that made them.
    pub version: String,
}

impl Marker {
    /// The marker of parameters made now.
    pub fn new(id: CircuitId, counts: Counts) -> Self {
        Marker {
            circuit: id.to_string(),
            notice: "Dev parameters, made locally for trying and testing. \
                     Proofs made with them are valid on no network."
                .to_string(),
            counts,
            created_unix: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs()),
            version: env!("CARGO_PKG_VERSION").to_string(),
        }
    }

    /// Where the marker of a circuit lies in a directory.
    pub fn path(directory: &Path, id: CircuitId) -> PathBuf {
        directory.join(names::stem(id) + ".dev.json")
    }

    /// Reads a circuit's marker.
    ///
    /// # Errors
    /// [`crate::error::Error::Parameters`] when it is not there, not JSON, or of another circuit.
    pub fn read(directory: &Path, id: CircuitId) -> Result<Self> {
        let path = Self::path(directory, id);
        let text = std::fs::read_to_string(&path)
            .map_err(|e| io_error(&path, "cannot read the dev marker", &e))?;
        let marker: Marker = serde_json::from_str(&text)
            .map_err(|e| file_error(&path, format!("not a dev marker: {e}")))?;
        if marker.circuit != id.to_string() {
            let what = format!("the dev marker is of {}, expected {id}", marker.circuit);
            return Err(file_error(&path, what));
        }
        Ok(marker)
    }

    /// Writes the marker of a circuit, whole or not at all.
    ///
    /// # Errors
    /// [`crate::error::Error::Parameters`] when the directory does not take it.
    pub fn write(&self, directory: &Path, id: CircuitId) -> Result<()> {
        let path = Self::path(directory, id);
        let text = serde_json::to_vec_pretty(self).expect("a marker is plain data");
        write_whole(&path, &text).map_err(|e| io_error(&path, "cannot write the dev marker", &e))
    }
}
