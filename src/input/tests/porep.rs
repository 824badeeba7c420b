//! What is accepted: every file, every encoding, with the published crates' public inputs.

use super::super::derive::{PorepConfig, porep_nodes, porep_public_inputs, published};
use super::super::registered::{SEAL_PROOFS, SealProof};
use super::*;
use filecoin_hashers::Domain;
use filecoin_hashers::sha256::Sha256Hasher;
use serde_json::json;
use storage_proofs_core::compound_proof::CompoundProof;
use storage_proofs_core::proof::ProofScheme;
use storage_proofs_porep::stacked::{PublicParams, StackedCompound, StackedDrg};

/// The published verdict on the vanilla proofs, and the published public inputs.
fn oracle<Tree: 'static + MerkleTreeTrait<Hasher = PoseidonHasher>>(
    porep: &Porep,
    config: &PorepConfig,
    inputs: &[Vec<Scalar>],
) {
    let public = porep.published();
    let params = PublicParams::<Tree>::new(
        config.graph().unwrap(),
        config.published_challenges(),
        config.layers,
    );
    let proof = |challenge: &Challenge| challenge.proof::<Tree>(porep.sector);
    let proofs: Vec<Vec<_>> =
        porep.partitions.iter().map(|it| it.iter().map(proof).collect()).collect();
    let verified =
        StackedDrg::<Tree, Sha256Hasher>::verify_all_partitions(&params, &public, &proofs);
    assert!(verified.unwrap());
    for (k, inputs) in inputs.iter().enumerate() {
        let published = StackedCompound::<Tree, Sha256Hasher>::generate_public_inputs(
            &public,
            &params,
            Some(k),
        );
        assert_eq!(inputs, &published.unwrap());
    }
}

fn equal_to_published(input: &Input) {
    let config = match SealProof::find(&input.registered_proof) {
        Some(proof) => PorepConfig::from(proof),
        None => {
            let sector = input.circuit.sector;
            let proof = SealProof::find("StackedDrg2KiBV1_1").unwrap();
            PorepConfig { sector, ..PorepConfig::from(proof) }
        }
    };
    match &input.vanilla {
        Vanilla::PorepBase(porep) => {
            oracle::<SectorShapeBase>(porep, &config, &input.public_inputs)
        }
        Vanilla::PorepSub8(porep) => {
            oracle::<SectorShapeSub8>(porep, &config, &input.public_inputs)
        }
        Vanilla::PorepTop2(porep) => {
            oracle::<SectorShapeTop2>(porep, &config, &input.public_inputs)
        }
        _ => panic!("not a PoRep"),
    }
}

#[test]
fn every_file_is_read_as_the_published_crates_read_it() {
    for (file, name, circuit, partitions) in [
        ("porep-2kib.c1.json", "porep-2kib", "porep-2k", 1),
        ("porep-2kib-bare.phase1.json", "porep-2kib-bare", "porep-2k", 1),
        ("porep-2kib-v1.c1.json", "porep-2kib-v1", "porep-2k", 1),
        ("porep-2kib-synthetic.c1.json", "porep-2kib-synthetic", "porep-2k", 1),
        ("porep-2kib-ni.c1.json", "porep-2kib-ni", "porep-2k", 13),
        ("porep-8mib.c1.json", "porep-8mib", "porep-8m", 1),
        ("shape-16kib.stacked.json", "shape-16kib", "porep-16k", 1),
        ("shape-32kib.stacked.json", "shape-32kib", "porep-32k", 1),
    ] {
        let meta = meta(name);
        let input = read_vanilla(Kind::Porep, &data(file), &meta).unwrap();
        assert_eq!(input.circuit.to_string(), circuit);
        assert_eq!(input.partitions(), partitions);
        assert!(input.public_inputs.iter().all(|inputs| inputs.len() == 39));
        assert_eq!(input.non_interactive, name.ends_with("-ni"));
        assert_eq!((input.miner, input.sector), (meta.miner_id, meta.sector_number));
        assert_eq!(input.prover_id, meta.prover_id.map(|id| id.0));
        assert!(input.miner_checked);
        equal_to_published(&input);
    }
}

