//! The page ladder of each node: 1 GiB, 2 MiB, transparent, plain.
//!
//! `auto` takes for each arena the best pages that are free for all of it, on its node and within
//! what bounds all nodes together (a control group). A size that was asked for is taken as it is,
//! and a plan that is short of it is refused.

use super::layout::{Layout, Site};
use super::print::gather;
use super::{ArenaPlan, HugePages, Mode, Pages, Purpose, size};
use crate::error::Error;
use crate::host::{Host, HugetlbLimit};

const BYTES_1G: usize = 1 << 30;
const BYTES_2M: usize = 2 << 20;

/// Chooses pages node after node, each out of what the ones before have left.
pub(super) struct Ladder<'a> {
    wanted: HugePages,
    host: &'a Host,
    /// Pages that are taken on all nodes so far, by size.
    taken: [(usize, usize); 2],
    /// The first shortage of a size that was asked for.
    pub short: Option<String>,
}

impl<'a> Ladder<'a> {
    pub fn new(wanted: HugePages, host: &'a Host) -> Self {
        Ladder { wanted, host, taken: [(BYTES_1G, 0), (BYTES_2M, 0)], short: None }
    }

    /// The arenas of a node for its needs, those of no bytes left out; an arena takes its pages out
    /// of what is free for the next ones.
    pub fn arenas(&mut self, site: &Site, needs: &[(Purpose, usize)]) -> Vec<ArenaPlan> {
        let mut free = [BYTES_1G, BYTES_2M].map(|page_bytes| (page_bytes, site.free(page_bytes)));
        let needs = needs.iter().filter(|(_, bytes)| *bytes > 0);
        let arenas: Vec<ArenaPlan> = needs
            .map(|(purpose, need_bytes)| {
                let (pages, page_bytes) = self.choose(*need_bytes, &free);
                let count = need_bytes.div_ceil(page_bytes);
                if pages.hugetlb() {
                    let of = |pool: &&mut (usize, usize)| pool.0 == page_bytes;
                    let taken = self.taken.iter_mut().find(of).expect("both sizes are there");
                    taken.1 += count;
                    let left = free.iter_mut().find(of).expect("both sizes are there");
                    // What is short is refused below; `auto` never is.
                    left.1 = left.1.saturating_sub(count);
                }
                ArenaPlan {
                    node: site.node.id,
                    purpose: *purpose,
                    need_bytes: *need_bytes,
                    bytes: count * page_bytes,
                    pages,
                    page_bytes,
                    bind: Mode::Off,
                    lock: Mode::Off,
                    cpus: site.local_cpus(),
                }
            })
            .collect();
        let short = self.shortage(site, &arenas);
        self.short = self.short.take().or(short);
        arenas
    }

    fn choose(&self, need_bytes: usize, free: &[(usize, usize)]) -> (Pages, usize) {
        let fits = |(page_bytes, free): (usize, usize)| {
            let need = need_bytes.div_ceil(page_bytes);
            let left = self.bound(page_bytes).map_or(usize::MAX, |(left, _)| left);
            need <= free && need <= left
        };
        match self.wanted {
            HugePages::Huge1G => (Pages::Huge1G, BYTES_1G),
            HugePages::Huge2M => (Pages::Huge2M, BYTES_2M),
            HugePages::Off => (Pages::Plain, self.host.base_page_bytes),
            // A page of 1 GiB for less than that would be mostly waste.
            HugePages::Auto if need_bytes >= BYTES_1G && fits(free[0]) => (Pages::Huge1G, BYTES_1G),
            HugePages::Auto if fits(free[1]) => (Pages::Huge2M, BYTES_2M),
            HugePages::Auto => match self.host.transparent_bytes {
                Some(bytes) => (Pages::Transparent, bytes),
                None => (Pages::Plain, self.host.base_page_bytes),
            },
        }
    }

    /// Pages that the bound on all nodes still leaves, with that bound; `None` without one.
    fn bound(&self, page_bytes: usize) -> Option<(usize, &'a HugetlbLimit)> {
        let limit = self.host.hugetlb_limits.iter().find(|limit| limit.page_bytes == page_bytes)?;
        let taken = self.taken.iter().find(|taken| taken.0 == page_bytes).map_or(0, |t| t.1);
        let pages = usize::try_from(limit.available_bytes / page_bytes as u64);
        Some((pages.unwrap_or(usize::MAX).saturating_sub(taken), limit))
    }

