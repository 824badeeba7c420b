//! The challenges of a PoRep as plain field elements: what a witness is made from without the heap,
//! and what the published types are made from where published code is asked.

use blstrs::Scalar;

use super::class::SectorSize;
use super::element::{Dom, scalar};
use super::raw::{RawChallenge, RawColumnProof, RawLabel, RawMerkle};
use super::structure::{TreeShape, leaf_index};

pub use super::raw::LABEL_PARENTS;

/// Base parents of a node.
pub const DRG_PARENTS: usize = 6;
/// Expander parents of a node.
pub const EXP_PARENTS: usize = 8;

/// A path through a tree, with the root that it says it leads to.
#[derive(Clone, Debug, PartialEq)]
pub struct Path {
    /// Of the leaf among all leaves.
    pub position: u64,
    pub leaf: Scalar,
    pub root: Scalar,
    /// From the leaf up, those of one level after the other.
    pub siblings: Box<[Scalar]>,
}

/// The labels of a node in all layers, and the path of their hash in the tree of columns.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    pub rows: Box<[Scalar]>,
    pub path: Path,
}

/// One challenge.
#[derive(Clone, Debug, PartialEq)]
pub struct Challenge {
    pub node: u64,
    /// The data in comm_d.
    pub data: Path,
    /// The encoded data in comm_r_last.
    pub replica: Path,
    /// The challenged column in comm_c.
    pub own: Column,
    pub drg_parents: [Column; DRG_PARENTS],
    pub exp_parents: [Column; EXP_PARENTS],
    /// What the label of each layer is said to hash, then what the encoding key is.
    pub labels: Box<[[Scalar; LABEL_PARENTS]]>,
}

fn element(dom: &Dom) -> Scalar {
    scalar(&dom.0)
}

fn path(raw: &RawMerkle, shape: &TreeShape) -> Path {
    Path {
        position: leaf_index(raw, shape),
        leaf: element(raw.leaf()),
        root: element(raw.root()),
        siblings: raw.levels().flat_map(|level| level.hashes.iter()).map(element).collect(),
    }
}

/// A list whose length has been checked.
fn array<T, const N: usize>(items: impl Iterator<Item = T>) -> [T; N] {
    let mut items = items;
    std::array::from_fn(|_| items.next().expect("counts are checked before"))
}

impl Challenge {
    /// Of a raw one that has the shape of its sector and is about one node.
    pub(super) fn of(raw: &RawChallenge, sector: SectorSize) -> Self {
        let tree = TreeShape::replica(sector);
        let column = |raw: &RawColumnProof| Column {
            rows: raw.column.rows.iter().map(element).collect(),
            path: path(&raw.inclusion_proof, &tree),
        };
        let label = |raw: &RawLabel| array(raw.parents.iter().map(element));
        let columns = &raw.replica_column_proofs;
        Challenge {
            node: raw.encoding_proof.node,
            data: path(&raw.comm_d_proofs, &TreeShape::data(sector)),
            replica: path(&raw.comm_r_last_proof, &tree),
            own: column(&columns.c_x),
            drg_parents: array(columns.drg_parents.iter().map(column)),
            exp_parents: array(columns.exp_parents.iter().map(column)),
            labels: raw.labeling_proofs.iter().chain([&raw.encoding_proof]).map(label).collect(),
        }
    }

    /// Every column: the challenged one, then those of the parents.
    fn columns(&self) -> impl Iterator<Item = &Column> {
        [&self.own].into_iter().chain(&self.drg_parents).chain(&self.exp_parents)
    }

    /// Bytes on the heap.
    pub(super) fn heap_bytes(&self) -> usize {
        let columns = self.columns().map(|it| size_of_val(&*it.rows) + it.path.heap_bytes());
        self.data.heap_bytes()
            + self.replica.heap_bytes()
            + columns.sum::<usize>()
            + size_of_val(&*self.labels)
    }
}

impl Path {
    fn heap_bytes(&self) -> usize {
        size_of_val(&*self.siblings)
    }
}
