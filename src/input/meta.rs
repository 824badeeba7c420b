//! The public values of a vanilla proof, in a JSON file beside it.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _};

use super::class::SectorSize;
use super::derive::prover_id;
use super::element::{hex, some};
use super::parse::parse;
use crate::error::{Error, Result};

/// 32 bytes, written in hexadecimal; a commitment may also be its CID.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Hex32(pub [u8; 32]);

impl fmt::Debug for Hex32 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl<'de> Deserialize<'de> for Hex32 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        commitment(&text)
            .map(Hex32)
            .ok_or_else(|| D::Error::custom("neither 64 hexadecimal digits nor a commitment's CID"))
    }
}

/// The 32 bytes of a commitment: 64 hexadecimal digits or the base32 CID of a comm_r or comm_d
/// (formats.md 2.5).
pub fn commitment(text: &str) -> Option<[u8; 32]> {
    const COMM_R: [u8; 8] = [0x01, 0x82, 0xe2, 0x03, 0x81, 0xe8, 0x02, 0x20];
    const COMM_D: [u8; 7] = [0x01, 0x81, 0xe2, 0x03, 0x92, 0x20, 0x20];
    // Both CIDs begin so, and "g" is no hexadecimal digit.
    if text.starts_with("bag") {
        let bytes = from_base32(&text[1..])?;
        let bytes = bytes.strip_prefix(&COMM_R).or_else(|| bytes.strip_prefix(&COMM_D))?;
        return bytes.try_into().ok();
    }
    let mut bytes = [0; 32];
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else { return None };
    if pairs.len() != 32 {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(pairs) {
        let digit = |c: u8| (c as char).to_digit(16);
        *byte = (digit(pair[0])? * 16 + digit(pair[1])?) as u8;
    }
    Some(bytes)
}

/// RFC 4648 base32, lower case, no padding.
fn from_base32(text: &str) -> Option<Vec<u8>> {
    let (mut bytes, mut bits, mut held) = (Vec::with_capacity(text.len() * 5 / 8), 0u32, 0);
    for c in text.bytes() {
        let digit = match c {
            b'a'..=b'z' => c - b'a',
            b'2'..=b'7' => c - b'2' + 26,
            _ => return None,
        };
        bits = bits << 5 | u32::from(digit);
        held += 5;
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held) as u8);
            bits &= (1 << held) - 1;
        }
    }
    (held < 5 && bits == 0).then_some(bytes)
}

/// One sector of a PoSt.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MetaSector {
    /// The sector's number.
    pub sector_number: u64,
    /// Commitment to its replica.
    pub comm_r: Hex32,
}

/// The public values of a request; which of them are needed depends on its kind.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Meta {
    /// Rust or Go name, in the table of the request's kind.
    #[serde(deserialize_with = "some")]
    pub registered_proof: Option<String>,
    /// Number in the table of the request's kind.
    #[serde(deserialize_with = "some")]
    pub registered_proof_number: Option<u64>,
    /// `1.0.0`, `1.1.0` or `1.2.0`.
    #[serde(deserialize_with = "some")]
    pub api_version: Option<String>,
    /// Bytes.
    #[serde(deserialize_with = "some")]
    pub sector_size: Option<u64>,
    /// The miner's number.
    #[serde(deserialize_with = "some")]
    pub miner_id: Option<u64>,
    /// Prover id; follows from the miner's number.
    #[serde(deserialize_with = "some")]
    pub prover_id: Option<Hex32>,
    /// The sector's number, for kinds about one sector.
    #[serde(deserialize_with = "some")]
    pub sector_number: Option<u64>,
    /// PoRep: the ticket of precommitment.
    #[serde(deserialize_with = "some")]
    pub ticket: Option<Hex32>,
    /// PoRep: the seed of the interactive challenge.
    #[serde(deserialize_with = "some")]
    pub seed: Option<Hex32>,
    /// PoRep: commitment to the replica.
    #[serde(deserialize_with = "some")]
    pub comm_r: Option<Hex32>,
    /// PoRep: commitment to the data.
    #[serde(deserialize_with = "some")]
    pub comm_d: Option<Hex32>,
    /// Number of circuit proofs.
    #[serde(deserialize_with = "some")]
    pub partitions: Option<usize>,
    /// PoRep of a size that no network registers: what the graph is drawn from.
    #[serde(deserialize_with = "some")]
    pub porep_id: Option<Hex32>,
    /// PoSt: randomness as drawn from the chain; the two top bits are cleared on a copy.
    #[serde(deserialize_with = "some")]
    pub randomness: Option<Hex32>,
    /// PoSt: the sectors; if they are given, the vanilla proofs are of exactly these.
    #[serde(deserialize_with = "some")]
    pub sectors: Option<Vec<MetaSector>>,
    /// SnapDeals: commitment to the empty replica.
    #[serde(deserialize_with = "some")]
    pub comm_r_old: Option<Hex32>,
    /// SnapDeals: commitment to the updated replica.
    #[serde(deserialize_with = "some")]
    pub comm_r_new: Option<Hex32>,
    /// SnapDeals: commitment to the new data.
    #[serde(deserialize_with = "some")]
    pub comm_d_new: Option<Hex32>,
}

