//! The plan as text: each term with its owner.

use std::fmt;

use super::{ArenaPlan, NodePlan, Pages, Plan, Purpose};
use crate::config::Origin;

/// Bytes as people read them, with the exact number: `5.3 MiB (5,529,600)`.
pub fn size(bytes: u64) -> String {
    if bytes < 1024 {
        return format!("{bytes} bytes");
    }
    let digits = bytes.to_string();
    let mut exact = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            exact.push(',');
        }
        exact.push(digit);
    }
    format!("{} ({exact})", round(bytes))
}

/// Bytes in the largest unit of which there is one: `2 MiB`, `5.3 MiB`.
pub fn round(bytes: u64) -> String {
    let units = ["bytes", "KiB", "MiB", "GiB", "TiB"];
    let power = (bytes.max(1).ilog2() / 10).min(4);
    let unit = 1u64 << (10 * power);
    if bytes.is_multiple_of(unit) {
        format!("{} {}", bytes / unit, units[power as usize])
    } else {
        format!("{:.1} {}", bytes as f64 / unit as f64, units[power as usize])
    }
}

/// Warnings of one kind that are told one by one; with more, the first stands for all.
const WARNINGS_EACH: usize = 8;

/// Adds warnings of one kind, each of a node: of many nodes the first, and a list of the others.
pub(super) fn gather(told: &[(usize, String)], warnings: &mut Vec<String>) {
    match told {
        [(_, first), others @ ..] if told.len() > WARNINGS_EACH => {
            let mut ids: Vec<usize> = others.iter().map(|(id, _)| *id).collect();
            ids.sort_unstable();
            let ids = numa::format_list(&ids);
            warnings.push(format!("{first}; and likewise, with their own numbers, nodes {ids}"));
        }
        _ => warnings.extend(told.iter().map(|(_, text)| text.clone())),
    }
}

impl fmt::Display for Purpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Purpose::Slots => "slots",
            Purpose::Lane => "lane",
            Purpose::Srs => "srs",
        })
    }
}

impl fmt::Display for ArenaPlan {
    /// `slots on node 0: 6.0 MiB (6,291,456) in 3 transparent pages of 2 MiB`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.pages {
            Pages::Huge1G | Pages::Huge2M => "reserved",
            Pages::Transparent => "transparent",
            Pages::Plain => "plain",
        };
        let pages = self.bytes / self.page_bytes;
        write!(
            f,
            "{} on node {}: {} in {pages} {kind} page{} of {}",
            self.purpose,
            self.node,
            size(self.bytes as u64),
            if pages == 1 { "" } else { "s" },
            round(self.page_bytes as u64)
        )
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.memory_and_threads(f)?;
        writeln!(f, "settings")?;
        for row in &self.settings {
            match &row.origin {
                Origin::Default => writeln!(f, "  {} = {} (default)", row.name, row.value)?,
                Origin::Environment(variable) => {
                    writeln!(f, "  {} = {} (from {variable})", row.name, row.value)?;
                }
            }
        }
        self.write_warnings(f)
    }
}

/// The plan without its settings, as `prove` tells it.
pub struct Brief<'a>(pub &'a Plan);

impl fmt::Display for Brief<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.memory_and_threads(f)?;
        self.0.write_warnings(f)
    }
}

impl Plan {
    fn memory_and_threads(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "memory")?;
        for node in &self.nodes {
            for arena in self.arenas.iter().filter(|arena| arena.node == node.node) {
                self.arena_and_classes(f, node, arena)?;
            }
            node.room(f)?;
        }
        self.sums(f)?;
        writeln!(f, "threads")?;
        for node in &self.nodes {
            let workers = node.synthesis_cpus.len();
            let mut cpus = node.synthesis_cpus.clone();
            cpus.sort_unstable();
            cpus.dedup();
            let (cpus, id) = (numa::format_list(&cpus), node.node);
            let many = if workers == 1 { "" } else { "s" };
            writeln!(f, "  node {id}: {workers} partition worker{many} on CPUs {cpus}")?;
            let lane = numa::format_list(&node.lane_cpus);
            let threads = node.lane_cpus.len();
            let many = if threads == 1 { "" } else { "s" };
            writeln!(f, "  node {id}: CPU lane of {threads} thread{many} on CPUs {lane}")?;
        }
        let shared = self.nodes.iter().flat_map(|node| &node.synthesis_cpus);
        let shared = shared.into_iter().any(|cpu| self.housekeeping_cpus.contains(cpu));
        let shared = if shared { ", where synthesis is too: no core is left for it" } else { "" };
        let cpus = numa::format_list(&self.housekeeping_cpus);
        writeln!(f, "  housekeeping on CPUs {cpus}{shared}")?;
        for gpu in &self.gpus {
            match gpu.node {
                Some(node) => {
                    let here = self.nodes.iter().find(|plan| plan.node == node);
                    let slots = here.map_or(0, |plan| plan.slots);
                    let workers = here.map_or(0, |plan| plan.synthesis_cpus.len());
                    let of = format!("{slots} slots, {workers} partition workers");
                    writeln!(f, "  GPU {} on node {node}, with {of}", gpu.address)?;
                }
                None => writeln!(f, "  GPU {}: its node is not known", gpu.address)?,
            }
        }
        Ok(())
    }

    fn arena_and_classes(
        &self,
        f: &mut fmt::Formatter<'_>,
        node: &NodePlan,
        arena: &ArenaPlan,
    ) -> fmt::Result {
        let text = |bytes: usize| size(bytes as u64);
        writeln!(f, "  {arena}")?;
        for class in &self.classes {
            let (slots, each) = (node.slots, class.slot_bytes);
            match arena.purpose {
                Purpose::Slots => {
                    let of = text(slots * each);
                    writeln!(f, "    {}: {slots} slots x {} = {of}", class.id, text(each))?;
                }
                Purpose::Lane => {}
                Purpose::Srs => writeln!(f, "    {}: {}", class.id, text(class.srs_bytes))?,
            }
        }
        Ok(())
    }

    fn sums(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |bytes: usize| size(bytes as u64);
        writeln!(f, "  compiled circuits: {}", text(self.compiled_bytes))?;
        match self.fixed_bytes {
            Some(bytes) => writeln!(f, "  fixed (program, tables, threads): {}", text(bytes))?,
            None => writeln!(f, "  fixed (program, tables, threads): measured after set-up")?,
        }
        writeln!(f, "  total: {}", text(self.total_bytes))?;
        if let Some(limit) = self.limit_bytes {
            writeln!(f, "  allowed: {} by BERTH_MEMORY_LIMIT", size(limit))?;
        }
        let (need, have) = (text(self.ordinary_bytes()), size(self.memory.bytes));
        writeln!(f, "  outside of reserved pages: {need} of {have}: {}", self.memory.by)
    }

    fn write_warnings(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.warnings.is_empty() {
            writeln!(f, "warnings")?;
        }
        self.warnings.iter().try_for_each(|warning| writeln!(f, "  {warning}"))
    }
}

impl NodePlan {
    /// What the arenas take of what the node has: of its memory and of each pool.
    fn room(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = self.node;
        if self.ordinary_bytes > 0 {
            let (need, have) = (size(self.ordinary_bytes as u64), size(self.available_bytes));
            writeln!(f, "  node {id} gives {need} of {have} that are free there")?;
        }
        for pool in &self.pools {
            let of = round(pool.page_bytes as u64);
            let (need, free) = (pool.need, pool.free);
            writeln!(f, "  node {id} gives {need} of {free} free reserved pages of {of}")?;
        }
        Ok(())
    }
}
