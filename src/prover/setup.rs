//! From settings to a running prover: compile, plan, find parameters, map, read, start.

use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use super::build::build;
use super::fixed::fixed_bytes;
use super::{Crew, Hooks, Prover};
use crate::circuit::compiled::Compiled;
use crate::circuit::kinds;
use crate::config::{Backend, Config, DevParameters, Mode};
use crate::error::{Error, Result};
use crate::groth16::cpu::lane::CpuLane;
use crate::host::{Host, driver_present};
use crate::input::class::{CircuitId, SectorSize};
use crate::memory::heap::{self, ProcessBytes};
use crate::plan::{ClassNeed, NodePlan, Plan};
use crate::srs::check::{Check, check_points};
use crate::srs::find::{self, Directory, Found, Search};
use crate::srs::layout::Counts;
use crate::srs::manifest::Manifest;
use crate::srs::read::SrsLayout;
use crate::srs::{setup, stamp};
use crate::team::Team;
use crate::tell;
use crate::witness::Witnesses;

/// Called with a stage, what is done of it, and its whole.
pub type Show<'a> = &'a (dyn Fn(&str, u64, u64) + Sync);

/// Circuits and the plan for them; nothing is mapped yet.
pub struct Ready {
    pub compiled: Vec<(CircuitId, Arc<Compiled>)>,
    pub witnesses: Arc<Witnesses>,
    /// The host that the plan is for.
    pub host: Host,
    pub plan: Plan,
}

/// The parameters of every circuit, in the same order.
pub struct Parameters {
    pub found: Vec<Found>,
}

/// Compiles the circuits and plans for them.
///
/// # Errors
/// [`Error::Config`] and [`Error::Host`] as the plan.
pub fn prepare(config: &Config, ids: &[CircuitId]) -> Result<Ready> {
    crate::memory::transparent::do_without();
    let compiled = compile(ids)?;
    // Before the plan, which counts what the process has already.
    let witnesses = Arc::new(Witnesses::new(config.witness));
    let host = Host::read()?;
    let mut plan = plan_on(config, host.clone(), &compiled)?;
    if config.backend == Backend::Auto && driver_present() {
        plan.warnings.push(
            "a CUDA driver is here, but this build has no CUDA backend; the CPU proves \
             (BERTH_BACKEND=cpu says so on purpose)"
                .into(),
        );
    }
    Ok(Ready { compiled, witnesses, host, plan })
}

/// Compiles circuits.
///
/// # Errors
/// As [`kinds::compile`].
pub fn compile(ids: &[CircuitId]) -> Result<Vec<(CircuitId, Arc<Compiled>)>> {
    ids.iter().map(|id| Ok((*id, Arc::new(kinds::compile(*id)?)))).collect()
}

/// Plans for a host that the caller has read, or made up to ask what if.
///
/// # Errors
/// As [`Plan::new`].
pub fn plan_on(
    config: &Config,
    mut host: Host,
    compiled: &[(CircuitId, Arc<Compiled>)],
) -> Result<Plan> {
    // The plan counts the whole process, so what it has already is a part of what there is.
    host.memory.bytes += ProcessBytes::read().map_err(no_status)?.anonymous;
    let lane_bytes: Vec<_> =
        compiled.iter().map(|(_, compiled)| |threads| CpuLane::bytes(compiled, threads)).collect();
    let needs: Vec<ClassNeed<'_>> = compiled
        .iter()
        .zip(&lane_bytes)
        .map(|((id, compiled), lane_bytes)| ClassNeed {
            id: *id,
            shape: compiled.shape,
            srs_bytes: SrsLayout::bytes(compiled),
            lane_bytes,
            compiled_bytes: compiled.bytes(),
        })
        .collect();
    // What recording a circuit took goes back before anything is measured.
    heap::purge().map_err(|e| Error::Host(format!("jemalloc: {e}")))?;
    let now = ProcessBytes::read().map_err(no_status)?;
    let beside = |nodes: &[NodePlan]| fixed_bytes(&needs, config.witness, &now, nodes);
    let plan = Plan::beside(config, &host, &needs, &beside)?;
    #[cfg(feature = "heap-arenas")]
    let plan = {
        let mut plan = plan;
        plan.take_from_heap();
        plan
    };
    let fixed = beside(&plan.nodes);
    Ok(plan.with_fixed(fixed))
}

