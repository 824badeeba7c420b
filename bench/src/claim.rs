//! `berth-bench claim`: what the planned arenas are for, against a control.
//!
//! ```text
//! one run to see what is needed -> reserve hugepages -> fragment memory -> rounds of fresh
//! processes, the builds in turn, several proofs each -> one table
//! ```
//!
//! The control is this program built with the feature `heap-arenas`: lanes and slots come from the
//! C library's heap, everything else is equal. A process is the unit that is compared: proofs
//! inside one share its memory, so processes are drawn anew as wholes for every interval.

use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;
use serde_json::{Value, json};

use crate::batch::up_to;
use crate::failure::Failure;
use crate::fragment::{Fragments, Probe};
use crate::output::print;
use crate::pool::{self, Added, Kept};
use crate::source::SourceArgs;
use crate::{child, host};

mod table;

use table::{Run, Table};

#[derive(Args, Debug)]
pub struct ClaimArgs {
    #[command(flatten)]
    source: SourceArgs,
    /// The control: this program built with --features heap-arenas
    #[arg(long, value_name = "PROGRAM")]
    control: PathBuf,
    /// Rounds; each runs every build once, as a fresh process
    #[arg(long, default_value_t = 5, value_parser = up_to::<1_000_000>)]
    rounds: usize,
    /// Proofs of each process; the first is its warm-up
    #[arg(long, default_value_t = 4, value_parser = up_to::<1_000_000>)]
    count: usize,
    /// Requests in flight
    #[arg(long, default_value_t = 1, value_parser = up_to::<1024>)]
    concurrency: usize,
    /// Fragment memory first: all that the kernel gives, or all but so much
    #[arg(long, value_name = "KEEP_FREE", num_args = 0..=1, require_equals = true,
        value_parser = berth::config::parse_size)]
    fragment: Option<Option<u64>>,
    /// A third build in the table: the control with glibc asking for transparent hugepages
    #[arg(long)]
    transparent: bool,
    /// Write table and runs, as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// One column of the table.
struct Build {
    name: &'static str,
    program: PathBuf,
    control: bool,
    environment: &'static [(&'static str, &'static str)],
}

/// Runs the command.
///
/// # Errors
/// Builds that are not what they must be, hugepages that cannot be reserved, runs that fail.
pub fn run(args: &ClaimArgs) -> Result<(), Failure> {
    let builds = builds(args)?;
    let kept = pool::keep_until_signal()?;
    let outcome = measure(args, &builds, &kept);
    // Whatever came of it, the pool is left as it was.
    kept.lock().unwrap_or_else(|e| e.into_inner()).clear();
    Ok(outcome?)
}

fn measure(args: &ClaimArgs, builds: &[Build], kept: &Kept) -> Result<(), String> {
    // Also warms the page cache, and makes parameters if there are none.
    let look = prove(args, &builds[0], 1, &[("BERTH_HUGEPAGES", "off")])?;
    for (node, pages) in needed(&look)? {
        let added = Added::all(node, pages)?;
        kept.lock().unwrap_or_else(|e| e.into_inner()).push(added);
    }
    let before = Probe::take()?.to_string();
    print(&format!("memory      {before}\n"))?;
    let fragments = args.fragment.map(Fragments::make).transpose()?;
    let after = fragments.as_ref().map(|_| Probe::take()).transpose()?;
    let after = after.map(|probe| probe.to_string());
    if let Some(after) = &after {
        print(&format!("fragmented  {after}\n"))?;
    }
    let mut runs: Vec<Vec<Run>> = builds.iter().map(|_| Vec::new()).collect();
    for round in 1..=args.rounds {
        for (build, runs) in builds.iter().zip(&mut runs) {
            let record = prove(args, build, args.count, &[("BERTH_HUGEPAGES", "2M")])?;
            let run = Run::read(record, args.concurrency)?;
            print(&format!("[{round}/{}] {:<19} {run}\n", args.rounds, build.name))?;
            runs.push(run);
        }
    }
    drop(fragments);
    let names: Vec<&str> = builds.iter().map(|build| build.name).collect();
    let table = Table::new(&names, &runs);
    let heard = print(&table.to_string());
    if let Some(file) = &args.json {
        let runs = names.iter().zip(&runs).map(|(name, runs)| {
            let records: Vec<&Value> = runs.iter().map(|run| &run.record).collect();
            json!({"build": name, "records": records})
        });
        let record = json!({
            "schema": 1,
            "host": host::record()?,
            "rounds": args.rounds,
            "count": args.count,
            "concurrency": args.concurrency,
            "memory_before": before,
            "memory_fragmented": after,
            "table": table.record(),
            "runs": runs.collect::<Vec<_>>(),
        });
        berth::files::write_whole(file, format!("{record:#}\n").as_bytes())
            .map_err(|e| format!("cannot write {}: {e}", file.display()))?;
    }
    heard
}

