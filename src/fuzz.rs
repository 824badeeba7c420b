//! Any bytes at the two borders where files of others come in: requests and parameters.
//!
//! Both entries panic on a finding and on nothing else: a panic of the code below, also one that
//! was contained, an error of the wrong kind or of no readable length, two readings that
//! contradict each other. `tests/fuzz` lets a coverage-guided engine choose the bytes,
//! `tests/fuzz_smoke.rs` changes real files.

use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use blstrs::Scalar;

use crate::circuit::compiled::Compiled;
use crate::circuit::kinds;
use crate::config::WitnessMaker;
use crate::error::{Error, Result};
use crate::input::class::{CircuitId, Kind, SectorSize};
use crate::input::{GAVE_UP, Input, Meta, PorepOptions, read_blobs, read_porep, read_vanilla};
use crate::witness::Witnesses;

mod tiny;

pub use tiny::parameters;
pub use tiny::valid as valid_parameters;

/// Characters of the longest error: what a log line bears.
const MESSAGE_MAX: usize = 2000;

/// Reads bytes as a request of every kind and tells how many of the readings were accepted.
///
/// - as a commit-phase-1 output, with and without a proof type from outside;
/// - a JSON object also as the base64 of the task form and of the wrapper's `Phase1Out`, so that
///   changes need not be made through base64;
/// - the first line as a meta file and the rest as the vanilla proofs of every kind: as a JSON
///   list, as one binary proof, as two of equal length.
///
/// # Panics
/// On a finding.
pub fn input(bytes: &[u8]) -> usize {
    let mut accepted = usize::from(porep(bytes, &PorepOptions::default()));
    // The binary form says no type; its first number is that of its partitions.
    let named = match bytes.first() {
        Some(10) => "8",
        Some(13) => "15",
        Some(126) => "18",
        _ => "StackedDrg2KiBV1_1",
    };
    let options = PorepOptions { registered_proof: Some(named.into()), ..PorepOptions::default() };
    accepted += usize::from(porep(bytes, &options));
    if bytes.trim_ascii_start().first() == Some(&b'{') {
        let base64 = STANDARD.encode(bytes);
        accepted += usize::from(porep(base64.as_bytes(), &PorepOptions::default()));
        let wrapper = format!("{{\"Phase1Out\":\"{base64}\"}}");
        accepted += usize::from(porep(wrapper.as_bytes(), &PorepOptions::default()));
    }
    let line = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len());
    let (line, rest) = bytes.split_at(line);
    match Meta::parse(line) {
        Ok(meta) => accepted + vanilla(rest.get(1..).unwrap_or_default(), &meta),
        Err(error) => {
            refused(error);
            accepted
        }
    }
}

/// Reads a commit-phase-1 output; what is accepted must be accepted again in the binary form, and
/// has a native witness.
fn porep(bytes: &[u8], options: &PorepOptions) -> bool {
    let options = PorepOptions { hashes_later: true, ..options.clone() };
    let Some(input) = settled(read_porep(bytes, &options)) else { return false };
    let filled = fill(&input);
    if let Err(error) = input.vanilla.check_hashes() {
        refused(error);
        return false;
    }
    assert!(filled, "what passes the full check has a witness");
    let options = PorepOptions {
        registered_proof: Some(input.registered_proof.clone()),
        hashes_later: false,
        ..options
    };
    let again = settled(read_porep(&input.to_bincode(), &options));
    let again = again.expect("what was read can be read again");
    assert!(again.public_inputs == input.public_inputs, "the binary form has other public inputs");
    true
}

/// Makes native witnesses of a request of 2 KiB, and tells whether all of it fits the circuit; for
/// other sizes it takes that for granted.
fn fill(input: &Input) -> bool {
    static NATIVE: LazyLock<(Compiled, Witnesses)> = LazyLock::new(|| {
        let circuit = CircuitId { kind: Kind::Porep, sector: SectorSize::K2 };
        let compiled = kinds::compile(circuit).expect("the published circuit of 2 KiB");
        (compiled, Witnesses::new(WitnessMaker::Native))
    });
    if input.circuit.sector != SectorSize::K2 {
        return true;
    }
    let (compiled, witnesses) = &*NATIVE;
    let parts = compiled.shape.parts();
    (0..input.partitions() * parts).all(|number| {
        let (partition, part) = (number / parts, number % parts);
        let shape = compiled.shape.part(part);
        let (mut wides, mut bits) =
            (vec![Scalar::from(0); shape.wide_len()], vec![0; shape.word_len()]);
        let filled = witnesses.fill_part(input, compiled, partition, part, &mut wides, &mut bits);
        filled.map_err(refused).is_ok()
    })
}

fn vanilla(rest: &[u8], meta: &Meta) -> usize {
    let mut accepted = 0;
    for kind in [Kind::Porep, Kind::Window, Kind::Winning, Kind::Update] {
        accepted += usize::from(settled(read_vanilla(kind, rest, meta)).is_some());
        if kind == Kind::Porep {
            continue;
        }
        accepted += usize::from(settled(read_blobs(kind, &[rest], meta)).is_some());
        let (first, second) = rest.split_at(rest.len() / 2);
        accepted += usize::from(settled(read_blobs(kind, &[first, second], meta)).is_some());
    }
    accepted
}

/// The input, or nothing where it was refused as it should be.
fn settled(outcome: Result<Input>) -> Option<Input> {
    let input = outcome.map_err(refused).ok()?;
    assert!(input.partitions() > 0, "a request without a partition");
    assert!(!input.to_bincode().is_empty(), "a request without vanilla proofs");
    Some(input)
}

/// Every refusal is the input's fault, and short.
fn refused(error: Error) {
    let text = error.to_string();
    let of_input = matches!(error, Error::Input { .. } | Error::Config(_));
    assert!(of_input, "an error of another kind: {text}");
    let contained = matches!(&error, Error::Input { what, .. } if what.starts_with(GAVE_UP));
    assert!(!contained, "a contained panic: {text}");
    assert!(text.len() <= MESSAGE_MAX, "{} bytes of message: {text:.200}", text.len());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "a contained panic")]
    fn a_contained_panic_is_a_finding() {
        let what = format!("{GAVE_UP}: index out of bounds");
        settled(Err(Error::input("vanilla check", what)));
    }

    #[test]
    #[should_panic(expected = "an error of another kind")]
    fn an_error_that_blames_another_is_a_finding() {
        settled(Err(Error::Host("no memory".into())));
    }

    #[test]
    #[should_panic(expected = "2027 bytes of message")]
    fn a_message_without_end_is_a_finding() {
        settled(Err(Error::input("byte 0", "x".repeat(2012))));
    }
}
