//! PoRep requests: a commit-phase-1 output in any encoding to a checked [`Input`].

use super::class::{CircuitId, Kind, SectorSize};
use super::convert::{poseidon, sha256};
use super::derive::{
    Nodes, PorepConfig, porep_nodes, porep_public_inputs, prover_id, published, replica_id,
};
use super::element::hex;
use super::encoding::{Document, read};
use super::flat::Challenge;
use super::meta::Meta;
use super::parse::short;
use super::raw::RawChallenge;
use super::registered::{Family, SEAL_PROOFS, SealProof, challenges, layers, partitions};
use super::structure;
use super::{Input, Porep, PorepOptions, Vanilla};
use crate::error::{Error, Result};

/// Sectors and miners around the stated ones that are tried to name the wrong one.
const NEIGHBOURS: u64 = 4096;

/// Reads, checks and derives; the steps stand in the order of their cost.
pub(crate) fn read_porep(bytes: &[u8], options: &PorepOptions) -> Result<Input> {
    let document = read(bytes)?;
    let config = config(&document, options)?;
    not_zero(&document)?;
    agrees_with_meta(&document, options.meta.as_ref())?;
    structure::porep_counts(&document.partitions, &config, &document.partitions_at())?;
    let identity = Identity::of(&document, options)?;
    identity.check_replica_id(&document, &config)?;

    let (rid, comm_d) = (poseidon(document.replica_id), sha256(document.comm_d));
    let comm_r = poseidon(document.comm_r);
    let public = published(rid, document.seed.0, comm_d, comm_r);
    let nodes = porep_nodes(&config, &public)?;
    check_nodes(&document, &config, &nodes)?;
    let public_inputs = nodes
        .iter()
        .map(|nodes| {
            let Document { replica_id, comm_d, comm_r, .. } = &document;
            porep_public_inputs(&replica_id.0, &comm_d.0, &comm_r.0, nodes)
        })
        .collect();
    let sector = config.sector;
    let challenge = |raw: &RawChallenge| Challenge::of(raw, sector);
    let partitions = document.partitions.0.into_iter();
    let porep = Porep {
        sector,
        replica_id: rid,
        comm_d,
        comm_r,
        seed: document.seed.0,
        ticket: document.ticket.0,
        porep_id: config.porep_id,
        partitions: partitions.map(|raw| raw.iter().map(challenge).collect()).collect(),
    };
    let vanilla = Vanilla::from(porep);
    if !options.hashes_later {
        vanilla.check_hashes()?;
    }
    Ok(Input {
        circuit: CircuitId { kind: Kind::Porep, sector },
        registered_proof: config.name,
        non_interactive: config.family == Family::NonInteractive,
        miner: identity.miner.as_ref().map(|said| said.value),
        sector: identity.sector.as_ref().map(|said| said.value),
        prover_id: identity.prover_id,
        miner_checked: identity.checkable(),
        public_inputs,
        vanilla,
    })
}

fn check_nodes(document: &Document, config: &PorepConfig, nodes: &[Vec<Nodes>]) -> Result<()> {
    let rid = hex(&document.replica_id.0);
    let (seed, comm_r) = (hex(&document.seed.0), hex(&document.comm_r.0));
    let origin = match config.family {
        Family::Interactive => format!("replica id {rid} and seed {seed}"),
        Family::Synthetic => format!("replica id {rid}, comm_r {comm_r} and seed {seed}"),
        Family::NonInteractive => format!("replica id {rid} and comm_r {comm_r}, without a seed"),
    };
    let at = document.partitions_at();
    for (k, partition) in document.partitions.iter().enumerate() {
        for (i, raw) in partition.iter().enumerate() {
            let at = format!("{at}[{k}][{i}]");
            structure::porep_nodes(raw, &nodes[k][i], config.sector, &origin, &at)?;
        }
    }
    Ok(())
}

/// The proof type, from the file or from outside; every statement of it and of the sector size
/// must agree.
fn config(document: &Document, options: &PorepOptions) -> Result<PorepConfig> {
    let mut said: Vec<Said<&SealProof>> = Vec::new();
    if let Some(name) = &document.registered_proof {
        let by = document.at("registered_proof");
        let proof = SealProof::find(name).ok_or_else(|| {
            Error::input(&by, format!("{:?} is no registered proof", short(name)))
        })?;
        said.push(Said { by, value: proof });
    }
    if let Some(name) = &options.registered_proof {
        let proof = SealProof::find(name).ok_or_else(|| {
            let what = "is no registered seal proof, such as StackedDrg32GiBV1_1";
            Error::Config(format!("--registered-proof: \"{name}\" {what}"))
        })?;
        said.push(Said { by: "--registered-proof".into(), value: proof });
    }
    if let Some(name) = options.meta.as_ref().and_then(|meta| meta.registered_proof.as_ref()) {
        let by = "meta.registered_proof".to_owned();
        let proof = SealProof::find(name).ok_or_else(|| {
            Error::input(&by, format!("{:?} is no registered proof", short(name)))
        })?;
        said.push(Said { by, value: proof });
    }
    for pair in said.windows(2) {
        if pair[0].value.number != pair[1].value.number {
            let (one, two) = (&pair[0], &pair[1]);
            let what = format!("{} here, but {} by {}", two.value.name, one.value.name, one.by);
            return Err(Error::input(&two.by, what));
        }
    }
    let config = match (said.first(), &options.meta) {
        (Some(said), _) => PorepConfig::from(said.value),
        (None, Some(meta)) => shape(meta)?,
        (None, None) => {
            let what = "the input does not say its proof type: name it by --registered-proof";
            return Err(Error::input(document.at("registered_proof"), what));
        }
    };
    sizes(document, &config)?;
    if let Some(meta) = &options.meta {
        meta_config(meta, &config)?;
    }
    Ok(config)
}

