//! The plan: every arena, slot, thread and core, with its bytes and its node, decided before
//! anything is mapped.
//!
//! ```text
//! total = sum over nodes (slots x slot_bytes + lane + SRS, each rounded up once to its pages)
//!       + compiled + fixed
//! ```
//!
//! Pure: settings, host and needs in, plan or refusal out.
//!
//! ```text
//! nodes   which nodes get a lane            layout   threads, slots and arenas on them
//! threads CPUs                              ladder   pages of the arenas
//! limits  binding, locking, what is refused print    the text
//! ```

use serde::{Serialize, Serializer};

use crate::circuit::shape::Shape;
use crate::config::{Config, HugePages, Mode, Value};
use crate::error::{Error, Result};
use crate::host::{Host, MemoryBound};
use crate::input::class::CircuitId;

#[cfg(feature = "heap-arenas")]
mod control;
mod ladder;
mod layout;
mod limits;
mod nodes;
mod print;
mod threads;

pub(crate) use ladder::short;
use layout::Demand;
pub use print::{Brief, round, size};
pub use threads::cpus;

/// What one enabled circuit needs, told by the modules that will use it.
#[derive(Clone, Copy)]
pub struct ClassNeed<'a> {
    /// The circuit.
    pub id: CircuitId,
    /// Its sizes, and with them those of a slot.
    pub shape: Shape,
    /// Bytes of the SRS in the arena.
    pub srs_bytes: usize,
    /// Bytes of the workspace of one lane of so many threads.
    pub lane_bytes: &'a dyn Fn(usize) -> usize,
    /// Bytes of heap of the compiled circuit.
    pub compiled_bytes: usize,
}

/// One enabled circuit in the plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ClassPlan {
    #[serde(serialize_with = "as_text")]
    pub id: CircuitId,
    /// Slots of this class, on all nodes.
    pub slots: usize,
    /// Bytes of each.
    pub slot_bytes: usize,
    /// Bytes of the SRS on each node.
    pub srs_bytes: usize,
    pub compiled_bytes: usize,
}

/// What is on one node: the slots, the lane that reads them first, its copy of the SRS, and the
/// threads of both.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NodePlan {
    /// Id of the node.
    pub node: usize,
    /// Slots of each class.
    pub slots: usize,
    /// The CPU of each synthesis thread; CPUs repeat where there are more threads than cores.
    pub synthesis_cpus: Vec<usize>,
    /// The CPU of each thread of the CPU lane: all of the node, and all that others lend it. Both
    /// kinds share the cores: the lane has by far the greater part of the work.
    pub lane_cpus: Vec<usize>,
    /// Bytes of its arenas in ordinary pages.
    pub ordinary_bytes: usize,
    /// Bytes that the node has for those.
    pub available_bytes: u64,
    /// What its arenas take out of pools of hugetlb pages, ascending by page size.
    pub pools: Vec<PoolPlan>,
}

/// Reserved pages of one size on one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PoolPlan {
    pub page_bytes: usize,
    /// Pages that the plan takes.
    pub need: usize,
    /// Pages that are free.
    pub free: usize,
}

/// What an arena is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Purpose {
    Slots,
    Lane,
    Srs,
}

/// The pages of an arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Pages {
    /// hugetlb pages of 1 GiB.
    Huge1G,
    /// hugetlb pages of 2 MiB.
    Huge2M,
    Transparent,
    Plain,
}

impl Pages {
    /// Are these pages taken out of a reserved pool?
    pub fn hugetlb(self) -> bool {
        matches!(self, Pages::Huge1G | Pages::Huge2M)
    }
}

/// One mapping.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ArenaPlan {
    pub node: usize,
    pub purpose: Purpose,
    /// Bytes that are used.
    pub need_bytes: usize,
    /// Bytes that are mapped: the need, rounded up once to whole pages.
    pub bytes: usize,
    pub pages: Pages,
    pub page_bytes: usize,
    /// Bind to the node: try and warn (auto), insist (strict), or do not ask (off).
    #[serde(skip)]
    pub bind: Mode,
    /// Lock in memory, likewise; off for hugetlb pages, which are never swapped.
    #[serde(skip)]
    pub lock: Mode,
    /// CPUs of the node, for threads that make the pages present.
    #[serde(skip)]
    pub cpus: Vec<usize>,
}

