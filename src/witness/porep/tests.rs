//! Whole parts against the generic code, over real vanilla proofs, sound and corrupted.

mod misfits;

use blstrs::Scalar;
use filecoin_hashers::poseidon::PoseidonHasher;
use filecoin_proofs::constants::{SectorShapeBase, SectorShapeSub8, SectorShapeTop2};
use storage_proofs_core::merkle::MerkleTreeTrait;
use storage_proofs_porep::stacked::{Challenges, PublicParams};

use super::block::Misfit;
use super::poseidon::Poseidon;
use super::{fill_part, sparse};
use crate::circuit::compiled::Compiled;
use crate::circuit::kinds;
use crate::input::class::{CircuitId, Kind, SectorSize};
use crate::input::{self, Input, Meta, Porep, PorepOptions, Vanilla};
use crate::witness::generic;

fn read(name: &str) -> Vec<u8> {
    std::fs::read(format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

fn c1(name: &str) -> Input {
    input::read_porep(&read(name), &PorepOptions::default()).unwrap()
}

/// A file of the crates' own form.
fn shape(name: &str) -> Input {
    let meta = Some(Meta::parse(&read(&format!("{name}.meta.json"))).unwrap());
    let options = PorepOptions { meta, ..PorepOptions::default() };
    input::read_porep(&read(&format!("{name}.stacked.json")), &options).unwrap()
}

/// Planes of one part, full of what must be overwritten.
fn planes(compiled: &Compiled, part: usize) -> (Vec<Scalar>, Vec<u64>) {
    let shape = compiled.shape.part(part);
    (vec![Scalar::from(7); shape.wide_len()], vec![!0; shape.word_len()])
}

/// One part by native code.
fn native(
    porep: &Porep,
    compiled: &Compiled,
    partition: usize,
    part: usize,
) -> Result<(Vec<Scalar>, Vec<u64>), Misfit> {
    let (mut wides, mut bits) = planes(compiled, part);
    let poseidon = &Poseidon::published();
    fill_part(poseidon, porep, compiled, partition, part, &mut wides, &mut bits)?;
    Ok((wides, bits))
}

/// The PoRep of an input that is read from a file.
fn porep(input: &Input) -> Porep {
    input.vanilla.porep().unwrap().clone()
}

/// Compares all parts of these partitions.
fn check(input: &Input, compiled: &Compiled, partitions: impl IntoIterator<Item = usize>) {
    let porep = input.vanilla.porep().unwrap();
    for partition in partitions {
        for part in 0..compiled.shape.parts() {
            let (wides, bits) = native(porep, compiled, partition, part).unwrap();
            let mut theirs = planes(compiled, part);
            let (their_wides, their_bits) = (&mut theirs.0, &mut theirs.1);
            generic::fill_part(input, compiled, partition, part, their_wides, their_bits).unwrap();
            let wrong = wides.iter().zip(&theirs.0).position(|(ours, theirs)| ours != theirs);
            assert_eq!(wrong, None, "the first wide of part {part} that differs");
            let wrong = bits.iter().zip(&theirs.1).position(|(ours, theirs)| ours != theirs);
            assert_eq!(wrong, None, "the first word of part {part} that differs");
        }
    }
}

#[test]
fn parts_are_those_of_the_generic_code() {
    let input = c1("porep-2kib.c1.json");
    let compiled = kinds::compile(input.circuit).unwrap();
    check(&input, &compiled, [0]);
    check(&c1("porep-2kib-v1.c1.json"), &compiled, [0]);
    check(&c1("porep-2kib-synthetic.c1.json"), &compiled, [0]);
    check(&c1("porep-2kib-bare.phase1.json"), &compiled, [0]);
    let ni = c1("porep-2kib-ni.c1.json");
    let some =
        if cfg!(feature = "long-tests") { (0..ni.partitions()).collect() } else { vec![3, 12] };
    check(&ni, &compiled, some);
}

#[test]
fn sub_and_top_trees_are_climbed() {
    for name in ["shape-16kib", "shape-32kib"] {
        let input = shape(name);
        check(&input, &kinds::compile(input.circuit).unwrap(), [0]);
    }
}

#[cfg(feature = "long-tests")]
#[test]
fn parts_of_a_larger_sector_are_those_of_the_generic_code() {
    let input = c1("porep-8mib.c1.json");
    check(&input, &kinds::compile(input.circuit).unwrap(), [0]);
}

/// A sector that was never sealed, as an input, after the published check of its proofs and ours.
fn unsealed(size: SectorSize, challenges: &[u32], seed: u64) -> Input {
    let porep = sparse::porep(size, challenges, seed).unwrap();
    match size {
        SectorSize::G32 => published_check::<SectorShapeSub8>(&porep),
        SectorSize::G64 => published_check::<SectorShapeTop2>(&porep),
        _ => published_check::<SectorShapeBase>(&porep),
    }
    let vanilla = Vanilla::from(porep);
    vanilla.check_hashes().unwrap();
    Input {
        circuit: CircuitId { kind: Kind::Porep, sector: size },
        registered_proof: String::new(),
        non_interactive: false,
        miner: None,
        sector: None,
        prover_id: None,
        miner_checked: false,
        public_inputs: Vec::new(),
        vanilla,
    }
}

fn published_check<Tree>(porep: &Porep)
where
    Tree: 'static + MerkleTreeTrait<Hasher = PoseidonHasher>,
{
    let graph = || sparse::graph(porep.sector, porep.porep_id).unwrap();
    let (one, layers) = (Challenges::new_interactive(1), kinds::layers(porep.sector));
    let params = PublicParams::<Tree>::new(graph(), one, layers);
    let (public, graph) = (porep.published(), graph());
    for challenge in &porep.partitions[0] {
        let proof = challenge.proof::<Tree>(porep.sector);
        let node = challenge.node as usize;
        assert!(proof.verify(&params, &public, node, &graph), "{node}");
    }
}

#[test]
fn sectors_that_were_never_sealed_are_filled_alike() {
    let circuit = CircuitId { kind: Kind::Porep, sector: SectorSize::K2 };
    let compiled = kinds::compile(circuit).unwrap();
    let seeds = if cfg!(feature = "long-tests") { 23 } else { 3 };
    for seed in 0..seeds {
        // Also parents of each other, and one node twice.
        let input = unsealed(SectorSize::K2, &[40 + seed, 41 - seed], seed.into());
        check(&input, &compiled, [0]);
    }
    for (size, node) in [(SectorSize::K2, 64), (SectorSize::G32, 0)] {
        assert_eq!(sparse::porep(size, &[1, node], 0).err().unwrap().exit_code(), 2);
    }
}

#[cfg(feature = "long-tests")]
#[test]
fn blocks_of_large_sectors_are_those_of_the_generic_code() {
    let large = |size: SectorSize, challenges: &[u32]| {
        let circuit = CircuitId { kind: Kind::Porep, sector: size };
        let mut compiled = kinds::compile(circuit).unwrap();
        compiled.shape.repeats = challenges.len();
        check(&unsealed(size, challenges, 11), &compiled, [0]);
    };
    large(SectorSize::G32, &[1, 987_654_321, (1 << 30) - 1]);
    large(SectorSize::G64, &[(1 << 31) - 1, 5]);
}
