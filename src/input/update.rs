//! SnapDeals requests: empty sector updates (formats.md 6 and 7).

use blstrs::Scalar;
use filecoin_hashers::poseidon::{PoseidonDomain, PoseidonHasher};
use filecoin_hashers::sha256::Sha256Domain;
use storage_proofs_core::merkle::MerkleTreeTrait;
use storage_proofs_update::Challenges;
use storage_proofs_update::constants::{h_default, h_select};
use storage_proofs_update::vanilla::{PublicInputs, PublicParams};

use super::class::{Kind, SectorSize};
use super::convert::{partition, poseidon, sha256};
use super::element::{Dom, hex, is_canonical, scalar};
use super::meta::{Hex32, Meta, need};
use super::other::other_config;
use super::parse::parse_binary;
use super::raw::RawUpdate;
use super::structure::{TreeShape, leaf_index, merkle_counts};
use super::{Input, Update, Vanilla, vanilla};
use crate::error::{Error, Result};

/// The three commitments of an update.
struct Commitments {
    r_old: Dom,
    r_new: Dom,
    d_new: Dom,
}

impl Commitments {
    fn of(meta: &Meta) -> Result<Self> {
        let read = |value: Option<Hex32>, key: &str| {
            let bytes = need(value, key)?.0;
            if !is_canonical(&bytes) {
                return Err(Error::input(format!("meta.{key}"), "not a canonical field element"));
            }
            if bytes == [0; 32] {
                let what = "is all zero: it was never set";
                return Err(Error::input(format!("meta.{key}"), what));
            }
            Ok(Dom(bytes))
        };
        Ok(Commitments {
            r_old: read(meta.comm_r_old, "comm_r_old")?,
            r_new: read(meta.comm_r_new, "comm_r_new")?,
            d_new: read(meta.comm_d_new, "comm_d_new")?,
        })
    }
}

/// Reads and checks all partitions of one update, in their order.
pub(crate) fn read_update(blobs: &[&[u8]], meta: &Meta) -> Result<Input> {
    let config = other_config(Kind::Update, meta)?;
    let sector = config.circuit.sector;
    let params = PublicParams::from_sector_size(sector.bytes());
    let wanted = params.partition_count;
    if let Some(said) = meta.partitions.filter(|said| *said != wanted) {
        let what = format!("{said} here, but {sector} has {wanted}");
        return Err(Error::input("meta.partitions", what));
    }
    if blobs.len() != wanted {
        let what = format!("{} partitions where {wanted} belong", blobs.len());
        return Err(Error::input("vanilla proofs", what));
    }
    let commitments = Commitments::of(meta)?;
    let raw = blobs
        .iter()
        .enumerate()
        .map(|(k, bytes)| {
            let raw: RawUpdate = parse_binary(bytes, &format!("[{k}]"))?;
            counts(&raw, &params, sector, &format!("[{k}]"))?;
            swapped(&raw, &commitments, &format!("[{k}]"))?;
            nodes(&raw, k, &params, sector, &commitments)?;
            Ok(raw)
        })
        .collect::<Result<Vec<_>>>()?;
    let public_inputs = (0..wanted).map(|k| public_inputs(k, &params, &commitments)).collect();
    let vanilla = match sector {
        SectorSize::K2 | SectorSize::M8 | SectorSize::M512 => {
            Vanilla::UpdateBase(checked(raw, &params, &commitments)?)
        }
        SectorSize::K16 | SectorSize::G32 => {
            Vanilla::UpdateSub8(checked(raw, &params, &commitments)?)
        }
        SectorSize::K32 | SectorSize::G64 => {
            Vanilla::UpdateTop2(checked(raw, &params, &commitments)?)
        }
    };
    let prover_id = meta.prover()?;
    Ok(Input {
        circuit: config.circuit,
        registered_proof: config.name,
        non_interactive: false,
        miner: meta.miner_id,
        sector: meta.sector_number,
        prover_id,
        miner_checked: prover_id.is_some(),
        public_inputs,
        vanilla,
    })
}

