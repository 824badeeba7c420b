//! `berth verify`: does a proof belong to a request?

use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde_json::json;

use super::args::Verify;
use super::prove::DEV_LINE;
use super::{print, request};
use crate::config::Config;
use crate::error::{Error, Result};
use crate::groth16::PROOF_BYTES;
use crate::groth16::verify::{PreparedKey, Proof};
use crate::input::Input;
use crate::prover::setup;
use crate::srs::find::Origin;
use crate::srs::key::VerifyingKey;

/// Runs the command. Needs the verifying key alone, not the parameters.
pub fn run(config: &Config, args: &Verify) -> Result<()> {
    let (c1, proof) = match (args.files.as_slice(), args.request.kind) {
        ([c1, proof], None) => (Some(c1.as_path()), proof),
        ([proof], Some(_)) => (None, proof),
        _ => {
            return Err(Error::Config("name C1 and PROOF, or --kind .. and PROOF alone".into()));
        }
    };
    let input = request::read(c1, &args.request, false)?;
    let bytes = read_proof(proof)?;
    let wanted = input.partitions() * PROOF_BYTES;
    let found = setup::verifying_key(config, input.circuit)?;
    let failed: Vec<usize> = if bytes.len() == wanted {
        failed_partitions(&input, &found.vk, &bytes)?
    } else {
        (0..input.partitions()).collect()
    };
    let dev = found.origin == Origin::Dev;
    if args.json {
        let parameters = if dev { "dev" } else { "official" };
        let record = json!({"verified": failed.is_empty(), "failed_partitions": failed,
            "partitions": input.partitions(), "parameters": parameters,
            "registered_proof": input.registered_proof});
        print(&format!("{record}\n"))?;
    }
    if bytes.len() != wanted {
        let more = if bytes.len() > PROOF_FILE_BYTES_MAX { " or more" } else { "" };
        return Err(Error::Unverified(format!(
            "{}: {} bytes{more}; a proof of {} is {wanted} bytes, raw, or {} hex digits",
            proof.display(),
            bytes.len(),
            request::describe(&input),
            2 * wanted
        )));
    }
    if !failed.is_empty() {
        return Err(Error::Unverified(format!(
            "{} does not verify for {}: partitions {failed:?}",
            proof.display(),
            request::describe(&input)
        )));
    }
    if !args.json {
        let note = if dev { format!("note        {DEV_LINE}\n") } else { String::new() };
        print(&format!("verified    {}\n{note}", request::describe(&input)))?;
    }
    Ok(())
}

/// The partitions whose bytes are no proof, or none of their public inputs.
fn failed_partitions(input: &Input, vk: &Path, bytes: &[u8]) -> Result<Vec<usize>> {
    let inputs = 1 + input.public_inputs[0].len();
    let prepared = PreparedKey::new(&VerifyingKey::read(vk, inputs)?.to_bellperson());
    let mut failed = Vec::new();
    for (partition, bytes) in bytes.chunks_exact(PROOF_BYTES).enumerate() {
        let chunk: &[u8; PROOF_BYTES] = bytes.try_into().expect("chunks of this length");
        let valid = match Proof::read(chunk, partition * PROOF_BYTES) {
            Ok(proof) => prepared.verify(&proof, &input.public_inputs[partition])?,
            Err(error) => {
                log::error!("partition {partition}: {error}");
                false
            }
        };
        if !valid {
            failed.push(partition);
        }
    }
    Ok(failed)
}

/// More than any proof: 126 partitions in hex take 48 KB.
const PROOF_FILE_BYTES_MAX: usize = 1 << 20;

/// Raw bytes, or hex with whitespace anywhere and `0x` in front or not. Of a file that is longer
/// than any proof it reads one byte more than that: enough to see that it is none.
fn read_proof(path: &Path) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(PROOF_FILE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes))
        .map_err(|e| Error::input(path.display().to_string(), e.to_string()))?;
    if bytes.len() > PROOF_FILE_BYTES_MAX {
        return Ok(bytes);
    }
    let text: Vec<u8> = bytes.iter().copied().filter(|c| !c.is_ascii_whitespace()).collect();
    let digits = text.strip_prefix(b"0x").unwrap_or(&text);
    let is_hex = !digits.is_empty()
        && digits.len().is_multiple_of(2)
        && digits.iter().all(u8::is_ascii_hexdigit);
    if !is_hex {
        return Ok(bytes);
    }
    let digit = |c: u8| (c as char).to_digit(16).expect("checked to be hex digits") as u8;
    Ok(digits.chunks_exact(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proofs_are_read_raw_or_as_hex() {
        let folder = std::env::temp_dir().join(format!("berth-verify-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("proof");
        for (written, read) in [
            (&b"\x00\x01\xff"[..], vec![0, 1, 255]),
            (b"0001ff\n", vec![0, 1, 255]),
            (b"0001fF", vec![0, 1, 255]),
            (b"0x00\r\n 01FF", vec![0, 1, 255]),
            (b"0001f", b"0001f".to_vec()),
            (b"", vec![]),
        ] {
            std::fs::write(&path, written).unwrap();
            assert_eq!(read_proof(&path).unwrap(), read);
        }
        std::fs::write(&path, vec![b'0'; PROOF_FILE_BYTES_MAX + 100]).unwrap();
        assert_eq!(read_proof(&path).unwrap().len(), PROOF_FILE_BYTES_MAX + 1, "none that fits");
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(read_proof(&path).is_err());
    }
}
