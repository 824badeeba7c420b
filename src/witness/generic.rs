//! The witness by the published circuit code: slow, but right for every kind of proof.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use bellperson::{Circuit, ConstraintSystem, SynthesisError};
use blstrs::Scalar;
use filecoin_hashers::poseidon::PoseidonHasher;
use filecoin_hashers::sha256::Sha256Hasher;
use filecoin_proofs::constants::{SectorShapeBase, SectorShapeSub8, SectorShapeTop2};
use storage_proofs_core::compound_proof::CompoundProof;
use storage_proofs_core::merkle::MerkleTreeTrait;
use storage_proofs_porep::stacked::StackedCircuit;
use storage_proofs_post::fallback::{FallbackPoStCircuit, Sector};
use storage_proofs_update::{EmptySectorUpdateCompound, PublicParams as UpdateParams};

use crate::circuit::assignment::{Assignment, Fault};
use crate::circuit::compiled::Compiled;
use crate::circuit::synthesis::Synthesis;
use crate::error::{Error, Result};
use crate::input::class::Kind;
use crate::input::flat::Challenge;
use crate::input::{Input, Porep, Post, Update, Vanilla};

/// Fills one part of one partition's witness: the header (part 0) or block k (part k + 1).
///
/// `wides` and `bits` are that part's pieces of the planes, `wide_len()` entries and `word_len()`
/// words of its shape, paddings included. The published code allocates; nothing of it stays.
///
/// # Errors
/// [`Error::Input`] with partition and challenge or sector, when the vanilla proof does not fit
/// the circuit: a value that must be 0 or 1 and is not, paths of another length, a panic of the
/// published code.
pub fn fill_part(
    input: &Input,
    compiled: &Compiled,
    partition: usize,
    part: usize,
    wides: &mut [Scalar],
    bits: &mut [u64],
) -> Result<()> {
    let blocks = if part == 0 { 0..0 } else { part - 1..part };
    fill_with(compiled, part, wides, bits, |cs| synthesize(input, partition, blocks, cs))
        .map_err(|what| Error::input(place(input, partition, part), what))
}

/// Fills one part from a circuit of the caller's: the header alone for part 0, else the header
/// and one block, of which the header is left out.
///
/// # Errors
/// What is wrong with the circuit or its values.
pub fn fill_with(
    compiled: &Compiled,
    part: usize,
    wides: &mut [Scalar],
    bits: &mut [u64],
    circuit: impl FnOnce(Synthesis<'_>) -> Result<(), SynthesisError>,
) -> Result<(), String> {
    let mut assignment = Assignment::new(compiled, part, wides, bits);
    let outcome = catch_unwind(AssertUnwindSafe(|| circuit(Synthesis::new(&mut assignment))));
    let fault = assignment.fault();
    match outcome {
        Err(panic) => return Err(format!("the circuit code gave up: {}", message(&*panic))),
        Ok(Err(error)) if fault.is_none() => return Err(format!("no witness: {error}")),
        Ok(_) => {}
    }
    assignment.finish().map_err(|fault| match fault {
        Fault::NotBoolean(variable) => format!(
            "variable {variable} must be 0 or 1 and is not: the vanilla proof is inconsistent"
        ),
        Fault::TooMany => "the vanilla proof is longer than the circuit".into(),
        Fault::TooFew => "the vanilla proof is shorter than the circuit".into(),
    })
}

/// The text that a panic carries.
fn message(panic: &(dyn std::any::Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a panic without a message")
}

fn place(input: &Input, partition: usize, part: usize) -> String {
    let block = match input.circuit.kind {
        Kind::Porep | Kind::Winning => "challenge",
        Kind::Window => "sector",
        Kind::Update => return format!("partition {partition}"),
    };
    match part {
        0 => format!("partition {partition}, header"),
        part => format!("partition {partition}, {block} {}", part - 1),
    }
}

/// Runs the circuit of one partition with these blocks (challenges, sectors) alone; a circuit that
/// is all header takes no blocks.
///
/// # Errors
/// Those of the constraint system and of the circuit.
pub fn synthesize<CS: ConstraintSystem<Scalar>>(
    input: &Input,
    partition: usize,
    blocks: Range<usize>,
    cs: CS,
) -> Result<(), SynthesisError> {
    match &input.vanilla {
        Vanilla::PorepBase(vanilla) => porep::<SectorShapeBase, _>(vanilla, partition, blocks, cs),
        Vanilla::PorepSub8(vanilla) => porep::<SectorShapeSub8, _>(vanilla, partition, blocks, cs),
        Vanilla::PorepTop2(vanilla) => porep::<SectorShapeTop2, _>(vanilla, partition, blocks, cs),
        Vanilla::PostBase(vanilla) => post(vanilla, partition, blocks, cs),
        Vanilla::PostSub8(vanilla) => post(vanilla, partition, blocks, cs),
        Vanilla::PostTop2(vanilla) => post(vanilla, partition, blocks, cs),
        Vanilla::UpdateBase(vanilla) => update(input, vanilla, partition, cs),
        Vanilla::UpdateSub8(vanilla) => update(input, vanilla, partition, cs),
        Vanilla::UpdateTop2(vanilla) => update(input, vanilla, partition, cs),
    }
}

fn porep<Tree, CS>(
    vanilla: &Porep,
    partition: usize,
    blocks: Range<usize>,
    cs: CS,
) -> Result<(), SynthesisError>
where
    Tree: 'static + MerkleTreeTrait<Hasher = PoseidonHasher>,
    CS: ConstraintSystem<Scalar>,
{
    let challenges = &vanilla.partitions[partition];
    // As the published circuit does it: the roots are those of the partition's first challenge.
    let first = challenges.first().ok_or(SynthesisError::AssignmentMissing)?;
    let proof = |challenge: &Challenge| challenge.proof::<Tree>(vanilla.sector).into();
    let proofs = challenges[blocks].iter().map(proof).collect();
    StackedCircuit::<Tree, Sha256Hasher>::synthesize(
        cs,
        Some(vanilla.replica_id),
        Some(vanilla.comm_d),
        Some(vanilla.comm_r),
        Some(first.replica.root.into()),
        Some(first.own.path.root.into()),
        proofs,
    )
}

fn post<Tree, CS>(
    vanilla: &Post<Tree>,
    partition: usize,
    blocks: Range<usize>,
    mut cs: CS,
) -> Result<(), SynthesisError>
where
    Tree: 'static + MerkleTreeTrait<Hasher = PoseidonHasher>,
    CS: ConstraintSystem<Scalar>,
{
    let sectors = vanilla.partitions[partition][blocks]
        .iter()
        .map(|(sector, proof)| Sector::circuit(sector, proof))
        .collect::<storage_proofs_core::error::Result<_>>()
        .map_err(|_| SynthesisError::AssignmentMissing)?;
    let prover_id = Some(vanilla.prover_id);
    FallbackPoStCircuit::<Tree> { prover_id, sectors }.synthesize(&mut cs)
}

fn update<Tree, CS>(
    input: &Input,
    vanilla: &Update<Tree>,
    partition: usize,
    mut cs: CS,
) -> Result<(), SynthesisError>
where
    Tree: 'static + MerkleTreeTrait<Hasher = PoseidonHasher>,
    CS: ConstraintSystem<Scalar>,
{
    let (public, proof) = &vanilla.partitions[partition];
    let params = UpdateParams::from_sector_size(input.circuit.sector.bytes());
    EmptySectorUpdateCompound::<Tree>::circuit(public, (), proof, &params, None)
        .map_err(|_| SynthesisError::AssignmentMissing)?
        .synthesize(&mut cs)
}