impl Meta {
    /// Reads a meta file.
    ///
    /// # Errors
    /// [`Error::Input`] with the JSON path, also for a key that no meta file has.
    pub fn parse(bytes: &[u8]) -> Result<Meta> {
        parse(bytes, "meta", 0)
    }

    /// The sector size, which every kind needs unless a registered proof says it.
    pub(crate) fn sector(&self) -> Result<Option<SectorSize>> {
        let Some(bytes) = self.sector_size else { return Ok(None) };
        SectorSize::from_bytes(bytes).map(Some).ok_or_else(|| {
            Error::input("meta.sector_size", format!("{bytes} bytes are no known sector size"))
        })
    }

    /// The prover id, from the miner's number or as it stands.
    pub(crate) fn prover(&self) -> Result<Option<[u8; 32]>> {
        match (self.miner_id.map(prover_id), self.prover_id.map(|id| id.0)) {
            (Some(derived), Some(stated)) if derived != stated => Err(Error::input(
                "meta.prover_id",
                format!("{} is not the prover id {} of miner_id", hex(&stated), hex(&derived)),
            )),
            (derived, stated) => Ok(derived.or(stated)),
        }
    }
}

/// The value, or which key is missing.
pub(crate) fn need<T>(value: Option<T>, key: &str) -> Result<T> {
    value.ok_or_else(|| Error::input(format!("meta.{key}"), "is missing and needed for this kind"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commitments_are_hex_or_cid() {
        let bytes: [u8; 32] = std::array::from_fn(|i| i as u8 * 7);
        assert_eq!(commitment(&hex(&bytes)), Some(bytes));
        let cid = |prefix: &[u8]| {
            let all = [prefix, &bytes].concat();
            let bits: Vec<u8> =
                all.iter().flat_map(|byte| (0..8).rev().map(move |i| byte >> i & 1)).collect();
            let digits = bits.chunks(5).map(|chunk| {
                let digit = (0..5).fold(0, |d, i| d << 1 | chunk.get(i).copied().unwrap_or(0));
                b"abcdefghijklmnopqrstuvwxyz234567"[digit as usize] as char
            });
            format!("b{}", String::from_iter(digits))
        };
        let comm_r = cid(&[0x01, 0x82, 0xe2, 0x03, 0x81, 0xe8, 0x02, 0x20]);
        assert!(comm_r.starts_with("bagboea4b5abc"));
        assert_eq!(commitment(&comm_r), Some(bytes));
        let comm_d = cid(&[0x01, 0x81, 0xe2, 0x03, 0x92, 0x20, 0x20]);
        assert!(comm_d.starts_with("baga6ea4seaq"));
        assert_eq!(commitment(&comm_d), Some(bytes));
        for wrong in ["", "b", &comm_r[..64], &comm_d[1..], &hex(&bytes)[1..], "é"] {
            assert_eq!(commitment(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn unknown_keys_and_null_are_refused_by_path() {
        for (json, at) in [
            (r#"{"sector_sise":2048}"#, "meta"),
            (r#"{"sector_size":null}"#, "meta.sector_size"),
            (
                r#"{"sectors":[{"sector_number":-1,"comm_r":"00"}]}"#,
                "meta.sectors[0].sector_number",
            ),
            (r#"{"seed":"00"}"#, "meta.seed"),
        ] {
            let Err(Error::Input { at: got, .. }) = Meta::parse(json.as_bytes()) else { panic!() };
            assert!(got.starts_with(at), "{got}");
        }
    }
}