/// A size that no network registers: the meta file says all.
fn shape(meta: &Meta) -> Result<PorepConfig> {
    let missing = |key: &str| {
        let what = "is missing, and the input does not say its proof type";
        Error::input(format!("meta.{key}"), what)
    };
    let sector = meta.sector()?.ok_or_else(|| missing("sector_size"))?;
    let porep_id = meta.porep_id.ok_or_else(|| missing("porep_id"))?.0;
    let api_version = meta.api_version.as_deref().ok_or_else(|| missing("api_version"))?;
    let api_version = api_version
        .parse()
        .map_err(|_| Error::input("meta.api_version", "is none of 1.0.0, 1.1.0 and 1.2.0"))?;
    if !matches!(sector, SectorSize::K16 | SectorSize::K32) {
        let what = format!("is missing; only shapes of 16 and 32 KiB have none, not {sector}");
        return Err(Error::input("meta.registered_proof", what));
    }
    let family = Family::Interactive;
    Ok(PorepConfig {
        name: format!("shape-{}kib", sector.bytes() >> 10),
        sector,
        api_version,
        family,
        porep_id,
        partitions: partitions(sector, family),
        challenges: challenges(sector),
        layers: layers(sector),
    })
}

/// The three statements of the sector size: the proof type, the variant key and the wrapper.
fn sizes(document: &Document, config: &PorepConfig) -> Result<()> {
    let differ = |at: &str, size: &dyn std::fmt::Display| {
        let what = format!("type says {}, proofs are {size}", config.sector);
        Err(Error::input(at, what))
    };
    if let Some(variant) = &document.variant {
        let at = document.partitions_at();
        // The key is the V1 name for every version and family of its size.
        match SEAL_PROOFS[..5].iter().find(|proof| proof.name == variant) {
            Some(proof) if proof.sector == config.sector => {}
            Some(proof) => return differ(&at, &proof.sector),
            None => {
                let what = "the variant is none of StackedDrg2KiBV1 to StackedDrg64GiBV1";
                return Err(Error::input(document.at("vanilla_proofs"), what));
            }
        }
    }
    match document.sector_size {
        Some((at, bytes)) if bytes != config.sector.bytes() => {
            let said = match SectorSize::from_bytes(bytes) {
                Some(size) => size.to_string(),
                None => format!("{bytes} bytes"),
            };
            let what = format!("says {said}, the proof type and the proofs {}", config.sector);
            Err(Error::input(at, what))
        }
        _ => Ok(()),
    }
}

/// What the meta file says of the proof type beside its name.
fn meta_config(meta: &Meta, config: &PorepConfig) -> Result<()> {
    let differ = |key: &str, meta: &str, config: &str| {
        let what = format!("{meta} here, but the proof type means {config}");
        Err(Error::input(format!("meta.{key}"), what))
    };
    if let Some(sector) = meta.sector()?.filter(|sector| *sector != config.sector) {
        return differ("sector_size", &sector.to_string(), &config.sector.to_string());
    }
    let api_version = config.api_version.to_string();
    if let Some(version) = meta.api_version.as_ref().filter(|version| **version != api_version) {
        return differ("api_version", &short(version), &api_version);
    }
    if let Some(id) = meta.porep_id.filter(|id| id.0 != config.porep_id) {
        return differ("porep_id", &hex(&id.0), &hex(&config.porep_id));
    }
    if let Some(count) = meta.partitions.filter(|count| *count != config.partitions) {
        return differ("partitions", &count.to_string(), &config.partitions.to_string());
    }
    let number = SealProof::find(&config.name).map(|proof| proof.number);
    match meta.registered_proof_number {
        Some(n) if Some(n) != number => {
            differ("registered_proof_number", &n.to_string(), &config.name)
        }
        _ => Ok(()),
    }
}

fn not_zero(document: &Document) -> Result<()> {
    for (field, bytes) in
        [("comm_d", document.comm_d.0), ("comm_r", document.comm_r.0), ("seed", document.seed.0)]
    {
        if bytes == [0; 32] {
            let what = format!("{field} is all zero: it was never set");
            return Err(Error::input(document.at(field), what));
        }
    }
    Ok(())
}

