//! PoSt and SnapDeals: accepted, refused, and equal to the published crates.

use super::super::derive::masked;
use super::*;
use filecoin_hashers::Domain;
use storage_proofs_core::api_version::ApiVersion;
use storage_proofs_core::compound_proof::CompoundProof;
use storage_proofs_core::proof::ProofScheme;
use storage_proofs_post::fallback::{self, FallbackPoSt, FallbackPoStCompound};
use storage_proofs_update::vanilla::EmptySectorUpdate;
use storage_proofs_update::{EmptySectorUpdateCompound, vanilla as published};

fn blobs(name: &str) -> Vec<Vec<u8>> {
    parse::base64_list(&data(&format!("{name}.vanilla.json"))).unwrap()
}

fn post_oracle(input: &Input, params: &fallback::PublicParams) -> bool {
    let Vanilla::PostBase(post) = &input.vanilla else { panic!("not a 2 KiB PoSt") };
    let domain = |bytes: &[u8]| PoseidonDomain::try_from_bytes(bytes).unwrap();
    let (publics, proofs) = post.partitions[0].iter().cloned().unzip();
    let public = fallback::PublicInputs {
        randomness: domain(&post.randomness),
        prover_id: domain(&input.prover_id.unwrap()),
        sectors: publics,
        k: None,
    };
    let inputs =
        FallbackPoStCompound::<SectorShapeBase>::generate_public_inputs(&public, params, Some(0));
    inputs.unwrap() == input.public_inputs[0]
        && FallbackPoSt::<SectorShapeBase>::verify_all_partitions(
            params,
            &public,
            &[fallback::Proof { sectors: proofs }],
        )
        .unwrap()
}

fn params(sectors: usize, challenges: usize, api_version: ApiVersion) -> fallback::PublicParams {
    fallback::PublicParams {
        sector_size: 2048,
        challenge_count: challenges,
        sector_count: sectors,
        api_version,
    }
}

#[test]
fn window_and_winning_equal_the_published() {
    let input =
        read_vanilla(Kind::Window, &data("windowpost-2kib.vanilla.json"), &meta("windowpost-2kib"))
            .unwrap();
    assert_eq!(input.circuit.to_string(), "window-2k");
    assert_eq!((input.partitions(), input.public_inputs[0].len()), (1, 22));
    assert!(post_oracle(&input, &params(2, 10, ApiVersion::V1_2_0)));

    let input = read_vanilla(
        Kind::Winning,
        &data("winningpost-2kib.vanilla.json"),
        &meta("winningpost-2kib"),
    )
    .unwrap();
    assert_eq!(input.circuit.to_string(), "winning-2k");
    assert_eq!((input.partitions(), input.public_inputs[0].len()), (1, 132));
    assert_eq!((input.miner, input.sector), (Some(1021), Some(210)));
    assert!(post_oracle(&input, &params(66, 1, ApiVersion::V1_0_0)));
}

// I-69
#[test]
fn window_sectors_are_ordered_counted_and_padded() {
    let (mut two, mut meta) = (blobs("windowpost-2kib"), meta("windowpost-2kib"));
    let ordered = read_blobs(Kind::Window, &two, &meta).unwrap();
    two.reverse();
    let shuffled = read_blobs(Kind::Window, &two, &meta).unwrap();
    assert_eq!(ordered.to_bincode(), shuffled.to_bincode());
    assert_eq!(ordered.public_inputs, shuffled.public_inputs);

    let twice = [two[0].clone(), two[0].clone()];
    refused(read_blobs(Kind::Window, &twice, &meta), "[1]", "sector 211 is in vanilla proof [0]");
    let three = [two[0].clone(), two[1].clone(), two[0].clone()];
    refused(read_blobs(Kind::Window, &three, &meta), "vanilla proofs", "1 to 2");
    refused(read_blobs(Kind::Window, &two[..0], &meta), "vanilla proofs", "0 sectors");
    refused(read_blobs(Kind::Window, &two[1..], &meta), "meta.sectors", "2 sectors, but 1");

    meta.sectors = None;
    let one = read_blobs(Kind::Window, &two[1..], &meta).unwrap();
    let inputs = &one.public_inputs[0];
    assert_eq!(inputs[..11], inputs[11..]);
    assert_eq!(inputs[..11], ordered.public_inputs[0][..11]);
    // One sector alone is the same under either API version (I-68).
    meta.registered_proof = Some("StackedDrgWindow2KiBV1".into());
    meta.registered_proof_number = Some(5);
    meta.api_version = None;
    assert!(read_blobs(Kind::Window, &two[1..], &meta).is_ok());
}

