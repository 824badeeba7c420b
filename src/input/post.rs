//! WindowPoSt and WinningPoSt requests (formats.md 5 and 7).

use blstrs::Scalar;
use filecoin_hashers::Domain;
use filecoin_hashers::poseidon::{PoseidonDomain, PoseidonHasher};
use storage_proofs_core::api_version::ApiVersion;
use storage_proofs_core::merkle::MerkleTreeTrait;
use storage_proofs_post::fallback::{PublicParams, PublicSector, SectorProof};

use super::class::{Kind, SectorSize};
use super::convert::{merkle, poseidon};
use super::derive::{masked, post_challenges};
use super::element::{hex, is_canonical, scalar};
use super::guard::spread;
use super::meta::{Meta, need};
use super::other::other_config;
use super::parse::parse_binary;
use super::raw::{RawPost, RawSector};
use super::registered::window_sectors;
use super::structure::{TreeShape, leaf_index, merkle_counts};
use super::{Input, Post, PostSector, Vanilla, vanilla};
use crate::error::{Error, Result};

/// Challenges per sector of a WindowPoSt, and paths of a WinningPoSt.
const WINDOW_CHALLENGES: usize = 10;
const WINNING_CHALLENGES: usize = 66;

/// One sector as it was sent.
struct Sent {
    /// Which of the blobs it was.
    blob: usize,
    number: u64,
    comm_r: PoseidonDomain,
    raw: RawSector,
    /// The leaves that it must be about.
    challenges: Vec<u64>,
}

/// Reads, checks and pads one partition.
pub(crate) fn read_post(kind: Kind, blobs: &[&[u8]], meta: &Meta) -> Result<Input> {
    let config = other_config(kind, meta)?;
    let sector = config.circuit.sector;
    let params = params(kind, sector, config.api_version)?;
    let most = if kind == Kind::Winning { 1 } else { params.sector_count };
    if blobs.is_empty() || blobs.len() > most {
        let what = format!("{} sectors, where 1 to {most} make a partition", blobs.len());
        return Err(Error::input("vanilla proofs", what));
    }
    let prover_id = need(meta.prover()?, "prover_id")?;
    if !is_canonical(&prover_id) {
        return Err(Error::input("meta.prover_id", "not a canonical field element"));
    }
    // On a copy: whoever sent it compares with what was sent.
    let randomness = masked(need(meta.randomness, "randomness")?.0);
    let mut sectors = blobs
        .iter()
        .enumerate()
        .map(|(blob, bytes)| sent(blob, bytes, kind, sector))
        .collect::<Result<Vec<_>>>()?;
    // The published verifier walks sectors in ascending order.
    sectors.sort_by_key(|sent| sent.number);
    if let Some(pair) = sectors.windows(2).find(|pair| pair[0].number == pair[1].number) {
        let what = format!("sector {} is in vanilla proof [{}] too", pair[1].number, pair[0].blob);
        return Err(Error::input(format!("[{}]", pair[1].blob), what));
    }
    agrees_with_meta(&sectors, meta)?;
    draw(&mut sectors, kind, &params, randomness)?;
    let public_inputs = vec![public_inputs(&sectors, kind, &params)];
    let winner = (kind == Kind::Winning).then_some(sectors[0].number);
    let prover = scalar(&prover_id);
    let vanilla = match sector {
        SectorSize::K2 | SectorSize::M8 | SectorSize::M512 => {
            Vanilla::PostBase(checked(sectors, kind, &params, prover, randomness)?)
        }
        SectorSize::K16 | SectorSize::G32 => {
            Vanilla::PostSub8(checked(sectors, kind, &params, prover, randomness)?)
        }
        SectorSize::K32 | SectorSize::G64 => {
            Vanilla::PostTop2(checked(sectors, kind, &params, prover, randomness)?)
        }
    };
    Ok(Input {
        circuit: config.circuit,
        registered_proof: config.name,
        non_interactive: false,
        miner: meta.miner_id,
        sector: winner,
        prover_id: Some(prover_id),
        miner_checked: true,
        public_inputs,
        vanilla,
    })
}

/// The published description of the circuit.
fn params(kind: Kind, sector: SectorSize, api_version: ApiVersion) -> Result<PublicParams> {
    let (challenge_count, sector_count) = match kind {
        Kind::Winning if api_version != ApiVersion::V1_0_0 => {
            let what = "a WinningPoSt is made under API version 1.0.0 alone";
            return Err(Error::input("meta.api_version", what));
        }
        Kind::Winning => (1, WINNING_CHALLENGES),
        _ => (WINDOW_CHALLENGES, window_sectors(sector)),
    };
    Ok(PublicParams { sector_size: sector.bytes(), challenge_count, sector_count, api_version })
}

fn sent(blob: usize, bytes: &[u8], kind: Kind, sector: SectorSize) -> Result<Sent> {
    let at = format!("[{blob}]");
    let RawPost { sector_id, comm_r, sectors } = parse_binary(bytes, &at)?;
    let Some(raw) = sectors.0.into_iter().next() else {
        return Err(Error::input(at, "it holds no sector"));
    };
    let wanted = if kind == Kind::Winning { WINNING_CHALLENGES } else { WINDOW_CHALLENGES };
    if raw.inclusion_proofs.len() != wanted {
        let what = format!("{} challenges where {wanted} belong", raw.inclusion_proofs.len());
        return Err(Error::input(format!("{at}.inclusion_proofs"), what));
    }
    let shape = TreeShape::replica(sector);
    for (n, path) in raw.inclusion_proofs.iter().enumerate() {
        merkle_counts(path, &shape, &format!("{at}.inclusion_proofs[{n}]"))?;
    }
    if comm_r.is_zero() {
        return Err(Error::input(format!("{at}.comm_r"), "comm_r is all zero: it was never set"));
    }
    Ok(Sent { blob, number: sector_id, comm_r: poseidon(comm_r), raw, challenges: Vec::new() })
}

