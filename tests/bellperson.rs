//! The same r and s give the same bytes as bellperson's own prover on the same parameters, which
//! we made and bellperson reads; each side accepts the other's proof.

mod common;
#[path = "common/toy.rs"]
mod toy;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use bellperson::Circuit;
use bellperson::groth16::{
    MappedParameters, Parameters, Proof as TheirProof, create_proof, prepare_verifying_key,
    verify_proof,
};
use berth::circuit::compile::compile_circuit;
use berth::circuit::compiled::Compiled;
use berth::circuit::kinds;
use berth::circuit::shape::{PartShape, Shape};
use berth::config::WitnessMaker;
use berth::groth16::assemble::{Blinding, assemble};
use berth::groth16::cpu::lane::CpuLane;
use berth::groth16::verify::{PreparedKey, Proof};
use berth::groth16::{Lane, PROOF_BYTES};
use berth::input::class::Kind;
use berth::input::{self, Input, Meta, PorepOptions, Vanilla};
use berth::memory::arena::Arena;
use berth::memory::slot::{Home, Part as SlotPart, Ready, Slot, SlotPool};
use berth::plan::{ArenaPlan, Purpose};
use berth::srs::names;
use berth::srs::read::{Srs, SrsLayout};
use berth::srs::setup::{self, Waste};
use berth::team::Team;
use berth::witness::{Witnesses, generic};
use blstrs::{Bls12, G1Affine, G2Affine, Scalar};
use common::data;
use ff::Field;
use filecoin_hashers::Domain;
use filecoin_hashers::poseidon::PoseidonDomain;
use filecoin_hashers::sha256::{Sha256Domain, Sha256Hasher};
use filecoin_proofs::constants::SectorShape2KiB;
use filecoin_proofs_api::seal::{SealCommitPhase1Output, VanillaSealProof};
use group::prime::PrimeCurveAffine;
use storage_proofs_core::compound_proof::CompoundProof;
use storage_proofs_porep::stacked::{self, StackedCircuit, StackedCompound};
use storage_proofs_post::fallback::{FallbackPoStCircuit, Sector};
use toy::{Columns, Toy};

fn team(threads: usize) -> Team {
    Team::new("test", &vec![None; threads]).unwrap()
}

fn arena(purpose: Purpose, bytes: usize) -> Arena {
    Arena::map(&ArenaPlan::unplaced(purpose, bytes)).unwrap().0
}

/// Our line without the program around it: one slot, one lane.
struct Ours<'a> {
    compiled: &'a Compiled,
    srs: Srs,
    lane: CpuLane,
    pool: SlotPool,
}

impl<'a> Ours<'a> {
    fn new(compiled: &'a Compiled, params: &Path, vk: &Path, threads: usize) -> Self {
        let region = arena(Purpose::Srs, SrsLayout::bytes(compiled));
        let srs = Srs::load(params, vk, compiled, region, &team(threads), &|_, _| ()).unwrap();
        let scratch = arena(Purpose::Lane, CpuLane::bytes(compiled, threads));
        let slots = arena(Purpose::Slots, compiled.shape.slot_bytes());
        Ours {
            compiled,
            srs,
            lane: CpuLane::new(team(threads), scratch),
            pool: SlotPool::new(slots, compiled.shape, 1),
        }
    }

    fn fill(&self, fill: impl Fn(&mut SlotPart)) -> Slot<Ready> {
        for mut part in self.pool.take().unwrap().fill().split() {
            fill(&mut part);
            if let Home::Ready(slot) = part.finish() {
                return slot;
            }
        }
        panic!("the last part home makes the slot Ready");
    }

    fn prove(&mut self, slot: Slot<Ready>, blinding: Blinding) -> [u8; PROOF_BYTES] {
        let sums = self.lane.sums(self.compiled, &self.srs, slot, &|_| ()).unwrap();
        assemble(&self.srs.key().to_bellperson(), &sums, blinding).unwrap()
    }
}

/// The public inputs in a filled slot, without the leading ONE.
fn public_inputs(slot: &Slot<Ready>) -> Vec<Scalar> {
    let (witness, shape) = (slot.witness(), slot.shape());
    let of = |part: usize| &witness.wides[shape.wide_base(part)..][..shape.part(part).inputs];
    (0..shape.parts()).flat_map(of).skip(1).copied().collect()
}

