//! The kernel: its release, and the settings that move pages behind the plan's back.

use std::path::Path;

use super::{Check, Seen, insists, strictly, text};
use crate::config::Config;

/// What gVisor says its release is; a real kernel has more behind the number.
const GVISOR: &str = "4.4.0";
/// The first release with MADV_POPULATE_WRITE.
const POPULATES: (u32, u32) = (5, 14);

pub(super) fn release(config: &Config, root: &Path) -> Check {
    let name = "kernel";
    let Some(release) = text(root, "proc/sys/kernel/osrelease") else {
        return Check::ok(name, "the release is not told");
    };
    if release == GVISOR {
        return Check::bad(
            name,
            strictly(insists(config)),
            "4.4.0, which is gVisor: no hugepages, no placement on nodes, no pinned threads, no \
             locked memory",
            "run on the host's kernel (runc in place of runsc); to try, leave BERTH_HUGEPAGES, \
             BERTH_NUMA and BERTH_LOCK at auto",
        );
    }
    let mut numbers = release.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
    match (numbers.next(), numbers.next()) {
        (Some(major), Some(minor)) if (major, minor) < POPULATES => Check::warning(
            name,
            format!(
                "{release}: before 5.14 a shortage of pages can end the process (SIGBUS), where \
                 later kernels give an error"
            ),
            "install a kernel of 5.14 or later",
        ),
        _ => Check::ok(name, release),
    }
}

pub(super) fn zone_reclaim(seen: &Seen) -> Check {
    let name = "zone reclaim";
    match seen.text("proc/sys/vm/zone_reclaim_mode").as_deref() {
        None => Check::ok(name, "not told"),
        Some("0") => Check::ok(name, "off"),
        Some(mode) => Check::warning(
            name,
            format!("mode {mode}: a full node drops file pages before another node is asked"),
            "sysctl -w vm.zone_reclaim_mode=0 (and in /etc/sysctl.d)",
        ),
    }
}

pub(super) fn balancing(seen: &Seen) -> Check {
    let name = "NUMA balancing";
    match seen.text("proc/sys/kernel/numa_balancing").as_deref() {
        None => Check::ok(name, "not told"),
        Some("0") => Check::ok(name, "off"),
        // With one node there is nowhere to move pages to.
        Some(_) if seen.topology.nodes.len() == 1 => Check::ok(name, "on, without effect"),
        Some(_) => Check::warning(
            name,
            "on: the kernel unmaps pages to see who uses them, and moves them",
            "sysctl -w kernel.numa_balancing=0 (and in /etc/sysctl.d)",
        ),
    }
}

/// The policy that this process was started with; the first mapping has no other.
pub(super) fn policy(seen: &Seen) -> Check {
    let name = "NUMA policy";
    let maps = seen.text("proc/self/numa_maps");
    match maps.as_deref().and_then(|maps| maps.split_whitespace().nth(1)) {
        None => Check::ok(name, "not told"),
        Some("default") => Check::ok(name, "default"),
        Some(policy) => Check::warning(
            name,
            format!("{policy}: heap and stacks follow it, arenas have places of their own"),
            "start without numactl, and without NUMAPolicy= in the unit",
        ),
    }
}
