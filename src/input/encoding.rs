//! The encodings of a commit-phase-1 output, told apart by content (formats.md 3.1).
//!
//! | form | how it is known |
//! |---|---|
//! | wrapper | JSON object with `Phase1Out`, the base64 of the bare form |
//! | bare | JSON object with `vanilla_proofs` keyed by the sector's variant |
//! | crate | JSON object whose `vanilla_proofs` is a list: no proof type inside |
//! | task | base64 of a JSON object with `c1out`, a bare form |
//! | bincode | anything else whose first u64 is a number of partitions: no proof type inside |
//!
//! Text is parsed straight into [`Document`]; beside the input only the decoded base64 and the
//! proofs themselves are held.

use serde::Deserialize;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::fmt;

use super::element::{Bytes32, Dom, Text, some};
use super::parse::{decode, join, parse, parse_binary, short};
use super::raw::RawPartitions;
use crate::error::{Error, Result};

/// A commit-phase-1 output as it is written, with all that it says about itself.
pub(crate) struct Document {
    /// JSON path of the bare form within the input: empty, `Phase1Out` or `c1out`.
    pub prefix: &'static str,
    pub registered_proof: Option<String>,
    /// The key under `vanilla_proofs`.
    pub variant: Option<String>,
    pub partitions: RawPartitions,
    pub comm_r: Dom,
    pub comm_d: Dom,
    pub replica_id: Dom,
    pub seed: Bytes32,
    pub ticket: Bytes32,
    /// Each with the name of the field that says it.
    pub sector_size: Option<(&'static str, u64)>,
    pub miner: Option<(&'static str, u64)>,
    pub sector: Option<(&'static str, u64)>,
    pub prover_id: Option<(&'static str, [u8; 32])>,
}

impl Document {
    /// The path of a field of the bare form.
    pub fn at(&self, field: &str) -> String {
        join(self.prefix, field)
    }

    /// The path of the list of partitions.
    pub fn partitions_at(&self) -> String {
        match &self.variant {
            Some(variant) => self.at(&format!("vanilla_proofs.{variant}")),
            None => self.at("vanilla_proofs"),
        }
    }
}

/// Reads any of the forms.
///
/// # Errors
/// [`Error::Input`] with the JSON path and the byte offset within the JSON text, or the byte offset
/// within base64 or bincode.
pub(crate) fn read(bytes: &[u8]) -> Result<Document> {
    let text = bytes.trim_ascii();
    match text.first() {
        None => Err(Error::input("byte 0", "the input is empty")),
        Some(b'{') => object(text, bytes.len() - bytes.trim_ascii_start().len()),
        Some(_) if text.iter().take(64).all(|byte| is_base64(*byte)) => {
            let json = decode(text, "base64 text")?;
            match json.trim_ascii_start().first() {
                Some(b'{') => object(&json, 0),
                _ => Err(Error::input("base64 text", "it does not decode to a JSON object")),
            }
        }
        Some(_) => binary(bytes),
    }
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}

/// Which form a JSON object has: its keys alone, values skipped.
#[derive(Default)]
struct Keys {
    phase1: bool,
    vanilla: bool,
    task: bool,
}

impl<'de> Deserialize<'de> for Keys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct KeysVisitor;
        impl<'de> Visitor<'de> for KeysVisitor {
            type Value = Keys;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Keys, A::Error> {
                let mut keys = Keys::default();
                while let Some(Text(key)) = map.next_key()? {
                    map.next_value::<IgnoredAny>()?;
                    match &*key {
                        "Phase1Out" => keys.phase1 = true,
                        "vanilla_proofs" => keys.vanilla = true,
                        "c1out" => keys.task = true,
                        _ => {}
                    }
                }
                Ok(keys)
            }
        }
        deserializer.deserialize_map(KeysVisitor)
    }
}

fn object(json: &[u8], skipped: usize) -> Result<Document> {
    let keys: Keys = parse(json, "", skipped)?;
    match (keys.phase1, keys.vanilla, keys.task) {
        (true, false, false) => wrapper(parse(json, "", skipped)?),
        (false, true, false) => Ok(parse::<Bare>(json, "", skipped)?.document("")),
        (false, false, true) => Ok(parse::<Task>(json, "", skipped)?.document()),
        (false, false, false) => Err(Error::input(
            "top level",
            "none of Phase1Out, vanilla_proofs and c1out is there: not a commit-phase-1 output",
        )),
        _ => Err(Error::input(
            "top level",
            "more than one of Phase1Out, vanilla_proofs and c1out is there: which one is meant?",
        )),
    }
}

/// `{"SectorNum": i64, "Phase1Out": base64, "SectorSize": bytes, "Miner": "f01234"}`, as Go writes
/// it; other fields are none of our business.
#[derive(Deserialize)]
struct Wrapper<'a> {
    #[serde(rename = "SectorNum", default, deserialize_with = "some")]
    sector: Option<u64>,
    #[serde(rename = "Phase1Out", borrow)]
    phase1: Text<'a>,
    #[serde(rename = "SectorSize", default, deserialize_with = "some")]
    size: Option<u64>,
    #[serde(rename = "Miner", default, deserialize_with = "some")]
    miner: Option<Miner>,
}

fn wrapper(wrapper: Wrapper<'_>) -> Result<Document> {
    let json = decode(wrapper.phase1.0.as_bytes(), "Phase1Out")?;
    let bare: Bare = parse(&json, "Phase1Out", 0)?;
    let mut document = bare.document("Phase1Out");
    document.sector = wrapper.sector.map(|number| ("SectorNum", number));
    document.sector_size = wrapper.size.map(|bytes| ("SectorSize", bytes));
    document.miner = wrapper.miner.and_then(|miner| miner.0).map(|miner| ("Miner", miner));
    Ok(document)
}

/// A miner's number, or its address: `f01234` or `t01234`.
///
/// An address of another class is `None`: its number is known to the chain alone.
struct Miner(Option<u64>);

impl<'de> Deserialize<'de> for Miner {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MinerVisitor;
        impl Visitor<'_> for MinerVisitor {
            type Value = Miner;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a miner's id address such as \"f01234\"")
            }

