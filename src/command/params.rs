//! `berth params`: list, check and make Groth16 parameters.

use serde_json::{Value, json};

use super::args::Params;
use super::print;
use super::progress::Progress;
use crate::circuit::kinds;
use crate::config::Config;
use crate::error::{Error, Result};
use crate::files::free_bytes;
use crate::host::Host;
use crate::input::class::{CircuitId, SectorSize};
use crate::plan::{self, size};
use crate::prover::setup;
use crate::srs::find::Search;
use crate::srs::manifest::Manifest;
use crate::srs::names;

/// Runs the command.
pub fn run(config: &Config, args: Params) -> Result<()> {
    match args {
        Params::List { circuit, json } => list(config, &circuit, json),
        Params::Check { circuit } => check(config, &circuit),
        Params::MakeDev { circuit, force, large } => make_dev(config, &circuit, force, large),
    }
}

fn ids(names: &[String]) -> Result<Vec<CircuitId>> {
    names.iter().map(|name| name.parse()).collect()
}

/// The circuits of the manifest, or those that were asked for.
fn listed(manifest: &Manifest, circuits: &[String]) -> Result<Vec<CircuitId>> {
    if circuits.is_empty() { Ok(manifest.circuits()) } else { ids(circuits) }
}

fn list(config: &Config, circuits: &[String], as_json: bool) -> Result<()> {
    let manifest = Manifest::built_in();
    let mut records = Vec::new();
    for id in listed(&manifest, circuits)? {
        let here = match setup::search(config, id)? {
            Search::Found(found) => found.origin.to_string(),
            Search::Missing(_) => "missing".to_string(),
        };
        for name in [names::params(id), names::vk(id)] {
            let entry = manifest.entry(&name);
            records.push(json!({
                "circuit": id.to_string(),
                "file": name,
                "cid": entry.map(|entry| &entry.cid),
                "digest": entry.map(|entry| &entry.digest),
                "bytes": entry.and_then(|entry| entry.bytes),
                "here": here,
            }));
        }
    }
    if as_json {
        let record = json!({"manifest": manifest.source(), "files": records});
        return print(&format!("{record}\n"));
    }
    let mut lines = vec![format!("manifest    {}", manifest.source())];
    for record in &records {
        let text = |key: &str| record[key].as_str().unwrap_or("-").to_string();
        let bytes = record["bytes"].as_u64().map_or("-".to_string(), size);
        let circuit = text("circuit");
        lines.push(format!("{circuit:<13} {:<8} {bytes:>10}  {}", text("here"), text("file")));
        if record["cid"] != Value::Null {
            lines.push(format!("{:<13} cid {} digest {}", "", text("cid"), text("digest")));
        }
    }
    lines.push(String::new());
    print(&lines.join("\n"))
}

fn check(config: &Config, circuits: &[String]) -> Result<()> {
    let host = Host::read()?;
    let cpus = plan::cpus(config, &host)?;
    let progress = Progress::new();
    for id in ids(circuits)? {
        let found = setup::search(config, id)?.required()?;
        let compiled = kinds::compile(id)?;
        setup::check_whole(config, &found, &compiled, &cpus, &|stage, done, total| {
            progress.show(stage, done, total);
        })?;
        progress.finish();
        print(&format!("ok          {id} ({}): {}\n", found.origin, found.params.display()))?;
    }
    Ok(())
}

/// Circuits of sectors of networks, of which official parameters are published.
fn is_large(id: CircuitId) -> bool {
    matches!(id.sector, SectorSize::G32 | SectorSize::G64)
}

/// Bytes of parameter files that one CPU makes in a second, about: 1.1 GB took two CPUs 32 s.
const BYTES_PER_CPU_SECOND: u64 = 17_000_000;

/// What making the parameters of a large circuit would take.
fn why_not(config: &Config, id: CircuitId, cpus: usize) -> String {
    let manifest = Manifest::built_in();
    let bytes = manifest.entry(&names::params(id)).and_then(|entry| entry.bytes);
    let file = bytes.map_or("a large file".into(), |bytes| {
        let minutes = bytes / BYTES_PER_CPU_SECOND / cpus.max(1) as u64 / 60 + 1;
        format!("{} and, on {cpus} CPUs, about {minutes} minutes", size(bytes))
    });
    let room = config.dev_parameter_dir.as_deref().and_then(|folder| {
        let free = free_bytes(folder).ok()?;
        Some(format!("; {} has {} free", folder.display(), size(free)))
    });
    format!(
        "dev parameters of {id} take {file}{}; they are valid on no network. --large makes them \
         all the same",
        room.unwrap_or_default()
    )
}

fn make_dev(config: &Config, circuits: &[String], force: bool, large: bool) -> Result<()> {
    let host = Host::read()?;
    let cpus = plan::cpus(config, &host)?;
    let ids = ids(circuits)?;
    if let Some(id) = ids.iter().find(|id| is_large(**id) && !large) {
        return Err(Error::Config(why_not(config, *id, cpus.len())));
    }
    let progress = Progress::new();
    for id in ids {
        if let Some(folder) = &config.dev_parameter_dir
            && folder.join(names::params(id)).exists()
            && !force
        {
            return Err(Error::Parameters(format!(
                "{} has dev parameters of {id} already; --force makes new ones",
                folder.display()
            )));
        }
        let compiled = kinds::compile(id)?;
        let folder =
            setup::make_dev(config, id, &compiled, &cpus, force, &|stage, done, total| {
                progress.show(stage, done, total);
            })?;
        progress.finish();
        print(&format!("made        {id}: {}\n", folder.join(names::params(id)).display()))?;
    }
    Ok(())
}