/// Each side's verifier takes the other's proof, and refuses it for other inputs; both refuse to
/// read a point at infinity, which some sums are where r and s are zero.
fn check_verifiers(
    key: &bellperson::groth16::VerifyingKey<Bls12>,
    proof: &[u8; PROOF_BYTES],
    inputs: &[Scalar],
    name: &str,
) {
    let (ours, theirs) = (PreparedKey::new(key), prepare_verifying_key(key));
    let read: TheirProof<Bls12> = match TheirProof::read(&proof[..]) {
        Ok(read) => read,
        Err(_) => {
            assert!(proof[144] == 0xc0, "{name}: only C can be infinity here");
            assert!(Proof::read(proof, 0).is_err(), "{name}: infinity");
            return;
        }
    };
    let both = |inputs: &[Scalar]| {
        let proof = Proof::read(proof, 0).unwrap();
        (ours.verify(&proof, inputs).unwrap(), verify_proof(&theirs, &read, inputs).unwrap())
    };
    assert_eq!(both(inputs), (true, true), "{name}");
    if !inputs.is_empty() {
        let mut other = inputs.to_vec();
        other[inputs.len() / 2] += Scalar::ONE;
        assert_eq!(both(&other), (false, false), "{name}: another input");
    }
}

fn bytes(proof: &TheirProof<Bls12>) -> [u8; PROOF_BYTES] {
    let mut bytes = Vec::new();
    proof.write(&mut bytes).unwrap();
    bytes.try_into().unwrap()
}

/// Blindings with the values at the borders of the field, and two of no shape.
fn blindings() -> Vec<Blinding> {
    let any = |number: u64| Scalar::from(number).square().square().invert().unwrap();
    vec![
        Blinding { r: any(0x0123_4567_89ab_cdef), s: -any(0x0fed_cba9_8765_4321) },
        Blinding { r: Scalar::ZERO, s: Scalar::ZERO },
        Blinding { r: -Scalar::ONE, s: Scalar::ONE },
    ]
}

/// The circuit is of the make that its name says.
fn check_columns(shape: &Shape, toy: Toy) {
    let sum = |of: fn(&PartShape) -> usize| of(&shape.header) + shape.repeats * of(&shape.block);
    let (bits, wides) = (sum(|part| part.bits), sum(|part| part.wides));
    assert_eq!(shape.rows(), toy.rows(), "{toy:?}");
    let fits = match toy.columns {
        Columns::Boolean => bits > 0 && wides == 0,
        Columns::Mixed => toy.rows() < 10 || bits > 0 && wides > 0,
        Columns::Wide => bits == 0 && wides > 0,
        Columns::Many => bits == 0 && wides > toy.rows(),
        Columns::Inputs => shape.aux() == 0 && shape.inputs() == 1 + toy.rows(),
    };
    assert!(fits, "{toy:?}: {shape:?}");
}