impl ArenaPlan {
    /// An arena of plain pages wherever the kernel puts them: for tools and tests that need
    /// memory as the data path has it, without a plan around it.
    pub fn unplaced(purpose: Purpose, need_bytes: usize) -> Self {
        let page_bytes = crate::host::base_page_bytes();
        ArenaPlan {
            node: 0,
            purpose,
            need_bytes,
            bytes: need_bytes.max(1).next_multiple_of(page_bytes),
            pages: Pages::Plain,
            page_bytes,
            bind: Mode::Off,
            lock: Mode::Off,
            cpus: Vec::new(),
        }
    }
}

/// A GPU that the host shows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GpuPlan {
    /// PCI address, as the kernel writes it.
    pub address: String,
    /// The node whose memory is nearest; `None` where the firmware does not say.
    pub node: Option<usize>,
}

impl GpuPlan {
    fn new(gpu: &crate::host::Gpu) -> Self {
        GpuPlan { address: gpu.address.clone(), node: gpu.node }
    }
}

/// The plan.
#[derive(Clone, Debug, Serialize)]
pub struct Plan {
    pub total_bytes: usize,
    /// Of the first class.
    pub slot_bytes: usize,
    /// Of the first class, on all nodes.
    pub slots: usize,
    /// Synthesis threads on all nodes.
    pub partition_workers: usize,
    /// Every node with a lane; the first has the most cores.
    pub nodes: Vec<NodePlan>,
    /// CPUs for everything that is neither synthesis nor lane: parsing, the finish, the service.
    /// Those of the cores without a synthesis thread; all where each core has one.
    pub housekeeping_cpus: Vec<usize>,
    /// Node by node, in the order slots, lane, SRS; none that is empty.
    pub arenas: Vec<ArenaPlan>,
    pub classes: Vec<ClassPlan>,
    /// All compiled circuits.
    pub compiled_bytes: usize,
    /// Program, tables, threads: measured after set-up, `None` before.
    pub fixed_bytes: Option<usize>,
    /// GPUs that the host shows, ascending by PCI address.
    pub gpus: Vec<GpuPlan>,
    pub settings: Vec<Value>,
    pub warnings: Vec<String>,
    #[serde(skip)]
    limit_bytes: Option<u64>,
    #[serde(skip)]
    memory: MemoryBound,
}

impl Plan {
    /// Decides everything. Whether the host has as much is [`Plan::admit`]'s question.
    ///
    /// # Errors
    /// [`Error::Config`] for settings that this build cannot honour, [`Error::Host`] where pages
    /// of a size that was asked for are short.
    pub fn new(config: &Config, host: &Host, classes: &[ClassNeed]) -> Result<Self> {
        Self::beside(config, host, classes, &|_| 0)
    }

    /// As [`Plan::new`], where `fixed_bytes` tells what a process with these threads takes beside
    /// arenas and compiled circuits: a lane more is planned only if that has room too.
    ///
    /// # Errors
    /// As [`Plan::new`].
    pub fn beside(
        config: &Config,
        host: &Host,
        classes: &[ClassNeed],
        fixed_bytes: &dyn Fn(&[NodePlan]) -> usize,
    ) -> Result<Self> {
        assert!(!classes.is_empty(), "a plan is for at least one circuit");
        let mut warnings = config.notices.clone();
        limits::without_device(config, classes, &mut warnings)?;
        let usable = threads::usable(config, host)?;
        let demand = Demand { config, host, classes, fixed_bytes };
        let mut one = Default::default();
        let mut layout = nodes::choose(&demand, &usable, &mut one, &mut warnings)?;
        demand.warn_of_ordinary(&layout, &mut warnings);
        limits::place(config, host, &mut layout, &mut warnings);
        limits::lock(config, host, &mut layout, &mut warnings)?;
        limits::throttle(&demand, &layout, &mut warnings);
        limits::look_at_gpus(config, host, &layout.nodes, &mut warnings);
        let synthesis = || layout.nodes.iter().flat_map(|node| &node.synthesis_cpus).copied();
        let synthesis_cpus: Vec<usize> = synthesis().collect();
        let slots = layout.nodes.iter().map(|node| node.slots).sum();
        let mut plan = Plan {
            total_bytes: 0,
            slot_bytes: classes[0].shape.slot_bytes(),
            slots,
            partition_workers: synthesis_cpus.len(),
            housekeeping_cpus: threads::housekeeping_cpus(&usable, &synthesis_cpus),
            nodes: layout.nodes,
            arenas: layout.arenas,
            classes: classes.iter().map(|need| class_plan(need, slots)).collect(),
            compiled_bytes: classes.iter().map(|need| need.compiled_bytes).sum(),
            fixed_bytes: None,
            gpus: host.gpus.iter().map(GpuPlan::new).collect(),
            settings: config.values.clone(),
            warnings,
            limit_bytes: config.memory_limit_bytes,
            memory: host.memory.clone(),
        };
        plan.total_bytes = plan.ordinary_bytes() + plan.pool_bytes();
        plan.settle(&threads::cpus(config, host)?);
        Ok(plan)
    }

