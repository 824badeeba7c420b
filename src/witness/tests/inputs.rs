//! Real inputs of tests/data.

use crate::input::class::Kind;
use crate::input::{self, Input, Meta, PorepOptions};

fn read(name: &str) -> Vec<u8> {
    std::fs::read(format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

fn meta(name: &str) -> Meta {
    Meta::parse(&read(&format!("{name}.meta.json"))).unwrap()
}

/// A C1 file of a registered proof, in the wrapper or bare.
pub fn c1(name: &str) -> Input {
    input::read_porep(&read(name), &PorepOptions::default()).unwrap()
}

/// A file of the crates' own form.
pub fn shape(name: &str) -> Input {
    let options = PorepOptions { meta: Some(meta(name)), ..PorepOptions::default() };
    input::read_porep(&read(&format!("{name}.stacked.json")), &options).unwrap()
}

/// The one partition of a PoSt or SnapDeals file.
pub fn vanilla(kind: Kind, name: &str) -> Input {
    input::read_vanilla(kind, &read(&format!("{name}.vanilla.json")), &meta(name)).unwrap()
}
