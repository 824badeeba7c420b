//! What the plan of the named circuits takes of this host.

use std::collections::BTreeMap;

use super::{Check, Seen};
use crate::host::Host;
use crate::input::class::{CircuitId, SectorSize};
use crate::plan::{Plan, round};
use crate::prover::setup;

const NAME: &str = "plan";

/// Plans for the circuits that were named, else for the small ones of BERTH_CIRCUITS: to record the
/// circuit of a real sector takes seconds, which somebody must have asked for. The plan is made as
/// if all could be locked: what cannot be is told on a line of its own.
pub(super) fn all(seen: &Seen, named: &[CircuitId]) -> (Option<Plan>, Vec<Check>) {
    let mut ids = named.to_vec();
    if ids.is_empty() {
        let enabled = seen.config.circuits.iter().flatten().copied();
        ids.extend(enabled.filter(|id| !matches!(id.sector, SectorSize::G32 | SectorSize::G64)));
    }
    ids.sort_unstable();
    ids.dedup();
    if ids.is_empty() {
        let fact = "not made: --circuit porep-32g, for one, tells what it needs";
        return (None, vec![Check::ok(NAME, fact)]);
    }
    let names: Vec<String> = ids.iter().map(CircuitId::to_string).collect();
    let unit = format!(
        "`berth unit --circuit {}` prints units with these pages and limits",
        names.join(" ")
    );
    let host = Host { lock_bytes: None, ..seen.host.clone() };
    let planned =
        setup::compile(&ids).and_then(|compiled| setup::plan_on(seen.config, host, &compiled));
    let plan = match planned {
        Ok(plan) => plan,
        Err(error) => return (None, vec![Check::error(NAME, error.to_string(), unit)]),
    };
    let fact = format!("{}: {}", names.join(", "), needs(&plan));
    if let Err(error) = plan.admit() {
        let limit = seen.config.memory_limit_bytes;
        let more = if limit.is_some_and(|limit| plan.total_bytes as u64 > limit) {
            "a greater BERTH_MEMORY_LIMIT"
        } else {
            "more memory"
        };
        let remedy = format!("{more}, fewer slots (BERTH_SLOTS) or circuits (BERTH_CIRCUITS)");
        return (Some(plan), vec![Check::error(NAME, format!("{fact}; {error}"), remedy)]);
    }
    let mut checks = vec![Check::ok(NAME, fact)];
    let new = plan.warnings.iter().filter(|told| !seen.config.notices.contains(told));
    checks.extend(new.map(|told| Check::warning(NAME, told, &unit)));
    (Some(plan), checks)
}

/// The sum, and the pages by node and kind.
fn needs(plan: &Plan) -> String {
    let mut pages: BTreeMap<(usize, usize, bool), usize> = BTreeMap::new();
    for arena in &plan.arenas {
        let kind = (arena.node, arena.page_bytes, arena.pages.hugetlb());
        *pages.entry(kind).or_default() += arena.bytes / arena.page_bytes;
    }
    let mut text = round(plan.total_bytes as u64);
    for ((node, page_bytes, hugetlb), count) in pages {
        let kind = if hugetlb { "hugepages" } else { "ordinary pages" };
        text += &format!(", node {node}: {count} {kind} of {}", round(page_bytes as u64));
    }
    text
}