// I-53
#[test]
fn all_encodings_end_in_the_same_value() {
    let wrapper = data("porep-2kib.c1.json");
    let read = |bytes: &[u8], options| read_porep(bytes, &options).unwrap();
    let first = read(&wrapper, PorepOptions::default());
    assert!(!first.miner_checked && first.miner.is_none() && first.sector == Some(41));
    let digest = first.to_bincode();
    assert_eq!(digest.len(), 28_248);

    let bare = bare(&wrapper);
    let text = serde_json::to_vec(&bare).unwrap();
    // serde_json::Value sorts its keys: another order of fields than the file's.
    assert!(text.starts_with(b"{\"comm_d\""));
    assert_eq!(read(&text, PorepOptions::default()).to_bincode(), digest);
    let pretty = format!("\n\t {}\r\n", serde_json::to_string_pretty(&bare).unwrap());
    assert_eq!(read(pretty.as_bytes(), with(1037, 41)).to_bincode(), digest);

    let named = |name: &str| PorepOptions {
        registered_proof: Some(name.into()),
        ..PorepOptions::default()
    };
    let binary = read(&digest, named("StackedDrg2KiBV1_1"));
    assert_eq!(binary.to_bincode(), digest);
    assert_eq!(binary.public_inputs, first.public_inputs);

    let task = json!({
        "c1out": bare, "sector_id": 41, "miner_id": 1037, "prover_id": prover_id(1037),
    });
    let task = STANDARD.encode(task.to_string()) + "\n";
    let task = read(task.as_bytes(), PorepOptions::default());
    assert_eq!(task.to_bincode(), digest);
    assert!(task.miner_checked);

    let mut krate = bare.clone();
    krate.as_object_mut().unwrap().remove("registered_proof");
    krate["vanilla_proofs"] = bare["vanilla_proofs"]["StackedDrg2KiBV1"].clone();
    assert_eq!(read(krate.to_string().as_bytes(), named("5")).to_bincode(), digest);
}

#[test]
fn wrappers_of_the_wild_are_read() {
    let mut wrapper: Value = serde_json::from_slice(&data("porep-2kib.c1.json")).unwrap();
    wrapper["Miner"] = "f01037".into();
    wrapper["Elsewhere"] = json!({"seed": null, "deep": [[[[1e300]]]]});
    wrapper["ticket"] = "not the ticket".into();
    let input = read_porep(wrapper.to_string().as_bytes(), &PorepOptions::default()).unwrap();
    assert!(input.miner_checked && input.miner == Some(1037));
    wrapper["Miner"] = "t2abcdefghijklmnopqrstuvwxyz234567abcdefg".into();
    let robust = read_porep(wrapper.to_string().as_bytes(), &PorepOptions::default()).unwrap();
    assert!(!robust.miner_checked && robust.miner.is_none());
    // An escaped slash is the same base64.
    let escaped = wrapper.to_string().replace('/', "\\/");
    assert!(read_porep(escaped.as_bytes(), &with(1037, 41)).is_ok());
}

#[test]
fn the_largest_binary_form_has_its_length() {
    for (file, name, length) in [
        ("porep-8mib.c1.json", "porep-8mib", 60_120),
        ("porep-2kib-ni.c1.json", "porep-2kib-ni", 365_208),
    ] {
        let input = read_vanilla(Kind::Porep, &data(file), &meta(name)).unwrap();
        let binary = input.to_bincode();
        assert_eq!(binary.len(), length);
        let again = read_vanilla(Kind::Porep, &binary, &meta(name)).unwrap();
        assert_eq!(again.to_bincode(), binary);
    }
}

/// The published public inputs of one partition.
fn published_inputs<Tree: 'static + MerkleTreeTrait<Hasher = PoseidonHasher>>(
    public: &stacked::PublicInputs<PoseidonDomain, Sha256Domain>,
    config: &PorepConfig,
    k: usize,
) -> Vec<Scalar> {
    let graph = config.graph().unwrap();
    let params = PublicParams::<Tree>::new(graph, config.published_challenges(), config.layers);
    StackedCompound::<Tree, Sha256Hasher>::generate_public_inputs(public, &params, Some(k)).unwrap()
}

#[test]
fn public_inputs_of_every_registered_proof_equal_the_published() {
    let (rid, comm_d, comm_r) = ([17; 32], [34; 32], [51; 32]);
    let public = published(
        PoseidonDomain::try_from_bytes(&rid).unwrap(),
        [255; 32],
        Sha256Domain::try_from_bytes(&comm_d).unwrap(),
        PoseidonDomain::try_from_bytes(&comm_r).unwrap(),
    );
    for proof in &SEAL_PROOFS {
        let config = PorepConfig::from(proof);
        let nodes = porep_nodes(&config, &public).unwrap();
        for k in [0, config.partitions - 1] {
            let ours = porep_public_inputs(&rid, &comm_d, &comm_r, &nodes[k]);
            let theirs = match proof.number % 5 {
                3 => published_inputs::<SectorShapeSub8>(&public, &config, k),
                4 => published_inputs::<SectorShapeTop2>(&public, &config, k),
                _ => published_inputs::<SectorShapeBase>(&public, &config, k),
            };
            assert_eq!(ours, theirs, "{}, partition {k}", proof.name);
        }
    }
}