/// Keeps the calling thread, and all that it starts and that are not pinned, on the plan's CPUs for
/// housekeeping: parsing, the finish, third-party pools. For the thread of a command; a library's
/// caller decides for itself.
pub fn keep_house(plan: &Plan) {
    if !numa::bind_current_thread(&plan.housekeeping_cpus) {
        let cpus = numa::format_list(&plan.housekeeping_cpus);
        log::warn!("housekeeping cannot be kept on CPUs {cpus}; the scheduler places it");
    }
}

/// The error of a kernel that does not say what this process takes.
pub(super) fn no_status(error: std::io::Error) -> Error {
    Error::Host(format!("/proc/self/status: {error}"))
}

/// The directory of official parameters and that of dev parameters, with who named them.
fn directories(config: &Config) -> (Directory, Option<Directory>) {
    let official =
        Directory::new(&config.parameter_cache, config.came_from("BERTH_PARAMETER_CACHE"));
    let dev = config
        .dev_parameter_dir
        .as_ref()
        .filter(|_| config.dev_parameters != DevParameters::Off)
        .map(|path| Directory::new(path, config.came_from("BERTH_DEV_PARAMETER_DIR")));
    (official, dev)
}

/// Where the parameters of a circuit are, or which files are missing.
///
/// # Errors
/// [`Error::Parameters`] when a directory cannot be what it is set to.
pub fn search(config: &Config, id: CircuitId) -> Result<Search> {
    let (official, dev) = directories(config);
    // A directory that somebody named and that is not there is a slip of the pen, and must not
    // end in dev parameters.
    if config.came_from("BERTH_PARAMETER_CACHE") != "the default" && !official.path.is_dir() {
        return Err(Error::Parameters(format!(
            "{} (set by {}) is not a directory",
            official.path.display(),
            official.set_by
        )));
    }
    find::find(id, &official, dev.as_ref())
}

/// Is the circuit small enough that `prove` makes dev parameters for it by itself, and may it?
pub fn may_make_dev(config: &Config, id: CircuitId) -> bool {
    let large = matches!(id.sector, SectorSize::G32 | SectorSize::G64);
    !large && config.dev_parameters != DevParameters::Off && config.dev_parameter_dir.is_some()
}

/// Finds the parameters of every circuit; makes dev parameters for small ones that have none,
/// saying so first.
///
/// # Errors
/// [`Error::Parameters`] listing the missing files.
pub fn find_or_make(config: &Config, ready: &Ready, show: Show<'_>) -> Result<Parameters> {
    // A plan that the host cannot hold is refused before minutes go into parameters.
    ready.plan.admit()?;
    let mut found = Vec::new();
    for (id, compiled) in &ready.compiled {
        let searched = search(config, *id)?;
        if matches!(searched, Search::Missing(_)) && may_make_dev(config, *id) {
            make_dev(config, *id, compiled, &ready.plan.lane_cpus(), false, show)?;
            found.push(search(config, *id)?.required()?);
        } else {
            found.push(searched.required()?);
        }
    }
    Ok(Parameters { found })
}

/// Makes dev parameters of one circuit, on the given CPUs; `anew` also where there are some.
///
/// # Errors
/// [`Error::Parameters`] when there is no directory for them or they cannot be written.
pub fn make_dev(
    config: &Config,
    id: CircuitId,
    compiled: &Compiled,
    cpus: &[usize],
    anew: bool,
    show: Show<'_>,
) -> Result<PathBuf> {
    let folder = config.dev_parameter_dir.clone().ok_or_else(|| {
        Error::Parameters(
            "no directory for dev parameters: set BERTH_DEV_PARAMETER_DIR, XDG_CACHE_HOME or HOME"
                .into(),
        )
    })?;
    let why = if anew { "anew" } else { "none" };
    tell!(
        "parameters  {why} for {id}; making dev parameters ({}) in {}: for trying only, proofs \
         made with them are valid on no network",
        crate::plan::size(Counts::of(compiled).params_bytes()),
        folder.display()
    );
    let team = team("setup", cpus)?;
    let progress = |done, total| show("making dev parameters", done, total);
    let made = setup::make_dev(id, compiled, &folder, anew, &team, &progress)?;
    if let Some(file) = [&made.params, &made.vk].into_iter().find(|file| !file.is_file()) {
        return Err(Error::Parameters(format!(
            "{}: something else stands where this file belongs; take it away, or make new ones \
             with `berth params make-dev {id} --force`",
            file.display()
        )));
    }
    Ok(folder)
}

