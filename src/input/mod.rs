//! Requests: bytes in any accepted encoding to typed vanilla proofs and public inputs.

pub mod class;

use blstrs::Scalar;
use filecoin_hashers::poseidon::PoseidonDomain;
use filecoin_hashers::sha256::{Sha256Domain, Sha256Hasher};
use filecoin_proofs::constants::{SectorShapeBase, SectorShapeSub8, SectorShapeTop2};
use storage_proofs_core::merkle::MerkleTreeTrait;
use storage_proofs_porep::stacked;
use storage_proofs_post::fallback::{PublicSector, SectorProof};
use storage_proofs_update::vanilla as update;

use class::CircuitId;

/// A request that passed every check: what the circuit reads, and what the proof is verified
/// against.
pub struct Input {
    pub circuit: CircuitId,
    /// Serde name of the registered proof, or a shape's name for sizes that have none.
    pub registered_proof: String,
    /// True for NI-PoRep: circuit proofs, not submittable without aggregation.
    pub non_interactive: bool,
    /// Per partition, without the leading ONE, in the verifying key's order; derived anew, never
    /// read from the vanilla proofs.
    pub public_inputs: Vec<Vec<Scalar>>,
    pub vanilla: Vanilla,
}

impl Input {
    pub fn partitions(&self) -> usize {
        self.public_inputs.len()
    }
}

/// Vanilla proofs by kind and tree: 8-0-0, 8-8-0 or 8-8-2.
pub enum Vanilla {
    PorepBase(Porep<SectorShapeBase>),
    PorepSub8(Porep<SectorShapeSub8>),
    PorepTop2(Porep<SectorShapeTop2>),
    PostBase(Post<SectorShapeBase>),
    PostSub8(Post<SectorShapeSub8>),
    PostTop2(Post<SectorShapeTop2>),
    UpdateBase(Update<SectorShapeBase>),
    UpdateSub8(Update<SectorShapeSub8>),
    UpdateTop2(Update<SectorShapeTop2>),
}

/// A PoRep commit-phase-1 output.
pub struct Porep<Tree: 'static + MerkleTreeTrait> {
    pub replica_id: PoseidonDomain,
    pub comm_d: Sha256Domain,
    pub comm_r: PoseidonDomain,
    /// Partitions of challenges.
    pub partitions: Vec<Vec<stacked::Proof<Tree, Sha256Hasher>>>,
}

/// WindowPoSt or WinningPoSt: partitions of exactly as many sectors as the circuit has, the last
/// one repeated where there are fewer.
pub struct Post<Tree: 'static + MerkleTreeTrait> {
    /// As a field element, the circuit's `prover_id`.
    pub prover_id: Scalar,
    pub partitions: Vec<Vec<(PublicSector<PoseidonDomain>, SectorProof<Tree::Proof>)>>,
}

/// SnapDeals: one vanilla proof and its public inputs per partition.
pub struct Update<
    Tree: 'static + MerkleTreeTrait<Hasher = filecoin_hashers::poseidon::PoseidonHasher>,
> {
    pub partitions: Vec<(update::PublicInputs, update::PartitionProof<Tree>)>,
}