/// If the meta file lists the sectors, it lists these, with these commitments.
fn agrees_with_meta(sectors: &[Sent], meta: &Meta) -> Result<()> {
    let Some(listed) = &meta.sectors else { return Ok(()) };
    for sent in sectors {
        let at = format!("[{}]", sent.blob);
        match listed.iter().find(|listed| listed.sector_number == sent.number) {
            None => {
                let what = format!("sector {} is not in meta.sectors", sent.number);
                return Err(Error::input(at, what));
            }
            Some(listed) if listed.comm_r.0 != *sent.comm_r.into_bytes() => {
                let (ours, theirs) = (hex(&sent.comm_r.into_bytes()), hex(&listed.comm_r.0));
                let what = format!("comm_r {ours} of sector {} is {theirs} in meta", sent.number);
                return Err(Error::input(format!("{at}.comm_r"), what));
            }
            Some(_) => {}
        }
    }
    if listed.len() != sectors.len() {
        let what = format!("{} sectors, but {} vanilla proofs", listed.len(), sectors.len());
        return Err(Error::input("meta.sectors", what));
    }
    Ok(())
}

/// Derives the challenged leaves and refuses paths to others.
fn draw(
    sectors: &mut [Sent],
    kind: Kind,
    params: &PublicParams,
    randomness: [u8; 32],
) -> Result<()> {
    let shape = TreeShape::replica(
        SectorSize::from_bytes(params.sector_size).expect("the parameters are of a known size"),
    );
    let domain = PoseidonDomain::try_from_bytes(&randomness).expect("32 bytes");
    for (position, sent) in sectors.iter_mut().enumerate() {
        let derive = |position| post_challenges(params, domain, sent.number, position);
        // A WinningPoSt is one sector unrolled: path n stands at position n.
        sent.challenges = if kind == Kind::Winning {
            (0..params.sector_count).flat_map(derive).collect()
        } else {
            derive(position)
        };
        for (n, path) in sent.raw.inclusion_proofs.iter().enumerate() {
            let (found, wanted) = (leaf_index(path, &shape), sent.challenges[n]);
            if found != wanted {
                let what = format!(
                    "its path leads to leaf {found}, not to {wanted}, which follows from \
                     randomness {}, sector {} and API {}",
                    hex(&randomness),
                    sent.number,
                    params.api_version
                );
                return Err(Error::input(format!("[{}].inclusion_proofs[{n}]", sent.blob), what));
            }
        }
    }
    Ok(())
}

/// Per sector of the circuit comm_r and its leaves; the last sector repeats to the end.
fn public_inputs(sectors: &[Sent], kind: Kind, params: &PublicParams) -> Vec<Scalar> {
    let last = sectors.last().expect("a partition has at least one sector");
    let mut inputs = Vec::with_capacity(params.sector_count * (1 + params.challenge_count));
    for position in 0..params.sector_count {
        let sent = sectors.get(position).unwrap_or(last);
        let leaves = match kind {
            Kind::Winning => &sent.challenges[position..=position],
            _ => &sent.challenges[..],
        };
        inputs.push(sent.comm_r.into());
        inputs.extend(leaves.iter().map(|leaf| Scalar::from(*leaf)));
    }
    inputs
}

/// Converts, verifies and pads.
fn checked<Tree>(
    sectors: Vec<Sent>,
    kind: Kind,
    params: &PublicParams,
    prover_id: Scalar,
    randomness: [u8; 32],
) -> Result<Post<Tree>>
where
    Tree: 'static + MerkleTreeTrait<Hasher = PoseidonHasher>,
{
    let names: Vec<String> =
        sectors.iter().map(|s| format!("[{}], sector {}", s.blob, s.number)).collect();
    let mut proofs: Vec<PostSector<Tree>> = sectors
        .into_iter()
        .map(|sent| {
            let proof = SectorProof {
                inclusion_proofs: sent.raw.inclusion_proofs.0.into_iter().map(merkle).collect(),
                comm_c: poseidon(sent.raw.comm_c),
                comm_r_last: poseidon(sent.raw.comm_r_last),
            };
            (PublicSector { id: sent.number.into(), comm_r: sent.comm_r }, proof)
        })
        .collect();
    spread(proofs.len(), &|i| vanilla::post(&proofs[i].0, &proofs[i].1, &names[i]))?;
    if kind == Kind::Winning {
        let (public, whole) = proofs.remove(0);
        let SectorProof { inclusion_proofs, comm_c, comm_r_last } = whole;
        proofs = inclusion_proofs
            .into_iter()
            .map(|path| {
                (public.clone(), SectorProof { inclusion_proofs: vec![path], comm_c, comm_r_last })
            })
            .collect();
    }
    let last = proofs.last().expect("a partition has at least one sector").clone();
    proofs.resize(params.sector_count, last);
    Ok(Post { prover_id, randomness, partitions: vec![proofs] })
}
