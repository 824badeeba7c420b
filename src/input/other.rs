//! What PoSt and SnapDeals requests share: their proof type, from the meta file alone.

use storage_proofs_core::api_version::ApiVersion;

use super::class::{CircuitId, Kind, SectorSize};
use super::meta::{Meta, need};
use super::parse::short;
use super::registered::{OtherProof, UPDATE_PROOFS, WINDOW_PROOFS, WINNING_PROOFS};
use crate::error::{Error, Result};

/// The proof type of a request.
pub(crate) struct OtherConfig {
    pub circuit: CircuitId,
    pub name: String,
    pub api_version: ApiVersion,
}

/// Looks the proof up by name and number in the table of its kind; what else the meta file says
/// must agree with it.
pub(crate) fn other_config(kind: Kind, meta: &Meta) -> Result<OtherConfig> {
    let table: &'static [OtherProof] = match kind {
        Kind::Window => &WINDOW_PROOFS,
        Kind::Winning => &WINNING_PROOFS,
        Kind::Update => &UPDATE_PROOFS,
        Kind::Porep => return Err(Error::input("kind", "a PoRep's file says its proof type")),
    };
    let find = |text: &str, key: &str| {
        OtherProof::find(table, text).ok_or_else(|| {
            let what = format!("{:?} is not registered for this kind of proof", short(text));
            Error::input(format!("meta.{key}"), what)
        })
    };
    let named = meta.registered_proof.as_ref().map(|name| find(name, "registered_proof"));
    let number = meta.registered_proof_number.map(|number| number.to_string());
    let numbered = number.map(|number| find(&number, "registered_proof_number"));
    let (named, numbered) = (named.transpose()?, numbered.transpose()?);
    if let (Some(named), Some(numbered)) = (named, numbered)
        && named.number != numbered.number
    {
        let what = format!("{} is {}, not {}", numbered.number, numbered.name, named.name);
        return Err(Error::input("meta.registered_proof_number", what));
    }
    let api_version: Option<ApiVersion> = match meta.api_version.as_deref().map(str::parse) {
        Some(Err(_)) => {
            return Err(Error::input("meta.api_version", "is none of 1.0.0, 1.1.0 and 1.2.0"));
        }
        Some(Ok(version)) => Some(version),
        None => None,
    };
    let sector = meta.sector()?;
    let Some(proof) = named.or(numbered) else {
        return shape(kind, need(sector, "registered_proof")?, api_version);
    };
    if let Some(sector) = sector.filter(|sector| *sector != proof.sector) {
        let what = format!("type says {}, this says {sector}", proof.sector);
        return Err(Error::input("meta.sector_size", what));
    }
    if let Some(version) = api_version.filter(|version| *version != proof.api_version) {
        let what = format!("{version} here, but {} means {}", proof.name, proof.api_version);
        return Err(Error::input("meta.api_version", what));
    }
    Ok(OtherConfig {
        circuit: CircuitId { kind, sector: proof.sector },
        name: proof.name.to_owned(),
        api_version: proof.api_version,
    })
}

/// 16 and 32 KiB are registered nowhere.
fn shape(kind: Kind, sector: SectorSize, api_version: Option<ApiVersion>) -> Result<OtherConfig> {
    if !matches!(sector, SectorSize::K16 | SectorSize::K32) {
        let what = format!("is missing; only shapes of 16 and 32 KiB have none, not {sector}");
        return Err(Error::input("meta.registered_proof", what));
    }
    let api_version = need(api_version, "api_version")?;
    let name = format!("shape-{}kib", sector.bytes() >> 10);
    Ok(OtherConfig { circuit: CircuitId { kind, sector }, name, api_version })
}