fn builds(args: &ClaimArgs) -> Result<Vec<Build>, String> {
    if cfg!(feature = "heap-arenas") {
        return Err(
            "this is the control build; run the ordinary one and name this as --control".into()
        );
    }
    let own = std::env::current_exe().map_err(|e| format!("where is this program: {e}"))?;
    let heap = |name, environment| Build {
        name,
        program: args.control.clone(),
        control: true,
        environment,
    };
    let mut builds = vec![
        Build { name: "arenas", program: own, control: false, environment: &[] },
        heap("heap", &[]),
    ];
    if args.transparent {
        builds.push(heap("heap, transparent", &[("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1")]));
    }
    Ok(builds)
}

/// A fresh process of a build; its record without the single events.
fn prove(
    args: &ClaimArgs,
    build: &Build,
    count: usize,
    environment: &[(&str, &str)],
) -> Result<Value, String> {
    let name = format!("berth-bench-claim-{}.json", std::process::id());
    let file = std::env::temp_dir().join(name);
    let mut command = Command::new(&build.program);
    command.arg("batch").args(args.source.arguments());
    command.arg("--count").arg(count.to_string());
    command.arg("--concurrency").arg(args.concurrency.to_string());
    command.arg("--json").arg(&file);
    command.envs(environment.iter().copied()).envs(build.environment.iter().copied());
    let ran = child::run(&mut command);
    let record = read(&file);
    // It may not have come to writing one.
    let _ = std::fs::remove_file(&file);
    ran?;
    let mut record = record?;
    if record["control_build"] != build.control {
        return Err(format!(
            "{} is not the build it is named as: control_build is {}",
            build.program.display(),
            record["control_build"]
        ));
    }
    record["events"] = Value::Null;
    Ok(record)
}

fn read(file: &Path) -> Result<Value, String> {
    let bytes = std::fs::read(file).map_err(|e| format!("{}: {e}", file.display()))?;
    serde_json::from_slice(&bytes).map_err(|e| format!("{}: {e}", file.display()))
}

/// Hugepages of 2 MiB that the arenas of a plan take, by node.
fn needed(record: &Value) -> Result<Vec<(usize, usize)>, String> {
    let arenas = record["plan"]["arenas"].as_array().ok_or("a record without arenas")?;
    let mut nodes: Vec<(usize, usize)> = Vec::new();
    for arena in arenas {
        let number = |name: &str| arena[name].as_u64().map(|number| number as usize);
        let (node, bytes) = number("node")
            .zip(number("need_bytes"))
            .ok_or("an arena without node and need_bytes")?;
        let pages = bytes.div_ceil(pool::PAGE_BYTES);
        match nodes.iter_mut().find(|(known, _)| *known == node) {
            Some((_, sum)) => *sum += pages,
            None => nodes.push((node, pages)),
        }
    }
    Ok(nodes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_counted_by_node_and_arena() {
        let arena = |node: usize, bytes: usize| json!({"node": node, "need_bytes": bytes});
        let arenas = [arena(1, 1), arena(0, 4 << 20), arena(1, (2 << 20) + 1)];
        let record = json!({"plan": {"arenas": arenas}});
        assert_eq!(needed(&record).unwrap(), [(1, 3), (0, 2)]);
        assert!(needed(&json!({})).is_err());
    }
}