    /// The refusal of a size that was asked for where this node, or the bound on all, is short.
    fn shortage(&self, site: &Site, arenas: &[ArenaPlan]) -> Option<String> {
        let page_bytes = match self.wanted {
            HugePages::Huge1G => BYTES_1G,
            HugePages::Huge2M => BYTES_2M,
            HugePages::Auto | HugePages::Off => return None,
        };
        let need = arenas.iter().map(|arena| arena.bytes / page_bytes).sum();
        let free = site.free(page_bytes);
        if need > free {
            return Some(what_is_short(site.node.id, page_bytes, need, free));
        }
        let limit = self.host.hugetlb_limits.iter().find(|limit| limit.page_bytes == page_bytes)?;
        let need: usize = self.taken.iter().filter(|t| t.0 == page_bytes).map(|t| t.1).sum();
        let left = limit.available_bytes / page_bytes as u64;
        (need as u64 > left).then(|| {
            format!(
                "the nodes up to node {}: need {need} hugepages of {}, and {left} may be taken, \
                 bounded by {}; {}, or set BERTH_HUGEPAGES=auto",
                site.node.id,
                super::print::round(page_bytes as u64),
                limit.by,
                limit.remedy
            )
        })
    }
}

/// Says what is missing so that reserved pages hold the arenas that `auto` left in ordinary ones:
/// pages on a node, or leave to take as many on all nodes together.
pub(super) fn warn_of_ordinary(host: &Host, layout: &Layout, warnings: &mut Vec<String>) {
    let (mut few, mut too_many, mut all) = (Vec::new(), Vec::new(), 0);
    for site in &layout.sites {
        let arenas = || layout.arenas.iter().filter(|arena| arena.node == site.node.id);
        let need_2m = arenas().filter(|arena| arena.pages != Pages::Huge1G);
        let need: usize = need_2m.map(|arena| arena.need_bytes.div_ceil(BYTES_2M)).sum();
        let taken = arenas().filter(|arena| arena.pages == Pages::Huge2M);
        let taken: usize = taken.map(|arena| arena.bytes / BYTES_2M).sum();
        all += need;
        let missing = need.saturating_sub(site.free(BYTES_2M));
        // Pages are reserved out of the memory of the node.
        let fits = (missing * BYTES_2M) as u64 <= site.node.memory_available_bytes;
        let told = if fits { &mut few } else { &mut too_many };
        if missing > 0 {
            told.push((site.node.id, missing_pages(site, missing, taken, fits)));
        }
    }
    gather(&few, warnings);
    gather(&too_many, warnings);
    let Some(limit) = host.hugetlb_limits.iter().find(|limit| limit.page_bytes == BYTES_2M) else {
        return;
    };
    let left = limit.available_bytes / BYTES_2M as u64;
    if all as u64 > left {
        warnings.push(format!(
            "{all} hugepages of 2 MiB would hold all arenas, and {left} may be taken, bounded by \
             {}; {}",
            limit.by, limit.remedy
        ));
    }
}

fn missing_pages(site: &Site, missing: usize, taken: usize, fits: bool) -> String {
    let (node, left) = (site.node.id, site.free(BYTES_2M) - taken);
    let pages = if missing == 1 { "hugepage" } else { "hugepages" };
    let are = if left == 1 { "is" } else { "are" };
    let advice = if fits {
        remedy(node, BYTES_2M, missing)
    } else {
        let have = size(site.node.memory_available_bytes);
        format!("the node has no memory for that many: {have} are available")
    };
    format!(
        "node {node}: {missing} more free {pages} of 2 MiB would hold the arenas that are now in \
         ordinary pages ({left} {are} left free); {advice}"
    )
}

/// The refusal of a pool that is too small: node, size, need, free, and what to do.
pub(crate) fn short(node: usize, page_bytes: usize, need: usize, free: usize) -> Error {
    Error::Host(what_is_short(node, page_bytes, need, free))
}

fn what_is_short(node: usize, page_bytes: usize, need: usize, free: usize) -> String {
    format!(
        "node {node}: need {need} hugepages of {}, free {free}; {}",
        super::print::round(page_bytes as u64),
        remedy(node, page_bytes, need)
    )
}

fn remedy(node: usize, page_bytes: usize, need: usize) -> String {
    let kilobytes = page_bytes / 1024;
    let boot = if page_bytes == BYTES_1G {
        // Before Linux 5.16 a number stands for all nodes together.
        format!("hugepagesz=1G hugepages={node}:{need} on the kernel's command line")
    } else {
        "vm.nr_hugepages in sysctl.conf".to_owned()
    };
    format!(
        "reserve them early, before memory is fragmented: {boot}, or \
         /sys/devices/system/node/node{node}/hugepages/hugepages-{kilobytes}kB/nr_hugepages"
    )
}