            fn visit_u64<E: serde::de::Error>(self, id: u64) -> Result<Miner, E> {
                Ok(Miner(Some(id)))
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Miner, E> {
                match (miner_id(text), text.as_bytes()) {
                    (Some(id), _) => Ok(Miner(Some(id))),
                    (None, [b'f' | b't', b'1'..=b'4', ..]) => Ok(Miner(None)),
                    _ => Err(E::invalid_value(serde::de::Unexpected::Str(text), &self)),
                }
            }
        }
        deserializer.deserialize_any(MinerVisitor)
    }
}

/// The number of an id address `f01234` or `t01234`, or of plain digits.
pub fn miner_id(text: &str) -> Option<u64> {
    let digits = text.strip_prefix("f0").or_else(|| text.strip_prefix("t0")).unwrap_or(text);
    if digits.bytes().all(|byte| byte.is_ascii_digit()) { digits.parse().ok() } else { None }
}

/// `SealCommitPhase1Output`, of filecoin-proofs-api (with a proof type) or of filecoin-proofs.
#[derive(Deserialize)]
struct Bare {
    #[serde(default, deserialize_with = "some")]
    registered_proof: Option<String>,
    vanilla_proofs: VanillaProofs,
    comm_r: Dom,
    comm_d: Dom,
    replica_id: Dom,
    seed: Bytes32,
    ticket: Bytes32,
}

impl Bare {
    fn document(self, prefix: &'static str) -> Document {
        Document {
            prefix,
            registered_proof: self.registered_proof,
            variant: self.vanilla_proofs.variant,
            partitions: self.vanilla_proofs.partitions,
            comm_r: self.comm_r,
            comm_d: self.comm_d,
            replica_id: self.replica_id,
            seed: self.seed,
            ticket: self.ticket,
            sector_size: None,
            miner: None,
            sector: None,
            prover_id: None,
        }
    }
}

/// An object with the variant as its one key, or the list itself.
struct VanillaProofs {
    variant: Option<String>,
    partitions: RawPartitions,
}

impl<'de> Deserialize<'de> for VanillaProofs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct VanillaVisitor;
        impl<'de> Visitor<'de> for VanillaVisitor {
            type Value = VanillaProofs;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object with one key, or a list of partitions")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<VanillaProofs, A::Error> {
                let Some((variant, partitions)) = map.next_entry()? else {
                    return Err(A::Error::custom("no proofs: the object is empty"));
                };
                if let Some(Text(second)) = map.next_key()? {
                    let what = format!("a second key {:?} where one is meant", short(&second));
                    return Err(A::Error::custom(what));
                }
                Ok(VanillaProofs { variant: Some(variant), partitions })
            }

            fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<VanillaProofs, A::Error> {
                let partitions = RawPartitions::deserialize(SeqAccessDeserializer::new(items))?;
                Ok(VanillaProofs { variant: None, partitions })
            }
        }
        deserializer.deserialize_any(VanillaVisitor)
    }
}

/// What services of the gpuproxy kind send.
#[derive(Deserialize)]
struct Task {
    c1out: Bare,
    #[serde(default, deserialize_with = "some")]
    prover_id: Option<Bytes32>,
    #[serde(default, deserialize_with = "some")]
    sector_id: Option<u64>,
    #[serde(default, deserialize_with = "some")]
    miner_id: Option<u64>,
}

impl Task {
    fn document(self) -> Document {
        let mut document = self.c1out.document("c1out");
        document.prover_id = self.prover_id.map(|id| ("prover_id", id.0));
        document.sector = self.sector_id.map(|number| ("sector_id", number));
        document.miner = self.miner_id.map(|miner| ("miner_id", miner));
        document
    }
}

/// The bincode form, in the order of its fields.
#[derive(Deserialize)]
struct Binary {
    partitions: RawPartitions,
    comm_r: Dom,
    comm_d: Dom,
    replica_id: Dom,
    seed: Bytes32,
    ticket: Bytes32,
}

fn binary(bytes: &[u8]) -> Result<Document> {
    let first = bytes.first_chunk().map(|first| u64::from_le_bytes(*first));
    if !matches!(first, Some(1 | 10 | 13 | 126)) {
        return Err(Error::input(
            "byte 0",
            "neither JSON, nor base64, nor bincode that begins with 1, 10, 13 or 126 partitions",
        ));
    }
    let raw: Binary = parse_binary(bytes, "")?;
    Ok(Document {
        prefix: "",
        registered_proof: None,
        variant: None,
        partitions: raw.partitions,
        comm_r: raw.comm_r,
        comm_d: raw.comm_d,
        replica_id: raw.replica_id,
        seed: raw.seed,
        ticket: raw.ticket,
        sector_size: None,
        miner: None,
        sector: None,
        prover_id: None,
    })
}
