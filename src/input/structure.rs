//! Counts and indices of raw vanilla proofs: whether they have the shape of their sector, and
//! whether they are about the nodes that they should be about. No hash is computed here.

use super::class::SectorSize;
use super::derive::{Nodes, PorepConfig};
use super::raw::{
    LABEL_PARENTS, RawChallenge, RawColumnProof, RawElement, RawLabel, RawMerkle, RawPartitions,
    RawPath, RawProof,
};
use crate::error::{Error, Result};

/// The levels of one tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TreeShape {
    pub arity: u64,
    pub base_levels: usize,
    /// 0, or the arity of the one level above the base trees.
    pub sub_arity: u64,
    /// 0, or the arity of the one level above that.
    pub top_arity: u64,
}

impl TreeShape {
    /// Tree-d: binary, SHA-256.
    pub fn data(sector: SectorSize) -> Self {
        let base_levels = sector.nodes().trailing_zeros() as usize;
        TreeShape { arity: 2, base_levels, sub_arity: 0, top_arity: 0 }
    }

    /// Tree-c and tree-r: Poseidon, 8-0-0, 8-8-0 or 8-8-2.
    pub fn replica(sector: SectorSize) -> Self {
        let (sub_arity, top_arity) = match sector {
            SectorSize::K2 | SectorSize::M8 | SectorSize::M512 => (0, 0),
            SectorSize::K16 | SectorSize::G32 => (8, 0),
            SectorSize::K32 | SectorSize::G64 => (8, 2),
        };
        let base_leaves = sector.nodes() / sub_arity.max(1) / top_arity.max(1);
        let base_levels = base_leaves.trailing_zeros() as usize / 3;
        TreeShape { arity: 8, base_levels, sub_arity, top_arity }
    }

    /// Arities from the leaves up.
    pub fn arities(&self) -> impl Iterator<Item = u64> {
        let base = std::iter::repeat_n(self.arity, self.base_levels);
        base.chain([self.sub_arity, self.top_arity]).filter(|arity| *arity > 0)
    }

    fn name(&self) -> &'static str {
        match (self.sub_arity, self.top_arity) {
            (0, _) => "Single",
            (_, 0) => "Sub",
            _ => "Top",
        }
    }
}

/// Refuses a path of another shape.
pub(crate) fn merkle_counts(raw: &RawMerkle, shape: &TreeShape, at: &str) -> Result<()> {
    let wrong = |found: &str| {
        let what = format!("a \"{found}\" path where this sector has \"{}\"", shape.name());
        Err(Error::input(format!("{at}.data"), what))
    };
    let path = |path, levels, arity, field: &str| {
        path_counts(path, levels, arity, &format!("{at}.data.{}.{field}.path", shape.name()))
    };
    match &raw.data {
        RawProof::Single { path: base, .. } => {
            if shape.name() != "Single" {
                return wrong("Single");
            }
            path(base, shape.base_levels, shape.arity, "path")
        }
        RawProof::Sub { base_proof, sub_proof, .. } => {
            if shape.name() != "Sub" {
                return wrong("Sub");
            }
            path(base_proof, shape.base_levels, shape.arity, "base_proof")?;
            path(sub_proof, 1, shape.sub_arity, "sub_proof")
        }
        RawProof::Top { base_proof, sub_proof, top_proof, .. } => {
            if shape.name() != "Top" {
                return wrong("Top");
            }
            path(base_proof, shape.base_levels, shape.arity, "base_proof")?;
            path(sub_proof, 1, shape.sub_arity, "sub_proof")?;
            path(top_proof, 1, shape.top_arity, "top_proof")
        }
    }
}

fn path_counts(raw: &RawPath, levels: usize, arity: u64, at: &str) -> Result<()> {
    count(raw.path.len(), levels, "levels", at)?;
    for (level, element) in raw.path.iter().enumerate() {
        let siblings = arity as usize - 1;
        if element.hashes.len() != siblings {
            let at = format!("{at}[{level}].hashes");
            return count(element.hashes.len(), siblings, "siblings", &at);
        }
        if element.index >= arity {
            let what = format!("index {} in a tree of arity {arity}", element.index);
            return Err(Error::input(format!("{at}[{level}].index"), what));
        }
    }
    Ok(())
}

fn count(found: usize, wanted: usize, of: &str, at: &str) -> Result<()> {
    if found == wanted {
        return Ok(());
    }
    Err(Error::input(at, format!("{found} {of} where {wanted} belong")))
}

/// The leaf that a path of the right shape is about.
pub(crate) fn leaf_index(raw: &RawMerkle, shape: &TreeShape) -> u64 {
    let fold = |path: &[RawElement], arity| path.iter().rev().fold(0, |n, e| n * arity + e.index);
    let base_leaves = shape.arity.pow(shape.base_levels as u32);
    match &raw.data {
        RawProof::Single { path, .. } => fold(&path.path, shape.arity),
        RawProof::Sub { base_proof, sub_proof, .. } => {
            fold(&base_proof.path, shape.arity)
                + base_leaves * fold(&sub_proof.path, shape.sub_arity)
        }
        RawProof::Top { base_proof, sub_proof, top_proof, .. } => {
            let top = fold(&top_proof.path, shape.top_arity);
            let above = fold(&sub_proof.path, shape.sub_arity) + shape.sub_arity * top;
            fold(&base_proof.path, shape.arity) + base_leaves * above
        }
    }
}

/// Refuses a path that is about another leaf.
pub(crate) fn merkle_node(raw: &RawMerkle, shape: &TreeShape, node: u64, at: &str) -> Result<()> {
    let index = leaf_index(raw, shape);
    if index == node {
        return Ok(());
    }
    Err(Error::input(at, format!("its path leads to leaf {index}, not to node {node}")))
}

