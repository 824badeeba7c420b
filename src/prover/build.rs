//! The plan made real: arenas mapped, parameters read into them, slots and lanes on top.

use std::sync::Arc;

use super::Class;
use super::setup::{Parameters, Ready, Show, plan_on, team, verify_digest};
use crate::config::{Config, HugePages};
use crate::error::{Error, Result};
use crate::groth16::cpu::lane::CpuLane;
use crate::groth16::verify::PreparedKey;
use crate::host::Host;
use crate::memory::arena::Arena;
use crate::memory::heap;
use crate::memory::slot::SlotPool;
use crate::plan::{Plan, Purpose};
use crate::srs::read::{Srs, SrsLayout};
use crate::team::Team;

/// Maps the arenas and reads the parameters into them: all that [`Prover::start`] needs. The lanes
/// are in the order of the plan's nodes.
///
/// # Errors
/// [`Error::Host`] when the host does not give what was planned, [`Error::Parameters`] when a file
/// is not what it must be.
pub fn build(
    config: &Config,
    ready: &mut Ready,
    parameters: &Parameters,
    show: Show<'_>,
) -> Result<(Vec<Class>, Vec<CpuLane>)> {
    match build_as_planned(config, ready, parameters, show) {
        // Reserved pages that the plan counted can be another's by now. Who left the choice of
        // pages to the plan gets another plan, once.
        Err(error @ Error::Host(_)) if config.hugepages == HugePages::Auto => {
            let mut host = ready.host.clone();
            host.hugepages_of(&Host::read()?);
            let plan = plan_on(config, host, &ready.compiled)?;
            if plan.arenas == ready.plan.arenas {
                return Err(error);
            }
            log::warn!(
                "reserved pages were taken since the plan was made, so it is made anew: {error}"
            );
            ready.plan = plan;
            build_as_planned(config, ready, parameters, show)
        }
        built => built,
    }
}

fn build_as_planned(
    config: &Config,
    ready: &mut Ready,
    parameters: &Parameters,
    show: Show<'_>,
) -> Result<(Vec<Class>, Vec<CpuLane>)> {
    ready.plan.admit()?;
    let (plan, mut warnings) = (&ready.plan, Vec::new());
    let mut teams = Vec::new();
    for node in &plan.nodes {
        teams.push(team(&format!("lane{}", node.node), &node.lane_cpus)?);
    }
    // Parameters first: what reading them takes for a moment is given back before the lanes, which
    // are larger, are mapped.
    let mut classes = load(config, ready, parameters, &teams, show, &mut warnings)?;
    heap::purge().map_err(|e| Error::Host(format!("jemalloc: {e}")))?;
    let mut lanes = Vec::new();
    for (node, team) in plan.nodes.iter().zip(teams) {
        let mut arena = map(plan, Purpose::Slots, node.node, show, &mut warnings)?;
        for (class, planned) in classes.iter_mut().zip(&plan.classes) {
            let region = arena.cut(node.slots * planned.slot_bytes);
            class.pools.push(SlotPool::new(region, class.compiled.shape, node.slots));
        }
        let lane = map(plan, Purpose::Lane, node.node, show, &mut warnings)?;
        lanes.push(CpuLane::new(team, lane));
    }
    for warning in &warnings {
        log::warn!("{warning}");
    }
    ready.plan.warnings.append(&mut warnings);
    Ok((classes, lanes))
}

/// Every circuit with its parameters in the memory of every node, and no slots yet. The files are
/// read and checked once, by the first node.
fn load(
    config: &Config,
    ready: &Ready,
    parameters: &Parameters,
    teams: &[Team],
    show: Show<'_>,
    warnings: &mut Vec<String>,
) -> Result<Vec<Class>> {
    let mut arenas = Vec::new();
    for node in &ready.plan.nodes {
        arenas.push(map(&ready.plan, Purpose::Srs, node.node, show, warnings)?);
    }
    let mut classes = Vec::new();
    for ((id, compiled), found) in ready.compiled.iter().zip(&parameters.found) {
        verify_digest(config, found, show)?;
        let mut srs: Vec<Srs> = Vec::new();
        for (arena, team) in arenas.iter_mut().zip(teams) {
            let region = arena.cut(SrsLayout::bytes(compiled));
            srs.push(match srs.first() {
                Some(first) => first.copy(region, team),
                None => {
                    let progress = |done, total| show("reading parameters", done, total);
                    Srs::load(&found.params, &found.vk, compiled, region, team, &progress)?
                }
            });
        }
        let key = srs[0].key().to_bellperson();
        classes.push(Class {
            id: *id,
            compiled: Arc::clone(compiled),
            prepared: PreparedKey::new(&key),
            key,
            srs,
            pools: Vec::new(),
        });
    }
    Ok(classes)
}

fn map(
    plan: &Plan,
    purpose: Purpose,
    node: usize,
    show: Show<'_>,
    warnings: &mut Vec<String>,
) -> Result<Arena> {
    let arena = plan.arena(purpose, node).expect("every class needs all three arenas");
    let progress = |done, total| show("making pages present", done, total);
    let (arena, told) = Arena::map_showing(arena, &progress)?;
    warnings.extend(told);
    Ok(arena)
}
