//! Proofs to the published types that the circuits read. Their shape has been checked.

use filecoin_hashers::poseidon::{PoseidonDomain, PoseidonHasher};
use filecoin_hashers::sha256::{Sha256Domain, Sha256Hasher};
use filecoin_hashers::{Domain, Hasher, PoseidonArity};
use storage_proofs_core::merkle::{MerkleProof, MerkleTreeTrait};
use storage_proofs_porep::stacked::{
    self, ColumnProof, EncodingProof, LabelingProof, ReplicaColumnProof,
};
use storage_proofs_update::vanilla as update;

use super::class::SectorSize;
use super::element::Dom;
use super::flat::{Challenge, Column, Path};
use super::raw::{RawElement, RawMerkle, RawUpdate, RawUpdateChallenge};
use super::structure::TreeShape;

/// A path of the Poseidon trees.
pub(crate) type TreeProof<Tree> = MerkleProof<
    PoseidonHasher,
    <Tree as MerkleTreeTrait>::Arity,
    <Tree as MerkleTreeTrait>::SubTreeArity,
    <Tree as MerkleTreeTrait>::TopTreeArity,
>;

fn domain<D: Domain>(dom: Dom) -> D {
    D::try_from_bytes(&dom.0).expect("32 bytes are a domain's length")
}

/// A domain element of the Poseidon trees.
pub(crate) fn poseidon(dom: Dom) -> PoseidonDomain {
    domain(dom)
}

/// A domain element of tree-d.
pub(crate) fn sha256(dom: Dom) -> Sha256Domain {
    domain(dom)
}

/// A path, leaf to root.
pub(crate) fn merkle<H, A, B, C>(raw: RawMerkle) -> MerkleProof<H, A, B, C>
where
    H: Hasher,
    A: 'static + PoseidonArity,
    B: 'static + PoseidonArity,
    C: 'static + PoseidonArity,
{
    let level = |level: &RawElement| {
        (level.hashes.iter().copied().map(domain).collect(), level.index as usize)
    };
    let levels = raw.levels().map(level).collect();
    MerkleProof::from_parts(domain(*raw.leaf()), domain(*raw.root()), levels)
}

/// The same of a path in field elements.
fn flat_merkle<H, A, B, C>(path: &Path, shape: &TreeShape) -> MerkleProof<H, A, B, C>
where
    H: Hasher,
    A: 'static + PoseidonArity,
    B: 'static + PoseidonArity,
    C: 'static + PoseidonArity,
{
    let (mut position, mut siblings) = (path.position, &path.siblings[..]);
    let levels = shape.arities().map(|arity| {
        // Fewer than there should be make a proof that does not verify.
        let (here, above) = siblings.split_at(siblings.len().min(arity as usize - 1));
        let index = position % arity;
        (position, siblings) = (position / arity, above);
        (here.iter().map(|sibling| (*sibling).into()).collect(), index as usize)
    });
    let levels = levels.collect();
    MerkleProof::from_parts(path.leaf.into(), path.root.into(), levels)
}

impl Challenge {
    /// In the published form, which allocates each level of each path.
    pub fn proof<Tree>(&self, sector: SectorSize) -> stacked::Proof<Tree, Sha256Hasher>
    where
        Tree: MerkleTreeTrait<Hasher = PoseidonHasher>,
    {
        let tree = TreeShape::replica(sector);
        let column = |column: &Column| {
            let rows = column.rows.iter().map(|row| (*row).into()).collect();
            let path: TreeProof<Tree> = flat_merkle(&column.path, &tree);
            ColumnProof::new(column.path.position as u32, rows, path)
        };
        let parents = |row: usize| -> Vec<PoseidonDomain> {
            self.labels[row].iter().map(|parent| (*parent).into()).collect()
        };
        let layers = self.labels.len() - 1;
        let label = |row| LabelingProof::new(row as u32 + 1, self.node, parents(row));
        stacked::Proof {
            comm_d_proofs: flat_merkle(&self.data, &TreeShape::data(sector)),
            comm_r_last_proof: flat_merkle(&self.replica, &tree),
            replica_column_proofs: ReplicaColumnProof {
                c_x: column(&self.own),
                drg_parents: self.drg_parents.iter().map(column).collect(),
                exp_parents: self.exp_parents.iter().map(column).collect(),
            },
            labeling_proofs: (0..layers).map(label).collect(),
            encoding_proof: EncodingProof::new(layers as u32, self.node, parents(layers)),
        }
    }
}

/// One partition of a SnapDeals proof.
pub(crate) fn partition<Tree>(raw: RawUpdate) -> update::PartitionProof<Tree>
where
    Tree: MerkleTreeTrait<Hasher = PoseidonHasher>,
{
    let challenge = |raw: RawUpdateChallenge| update::ChallengeProof {
        proof_r_old: merkle(raw.proof_r_old),
        proof_d_new: merkle(raw.proof_d_new),
        proof_r_new: merkle(raw.proof_r_new),
    };
    update::PartitionProof {
        comm_c: poseidon(raw.comm_c),
        apex_leafs: raw.apex_leafs.iter().copied().map(sha256).collect(),
        challenge_proofs: raw.challenge_proofs.0.into_iter().map(challenge).collect(),
    }
}