fn counts(raw: &RawUpdate, params: &PublicParams, sector: SectorSize, at: &str) -> Result<()> {
    for (found, wanted, field) in [
        (raw.apex_leafs.len(), params.apex_leaf_count, "apex_leafs"),
        (raw.challenge_proofs.len(), params.challenge_count, "challenge_proofs"),
    ] {
        if found != wanted {
            let what = format!("{found} entries where {wanted} belong");
            return Err(Error::input(format!("{at}.{field}"), what));
        }
    }
    let (data, replica) = (TreeShape::data(sector), TreeShape::replica(sector));
    for (i, raw) in raw.challenge_proofs.iter().enumerate() {
        let at = format!("{at}.challenge_proofs[{i}]");
        merkle_counts(&raw.proof_r_old, &replica, &format!("{at}.proof_r_old"))?;
        merkle_counts(&raw.proof_d_new, &data, &format!("{at}.proof_d_new"))?;
        merkle_counts(&raw.proof_r_new, &replica, &format!("{at}.proof_r_new"))?;
    }
    Ok(())
}

/// Names the likeliest mistake before any other follows from it.
fn swapped(raw: &RawUpdate, commitments: &Commitments, at: &str) -> Result<()> {
    let first = &raw.challenge_proofs[0];
    let old = vanilla::comm_r_of(poseidon(raw.comm_c), poseidon(*first.proof_r_old.root()));
    let (said_old, said_new) = (poseidon(commitments.r_old), poseidon(commitments.r_new));
    if old == said_new && said_old != said_new {
        let what = "the vanilla proofs update the sector of comm_r_new: are old and new swapped?";
        return Err(Error::input(format!("{at}, comm_r_old and comm_r_new"), what));
    }
    for (key, said, root) in [
        ("comm_r_old", said_old, first.proof_r_old.root()),
        ("comm_r_new", said_new, first.proof_r_new.root()),
    ] {
        vanilla::comm_r(
            &said,
            &poseidon(raw.comm_c),
            &poseidon(*root),
            &format!("{at}, meta.{key}"),
        )?;
    }
    if first.proof_d_new.root() != &commitments.d_new {
        let (said, root) = (hex(&commitments.d_new.0), hex(&first.proof_d_new.root().0));
        let what = format!("{said} is not the root {root} of proof_d_new");
        return Err(Error::input(format!("{at}, meta.comm_d_new"), what));
    }
    Ok(())
}

/// Refuses paths to other leaves than the derived ones.
fn nodes(
    raw: &RawUpdate,
    k: usize,
    params: &PublicParams,
    sector: SectorSize,
    commitments: &Commitments,
) -> Result<()> {
    let (data, replica) = (TreeShape::data(sector), TreeShape::replica(sector));
    let challenges = Challenges::new(params.sector_nodes, poseidon(commitments.r_new), k);
    for (i, (raw, challenge)) in raw.challenge_proofs.iter().zip(challenges).enumerate() {
        for (path, shape, field) in [
            (&raw.proof_r_old, &replica, "proof_r_old"),
            (&raw.proof_d_new, &data, "proof_d_new"),
            (&raw.proof_r_new, &replica, "proof_r_new"),
        ] {
            let found = leaf_index(path, shape);
            if found != u64::from(challenge) {
                let what = format!(
                    "its path leads to leaf {found}, not to {challenge}, which follows from \
                     comm_r_new {} and partition {k}",
                    hex(&commitments.r_new.0)
                );
                return Err(Error::input(format!("[{k}].challenge_proofs[{i}].{field}"), what));
            }
        }
    }
    Ok(())
}

/// k beside the selected number of high bits, then the commitments.
fn public_inputs(k: usize, params: &PublicParams, commitments: &Commitments) -> Vec<Scalar> {
    let h_select = h_select(params.sector_nodes, h_default(params.sector_nodes));
    let k_and_h = k as u64 | h_select << params.partition_bit_len;
    vec![
        Scalar::from(k_and_h),
        scalar(&commitments.r_old.0),
        scalar(&commitments.d_new.0),
        scalar(&commitments.r_new.0),
    ]
}

fn checked<Tree>(
    raw: Vec<RawUpdate>,
    params: &PublicParams,
    commitments: &Commitments,
) -> Result<Update<Tree>>
where
    Tree: 'static + MerkleTreeTrait<Hasher = PoseidonHasher>,
{
    let (comm_r_old, comm_r_new): (PoseidonDomain, PoseidonDomain) =
        (poseidon(commitments.r_old), poseidon(commitments.r_new));
    let comm_d_new: Sha256Domain = sha256(commitments.d_new);
    let h = h_default(params.sector_nodes);
    let partitions = raw.into_iter().enumerate().map(|(k, raw)| {
        (PublicInputs { k, comm_r_old, comm_d_new, comm_r_new, h }, partition(raw))
    });
    let update = Update { partitions: partitions.collect() };
    vanilla::update(&update, params)?;
    Ok(update)
}