/// Checks the files of a circuit whole: the digest where one is published, every point on its
/// curve and in its subgroup.
///
/// # Errors
/// [`Error::Parameters`] with the first fault.
pub fn check_whole(
    config: &Config,
    found: &Found,
    compiled: &Compiled,
    cpus: &[usize],
    show: Show<'_>,
) -> Result<()> {
    verify_digest(config, found, show)?;
    let (team, counts) = (team("check", cpus)?, Counts::of(compiled));
    let progress = |done, total| show("checking points", done, total);
    check_points(&found.params, &found.vk, &counts, Check::Subgroup, &team, &progress)
}

pub(super) fn team(name: &str, cpus: &[usize]) -> Result<Team> {
    let cpus: Vec<Option<usize>> = cpus.iter().copied().map(Some).collect();
    Team::new(name, &cpus)
}

/// Where stamps of verified files are kept: beside the dev parameters, else with the state. Never
/// in a directory that all the world can write.
fn stamps(config: &Config) -> PathBuf {
    let dev = config.dev_parameter_dir.as_ref().map(|folder| folder.with_file_name("stamps"));
    dev.unwrap_or_else(|| config.state_dir.join("stamps"))
}

/// Maps the arenas, reads the parameters into them and starts the threads.
///
/// # Errors
/// As [`build`].
pub fn start(
    config: &Config,
    ready: &mut Ready,
    parameters: &Parameters,
    hooks: Hooks,
    show: Show<'_>,
) -> Result<Prover> {
    let (classes, lanes) = build(config, ready, parameters, show)?;
    let crews = ready.plan.nodes.iter().zip(lanes).map(|(node, lane)| Crew {
        lanes: vec![Box::new(lane)],
        synthesis_cpus: node.synthesis_cpus.iter().copied().map(Some).collect(),
    });
    let witnesses = Arc::clone(&ready.witnesses);
    Prover::start(classes, crews.collect(), witnesses, config.numa != Mode::Strict, hooks)
}

/// Official files are compared with the manifest once, then a stamp is trusted.
pub(super) fn verify_digest(config: &Config, found: &Found, show: Show<'_>) -> Result<()> {
    verify_file(config, found, &found.params, show)?;
    verify_file(config, found, &found.vk, show)
}

/// The verifying key of a circuit, compared with the manifest if it is official.
///
/// # Errors
/// [`Error::Parameters`] when a file is missing or is not the published one.
pub fn verifying_key(config: &Config, id: CircuitId) -> Result<Found> {
    let found = search(config, id)?.required()?;
    verify_file(config, &found, &found.vk, &|_, _, _| ())?;
    Ok(found)
}

fn verify_file(config: &Config, found: &Found, file: &Path, show: Show<'_>) -> Result<()> {
    if found.origin == find::Origin::Dev {
        return Ok(());
    }
    let progress = &mut |done, total| show("checking digests", done, total);
    let verified = stamp::verify(file, &Manifest::built_in(), &stamps(config), progress)?;
    if verified.published {
        return Ok(());
    }
    // What nobody published is official nowhere: not a shape of 16 or 32 KiB, for one.
    Err(Error::Parameters(format!(
        "{}: no parameters of {} are published, so this file in the official directory is \
         something else; dev parameters have a directory of their own (BERTH_DEV_PARAMETER_DIR)",
        file.display(),
        found.id
    )))
}