/// Makes parameters and proves by both provers. `borders` is for more blindings and for every
/// check that bellperson knows while it reads.
fn same_bytes(toy: Toy, threads: usize, borders: bool) {
    let name = format!("{toy:?}");
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let folder = common::scratch(&format!("bellperson-{number}"));
    let (params, vk) = (folder.join("toy.params"), folder.join("toy.vk"));
    let compiled = compile_circuit(toy.with(0..0), Some((toy.with(0..1), toy.repeats))).unwrap();
    check_columns(&compiled.shape, toy);
    let generators = (G1Affine::generator(), G2Affine::generator());
    let waste = Waste::random().unwrap();
    let made = setup::write_params(&compiled, waste, generators, &params, &team(2), &|_, _| ());
    std::fs::write(&vk, made.unwrap().to_bytes()).unwrap();

    let file = std::io::BufReader::new(std::fs::File::open(&params).unwrap());
    let theirs: Parameters<Bls12> = Parameters::read(file, borders).unwrap();
    let mut ours = Ours::new(&compiled, &params, &vk, threads);
    for blinding in blindings().into_iter().take(if borders { 3 } else { 1 }) {
        let slot = ours.fill(|part| {
            let number = part.part();
            let blocks = number.saturating_sub(1)..number;
            let (wides, bits) = part.planes();
            generic::fill_with(&compiled, number, wides, bits, |mut cs| {
                toy.with(blocks).synthesize(&mut cs)
            })
            .unwrap();
        });
        let inputs = public_inputs(&slot);
        let proof = ours.prove(slot, blinding);
        let circuit = toy.with(0..toy.repeats);
        let expected = create_proof(circuit, &theirs, blinding.r, blinding.s).unwrap();
        assert!(proof == bytes(&expected), "{name}: other bytes than bellperson's");
        check_verifiers(&theirs.vk, &proof, &inputs, &name);
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

const KINDS: [Columns; 5] =
    [Columns::Boolean, Columns::Mixed, Columns::Wide, Columns::Many, Columns::Inputs];

const SIZES: [usize; 7] = [1, 2, 3, 7, 255, 256, 257];

#[test]
fn small_circuits_that_are_all_header() {
    for rows in SIZES {
        for (number, columns) in KINDS.into_iter().enumerate() {
            same_bytes(Toy::whole(rows, columns), 1 + number % 3, rows < 10);
        }
    }
}

#[test]
fn small_circuits_of_header_and_blocks() {
    for rows in SIZES {
        for (number, columns) in KINDS.into_iter().enumerate() {
            // Blocks alone (1, 255 = 5 x 51), one block, or rows left over for a header.
            let repeats = [1, 2, 3, 5][number % 4].min(rows);
            same_bytes(Toy::blocks(rows, repeats, columns), 1 + number % 3, rows < 10);
        }
    }
    same_bytes(Toy::blocks(257, 64, Columns::Mixed), 2, true);
}

/// A domain that is full to the last row, and one row more.
#[test]
fn full_domains() {
    for (columns, repeats) in [(Columns::Mixed, 0), (Columns::Wide, 3), (Columns::Boolean, 1)] {
        for more in [0, 1] {
            let mut toy = Toy::blocks(252, 3, columns);
            toy.repeats = repeats;
            let inputs = 1 + repeats;
            toy.header.rows = 256 + more - inputs - repeats * toy.block.rows;
            toy.seed += more as u64;
            same_bytes(toy, 2, true);
        }
    }
}

/// Where columns are made of each other alone all are zero, and so are their sums and the quotient:
/// points at infinity on every way of the sums.
#[test]
fn witnesses_of_zeros() {
    for columns in KINDS {
        for repeats in [0, 4] {
            let mut toy = Toy::blocks(100, 4, columns);
            toy.header.rows = 10;
            toy.repeats = repeats;
            toy.zero = true;
            same_bytes(toy, 2, true);
        }
    }
}

#[test]
fn circuits_around_two_to_the_sixteenth() {
    // With the row of ONE the first fills a domain of 2^16.
    let mut full = Toy::whole((1 << 16) - 1, Columns::Mixed);
    full.header.inputs = 0;
    same_bytes(full, 2, false);
    same_bytes(Toy::blocks((1 << 16) + 1, 7, Columns::Mixed), 2, false);
    if cfg!(feature = "long-tests") {
        for columns in KINDS {
            same_bytes(Toy::whole((1 << 16) - 1, columns), 3, false);
            same_bytes(Toy::blocks((1 << 16) - 1, 18, columns), 2, false);
        }
    }
}

/// The parameters of a real circuit, made by the program where there are none, and our line on
/// them.
fn real<'a>(circuit: &str, compiled: &'a Compiled) -> (PathBuf, Ours<'a>) {
    let file = |name: String| common::dev_parameters().join(name);
    let id = circuit.parse().unwrap();
    let (params, vk) = (file(names::params(id)), file(names::vk(id)));
    if !params.exists() {
        let (code, _, told) = common::run(&mut common::berth(&["params", "make-dev", circuit]));
        assert_eq!(code, 0, "{told}");
    }
    let ours = Ours::new(compiled, &params, &vk, 2);
    (params, ours)
}

/// The same file as the published provers open it, which leaves out bellperson's slow checks of
/// points; the small circuits have those.
fn mapped(params: PathBuf) -> MappedParameters<Bls12> {
    Parameters::build_mapped_parameters(params, false).unwrap()
}

/// Our proof of the first partition.
fn prove(
    ours: &mut Ours<'_>,
    input: &Input,
    maker: WitnessMaker,
    blinding: Blinding,
) -> [u8; PROOF_BYTES] {
    let witnesses = Witnesses::new(maker);
    let slot = ours.fill(|part| {
        let number = part.part();
        let (wides, bits) = part.planes();
        witnesses.fill_part(input, ours.compiled, 0, number, wides, bits).unwrap();
    });
    assert_eq!(public_inputs(&slot), input.public_inputs[0], "derived anew, and in the circuit");
    ours.prove(slot, blinding)
}

#[test]
fn window_post() {
    let read = |ending: &str| std::fs::read(data(&format!("windowpost-2kib.{ending}"))).unwrap();
    let meta = Meta::parse(&read("meta.json")).unwrap();
    let input = input::read_vanilla(Kind::Window, &read("vanilla.json"), &meta).unwrap();
    let Vanilla::PostBase(vanilla) = &input.vanilla else { panic!("not of 2 KiB") };
    let compiled = kinds::compile(input.circuit).unwrap();
    let (params, mut ours) = real("window-2k", &compiled);
    let theirs = mapped(params);
    for blinding in blindings() {
        let proof = prove(&mut ours, &input, WitnessMaker::Auto, blinding);
        let circuit = FallbackPoStCircuit::<SectorShape2KiB> {
            prover_id: Some(vanilla.prover_id),
            sectors: vanilla.partitions[0]
                .iter()
                .map(|(sector, proof)| Sector::circuit(sector, proof).unwrap())
                .collect(),
        };
        let expected = create_proof(circuit, &theirs, blinding.r, blinding.s).unwrap();
        assert!(proof == bytes(&expected), "other bytes than bellperson's");
        check_verifiers(&theirs.vk, &proof, &input.public_inputs[0], "window");
    }
}

/// The circuit of a C1 by nothing but published code.
fn published_circuit(c1: &[u8]) -> StackedCircuit<SectorShape2KiB, Sha256Hasher> {
    let wrapper: serde_json::Value = serde_json::from_slice(c1).unwrap();
    let inner = wrapper["Phase1Out"].as_str().unwrap();
    let inner = base64::Engine::decode(&base64::prelude::BASE64_STANDARD, inner).unwrap();
    let output: SealCommitPhase1Output = serde_json::from_slice(&inner).unwrap();
    let VanillaSealProof::StackedDrg2KiBV1(partitions) = &output.vanilla_proofs else {
        panic!("not of 2 KiB");
    };
    let tau = stacked::Tau {
        comm_d: Sha256Domain::try_from_bytes(&output.comm_d).unwrap(),
        comm_r: PoseidonDomain::try_from_bytes(&output.comm_r).unwrap(),
    };
    let public = stacked::PublicInputs {
        replica_id: output.replica_id,
        seed: Some(output.seed),
        tau: Some(tau),
        k: None,
    };
    let config = output.registered_proof.as_v1_config();
    let params = filecoin_proofs::parameters::public_params(&config).unwrap();
    StackedCompound::circuit(&public, (), &partitions[0], &params, Some(0)).unwrap()
}

#[test]
fn porep_of_2_kib() {
    let c1 = std::fs::read(data("porep-2kib.c1.json")).unwrap();
    let input = input::read_porep(&c1, &PorepOptions::default()).unwrap();
    let compiled = kinds::compile(input.circuit).unwrap();
    let (params, mut ours) = real("porep-2k", &compiled);
    let blinding = blindings()[0];
    let proof = prove(&mut ours, &input, WitnessMaker::Native, blinding);
    assert!(proof == prove(&mut ours, &input, WitnessMaker::Generic, blinding), "one witness");
    drop(ours);
    let theirs = mapped(params);
    let circuit = published_circuit(&c1);
    let expected = create_proof(circuit, &theirs, blinding.r, blinding.s).unwrap();
    assert!(proof == bytes(&expected), "other bytes than bellperson's");
    check_verifiers(&theirs.vk, &proof, &input.public_inputs[0], "porep");
}
