//! The published prover beside ours: the same file, the same parameters, in turn.
//!
//! Both start as processes of their own, read the same parameter files and verify their proof.
//! Parameters that nobody has are made by `berth prove` before the first round.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::child::{Cost, run as run_child};
use crate::failure::Failure;
use crate::host::machine;
use crate::output::print;
use crate::statistics::median;

/// Runs both provers `runs` times in turn and prints medians and ratios.
pub fn run(c1: &Path, miner: u64, runs: usize, json: bool) -> Result<(), Failure> {
    let own = std::env::current_exe().map_err(|e| format!("where is this program: {e}"))?;
    let berth = own.with_file_name("berth");
    let mut ours = Vec::new();
    let mut theirs = Vec::new();
    // A round before the first makes parameters if there are none, and warms the page cache.
    prove(&berth, c1, miner)?;
    let parameters = parameter_folder(&berth, c1)?;
    for round in 1..=runs {
        let cost = prove(&berth, c1, miner)?;
        berth::tell!("[{round}/{runs}] berth            {}", shown(&cost));
        ours.push(cost);
        let mut reference = Command::new(own.with_file_name("berth-bench-reference"));
        reference.arg(c1).arg(miner.to_string());
        reference.env("FIL_PROOFS_PARAMETER_CACHE", &parameters);
        let (_, cost) = run_child(&mut reference)?;
        berth::tell!("[{round}/{runs}] filecoin-proofs  {}", shown(&cost));
        theirs.push(cost);
    }
    Ok(print(&report(&ours, &theirs, json))?)
}

fn prove(berth: &Path, c1: &Path, miner: u64) -> Result<Cost, String> {
    let mut command = Command::new(berth);
    command.arg("prove").arg(c1).arg("--miner").arg(miner.to_string()).arg("--json");
    let (output, cost) = run_child(&mut command)?;
    let record: Value = serde_json::from_str(&output).map_err(|e| format!("berth: {e}"))?;
    if record["verified"] != true {
        return Err(format!("berth did not verify its proof: {output}"));
    }
    Ok(cost)
}

/// The folder of the parameters that berth uses for this input.
fn parameter_folder(berth: &Path, c1: &Path) -> Result<PathBuf, String> {
    let mut command = Command::new(berth);
    let (output, _) = run_child(command.arg("plan").arg(c1).arg("--json"))?;
    let plan: Value = serde_json::from_str(&output).map_err(|e| format!("berth plan: {e}"))?;
    let file = plan["parameters"][0]["path"].as_str().ok_or("berth plan names no parameters")?;
    let folder = Path::new(file).parent().ok_or("parameters without a folder")?;
    Ok(folder.to_path_buf())
}

fn report(ours: &[Cost], theirs: &[Cost], json: bool) -> String {
    let wall = |costs: &[Cost]| median(costs.iter().map(|cost| cost.wall.as_secs_f64()));
    let cpu = |costs: &[Cost]| median(costs.iter().map(|cost| cost.cpu.as_secs_f64()));
    let peak = |costs: &[Cost]| median(costs.iter().map(|cost| cost.peak_bytes as f64));
    let rows = [
        ("wall s", wall(ours), wall(theirs)),
        ("cpu s", cpu(ours), cpu(theirs)),
        ("peak bytes", peak(ours), peak(theirs)),
    ];
    if json {
        let record: Vec<Value> = rows
            .iter()
            .map(|(name, a, b)| json!({"what": name, "berth": a, "reference": b, "ratio": a / b}))
            .collect();
        let all = json!({"machine": machine(), "runs": ours.len(), "medians": record});
        return format!("{all}\n");
    }
    let mut lines = vec![
        format!("machine: {}", machine()),
        format!("{:<12} {:>14} {:>16} {:>8}", "median", "berth", "filecoin-proofs", "ratio"),
    ];
    for (name, a, b) in rows {
        lines.push(format!("{name:<12} {a:>14.2} {b:>16.2} {:>8.3}", a / b));
    }
    lines.join("\n") + "\n"
}

fn shown(cost: &Cost) -> String {
    format!(
        "{:.2} s wall, {:.2} s CPU, {:.2} GB peak",
        cost.wall.as_secs_f64(),
        cost.cpu.as_secs_f64(),
        cost.peak_bytes as f64 / 1e9
    )
}
