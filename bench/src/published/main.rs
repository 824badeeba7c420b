//! `berth-bench-reference`: one proof of a C1 wrapper with filecoin-proofs, which finds its
//! parameters by `FIL_PROOFS_PARAMETER_CACHE`. What `berth-bench reference` runs as a child.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use base64::Engine;
use berth::input::prover_id;
use filecoin_proofs_api::seal::{SealCommitPhase1Output, seal_commit_phase2};
use serde_json::Value;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let outcome = match &arguments[..] {
        [_, c1, miner] => prove(Path::new(c1), miner),
        _ => Err("name a C1 wrapper and a numeric miner id".into()),
    };
    match outcome {
        Ok(bytes) => {
            // The proof is made; who does not read its length misses nothing.
            let _ = writeln!(std::io::stdout(), "{bytes} bytes");
            ExitCode::SUCCESS
        }
        Err(why) => {
            berth::tell!("berth-bench-reference: {why}");
            ExitCode::FAILURE
        }
    }
}

fn prove(c1: &Path, miner: &str) -> Result<usize, String> {
    let miner: u64 = miner.parse().map_err(|e| format!("miner {miner}: {e}"))?;
    let bytes = std::fs::read(c1).map_err(|e| format!("{}: {e}", c1.display()))?;
    let wrapper: Value =
        serde_json::from_slice(&bytes).map_err(|e| format!("{}: {e}", c1.display()))?;
    let sector = wrapper["SectorNum"].as_u64().ok_or("the wrapper has no SectorNum")?;
    let text = wrapper["Phase1Out"].as_str().ok_or("the wrapper has no Phase1Out")?;
    let inner = base64::engine::general_purpose::STANDARD
        .decode(text)
        .map_err(|e| format!("Phase1Out: {e}"))?;
    let phase1: SealCommitPhase1Output =
        serde_json::from_slice(&inner).map_err(|e| format!("Phase1Out: {e}"))?;
    let made = seal_commit_phase2(phase1, prover_id(miner), sector.into())
        .map_err(|e| format!("filecoin-proofs: {e:#}"))?;
    Ok(made.proof.len())
}
