//! Hugepages, locked memory, control groups, swap.

use super::{Check, Seen, Status, strictly};
use crate::config::{HugePages, Mode};
use crate::plan::{Plan, round};

const BYTES_2M: usize = 2 << 20;

/// Pools by node and size.
pub(super) fn hugepages(seen: &Seen) -> Check {
    let name = "hugepages";
    let insisted = seen.insisted_page_bytes();
    let fits = |bytes: usize| insisted.is_none_or(|page_bytes| page_bytes == bytes);
    let mut parts = Vec::new();
    let mut without = Vec::new();
    for node in &seen.host.nodes {
        let pools: Vec<String> =
            node.hugepages.iter().filter(|pool| pool.total > 0).map(shown).collect();
        let pools = if pools.is_empty() { "none".to_owned() } else { pools.join(", ") };
        parts.push(format!("node {}: {pools}", node.id));
        let memory = node.memory_available_bytes > 0;
        if memory && !node.hugepages.iter().any(|pool| fits(pool.page_bytes) && pool.free > 0) {
            without.push(node.id);
        }
    }
    let fact = parts.join("; ");
    if without.is_empty() || seen.config.hugepages == HugePages::Off {
        return Check::ok(name, fact);
    }
    let status = strictly(insisted.is_some() && without.len() == seen.host.nodes.len());
    if !seen.topology.nodes.iter().any(|node| node.hugepages.iter().any(|p| fits(p.page_bytes))) {
        let fact = "this kernel has no pools of such pages";
        return Check::bad(name, status, fact, "a kernel with CONFIG_HUGETLBFS, not in a sandbox");
    }
    let folder = if seen.topology.numa {
        format!("/sys/devices/system/node/node{}", without[0])
    } else {
        "/sys/kernel/mm".to_owned()
    };
    let kilobytes = insisted.unwrap_or(BYTES_2M) / 1024;
    Check::bad(
        name,
        status,
        format!("{fact}; {} on node {}", none_free(insisted), numa::format_list(&without)),
        format!(
            "echo N >{folder}/hugepages/hugepages-{kilobytes}kB/nr_hugepages; `berth unit \
             --circuit NAME` tells N and does it at boot"
        ),
    )
}

fn shown(pool: &numa::HugePages) -> String {
    format!("{} of {} of {} free", pool.free, pool.total, round(pool.page_bytes as u64))
}

fn none_free(insisted: Option<usize>) -> String {
    match insisted {
        Some(bytes) => format!("none of {} (BERTH_HUGEPAGES) is free", round(bytes as u64)),
        None => "none is free".to_owned(),
    }
}

/// Transparent hugepages.
pub(super) fn transparent(seen: &Seen) -> Check {
    let name = "THP";
    let file = |file: &str| {
        let text = seen.text(&format!("sys/kernel/mm/transparent_hugepage/{file}"))?;
        let word = text.split_whitespace().find_map(|word| word.strip_prefix('['))?;
        Some(word.trim_end_matches(']').to_owned())
    };
    let Some(enabled) = file("enabled") else {
        return Check::ok(name, "not in this kernel");
    };
    let defrag = file("defrag").unwrap_or_else(|| "not told".into());
    let fact = format!("{enabled}, defrag {defrag}");
    // Arenas in hugetlb pages do not ask; `auto` falls back on these.
    if seen.config.hugepages != HugePages::Auto {
        return Check::ok(name, fact);
    }
    let folder = "/sys/kernel/mm/transparent_hugepage";
    match (enabled.as_str(), defrag.as_str()) {
        ("never", _) => Check::warning(
            name,
            format!("{fact}: arenas that get no reserved pages are in pages of 4 KiB"),
            format!("echo madvise >{folder}/enabled"),
        ),
        (_, "never") => Check::warning(
            name,
            format!("{fact}: only where memory is not fragmented"),
            format!("echo defer+madvise >{folder}/defrag"),
        ),
        _ => Check::ok(name, fact),
    }
}