// I-68
#[test]
fn window_types_differ_from_the_second_sector_on() {
    let (two, mut meta) = (blobs("windowpost-2kib"), meta("windowpost-2kib"));
    meta.registered_proof = Some("StackedDrgWindow2KiBV1".into());
    let outcome = read_blobs(Kind::Window, &two, &meta);
    refused(outcome, "meta.registered_proof_number", "10 is StackedDrgWindow2KiBV1_2");
    meta.registered_proof_number = None;
    refused(read_blobs(Kind::Window, &two, &meta), "meta.api_version", "1.2.0 here");
    meta.api_version = None;
    refused(read_blobs(Kind::Window, &two, &meta), "[1].inclusion_proofs[0]", "and API 1.0.0");
}

// I-67
#[test]
fn randomness_is_masked_on_a_copy() {
    for (kind, name) in [(Kind::Window, "windowpost-2kib"), (Kind::Winning, "winningpost-2kib")] {
        let mut meta = meta(name);
        let plain = read_blobs(kind, &blobs(name), &meta).unwrap();
        let given = meta.randomness.unwrap().0;
        assert_eq!(given, masked(given));
        let mut high = given;
        high[31] |= 0xc0;
        meta.randomness = Some(Hex32(high));
        let high_bits = read_blobs(kind, &blobs(name), &meta).unwrap();
        assert_eq!(plain.public_inputs, high_bits.public_inputs);
        let Vanilla::PostBase(post) = &high_bits.vanilla else { panic!() };
        assert_eq!(post.randomness, given);
        assert_eq!(meta.randomness.unwrap().0, high);
        high[0] ^= 1;
        meta.randomness = Some(Hex32(high));
        refused(read_blobs(kind, &blobs(name), &meta), "inclusion_proofs[0]", "from randomness");
    }
}

#[test]
fn a_broken_post_is_named() {
    let (blob, mut meta) = (blobs("winningpost-2kib"), meta("winningpost-2kib"));
    let read = |change: fn(&mut Vec<u8>), meta: &Meta| {
        let mut blob = blob[0].clone();
        change(&mut blob);
        read_blobs(Kind::Winning, &[blob], meta)
    };
    refused(read(|blob| blob.push(0), &meta), "[0], byte 36816", "1 bytes follow");
    refused(read(|blob| blob.truncate(200), &meta), "[0], byte 200", "ends too early");
    refused(read(|blob| blob[0] ^= 1, &meta), "[0]", "sector 211 is not in meta.sectors");
    refused(read(|blob| blob[8] ^= 1, &meta), "[0].comm_r", "in meta");
    // Leaf of the first path: after number, comm_r, two counts, the tag and the root.
    refused(read(|blob| blob[92] ^= 1, &meta), "[0], sector 210, challenge 0", "do not hash");
    refused(read(|blob| blob[60] ^= 1, &meta), "[0], sector 210, challenge 0", "comm_r_last");
    refused(read(|blob| *blob.last_mut().unwrap() ^= 1, &meta), "comm_r", "is not the hash");
    refused(read_blobs(Kind::Window, &blob, &meta), "meta.registered_proof", "not registered");
    refused(read_blobs(Kind::Porep, &blob, &meta), "kind", "one C1");
    meta.registered_proof = Some("StackedDrgWinning8MiBV1".into());
    refused(read(|_| (), &meta), "meta.registered_proof_number", "0 is StackedDrgWinning2KiBV1");
    meta.registered_proof_number = None;
    refused(read(|_| (), &meta), "meta.sector_size", "type says 8 MiB");
    meta.sector_size = None;
    refused(read(|_| (), &meta), "[0].inclusion_proofs[0]", "2 levels where 6");
    meta.prover_id = Some(Hex32([1; 32]));
    refused(read(|_| (), &meta), "meta.prover_id", "of miner_id");
    meta.miner_id = None;
    meta.prover_id = Some(Hex32([0xff; 32]));
    refused(read(|_| (), &meta), "meta.prover_id", "canonical");
}