fn agrees_with_meta(document: &Document, meta: Option<&Meta>) -> Result<()> {
    let Some(meta) = meta else { return Ok(()) };
    for (field, said, found) in [
        ("comm_r", meta.comm_r, document.comm_r.0),
        ("comm_d", meta.comm_d, document.comm_d.0),
        ("seed", meta.seed, document.seed.0),
        ("ticket", meta.ticket, document.ticket.0),
    ] {
        if let Some(said) = said.filter(|said| said.0 != found) {
            let what = format!("{} in the file, {} by meta.{field}", hex(&found), hex(&said.0));
            return Err(Error::input(document.at(field), what));
        }
    }
    Ok(())
}

/// A value and who says so.
struct Said<T> {
    by: String,
    value: T,
}

/// Whose sector it is, as far as anyone says.
struct Identity {
    miner: Option<Said<u64>>,
    sector: Option<Said<u64>>,
    prover_id: Option<[u8; 32]>,
}

impl Identity {
    fn of(document: &Document, options: &PorepOptions) -> Result<Self> {
        let meta = options.meta.as_ref();
        let said = |value: Option<(&'static str, u64)>| {
            value.map(|(by, value)| Said { by: by.to_owned(), value })
        };
        let miner = agree([
            said(document.miner),
            said(options.miner.map(|miner| ("the given miner", miner))),
            said(meta.and_then(|meta| meta.miner_id).map(|miner| ("meta.miner_id", miner))),
        ])?;
        let sector = agree([
            said(document.sector),
            said(options.sector.map(|number| ("the given sector", number))),
            said(meta.and_then(|meta| meta.sector_number).map(|n| ("meta.sector_number", n))),
        ])?;
        if options.miner.is_some() && sector.is_none() {
            let what = "is needed beside the given miner to recompute the replica id (--sector)";
            return Err(Error::input("sector number", what));
        }
        let stated = match meta {
            Some(meta) => meta.prover()?.map(|id| ("meta.prover_id", id)),
            None => None,
        };
        let mut prover = miner.as_ref().map(|miner| (&*miner.by, prover_id(miner.value)));
        for (by, id) in document.prover_id.into_iter().chain(stated) {
            match prover {
                Some((other, derived)) if derived != id => {
                    let (id, derived) = (hex(&id), hex(&derived));
                    let what = format!("{id} is not the prover id {derived} by {other}");
                    return Err(Error::input(by, what));
                }
                _ => prover = Some((by, id)),
            }
        }
        let prover_id = prover.map(|(_, id)| id);
        let unsaid = document.sector.is_none() && meta.is_none_or(|m| m.sector_number.is_none());
        if options.sector.is_some() && unsaid && prover_id.is_none() {
            let what =
                "the given sector cannot be compared with anything without a miner (--miner)";
            return Err(Error::input("sector number", what));
        }
        Ok(Identity { miner, sector, prover_id })
    }

    /// True if the replica id can be computed from what is known.
    fn checkable(&self) -> bool {
        self.prover_id.is_some() && self.sector.is_some()
    }

    fn check_replica_id(&self, document: &Document, config: &PorepConfig) -> Result<()> {
        let (Some(prover), Some(sector)) = (&self.prover_id, &self.sector) else { return Ok(()) };
        let id = |prover: &[u8; 32], sector: u64| {
            replica_id(prover, sector, &document.ticket.0, &document.comm_d.0, &config.porep_id)
        };
        let (stated, computed) = (document.replica_id.0, id(prover, sector.value));
        if stated == computed {
            return Ok(());
        }
        let near = |n: u64| n.saturating_sub(NEIGHBOURS)..n.saturating_add(NEIGHBOURS);
        let miner = self.miner.as_ref();
        let hint = if let Some(right) = near(sector.value).find(|n| id(prover, *n) == stated) {
            format!("the sector is wrong: it is that of sector {right}")
        } else if let Some(right) = miner.and_then(|miner| {
            near(miner.value).find(|n| id(&prover_id(*n), sector.value) == stated)
        }) {
            format!("the miner is wrong: it is that of miner {right}")
        } else {
            "miner, sector, ticket, comm_d or the proof type is another's".to_owned()
        };
        let miner = match miner {
            Some(miner) => format!("miner {} (by {})", miner.value, miner.by),
            None => format!("prover id {}", hex(prover)),
        };
        let what = format!(
            "{} is not the replica id {} of {miner} and sector {} (by {}); {hint}",
            hex(&stated),
            hex(&computed),
            sector.value,
            sector.by
        );
        Err(Error::input(document.at("replica_id"), what))
    }
}

/// The value that all statements agree on.
fn agree(all: [Option<Said<u64>>; 3]) -> Result<Option<Said<u64>>> {
    let mut all = all.into_iter().flatten();
    let Some(first) = all.next() else { return Ok(None) };
    for other in all {
        if other.value != first.value {
            let what = format!("{} here, but {} by {}", other.value, first.value, first.by);
            return Err(Error::input(other.by, what));
        }
    }
    Ok(Some(first))
}
