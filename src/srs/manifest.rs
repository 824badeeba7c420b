//! Published parameter files: name, content id, digest and length.
//!
//! The data is compiled in (`manifest.json`, in the form of rust-fil-proofs' `parameters.json` with
//! the length added); a file of that form can be used in its place.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use super::{file_error, io_error, names};
use crate::error::Result;
use crate::input::class::{CircuitId, Kind, SectorSize};

/// What is published about one file.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Entry {
    /// Content id, for any downloader.
    pub cid: String,
    /// First 32 hex digits of the BLAKE2b-512 of the file.
    pub digest: String,
    /// Bytes of a sector; 0 for files that serve all sizes.
    pub sector_size: u64,
    /// Bytes of the file, where known.
    pub bytes: Option<u64>,
}

/// A list of published files.
#[derive(Clone, Debug)]
pub struct Manifest {
    source: String,
    entries: BTreeMap<String, Entry>,
}

impl Manifest {
    /// The manifest that the program carries.
    pub fn built_in() -> Self {
        let entries = serde_json::from_str(include_str!("manifest.json"))
            .expect("manifest.json is data of this program and a test reads it");
        Manifest { source: "built in (parameters v28)".to_string(), entries }
    }

    /// A manifest of the user's own, in the form of `parameters.json`.
    ///
    /// # Errors
    /// [`crate::error::Error::Parameters`] naming the file, and line and column of bad JSON.
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path)
            .map_err(|e| io_error(path, "cannot read the manifest", &e))?;
        let entries = serde_json::from_str(&text)
            .map_err(|e| file_error(path, format!("not a parameter manifest: {e}")))?;
        Ok(Manifest { source: path.display().to_string(), entries })
    }

    /// Where the manifest is from, for messages.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// What is published about a file name, if anything.
    pub fn entry(&self, file_name: &str) -> Option<&Entry> {
        self.entries.get(file_name)
    }

    /// All files, by name.
    pub fn files(&self) -> impl Iterator<Item = (&str, &Entry)> {
        self.entries.iter().map(|(name, entry)| (name.as_str(), entry))
    }

    /// The circuits that have published files, in the order of their names.
    pub fn circuits(&self) -> Vec<CircuitId> {
        let kinds = [Kind::Porep, Kind::Update, Kind::Window, Kind::Winning];
        let all = kinds.into_iter().flat_map(|kind| {
            SectorSize::ALL.into_iter().map(move |sector| CircuitId { kind, sector })
        });
        all.filter(|id| self.circuit(*id).next().is_some()).collect()
    }

    /// The files of one circuit that are published: `.params`, then `.vk`.
    pub fn circuit(&self, id: CircuitId) -> impl Iterator<Item = (&str, &Entry)> {
        [names::params(id), names::vk(id)]
            .into_iter()
            .filter_map(|name| self.entries.get_key_value(&name))
            .map(|(name, entry)| (name.as_str(), entry))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::srs::testing::Scratch;

    #[test]
    fn the_built_in_manifest_is_whole() {
        let manifest = Manifest::built_in();
        assert_eq!(manifest.files().count(), 45);
        for (name, entry) in manifest.files() {
            assert!(name.starts_with("v28-"), "{name}");
            assert!(entry.cid.starts_with("Qm") && entry.cid.len() == 46, "{name}");
            assert_eq!(entry.digest.len(), 32, "{name}");
            assert!(entry.digest.bytes().all(|b| b.is_ascii_hexdigit()), "{name}");
        }
        let porep: Vec<_> = manifest.circuit("porep-32g".parse().unwrap()).collect();
        assert_eq!(porep[0].1.digest, "6a388072a518cf46ebd661f5cc46900a");
        assert_eq!(porep[0].1.bytes, Some(47_373_928_632));
        assert_eq!(porep[1].1.bytes, Some(32_356));
        assert_eq!(manifest.circuit("porep-16k".parse().unwrap()).count(), 0);
    }

    #[test]
    fn a_manifest_of_the_users_own_is_read_or_refused_by_name() {
        let scratch = Scratch::new("manifest");
        let path = scratch.path("parameters.json");
        std::fs::write(&path, r#"{"x.params":{"cid":"Qm","digest":"00","sector_size":2048}}"#)
            .unwrap();
        let manifest = Manifest::read(&path).unwrap();
        assert_eq!(manifest.entry("x.params").unwrap().bytes, None);
        assert_eq!(manifest.source(), path.display().to_string());
        for bad in ["", "[]", r#"{"x":{"cid":1}}"#] {
            std::fs::write(&path, bad).unwrap();
            let error = Manifest::read(&path).unwrap_err().to_string();
            assert!(error.contains("parameters.json") && error.contains("line"), "{error}");
        }
    }
}
