//! What lies on each node that gets a lane, and whether it holds that.
//!
//! `BERTH_PARTITION_WORKERS` and `BERTH_SLOTS` are totals over all nodes. The threads are divided
//! as the cores are, the slots as the threads, at least one of each per lane. Without a setting
//! there is a thread for every core but one, and each node has two slots more than threads. A node
//! is asked for the memory of its arenas alone: what the process takes beside them is counted for
//! the host as a whole.

use super::ladder::Ladder;
use super::threads::{apportion, synthesis_cpus};
use super::{ArenaPlan, ClassNeed, Config, HugePages, NodePlan, Pages, PoolPlan, Purpose, size};
use crate::circuit::shape::PART_ALIGN;
use crate::host::{Host, Node};

/// Slots beyond the partition workers, per lane: one in the lane and one on its way to it.
const SLOTS_BEYOND_WORKERS: usize = 2;
/// A node that gets a lane. Layouts are tried with many nodes, so it borrows.
#[derive(Clone)]
pub(super) struct Site<'a> {
    /// With its own cores.
    pub node: &'a Node,
    /// Cores of nodes without a lane.
    pub lent: Vec<&'a [usize]>,
}

impl<'a> Site<'a> {
    pub fn new(node: &'a Node) -> Self {
        Site { node, lent: Vec::new() }
    }

    /// Has the cores of another node work for this one.
    pub fn borrow(&mut self, from: &'a Node) {
        self.lent.extend(from.cores.iter().map(Vec::as_slice));
    }

    /// All CPUs that work for the lane, ascending.
    fn cpus(&self) -> Vec<usize> {
        let mut cpus = [self.node.cores.concat(), self.lent.concat()].concat();
        cpus.sort_unstable();
        cpus
    }

    /// CPUs next to the node's memory, ascending: its own, or the lent ones if it has none.
    pub fn local_cpus(&self) -> Vec<usize> {
        if self.node.cores.is_empty() { self.cpus() } else { self.node.cpus() }
    }

    /// Free hugetlb pages of a size.
    pub fn free(&self, page_bytes: usize) -> usize {
        let pool = self.node.hugepages.iter().find(|pool| pool.page_bytes == page_bytes);
        pool.map_or(0, |pool| pool.free)
    }
}

/// What the plan is made from.
pub(super) struct Demand<'a> {
    pub config: &'a Config,
    pub host: &'a Host,
    pub classes: &'a [ClassNeed<'a>],
    /// What the process takes beside arenas and compiled circuits.
    pub fixed_bytes: &'a dyn Fn(&[NodePlan]) -> usize,
}

/// Nodes and arenas, in the order of the sites.
pub(super) struct Layout<'a> {
    pub sites: Vec<Site<'a>>,
    pub nodes: Vec<NodePlan>,
    pub arenas: Vec<ArenaPlan>,
    /// Pages of a size that was asked for are short.
    pub short: Option<String>,
}

impl Layout<'_> {
    /// Bytes of arenas in ordinary pages.
    pub fn ordinary_bytes(&self) -> usize {
        self.nodes.iter().map(|node| node.ordinary_bytes).sum()
    }

    /// Bytes of all arenas.
    fn bytes(&self) -> usize {
        self.arenas.iter().map(|arena| arena.bytes).sum()
    }

    /// Does every node hold its own arenas?
    pub fn local(&self) -> bool {
        self.nodes.iter().all(NodePlan::local)
    }
}

impl NodePlan {
    /// Does the node have room for its arenas in ordinary pages? Those of a pool were counted on
    /// the node from the start.
    pub fn local(&self) -> bool {
        self.ordinary_bytes as u64 <= self.available_bytes
    }

    /// `node 1 has 64 MiB free and its arenas need 140 MiB`.
    pub(super) fn need_and_free(&self) -> String {
        format!(
            "node {} has {} free and its arenas need {}",
            self.node,
            size(self.available_bytes),
            size(self.ordinary_bytes as u64)
        )
    }
}