    /// The plan with the measured bytes of all that no arena holds.
    pub fn with_fixed(mut self, bytes: usize) -> Self {
        self.fixed_bytes = Some(bytes);
        self.total_bytes = self.ordinary_bytes() + self.pool_bytes();
        self
    }

    /// The arena for a purpose on a node; `None` if nothing is needed for it.
    pub fn arena(&self, purpose: Purpose, node: usize) -> Option<&ArenaPlan> {
        self.arenas.iter().find(|arena| arena.purpose == purpose && arena.node == node)
    }

    /// CPUs of all lanes, ascending.
    pub fn lane_cpus(&self) -> Vec<usize> {
        let mut cpus: Vec<usize> =
            self.nodes.iter().flat_map(|node| &node.lane_cpus).copied().collect();
        cpus.sort_unstable();
        cpus
    }

    /// Compares the sum with what there is. A plan that does not fit can be printed; nothing of
    /// it may be mapped.
    ///
    /// # Errors
    /// [`Error::Host`] with what is needed, what is there and which bound decided.
    pub fn admit(&self) -> Result<()> {
        if let Some(limit) = self.limit_bytes
            && self.total_bytes as u64 > limit
        {
            return Err(self.short(self.total_bytes, limit, "BERTH_MEMORY_LIMIT"));
        }
        let ordinary = self.ordinary_bytes();
        if ordinary as u64 > self.memory.bytes {
            return Err(self.short(ordinary, self.memory.bytes, &self.memory.by));
        }
        Ok(())
    }

    /// Bytes of arenas in hugetlb pages, which are out of a pool of their own.
    fn pool_bytes(&self) -> usize {
        self.arenas.iter().filter(|arena| arena.pages.hugetlb()).map(|arena| arena.bytes).sum()
    }

    /// Bytes of everything else.
    fn ordinary_bytes(&self) -> usize {
        let arenas = self.arenas.iter().filter(|arena| !arena.pages.hugetlb());
        arenas.map(|arena| arena.bytes).sum::<usize>()
            + self.compiled_bytes
            + self.fixed_bytes.unwrap_or(0)
    }

    fn short(&self, need: usize, have: u64, by: &str) -> Error {
        let over = need as u64 - have;
        let a_slot: usize = self.classes.iter().map(|class| class.slot_bytes).sum();
        let fewer = over.div_ceil(a_slot.max(1) as u64);
        let advice = if fewer < self.slots as u64 {
            format!("; BERTH_SLOTS={} may fit", self.slots as u64 - fewer)
        } else if self.nodes.len() > 1 {
            "; fewer nodes need less (BERTH_CPUS, or BERTH_NUMA=auto)".to_owned()
        } else {
            String::new()
        };
        Error::Host(format!(
            "the plan needs {} and there are {}, bounded by {by}{advice}",
            size(need as u64),
            size(have)
        ))
    }

    /// Writes what was decided into the settings that had no value of their own.
    fn settle(&mut self, cpus: &[usize]) {
        let workers = self.partition_workers.to_string();
        let slots = self.slots.to_string();
        let cpus = numa::format_list(cpus);
        for row in &mut self.settings {
            if row.origin == crate::config::Origin::Default {
                match row.name {
                    "BERTH_PARTITION_WORKERS" => row.value.clone_from(&workers),
                    "BERTH_SLOTS" => row.value.clone_from(&slots),
                    "BERTH_CPUS" => row.value.clone_from(&cpus),
                    _ => {}
                }
            }
        }
    }
}

fn class_plan(need: &ClassNeed, slots: usize) -> ClassPlan {
    ClassPlan {
        id: need.id,
        slots,
        slot_bytes: need.shape.slot_bytes(),
        srs_bytes: need.srs_bytes,
        compiled_bytes: need.compiled_bytes,
    }
}

fn as_text<S: Serializer>(id: &CircuitId, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(id)
}

#[cfg(test)]
mod tests;
