//! `berth unit`: the service's unit, and the one-shot that reserves its hugepages at boot.
//!
//! The plan is made as the service will make it: with the unit's strict settings, first as if every
//! byte that is free were in the pool, which tells how many pages to reserve, or that there cannot
//! be as many; then with those pages reserved and gone from the rest of the memory.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use clap::CommandFactory;

use super::args::{Cli, Unit};
use super::doctor::SERVE_TAKES_NO_DEV;
use super::print;
use crate::circuit::compiled::Compiled;
use crate::config::{Config, DevParameters, HugePages, Mode};
use crate::error::{Error, Result};
use crate::files::{probe_whole, write_whole};
use crate::host::Host;
use crate::input::class::CircuitId;
use crate::plan::{Plan, round};
use crate::prover::setup;
use crate::srs::find::{Origin, Search};
use crate::srs::manifest::Manifest;
use crate::tell;

mod pages;
mod paths;
mod service;

/// Names of the two files.
const SERVICE: &str = "berth.service";
const PAGES: &str = "berth-hugepages.service";
const BYTES_1G: usize = 1 << 30;
const BYTES_2M: usize = 2 << 20;
/// More memory than any host has, and no sum of it overflows.
const ENDLESS_BYTES: usize = 1 << 50;

/// Hugepages of one size on one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pool {
    node: usize,
    page_bytes: usize,
    pages: usize,
}

