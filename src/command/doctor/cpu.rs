//! Nodes, cores, their speed, and who else may run on them.

use std::collections::BTreeMap;

use super::{Check, Seen, Status, strictly};
use crate::config::Mode;
use crate::host::Node;
use crate::plan::round;

/// One line for each node that the kernel shows.
pub(super) fn nodes(seen: &Seen) -> Vec<Check> {
    let told = if seen.topology.numa { "" } else { " (the kernel knows no nodes)" };
    let mut checks: Vec<Check> = seen
        .topology
        .nodes
        .iter()
        .map(|node| {
            let (cpus, cores) = (node.cpus().len(), node.cores.len());
            let smt = if cpus > cores { "SMT on" } else { "SMT off" };
            let mut fact = format!(
                "{}{told}: {cpus} CPUs, {cores} cores, {smt}; {} memory, {} available",
                node.id,
                round(node.memory_total_bytes),
                round(node.memory_available_bytes)
            );
            let allowed = seen.host.nodes.iter().find(|allowed| allowed.id == node.id);
            if let Some(limit) = limited(node, allowed) {
                fact += &limit;
            }
            Check::ok("node", fact)
        })
        .collect();
    checks.extend(apart(seen));
    // Seen in virtual machines that give memory to their nodes when it is first wanted.
    let shown: u64 = seen.topology.nodes.iter().map(|node| node.memory_total_bytes).sum();
    let available = seen.topology.memory_available_bytes;
    if shown < available {
        checks.push(Check::warning(
            "nodes",
            format!("they have {} of the {} that are available", round(shown), round(available)),
            "BERTH_NUMA=auto and BERTH_HUGEPAGES=auto, or a kernel that takes up memory at boot",
        ));
    }
    checks
}

/// Are there CPUs and memory at all, and on one node? Only BERTH_NUMA=strict needs the latter: else
/// the memory of other nodes is lent.
fn apart(seen: &Seen) -> Option<Check> {
    let cpus = |node: &Node| !node.cores.is_empty();
    let memory = |node: &Node| {
        node.memory_available_bytes > 0 || node.hugepages.iter().any(|pool| pool.free > 0)
    };
    let nodes = &seen.host.nodes;
    let (status, fact) = if !nodes.iter().any(cpus) {
        (Status::Error, "none has CPUs that this process may use")
    } else if !nodes.iter().any(memory) {
        (Status::Error, "none has memory that this process may use")
    } else if !nodes.iter().any(|node| cpus(node) && memory(node)) {
        let status = strictly(seen.config.numa == Mode::Strict);
        (status, "no node has both CPUs and memory that this process may use")
    } else {
        return None;
    };
    let remedy = "in the unit: AllowedCPUs= and AllowedMemoryNodes= of the same nodes, or neither";
    Some(Check::bad("nodes", status, fact, remedy))
}

/// What cpuset and affinity mask take away from a node.
fn limited(node: &numa::Node, allowed: Option<&Node>) -> Option<String> {
    let Some(allowed) = allowed else { return Some("; closed to this process".into()) };
    let cpus = allowed.cpus();
    if node.memory_available_bytes > 0 && allowed.memory_available_bytes == 0 {
        return Some("; its memory is closed to this process (Mems_allowed)".into());
    }
    (cpus != node.cpus()).then(|| format!("; only CPUs {} allowed", numa::format_list(&cpus)))
}

pub(super) fn governor(seen: &Seen) -> Check {
    let name = "CPU governor";
    let mut governors: BTreeMap<String, usize> = BTreeMap::new();
    for cpu in seen.host.cpus() {
        let path = format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor");
        if let Some(governor) = seen.text(&path) {
            *governors.entry(governor).or_default() += 1;
        }
    }
    if governors.is_empty() {
        return Check::ok(name, "none (a virtual machine, or the firmware decides)");
    }
    let shown: Vec<String> =
        governors.iter().map(|(governor, cpus)| format!("{governor} on {cpus} CPUs")).collect();
    if governors.keys().all(|governor| governor == "performance") {
        return Check::ok(name, shown.join(", "));
    }
    Check::warning(name, shown.join(", "), "cpupower frequency-set -g performance")
}

/// CPUs that the kernel keeps others off (isolcpus) or stops the tick of (nohz_full).
pub(super) fn isolation(seen: &Seen) -> Check {
    let name = "isolated CPUs";
    let list = |file: &str| {
        let text = seen.text(&format!("sys/devices/system/cpu/{file}"))?;
        numa::parse_list(&text).filter(|cpus| !cpus.is_empty())
    };
    let shown = |cpus: &Option<Vec<usize>>| {
        cpus.as_ref().map_or("none".to_owned(), |cpus| numa::format_list(cpus))
    };
    let (isolated, tickless) = (list("isolated"), list("nohz_full"));
    let fact = format!("isolcpus {}, nohz_full {}", shown(&isolated), shown(&tickless));
    // A process is started on the other CPUs alone, and the plan asks for no more than it has.
    let allowed = seen.host.cpus();
    let lost: Vec<usize> =
        isolated.into_iter().flatten().filter(|cpu| !allowed.contains(cpu)).collect();
    if lost.is_empty() {
        return Check::ok(name, fact);
    }
    let lost = numa::format_list(&lost);
    Check::warning(
        name,
        format!("{fact}; this process may not run on {lost}, so nothing is planned there"),
        format!("in the unit: CPUAffinity={lost} with the others that it shall have"),
    )
}
