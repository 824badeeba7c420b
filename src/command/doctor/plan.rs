//! What the plan of the named circuits takes of this host.

use std::collections::BTreeMap;

use super::{Check, Seen};
use crate::input::class::{CircuitId, SectorSize};
use crate::plan::{Plan, round};
use crate::prover::setup;

const NAME: &str = "plan";

/// Plans for the circuits that were named, else for the small ones of BERTH_CIRCUITS: to record the
/// circuit of a real sector takes seconds, which somebody must have asked for.
pub(super) fn all(seen: &Seen, named: &[CircuitId]) -> Vec<Check> {
    let mut ids = named.to_vec();
    if ids.is_empty() {
        let enabled = seen.config.circuits.iter().flatten().copied();
        ids.extend(enabled.filter(|id| !matches!(id.sector, SectorSize::G32 | SectorSize::G64)));
    }
    ids.sort_unstable();
    ids.dedup();
    let Some(first) = ids.first() else {
        return vec![Check::ok(
            NAME,
            "not made: --circuit porep-32g, for one, tells what it needs",
        )];
    };
    let unit =
        format!("`berth unit --circuit {first} ..` prints units with these pages and limits");
    let planned = setup::compile(&ids)
        .and_then(|compiled| setup::plan_on(seen.config, seen.host.clone(), &compiled));
    let plan = match planned {
        Ok(plan) => plan,
        Err(error) => return vec![Check::error(NAME, error.to_string(), unit)],
    };
    let names: Vec<String> = ids.iter().map(CircuitId::to_string).collect();
    let fact = format!("{}: {}", names.join(", "), needs(&plan));
    if let Err(error) = plan.admit() {
        let remedy = "fewer circuits (BERTH_CIRCUITS), fewer slots (BERTH_SLOTS), or more memory";
        return vec![Check::error(NAME, format!("{fact}; {error}"), remedy)];
    }
    let mut checks = vec![Check::ok(NAME, fact)];
    let new = plan.warnings.iter().filter(|told| !seen.config.notices.contains(told));
    checks.extend(new.map(|told| Check::warning(NAME, told, &unit)));
    checks
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