/// All that the units say.
struct Needs {
    /// The program.
    program: String,
    circuits: Vec<CircuitId>,
    /// Settings in the order of the table: those that are set now, and the strict ones.
    settings: Vec<(&'static str, String)>,
    /// By node; none under BERTH_HUGEPAGES=off.
    pools: Vec<Pool>,
    /// Does the kernel know nodes?
    numa: bool,
    /// Bytes of all arenas.
    arena_bytes: usize,
    /// Bytes of the parameters.
    srs_bytes: usize,
    /// Has this program a service?
    serves: bool,
}

/// Runs the command.
///
/// # Errors
/// [`Error::Config`] where no circuit is named and none has official parameters, or a path
/// is none for a unit; [`Error::Host`] where this host can never hold the plan.
pub fn run(config: &Config, args: &Unit) -> Result<()> {
    paths::check(config)?;
    let circuits = circuits(config, &args.circuit)?;
    let host = Host::read()?;
    let needs = needs(config, &host, circuits)?;
    let mut units = vec![(SERVICE, service::text(&needs, config))];
    if !needs.pools.is_empty() {
        units.push((PAGES, pages::text(&needs)));
    }
    match &args.out {
        Some(folder) => write(folder, &units)?,
        None => {
            let text: Vec<String> =
                units.iter().map(|(name, text)| format!("# == {name}\n{text}")).collect();
            print(&text.join("\n"))?;
        }
    }
    notes(&needs, &host);
    note_dev_parameters(config, &needs.circuits);
    Ok(())
}

/// Writes the units, or none where one cannot be written.
fn write(folder: &Path, units: &[(&str, String)]) -> Result<()> {
    let told = |path: &Path, e| Error::Host(format!("cannot write {}: {e}", path.display()));
    for (name, _) in units {
        let path = folder.join(name);
        probe_whole(&path).map_err(|e| told(&path, e))?;
    }
    for (name, text) in units {
        let path = folder.join(name);
        write_whole(&path, text.as_bytes()).map_err(|e| told(&path, e))?;
        print(&format!("written     {}\n", path.display()))?;
    }
    let pages = folder.join(PAGES);
    if !units.iter().any(|(name, _)| *name == PAGES) && pages.symlink_metadata().is_ok() {
        tell!(
            "note        {} is of an earlier plan: this one takes no reserved pages, and the old \
             unit still reserves some at boot; `systemctl disable --now {PAGES}`, then remove it",
            pages.display()
        );
    }
    Ok(())
}

/// What the operator should know and the units do not say.
fn notes(needs: &Needs, host: &Host) {
    for pool in &needs.pools {
        let free = free(host, pool.node, pool.page_bytes);
        if free < pool.pages {
            tell!(
                "note        node {}: {} hugepages of {} are free now, the plan needs {}; until \
                 they are reserved a plan with BERTH_HUGEPAGES=auto takes ordinary pages",
                pool.node,
                free,
                round(pool.page_bytes as u64),
                pool.pages
            );
        }
    }
    if !needs.serves {
        tell!(
            "note        this build has no command `serve` yet; the unit is for the build that \
             has, and fails with exit code 2 until then"
        );
    }
}

/// Says for which circuits the service would find nothing but dev parameters, and not take them.
fn note_dev_parameters(config: &Config, circuits: &[CircuitId]) {
    for id in circuits.iter().filter(|_| config.dev_parameters != DevParameters::Allow) {
        match setup::search(config, *id) {
            Ok(Search::Found(found)) if found.origin == Origin::Dev => {
                tell!("note        {id}: only dev parameters are here; {SERVE_TAKES_NO_DEV}");
            }
            Ok(_) => {}
            Err(error) => tell!("note        {id}: {error}"),
        }
    }
}

/// The circuits that were named, else those that are enabled, else those that could be.
fn circuits(config: &Config, named: &[String]) -> Result<Vec<CircuitId>> {
    let mut ids: Vec<CircuitId> = named.iter().map(|name| name.parse()).collect::<Result<_>>()?;
    if ids.is_empty() {
        ids.extend(config.circuits.iter().flatten());
    }
    if ids.is_empty() {
        for id in Manifest::built_in().circuits() {
            if let Search::Found(found) = setup::search(config, id)?
                && found.origin == Origin::Official
            {
                ids.push(id);
            }
        }
    }
    ids.sort_unstable();
    ids.dedup();
    if ids.is_empty() {
        return Err(Error::Config(format!(
            "for which circuits? {} (BERTH_PARAMETER_CACHE) has official parameters of none; name \
             some: berth unit --circuit porep-32g",
            config.parameter_cache.display()
        )));
    }
    Ok(ids)
}

/// The settings that the unit plans with: strict, but for what was set to something else.
fn strict(config: &Config) -> Config {
    let mut strict = config.clone();
    let is_set = |name| config.came_from(name) == name;
    if !is_set("BERTH_NUMA") {
        strict.numa = Mode::Strict;
    }
    if !is_set("BERTH_LOCK") {
        strict.lock = Mode::Strict;
    }
    if config.hugepages == HugePages::Auto {
        strict.hugepages = HugePages::Huge2M;
    }
    strict
}

/// Plans for this host as the unit will find it.
fn needs(config: &Config, host: &Host, circuits: Vec<CircuitId>) -> Result<Needs> {
    let program = std::env::current_exe()
        .map_err(|e| Error::Host(format!("cannot find this program's own file: {e}")))?;
    let program = paths::program(&program)?.to_owned();
    let strict = strict(config);
    let page_bytes = match strict.hugepages {
        HugePages::Huge1G => BYTES_1G,
        _ => BYTES_2M,
    };
    let (plan, pools) = settled(&strict, host, page_bytes, &circuits)?;
    Ok(Needs {
        program,
        settings: settings(config, page_bytes, &circuits),
        circuits,
        pools,
        numa: host.numa,
        arena_bytes: plan.arenas.iter().map(|arena| arena.bytes).sum(),
        srs_bytes: plan.classes.iter().map(|class| class.srs_bytes).sum(),
        serves: Cli::command().find_subcommand("serve").is_some(),
    })
}

/// The plan that the service makes when exactly the plan's own pages are reserved.
fn settled(
    config: &Config,
    host: &Host,
    page_bytes: usize,
    circuits: &[CircuitId],
) -> Result<(Plan, Vec<Pool>)> {
    let compiled = setup::compile(circuits)?;
    let plan_on = |host, state: &str| {
        let plan = setup::plan_on(config, host, &compiled);
        plan.and_then(|plan| plan.admit().map(|()| plan)).map_err(|error| match error {
            Error::Host(what) => Error::Host(format!("{state}: {what}")),
            other => other,
        })
    };
    let all = all_reserved(host, page_bytes);
    let most = "not even with all free memory of each node reserved as hugepages";
    let planned = plan_on(all.clone(), most);
    if planned.is_err()
        && let Some(what) = too_small(config, &all, page_bytes, &compiled)?
    {
        return Err(Error::Host(format!("{most}: {what}")));
    }
    let mut pools = pools(&planned?);
    // Reserved pages leave less for the rest, and the plan may do without a lane for that: each
    // round has fewer nodes, or is the last.
    for _ in 0..=host.nodes.len() {
        let plan = plan_on(reserved(host, page_bytes, &pools), "with its hugepages reserved")?;
        let again = self::pools(&plan);
        if again == pools {
            return Ok((plan, pools));
        }
        pools = again;
    }
    Err(Error::Host("no number of hugepages suits the plan; set BERTH_SLOTS".to_owned()))
}

/// The host as the unit finds it, but for its pages: free of what binds this shell alone.
fn unbound(host: &Host) -> Host {
    // The unit sets the one; the other is of a control group, or of the pools as they are now.
    Host { lock_bytes: None, hugetlb_limits: Vec::new(), ..host.clone() }
}

/// The host with all free memory of every node also in its pool.
fn all_reserved(host: &Host, page_bytes: usize) -> Host {
    let mut all = unbound(host);
    for node in &mut all.nodes {
        let more = node.memory_available_bytes as usize / page_bytes;
        let free = free(host, node.id, page_bytes) + more;
        node.hugepages = vec![numa::HugePages { page_bytes, total: free, free }];
    }
    all
}

/// What each node lacks for the plan of a host like this with memory without end; `None` where no
/// node lacks pages. To reserve them early would be no help: they are not there.
fn too_small(
    config: &Config,
    all: &Host,
    page_bytes: usize,
    compiled: &[(CircuitId, Arc<Compiled>)],
) -> Result<Option<String>> {
    let mut endless = all.clone();
    endless.memory.bytes = ENDLESS_BYTES as u64;
    for node in &mut endless.nodes {
        let free = ENDLESS_BYTES / page_bytes;
        node.hugepages = vec![numa::HugePages { page_bytes, total: free, free }];
        node.memory_available_bytes = ENDLESS_BYTES as u64;
    }
    let needs = pools(&setup::plan_on(config, endless, compiled)?);
    let size = |pages: usize| round((pages * page_bytes) as u64);
    let (mut need, mut have, mut short) = (0, 0, Vec::new());
    for pool in &needs {
        let free = free(all, pool.node, page_bytes);
        (need, have) = (need + pool.pages, have + free);
        if pool.pages > free {
            short.push(format!(
                "node {}: need {} hugepages of {} ({}), and all that it has free are {} ({})",
                pool.node,
                pool.pages,
                round(page_bytes as u64),
                size(pool.pages),
                free,
                size(free)
            ));
        }
    }
    Ok((!short.is_empty()).then(|| {
        format!(
            "{}; in all the plan needs {}, and these nodes have {}: name fewer circuits, set fewer \
             BERTH_SLOTS, or add memory",
            short.join("; "),
            size(need),
            size(have)
        )
    }))
}

/// The host when the one-shot has run: what was missing in the pools is taken from its memory.
fn reserved(host: &Host, page_bytes: usize, pools: &[Pool]) -> Host {
    let mut after = unbound(host);
    for node in &mut after.nodes {
        let now = free(host, node.id, page_bytes);
        let pool = pools.iter().find(|pool| pool.node == node.id);
        let free = pool.map_or(now, |pool| pool.pages.max(now));
        node.hugepages = vec![numa::HugePages { page_bytes, total: free, free }];
        let taken = ((free - now) * page_bytes) as u64;
        node.memory_available_bytes = node.memory_available_bytes.saturating_sub(taken);
        after.memory.bytes = after.memory.bytes.saturating_sub(taken);
    }
    after
}

fn free(host: &Host, node: usize, page_bytes: usize) -> usize {
    let node = host.nodes.iter().find(|other| other.id == node);
    let pools = node.into_iter().flat_map(|node| &node.hugepages);
    pools.filter(|pool| pool.page_bytes == page_bytes).map(|pool| pool.free).sum()
}

/// The hugetlb pages of a plan, by node and size.
fn pools(plan: &Plan) -> Vec<Pool> {
    let mut pages: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    for arena in plan.arenas.iter().filter(|arena| arena.pages.hugetlb()) {
        *pages.entry((arena.node, arena.page_bytes)).or_default() += arena.bytes / arena.page_bytes;
    }
    let pool = |((node, page_bytes), pages)| Pool { node, page_bytes, pages };
    pages.into_iter().map(pool).collect()
}

/// What is set now, and for a dedicated host the strict settings in place of what is not.
fn settings(
    config: &Config,
    page_bytes: usize,
    circuits: &[CircuitId],
) -> Vec<(&'static str, String)> {
    let names: Vec<String> = circuits.iter().map(CircuitId::to_string).collect();
    let pages = if page_bytes == BYTES_1G { "1G" } else { "2M" };
    let value = |row: &crate::config::Value| {
        let from = config.came_from(row.name);
        match row.name {
            // The circuits that were planned for, whoever named them.
            "BERTH_CIRCUITS" => Some(names.join(",")),
            // Another program's variable is not known to the unit; the directory it names is.
            "BERTH_PARAMETER_CACHE" if from != "the default" => Some(row.value.clone()),
            name if from == name => Some(row.value.clone()),
            "BERTH_NUMA" | "BERTH_LOCK" => Some("strict".to_owned()),
            "BERTH_HUGEPAGES" => Some(pages.to_owned()),
            _ => None,
        }
    };
    config.values.iter().filter_map(|row| Some((row.name, value(row)?))).collect()
}

/// A word of a unit file: quoted where it must be, with systemd's specifiers taken for text.
fn word(text: &str) -> String {
    let mut quoted = String::new();
    for c in text.chars() {
        match c {
            '%' => quoted += "%%",
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted += "\\n",
            _ => quoted.push(c),
        }
    }
    let plain =
        !text.is_empty() && !text.contains(|c: char| c.is_whitespace() || "\"'\\;".contains(c));
    if plain { quoted } else { format!("\"{quoted}\"") }
}

#[cfg(test)]
mod tests;
