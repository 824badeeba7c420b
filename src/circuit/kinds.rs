//! The published circuits by kind and sector size, blank, and their compiled form.

use bellperson::{Circuit, ConstraintSystem, SynthesisError};
use blstrs::Scalar;
use filecoin_hashers::poseidon::PoseidonHasher;
use filecoin_hashers::sha256::Sha256Hasher;
use filecoin_proofs::constants::{SectorShapeBase, SectorShapeSub8, SectorShapeTop2};
use storage_proofs_core::api_version::ApiVersion;
use storage_proofs_core::compound_proof::CompoundProof;
use storage_proofs_core::drgraph::BASE_DEGREE;
use storage_proofs_core::merkle::MerkleTreeTrait;
use storage_proofs_porep::stacked::{
    self, Challenges, EXP_DEGREE, StackedBucketGraph, StackedCompound,
};
use storage_proofs_post::fallback::{self, FallbackPoStCircuit, Sector};
use storage_proofs_update::{EmptySectorUpdateCircuit, PublicParams as UpdateParams};

use super::compile::compile_circuit;
use super::compiled::Compiled;
use crate::error::{Error, Result};
use crate::input::class::{CircuitId, Kind, SectorSize};

/// The blocks of a circuit: PoRep challenges of one partition, PoSt sectors; 0 for a circuit that
/// is all header.
pub const fn repeats(id: CircuitId) -> usize {
    match (id.kind, id.sector) {
        (Kind::Porep, SectorSize::G32 | SectorSize::G64) => 18,
        (Kind::Porep, _) => 2,
        (Kind::Update, _) => 0,
        (Kind::Window, SectorSize::G32) => 2349,
        (Kind::Window, SectorSize::G64) => 2300,
        (Kind::Window, _) => 2,
        (Kind::Winning, _) => 66,
    }
}

/// Layers of the replica.
pub const fn layers(sector: SectorSize) -> usize {
    match sector {
        SectorSize::G32 | SectorSize::G64 => 11,
        _ => 2,
    }
}

/// Challenges of one sector in a PoSt circuit; the 66 challenges of a WinningPoSt are 66 sectors.
const fn post_challenges(kind: Kind) -> usize {
    match kind {
        Kind::Window => 10,
        _ => 1,
    }
}

/// Records and compiles the circuit; its values play no part.
///
/// # Errors
/// [`Error::Config`] when the published circuit cannot be made.
pub fn compile(id: CircuitId) -> Result<Compiled> {
    match id.sector {
        SectorSize::K2 | SectorSize::M8 | SectorSize::M512 => of_tree::<SectorShapeBase>(id),
        SectorSize::K16 | SectorSize::G32 => of_tree::<SectorShapeSub8>(id),
        SectorSize::K32 | SectorSize::G64 => of_tree::<SectorShapeTop2>(id),
    }
    .map_err(|e| Error::Config(format!("circuit {id}: {e}")))
}

fn of_tree<Tree>(id: CircuitId) -> Result<Compiled>
where
    Tree: 'static + MerkleTreeTrait<Hasher = PoseidonHasher>,
{
    let blocks = |count| Blank::<Tree> { id, blocks: count, tree: std::marker::PhantomData };
    match id.kind {
        Kind::Update => compile_circuit(blocks(0), None::<(Blank<Tree>, usize)>),
        _ => compile_circuit(blocks(0), Some((blocks(1), repeats(id)))),
    }
}

/// A circuit without values, with any number of blocks.
pub(super) struct Blank<Tree> {
    pub id: CircuitId,
    pub blocks: usize,
    pub tree: std::marker::PhantomData<Tree>,
}

impl<Tree> Circuit<Scalar> for Blank<Tree>
where
    Tree: 'static + MerkleTreeTrait<Hasher = PoseidonHasher>,
{
    fn synthesize<CS>(self, cs: &mut CS) -> Result<(), SynthesisError>
    where
        CS: ConstraintSystem<Scalar>,
    {
        let sector = self.id.sector;
        match self.id.kind {
            Kind::Porep => {
                // A blank circuit asks the graph for its size and degrees, never for a parent, so
                // the porep id is of no matter and no parent cache is read or written.
                let graph = StackedBucketGraph::<Tree::Hasher>::new_stacked(
                    sector.nodes() as usize,
                    BASE_DEGREE,
                    EXP_DEGREE,
                    [0; 32],
                    ApiVersion::V1_1_0,
                )
                .map_err(|_| SynthesisError::Unsatisfiable)?;
                let challenges = Challenges::new_interactive(self.blocks);
                let params = stacked::PublicParams::new(graph, challenges, layers(sector));
                StackedCompound::<Tree, Sha256Hasher>::blank_circuit(&params).synthesize(cs)
            }
            Kind::Update => {
                let params = UpdateParams::from_sector_size(sector.bytes());
                EmptySectorUpdateCircuit::<Tree>::blank(params).synthesize(cs)
            }
            Kind::Window | Kind::Winning => {
                let params = fallback::PublicParams {
                    sector_size: sector.bytes(),
                    challenge_count: post_challenges(self.id.kind),
                    sector_count: self.blocks,
                    api_version: ApiVersion::V1_2_0,
                };
                let sectors = (0..self.blocks).map(|_| Sector::blank_circuit(&params)).collect();
                FallbackPoStCircuit::<Tree> { prover_id: None, sectors }.synthesize(cs)
            }
        }
    }
}
