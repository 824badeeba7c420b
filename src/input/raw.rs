//! Vanilla proofs as they are written, before any of it is believed.
//!
//! The published types keep their fields to themselves, so that counts and indices could not be
//! checked in them, and they panic on what is not canonical. These mirror their serialized form
//! field by field (formats.md 3.2 and 3.3, 5, 6), with every list bounded.

use serde::Deserialize;

use super::element::{Dom, List};

/// Partitions of a non-interactive proof of a large sector; no proof has more.
pub(crate) const PARTITIONS_MAX: usize = 126;
/// Challenges of a PoRep partition.
pub(crate) const POREP_CHALLENGES_MAX: usize = 18;
/// Levels of tree-d of a 64 GiB sector.
const LEVELS_MAX: usize = 31;
/// Labels that a label hashes (`TOTAL_PARENTS` upstream).
pub const LABEL_PARENTS: usize = 37;
const LAYERS_MAX: usize = 11;

/// Partitions of challenges.
pub(crate) type RawPartitions = List<List<RawChallenge, POREP_CHALLENGES_MAX>, PARTITIONS_MAX>;

/// `storage_proofs_porep::stacked::Proof`: one challenge of a PoRep.
#[derive(Deserialize)]
pub(crate) struct RawChallenge {
    pub comm_d_proofs: RawMerkle,
    pub comm_r_last_proof: RawMerkle,
    pub replica_column_proofs: RawColumns,
    pub labeling_proofs: List<RawLabel, LAYERS_MAX>,
    pub encoding_proof: RawLabel,
}

#[derive(Deserialize)]
pub(crate) struct RawColumns {
    pub c_x: RawColumnProof,
    pub drg_parents: List<RawColumnProof, 6>,
    pub exp_parents: List<RawColumnProof, 8>,
}

#[derive(Deserialize)]
pub(crate) struct RawColumnProof {
    pub column: RawColumn,
    pub inclusion_proof: RawMerkle,
}

#[derive(Deserialize)]
pub(crate) struct RawColumn {
    pub index: u32,
    pub rows: List<Dom, LAYERS_MAX>,
    /// Phantom: `null` in JSON, nothing in bincode, required in both.
    pub _h: (),
}

#[derive(Deserialize)]
pub(crate) struct RawLabel {
    pub parents: List<Dom, LABEL_PARENTS>,
    pub layer_index: u32,
    pub node: u64,
}

#[derive(Deserialize)]
pub(crate) struct RawMerkle {
    pub data: RawProof,
}

impl RawMerkle {
    /// The leaf that the path starts from.
    pub fn leaf(&self) -> &Dom {
        match &self.data {
            RawProof::Single { leaf, .. }
            | RawProof::Sub { leaf, .. }
            | RawProof::Top { leaf, .. } => leaf,
        }
    }

    /// Its levels, from the leaf up.
    pub fn levels(&self) -> impl Iterator<Item = &RawElement> {
        let paths: [&[RawElement]; 3] = match &self.data {
            RawProof::Single { path, .. } => [&path.path, &[], &[]],
            RawProof::Sub { base_proof, sub_proof, .. } => [&base_proof.path, &sub_proof.path, &[]],
            RawProof::Top { base_proof, sub_proof, top_proof, .. } => {
                [&base_proof.path, &sub_proof.path, &top_proof.path]
            }
        };
        paths.into_iter().flatten()
    }

    /// The root that the path says it leads to.
    pub fn root(&self) -> &Dom {
        match &self.data {
            RawProof::Single { root, .. }
            | RawProof::Sub { root, .. }
            | RawProof::Top { root, .. } => root,
        }
    }
}

/// By the number of trees on top of each other.
#[derive(Deserialize)]
pub(crate) enum RawProof {
    Single { root: Dom, leaf: Dom, path: RawPath },
    Sub { base_proof: RawPath, sub_proof: RawPath, root: Dom, leaf: Dom },
    Top { base_proof: RawPath, sub_proof: RawPath, top_proof: RawPath, root: Dom, leaf: Dom },
}

#[derive(Deserialize)]
pub(crate) struct RawPath {
    pub path: List<RawElement, LEVELS_MAX>,
}

#[derive(Deserialize)]
pub(crate) struct RawElement {
    pub hashes: List<Dom, 7>,
    pub index: u64,
}

/// `filecoin_proofs::FallbackPoStSectorProof`: one sector of a PoSt.
#[derive(Deserialize)]
pub(crate) struct RawPost {
    pub sector_id: u64,
    pub comm_r: Dom,
    pub sectors: List<RawSector, 1>,
}

#[derive(Deserialize)]
pub(crate) struct RawSector {
    pub inclusion_proofs: List<RawMerkle, 66>,
    pub comm_c: Dom,
    pub comm_r_last: Dom,
}

/// `storage_proofs_update::PartitionProof`: one partition of a SnapDeals proof.
#[derive(Deserialize)]
pub(crate) struct RawUpdate {
    pub comm_c: Dom,
    pub apex_leafs: List<Dom, 128>,
    pub challenge_proofs: List<RawUpdateChallenge, 86>,
}

#[derive(Deserialize)]
pub(crate) struct RawUpdateChallenge {
    pub proof_r_old: RawMerkle,
    pub proof_d_new: RawMerkle,
    pub proof_r_new: RawMerkle,
}