#[test]
fn an_update_equals_the_published() {
    let input =
        read_vanilla(Kind::Update, &data("snap-2kib.vanilla.json"), &meta("snap-2kib")).unwrap();
    assert_eq!(input.circuit.to_string(), "update-2k");
    assert_eq!((input.partitions(), input.public_inputs[0][0]), (1, Scalar::from(1)));
    let Vanilla::UpdateBase(update) = &input.vanilla else { panic!("not a 2 KiB update") };
    let params = published::PublicParams::from_sector_size(2048);
    let (public, proof) = &update.partitions[0];
    let inputs = EmptySectorUpdateCompound::<SectorShapeBase>::generate_public_inputs(
        public,
        &params,
        Some(0),
    );
    assert_eq!(inputs.unwrap(), input.public_inputs[0]);
    let verified = EmptySectorUpdate::<SectorShapeBase>::verify_all_partitions(
        &params,
        public,
        std::slice::from_ref(proof),
    );
    assert!(verified.unwrap());
}

// I-70
#[test]
fn swapped_equal_and_foreign_commitments_are_named() {
    let (blob, right) = (blobs("snap-2kib"), meta("snap-2kib"));
    let read = |change: fn(&mut Meta)| {
        let mut meta = right.clone();
        change(&mut meta);
        read_blobs(Kind::Update, &blob, &meta)
    };
    let swap = |meta: &mut Meta| std::mem::swap(&mut meta.comm_r_old, &mut meta.comm_r_new);
    refused(read(swap), "comm_r_old and comm_r_new", "are old and new swapped?");
    refused(read(|meta| meta.comm_r_old = meta.comm_r_new), "meta.comm_r_old", "not the hash");
    refused(read(|meta| meta.comm_r_new = meta.comm_r_old), "meta.comm_r_new", "not the hash");
    let foreign = |meta: &mut Meta| meta.comm_d_new = meta.comm_r_old;
    refused(read(foreign), "meta.comm_d_new", "is not the root");
    refused(read(|meta| meta.comm_d_new = None), "meta.comm_d_new", "missing");
    refused(read(|meta| meta.comm_d_new = Some(Hex32([0; 32]))), "meta.comm_d_new", "zero");
    refused(read(|meta| meta.comm_r_new = Some(Hex32([0xff; 32]))), "meta.comm_r_new", "canonical");
    refused(read(|meta| meta.partitions = Some(16)), "meta.partitions", "has 1");
    let two = [blob[0].clone(), blob[0].clone()];
    refused(read_blobs(Kind::Update, &two, &right), "vanilla proofs", "2 partitions where 1");
}

#[test]
fn a_broken_update_is_named() {
    let (blob, meta) = (blobs("snap-2kib"), meta("snap-2kib"));
    let read = |at: usize| {
        let mut blob = blob[0].clone();
        blob[at] ^= 1;
        read_blobs(Kind::Update, &[blob], &meta)
    };
    refused(read(0), "meta.comm_r_old", "is not the hash");
    // An apex leaf; then, behind the counts, tag and root, the leaf of the old replica.
    refused(read(40), "partition 0", "apex tree");
    refused(read(32 + 8 + 8 * 32 + 8 + 4 + 32), "partition 0", "does not hold");
    // The number of apex leaves; what follows is then read askew.
    refused(read(32), "[0], byte", "");
}
