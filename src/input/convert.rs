//! Raw proofs to the published types that the circuits read. Their shape has been checked.

use filecoin_hashers::poseidon::{PoseidonDomain, PoseidonHasher};
use filecoin_hashers::sha256::{Sha256Domain, Sha256Hasher};
use filecoin_hashers::{Domain, Hasher, PoseidonArity};
use storage_proofs_core::merkle::{MerkleProof, MerkleTreeTrait};
use storage_proofs_porep::stacked::{
    self, ColumnProof, EncodingProof, LabelingProof, ReplicaColumnProof,
};
use storage_proofs_update::vanilla as update;

use super::element::Dom;
use super::raw::{
    RawChallenge, RawColumnProof, RawMerkle, RawPath, RawProof, RawUpdate, RawUpdateChallenge,
};

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
    let mut levels = Vec::new();
    let mut push = |path: RawPath| {
        levels.extend(path.path.0.into_iter().map(|element| {
            let hashes = element.hashes.iter().copied().map(domain).collect();
            (hashes, element.index as usize)
        }));
    };
    let (root, leaf) = match raw.data {
        RawProof::Single { root, leaf, path } => {
            push(path);
            (root, leaf)
        }
        RawProof::Sub { base_proof, sub_proof, root, leaf } => {
            push(base_proof);
            push(sub_proof);
            (root, leaf)
        }
        RawProof::Top { base_proof, sub_proof, top_proof, root, leaf } => {
            push(base_proof);
            push(sub_proof);
            push(top_proof);
            (root, leaf)
        }
    };
    MerkleProof::from_parts(domain(leaf), domain(root), levels)
}

fn column<Tree>(raw: RawColumnProof) -> ColumnProof<TreeProof<Tree>>
where
    Tree: MerkleTreeTrait<Hasher = PoseidonHasher>,
{
    let rows = raw.column.rows.iter().copied().map(poseidon).collect();
    ColumnProof::new(raw.column.index, rows, merkle(raw.inclusion_proof))
}

/// One challenge of a PoRep.
pub(crate) fn challenge<Tree>(raw: RawChallenge) -> stacked::Proof<Tree, Sha256Hasher>
where
    Tree: MerkleTreeTrait<Hasher = PoseidonHasher>,
{
    let labels = |parents: &[Dom]| parents.iter().copied().map(poseidon).collect::<Vec<_>>();
    let columns = raw.replica_column_proofs;
    stacked::Proof {
        comm_d_proofs: merkle(raw.comm_d_proofs),
        comm_r_last_proof: merkle(raw.comm_r_last_proof),
        replica_column_proofs: ReplicaColumnProof {
            c_x: column::<Tree>(columns.c_x),
            drg_parents: columns.drg_parents.0.into_iter().map(column::<Tree>).collect(),
            exp_parents: columns.exp_parents.0.into_iter().map(column::<Tree>).collect(),
        },
        labeling_proofs: raw
            .labeling_proofs
            .iter()
            .map(|raw| LabelingProof::new(raw.layer_index, raw.node, labels(&raw.parents)))
            .collect(),
        encoding_proof: EncodingProof::new(
            raw.encoding_proof.layer_index,
            raw.encoding_proof.node,
            labels(&raw.encoding_proof.parents),
        ),
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
