//! Tests over the real inputs of `tests/data`, the published verifiers as oracles.

mod broken;
mod other;
mod porep;
mod refusals;

use super::*;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use std::sync::OnceLock;

/// A file of `tests/data`.
fn data(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name);
    read_file(&path, C1_BYTES_MAX).unwrap()
}

fn meta(name: &str) -> Meta {
    Meta::parse(&data(&format!("{name}.meta.json"))).unwrap()
}

/// The bare form within a wrapper.
fn bare(wrapper: &[u8]) -> Value {
    let wrapper: Value = serde_json::from_slice(wrapper).unwrap();
    let json = STANDARD.decode(wrapper["Phase1Out"].as_str().unwrap()).unwrap();
    serde_json::from_slice(&json).unwrap()
}

fn with(miner: u64, sector: u64) -> PorepOptions {
    PorepOptions { miner: Some(miner), sector: Some(sector), ..PorepOptions::default() }
}

/// Asserts that an input is refused there and for that reason, by a check and not by a panic.
#[track_caller]
fn refused(outcome: Result<Input>, at: &str, what: &str) {
    match outcome {
        Err(Error::Input { at: found_at, what: found }) => {
            assert!(found_at.contains(at), "at \"{found_at}\", not \"{at}\" ({found})");
            assert!(found.contains(what), "\"{found}\" does not say \"{what}\" (at {found_at})");
            assert!(!found.contains("the library gave up"), "{found_at}: {found}");
        }
        Err(other) => panic!("refused as {other}"),
        Ok(_) => panic!("accepted, where \"{what}\" at \"{at}\" was due"),
    }
}

/// The 2 KiB interactive C1, bare.
fn c1() -> &'static Value {
    static C1: OnceLock<Value> = OnceLock::new();
    C1.get_or_init(|| bare(&data("porep-2kib.c1.json")))
}

/// Reads a bare C1 that says all.
fn read(bare: &Value) -> Result<Input> {
    read_porep(bare.to_string().as_bytes(), &PorepOptions::default())
}

/// The C1 with one value replaced.
fn set(pointer: &str, value: Value) -> Result<Input> {
    let mut bare = c1().clone();
    *bare.pointer_mut(pointer).unwrap_or_else(|| panic!("no {pointer}")) = value;
    read(&bare)
}