impl Demand<'_> {
    /// The most lanes that the settings have slots and synthesis threads for, and which setting
    /// says so.
    pub fn lanes_max(&self) -> (usize, &'static str) {
        let slots = self.config.slots.unwrap_or(usize::MAX);
        let workers = self.config.partition_workers.unwrap_or(usize::MAX);
        if slots <= workers { (slots, "BERTH_SLOTS") } else { (workers, "BERTH_PARTITION_WORKERS") }
    }

    /// Threads, slots and arenas on the given nodes. Synthesis threads are divided as the cores
    /// are, slots as the synthesis threads.
    ///
    /// # Panics
    /// If a site has no core, or there are more sites than [`Demand::lanes_max`].
    pub fn lay_out<'s>(&self, sites: Vec<Site<'s>>) -> Layout<'s> {
        let cores = sites.iter().map(|site| site.node.cores.len() + site.lent.len());
        let cores: Vec<usize> = cores.collect();
        let default = (cores.iter().sum::<usize>() - 1).max(sites.len());
        let workers = apportion(self.config.partition_workers.unwrap_or(default), &cores);
        let slots = match self.config.slots {
            Some(slots) => apportion(slots, &workers),
            None => workers.iter().map(|workers| workers + SLOTS_BEYOND_WORKERS).collect(),
        };
        let mut ladder = Ladder::new(self.config.hugepages, self.host);
        let (mut nodes, mut all) = (Vec::new(), Vec::new());
        for ((site, workers), slots) in sites.iter().zip(workers).zip(slots) {
            let lane_cpus = site.cpus();
            let arenas = ladder.arenas(site, &self.needs(slots, lane_cpus.len()));
            let ordinary = arenas.iter().filter(|arena| !arena.pages.hugetlb());
            nodes.push(NodePlan {
                node: site.node.id,
                slots,
                synthesis_cpus: synthesis_cpus(&site.node.cores, &site.lent, workers),
                lane_cpus,
                ordinary_bytes: ordinary.map(|arena| arena.bytes).sum(),
                available_bytes: site.node.memory_available_bytes,
                pools: pools(site, &arenas),
            });
            all.extend(arenas);
        }
        let short = ladder.short;
        Layout { sites, nodes, arenas: all, short }
    }

    /// Bytes of the arenas of a node, in the order in which they get their pages.
    fn needs(&self, slots: usize, lane_threads: usize) -> [(Purpose, usize); 3] {
        let classes = || self.classes.iter();
        let lane = classes().map(|need| (need.lane_bytes)(lane_threads)).max();
        // Each class's part starts on `PART_ALIGN`, as `Arena::cut` gives it.
        let srs = classes().map(|need| need.srs_bytes.next_multiple_of(PART_ALIGN)).sum();
        [
            (Purpose::Slots, classes().map(|need| slots * need.shape.slot_bytes()).sum()),
            (Purpose::Lane, lane.unwrap_or(0)),
            (Purpose::Srs, srs),
        ]
    }

    /// What the process takes beside the arenas.
    pub fn beside_bytes(&self, layout: &Layout) -> usize {
        let compiled: usize = self.classes.iter().map(|need| need.compiled_bytes).sum();
        compiled + (self.fixed_bytes)(&layout.nodes)
    }

    /// Why the host as a whole has no room for a layout, with numbers; `None` if it has. Only
    /// lanes beyond the first and lent cores are given up for this: the plan itself is admitted or
    /// refused when all of it is known.
    pub fn excess(&self, layout: &Layout) -> Option<String> {
        let beside = self.beside_bytes(layout);
        let over = |need: usize, have: u64, by: &str| {
            (need as u64 > have).then(|| {
                let (need, have) = (size(need as u64), size(have));
                format!("the plan would need {need} and there are {have}, bounded by {by}")
            })
        };
        let memory = &self.host.memory;
        let limit = self.config.memory_limit_bytes.unwrap_or(u64::MAX);
        over(layout.ordinary_bytes() + beside, memory.bytes, &memory.by)
            .or_else(|| over(layout.bytes() + beside, limit, "BERTH_MEMORY_LIMIT"))
    }

    /// Warns of arenas that `auto` left in ordinary pages.
    pub fn warn_of_ordinary(&self, layout: &Layout, warnings: &mut Vec<String>) {
        if self.config.hugepages == HugePages::Auto {
            super::ladder::warn_of_ordinary(self.host, layout, warnings);
        }
    }
}

/// The pools that the arenas of a node draw on, ascending by page size.
fn pools(site: &Site, arenas: &[ArenaPlan]) -> Vec<PoolPlan> {
    [Pages::Huge2M, Pages::Huge1G]
        .into_iter()
        .filter_map(|pages| {
            let of = || arenas.iter().filter(move |arena| arena.pages == pages);
            let page_bytes = of().next()?.page_bytes;
            let need = of().map(|arena| arena.bytes / page_bytes).sum();
            Some(PoolPlan { page_bytes, need, free: site.free(page_bytes) })
        })
        .collect()
}