/// Refuses wrong numbers of partitions and challenges, and of anything inside one.
pub(crate) fn porep_counts(
    partitions: &RawPartitions,
    config: &PorepConfig,
    at: &str,
) -> Result<()> {
    if partitions.is_empty() {
        return Err(Error::input(at, "no partitions at all"));
    }
    count(partitions.len(), config.partitions, "partitions", at)?;
    let (data, replica) = (TreeShape::data(config.sector), TreeShape::replica(config.sector));
    for (k, partition) in partitions.iter().enumerate() {
        let challenges = &partition[..];
        count(challenges.len(), config.challenges, "challenges", &format!("{at}[{k}]"))?;
        for (i, challenge) in challenges.iter().enumerate() {
            challenge_counts(challenge, config, &data, &replica, &format!("{at}[{k}][{i}]"))?;
        }
    }
    Ok(())
}

fn challenge_counts(
    raw: &RawChallenge,
    config: &PorepConfig,
    data: &TreeShape,
    replica: &TreeShape,
    at: &str,
) -> Result<()> {
    merkle_counts(&raw.comm_d_proofs, data, &format!("{at}.comm_d_proofs"))?;
    merkle_counts(&raw.comm_r_last_proof, replica, &format!("{at}.comm_r_last_proof"))?;
    let column = |raw: &RawColumnProof, at: &str| {
        count(raw.column.rows.len(), config.layers, "layers", &format!("{at}.column.rows"))?;
        merkle_counts(&raw.inclusion_proof, replica, &format!("{at}.inclusion_proof"))
    };
    let columns = &raw.replica_column_proofs;
    let at_columns = format!("{at}.replica_column_proofs");
    column(&columns.c_x, &format!("{at_columns}.c_x"))?;
    count(columns.drg_parents.len(), 6, "parents", &format!("{at_columns}.drg_parents"))?;
    count(columns.exp_parents.len(), 8, "parents", &format!("{at_columns}.exp_parents"))?;
    for (p, parent) in columns.drg_parents.iter().enumerate() {
        column(parent, &format!("{at_columns}.drg_parents[{p}]"))?;
    }
    for (p, parent) in columns.exp_parents.iter().enumerate() {
        column(parent, &format!("{at_columns}.exp_parents[{p}]"))?;
    }
    count(raw.labeling_proofs.len(), config.layers, "layers", &format!("{at}.labeling_proofs"))?;
    let labels = raw
        .labeling_proofs
        .iter()
        .enumerate()
        .map(|(l, label)| (label, l + 1, format!("{at}.labeling_proofs[{l}]")));
    let encoding = (&raw.encoding_proof, config.layers, format!("{at}.encoding_proof"));
    for (label, layer, at) in labels.chain([encoding]) {
        count(label.parents.len(), LABEL_PARENTS, "parents", &format!("{at}.parents"))?;
        if label.layer_index as usize != layer {
            let what = format!("layer {} where layer {layer} belongs", label.layer_index);
            return Err(Error::input(format!("{at}.layer_index"), what));
        }
    }
    Ok(())
}

/// Refuses a challenge that is about other nodes than the derived ones. `origin` says what they
/// were derived from.
pub(crate) fn porep_nodes(
    raw: &RawChallenge,
    nodes: &Nodes,
    sector: SectorSize,
    origin: &str,
    at: &str,
) -> Result<()> {
    let (data, replica) = (TreeShape::data(sector), TreeShape::replica(sector));
    let challenge = u64::from(nodes.challenge);
    let labels = raw
        .labeling_proofs
        .iter()
        .enumerate()
        .map(|(l, label)| (label, format!("{at}.labeling_proofs[{l}].node")));
    let encoding = (&raw.encoding_proof, format!("{at}.encoding_proof.node"));
    for (RawLabel { node, .. }, at) in labels.chain([encoding]) {
        if *node != challenge {
            let what =
                format!("node {node} is not the challenge {challenge} that follows from {origin}");
            return Err(Error::input(at, what));
        }
    }
    merkle_node(&raw.comm_d_proofs, &data, challenge, &format!("{at}.comm_d_proofs"))?;
    merkle_node(&raw.comm_r_last_proof, &replica, challenge, &format!("{at}.comm_r_last_proof"))?;
    let column = |raw: &RawColumnProof, node: u32, what: &str| {
        let at = format!("{at}.replica_column_proofs.{what}");
        if raw.column.index != node {
            let what = format!(
                "node {} where node {node} belongs, as challenge {challenge} follows from {origin}",
                raw.column.index
            );
            return Err(Error::input(format!("{at}.column.index"), what));
        }
        merkle_node(&raw.inclusion_proof, &replica, node.into(), &format!("{at}.inclusion_proof"))
    };
    let columns = &raw.replica_column_proofs;
    column(&columns.c_x, nodes.challenge, "c_x")?;
    for (p, (parent, node)) in columns.drg_parents.iter().zip(nodes.drg).enumerate() {
        column(parent, node, &format!("drg_parents[{p}]"))?;
    }
    for (p, (parent, node)) in columns.exp_parents.iter().zip(nodes.exp).enumerate() {
        column(parent, node, &format!("exp_parents[{p}]"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tree_shapes_hold_every_node() {
        for sector in SectorSize::ALL {
            for shape in [TreeShape::data(sector), TreeShape::replica(sector)] {
                let base = shape.arity.pow(shape.base_levels as u32);
                assert_eq!(base * shape.sub_arity.max(1) * shape.top_arity.max(1), sector.nodes());
            }
        }
    }
}