/// How much may be locked in memory; hugetlb pages need none of it. Where there is a plan it tells
/// how much is wanted.
pub(super) fn lock(seen: &Seen, plan: Option<&Plan>) -> Check {
    let name = "locked memory";
    let Some(limit) = seen.limits.lock_bytes else { return Check::ok(name, "no limit") };
    let most = format!("at most {}", round(limit));
    let strict = match seen.config.lock {
        Mode::Off => return Check::ok(name, format!("{most}; BERTH_LOCK=off asks for none")),
        mode => mode == Mode::Strict,
    };
    let remedy = "in the unit: LimitMEMLOCK= (`berth unit` tells the figure); in a shell: ulimit \
                  -l unlimited";
    if let Some(plan) = plan {
        let ordinary = plan.arenas.iter().filter(|arena| !arena.pages.hugetlb());
        let need = ordinary.map(|arena| arena.bytes as u64).sum();
        if limit >= need {
            return Check::ok(name, format!("{most}; the plan locks {}", round(need)));
        }
        let end = if strict { "BERTH_LOCK=strict refuses that" } else { "they may be swapped out" };
        let need = round(need);
        let fact = format!("{most}, and the plan has {need} of arenas in ordinary pages: {end}");
        return Check::bad(name, strictly(strict), fact, remedy);
    }
    if limit >= seen.topology.nodes.iter().map(|node| node.memory_total_bytes).sum() {
        return Check::ok(name, most);
    }
    let fact = format!("{most}: arenas beyond that, if not in hugetlb pages, may be swapped");
    // None at all can be locked under strict, whatever the plan.
    Check::bad(name, strictly(strict && limit == 0), fact, remedy)
}

/// Limits of the memory controller.
pub(super) fn group(seen: &Seen) -> Check {
    let name = "control group";
    let Some(limit) = &seen.limits.cgroup else { return Check::ok(name, "no limit on memory") };
    let fact = format!(
        "{} leaves {} of {}",
        seen.on_host(&limit.file).display(),
        round(limit.available_bytes),
        round(limit.limit_bytes)
    );
    if limit.available_bytes >= seen.topology.memory_available_bytes {
        return Check::ok(name, format!("{fact}, more than the host has"));
    }
    let status = if limit.available_bytes == 0 { Status::Error } else { Status::Warning };
    Check::bad(
        name,
        status,
        format!("{fact}; the host has {}", round(seen.topology.memory_available_bytes)),
        "in the unit: MemoryMax=infinity, also in its slice; in a container: a higher limit",
    )
}

/// Limits of the hugetlb controller, where one leaves less than the pools hold.
pub(super) fn group_hugepages(seen: &Seen) -> Vec<Check> {
    let name = "hugetlb group";
    let mut checks = Vec::new();
    for limit in &seen.limits.hugetlb {
        let pools = seen.host.nodes.iter().flat_map(|node| &node.hugepages);
        let of_size = pools.filter(|pool| pool.page_bytes == limit.page_bytes);
        let free = of_size.map(|pool| pool.free as u64).sum::<u64>() * limit.page_bytes as u64;
        let file = seen.on_host(&limit.file);
        let fact = format!(
            "{} leaves {} in pages of {}; the pools have {} free",
            file.display(),
            round(limit.available_bytes),
            round(limit.page_bytes as u64),
            round(free)
        );
        if limit.available_bytes >= free {
            checks.push(Check::ok(name, fact));
            continue;
        }
        let insisted = seen.insisted_page_bytes() == Some(limit.page_bytes);
        let none = if limit.file.to_string_lossy().ends_with("max") { "max" } else { "-1" };
        checks.push(Check::bad(
            name,
            strictly(insisted && limit.available_bytes == 0),
            fact,
            format!("echo {none} >{}; in a container: no hugepage limit", file.display()),
        ));
    }
    if checks.is_empty() {
        checks.push(Check::ok(name, "no limit on hugepages"));
    }
    checks
}

/// Swap areas that are in use.
pub(super) fn swap(seen: &Seen) -> Check {
    let name = "swap";
    let Some(swaps) = seen.text("proc/swaps") else { return Check::ok(name, "not told") };
    let active: Vec<String> = swaps
        .lines()
        .skip(1)
        .map(|line| {
            let mut words = line.split_whitespace();
            let (area, kilobytes) = (words.next().unwrap_or_default(), words.nth(1));
            let kilobytes: Option<u64> = kilobytes.and_then(|text| text.parse().ok());
            format!("{area} ({})", kilobytes.map_or("size not told".into(), |n| round(n << 10)))
        })
        .collect();
    if active.is_empty() {
        return Check::ok(name, "none");
    }
    Check::warning(
        name,
        format!("{} active: a proof may wait for a disk", active.join(", ")),
        "swapoff -a, and take it out of /etc/fstab; or in the unit: MemorySwapMax=0",
    )
}
