//! The ledger: what every large piece of memory is for, and what it is doing.
//!
//! Every figure is read from where things are at this moment: slots from their pools, lanes from
//! their stages, inputs from the requests that somebody still has. Nothing is counted by hand
//! beside them. The sum takes nothing from the kernel's total, so the two can be compared.

use std::fmt;

use serde::{Serialize, Serializer};

use super::Shared;
use crate::error::{Error, Result};
use crate::input::class::CircuitId;
use crate::memory::arena::Arena;
use crate::memory::heap::{self, ProcessBytes};
use crate::memory::slot::{Place, SlotPool};
use crate::plan::{round, size};
use crate::srs::read::Srs;
use mappings::Mappings;

mod mappings;

/// Who has the memory of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Holder {
    /// By place: `home`, `taken`, `filling`, `ready`, `proving`.
    Slots,
    /// By stage of the lanes of a node.
    Lanes,
    Srs,
    CompiledCircuits,
    /// Inputs of requests, from submission until nobody has the request any more.
    QueuedInput,
    /// `used`: what the program has allocated beside the two rows above; `kept`: what else the
    /// heap has in memory, the allocator's own books and room for what comes next.
    Heap,
    /// `files`: program and libraries; `stacks`: those of all threads, with static data.
    Program,
}

impl Holder {
    fn name(self) -> &'static str {
        match self {
            Holder::Slots => "slots",
            Holder::Lanes => "lanes",
            Holder::Srs => "srs",
            Holder::CompiledCircuits => "compiled circuits",
            Holder::QueuedInput => "queued input",
            Holder::Heap => "heap",
            Holder::Program => "program",
        }
    }
}

/// The state of a row for what a mapping has beyond its pieces, up to whole pages.
const ROUNDING: &str = "rounding";

const PLACES: [(Place, &str); 5] = [
    (Place::Home, "home"),
    (Place::Taken, "taken"),
    (Place::Filling, "filling"),
    (Place::Ready, "ready"),
    (Place::Proving, "proving"),
];

/// Memory of one kind, in bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    pub what: Holder,
    #[serde(serialize_with = "as_text")]
    pub class: Option<CircuitId>,
    /// Index of the node in the plan.
    pub node: Option<usize>,
    pub state: Option<&'static str>,
    /// How many there are; `None` for what has no pieces.
    pub count: Option<usize>,
    pub bytes: usize,
    /// The most that ever were; `None` where nobody but the kernel sees every change.
    pub peak_count: Option<usize>,
    pub peak_bytes: Option<usize>,
}

/// The memory of the process, row by row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Ledger {
    pub rows: Vec<Row>,
    /// Of all rows.
    pub sum_bytes: u64,
    /// What the kernel counts: resident pages and hugetlb pages.
    pub kernel_bytes: u64,
    /// The most that the kernel ever counted.
    pub kernel_peak_bytes: u64,
    /// The plan's total, where whoever asks knows it.
    pub planned_bytes: Option<u64>,
    /// The heap by its own books, to compare with its rows.
    pub heap: Heap,
}

/// What the allocator says of itself, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Heap {
    pub allocated_bytes: usize,
    /// At most so much is in memory; tables of which little is touched count whole.
    pub resident_bytes: usize,
    /// Addresses without memory.
    pub retained_bytes: usize,
}

/// The ledger as things are now.
///
/// # Errors
/// [`Error::Host`] where the kernel or jemalloc does not say what it must.
pub(super) fn read(shared: &Shared) -> Result<Ledger> {
    let mut rows = Vec::new();
    slots(shared, &mut rows);
    lanes(shared, &mut rows);
    srs(shared, &mut rows);
    for class in &shared.classes {
        let bytes = class.compiled.bytes();
        rows.push(Row { class: Some(class.id), ..always(Holder::CompiledCircuits, 1, bytes) });
    }
    queued_input(shared, &mut rows);
    let heap = heap::heap_bytes().map_err(|e| Error::Host(format!("jemalloc: {e}")))?;
    let process = ProcessBytes::read().map_err(super::setup::no_status)?;
    let mappings = Mappings::read().map_err(|e| Error::Host(format!("/proc/self: {e}")))?;
    let named: usize = rows
        .iter()
        .filter(|row| matches!(row.what, Holder::CompiledCircuits | Holder::QueuedInput))
        .map(|row| row.bytes)
        .sum();
    // Of the heap's memory: what the rows before have, what else is allocated, and the rest.
    let used = heap.allocated.saturating_sub(named);
    let kept = mappings.heap.saturating_sub(named + used);
    rows.push(measured(Holder::Heap, "used", None, used));
    rows.push(measured(Holder::Heap, "kept", None, kept));
    rows.push(measured(Holder::Program, "files", None, mappings.files));
    rows.push(measured(Holder::Program, "stacks", Some(mappings.threads), mappings.stacks));
    Ok(Ledger {
        sum_bytes: rows.iter().map(|row| row.bytes as u64).sum(),
        rows,
        kernel_bytes: process.current(),
        kernel_peak_bytes: process.peak(),
        planned_bytes: None,
        heap: Heap {
            allocated_bytes: heap.allocated,
            resident_bytes: heap.resident,
            retained_bytes: heap.retained,
        },
    })
}

/// What nobody but the kernel sees change.
fn measured(what: Holder, state: &'static str, count: Option<usize>, bytes: usize) -> Row {
    Row { state: Some(state), count, peak_count: None, peak_bytes: None, ..always(what, 0, bytes) }
}

/// What is there from start to end.
fn always(what: Holder, count: usize, bytes: usize) -> Row {
    Row {
        what,
        class: None,
        node: None,
        state: None,
        count: Some(count),
        bytes,
        peak_count: Some(count),
        peak_bytes: Some(bytes),
    }
}

fn slots(shared: &Shared, rows: &mut Vec<Row>) {
    for node in 0..shared.classes[0].pools.len() {
        let mut pieces = 0;
        for class in &shared.classes {
            let pool = &class.pools[node];
            let (now, peak) = (pool.occupancy(), pool.peak());
            let each = pool.shape().slot_bytes();
            pieces += pool.count() * each;
            for (place, name) in PLACES {
                rows.push(Row {
                    what: Holder::Slots,
                    class: Some(class.id),
                    node: Some(node),
                    state: Some(name),
                    count: Some(now.at(place)),
                    bytes: now.at(place) * each,
                    peak_count: Some(peak.at(place)),
                    peak_bytes: Some(peak.at(place) * each),
                });
            }
        }
        let pools = shared.classes.iter().map(|class| &class.pools[node]);
        rounding(Holder::Slots, node, pools.map(SlotPool::arena), pieces, rows);
    }
}

fn lanes(shared: &Shared, rows: &mut Vec<Row>) {
    for count in shared.stages.counts() {
        rows.push(Row {
            what: Holder::Lanes,
            class: None,
            node: Some(count.node),
            state: Some(count.stage.name()),
            count: Some(count.now),
            bytes: count.now * count.bytes,
            peak_count: Some(count.peak),
            peak_bytes: Some(count.peak * count.bytes),
        });
    }
}

fn srs(shared: &Shared, rows: &mut Vec<Row>) {
    for node in 0..shared.classes[0].srs.len() {
        let copies = || shared.classes.iter().map(|class| (class.id, &class.srs[node]));
        let mut pieces = 0;
        for (id, srs) in copies() {
            let bytes = srs.arena().bytes();
            pieces += bytes;
            rows.push(Row { class: Some(id), node: Some(node), ..always(Holder::Srs, 1, bytes) });
        }
        let copies = copies().map(|(_, srs)| srs);
        rounding(Holder::Srs, node, copies.map(Srs::arena), pieces, rows);
    }
}

/// What the mappings of a node have beyond the pieces that are in use.
fn rounding<'a>(
    what: Holder,
    node: usize,
    arenas: impl Iterator<Item = &'a Arena>,
    pieces: usize,
    rows: &mut Vec<Row>,
) {
    let mut mappings: Vec<(usize, usize)> = arenas.map(Arena::mapping).collect();
    mappings.sort_unstable();
    mappings.dedup();
    let mapped: usize = mappings.iter().map(|(_, bytes)| bytes).sum();
    let row = always(what, mappings.len(), mapped - pieces);
    rows.push(Row { node: Some(node), state: Some(ROUNDING), ..row });
}

fn queued_input(shared: &Shared, rows: &mut Vec<Row>) {
    let inputs = shared.queue.inputs();
    for (index, class) in shared.classes.iter().enumerate() {
        let inputs = inputs.get(index).copied().unwrap_or_default();
        rows.push(Row {
            what: Holder::QueuedInput,
            class: Some(class.id),
            node: None,
            state: None,
            count: Some(inputs.count),
            bytes: inputs.bytes,
            peak_count: Some(inputs.peak_count),
            peak_bytes: Some(inputs.peak_bytes),
        });
    }
}

fn as_text<S: Serializer>(id: &Option<CircuitId>, to: S) -> std::result::Result<S::Ok, S::Error> {
    match id {
        Some(id) => to.collect_str(id),
        None => to.serialize_none(),
    }
}

impl Ledger {
    /// How far the sum is above what the kernel counts, in parts of that; below it: negative.
    pub fn excess(&self) -> f64 {
        self.sum_bytes as f64 / self.kernel_bytes as f64 - 1.0
    }
}

/// A table; rows of what is not there and never was are left out.
impl fmt::Display for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head = ["memory", "circuit", "node", "state", "now", "bytes", "peak", "peak bytes"];
        let mut table = vec![head.map(String::from)];
        let there = |row: &&Row| row.bytes > 0 || row.peak_bytes.is_some_and(|peak| peak > 0);
        table.extend(self.rows.iter().filter(there).map(cells));
        let mut widths = [0; 8];
        for row in &table {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = cell.len().max(*width);
            }
        }
        for row in &table {
            let mut line = String::new();
            for (column, (cell, width)) in row.iter().zip(widths).enumerate() {
                // Texts to the left, figures to the right.
                line += &match column {
                    2 | 4.. => format!("{cell:>width$}  "),
                    _ => format!("{cell:width$}  "),
                };
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        let percent = 100.0 * self.excess();
        writeln!(f, "sum     {}, {percent:+.1} % of the kernel's figure", size(self.sum_bytes))?;
        writeln!(f, "kernel  {} in RSS and hugetlb pages", size(self.kernel_bytes))?;
        writeln!(f, "peak    {} by the kernel", size(self.kernel_peak_bytes))?;
        let [allocated, resident, retained] =
            [self.heap.allocated_bytes, self.heap.resident_bytes, self.heap.retained_bytes]
                .map(|bytes| round(bytes as u64));
        writeln!(
            f,
            "heap    {allocated} allocated, at most {resident} in memory, {retained} of addresses \
             kept"
        )?;
        match self.planned_bytes {
            Some(bytes) => writeln!(f, "plan    {}", size(bytes)),
            None => Ok(()),
        }
    }
}

fn cells(row: &Row) -> [String; 8] {
    let number = |count: Option<usize>| count.map_or(String::new(), |count| count.to_string());
    [
        row.what.name().into(),
        row.class.map_or(String::new(), |id| id.to_string()),
        number(row.node),
        row.state.unwrap_or_default().into(),
        number(row.count),
        round(row.bytes as u64),
        number(row.peak_count),
        row.peak_bytes.map_or(String::new(), |bytes| round(bytes as u64)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::class::{Kind, SectorSize};

    fn ledger() -> Ledger {
        let id = CircuitId { kind: Kind::Window, sector: SectorSize::K2 };
        let slot = |state, count: usize, peak: usize| Row {
            what: Holder::Slots,
            class: Some(id),
            node: Some(0),
            state: Some(state),
            count: Some(count),
            bytes: count << 20,
            peak_count: Some(peak),
            peak_bytes: Some(peak << 20),
        };
        let heap = measured(Holder::Heap, "used", None, 5000);
        Ledger {
            rows: vec![slot("home", 2, 3), slot("taken", 0, 0), slot("ready", 0, 1), heap],
            sum_bytes: 1_010,
            kernel_bytes: 1_000,
            kernel_peak_bytes: 2_000,
            planned_bytes: Some(3_000),
            heap: Heap { allocated_bytes: 6_000, resident_bytes: 7_000, retained_bytes: 8_000 },
        }
    }

    #[test]
    fn the_table_is_read_at_a_glance() {
        let wanted = "\
memory  circuit    node  state  now    bytes  peak  peak bytes
slots   window-2k     0  home     2    2 MiB     3       3 MiB
slots   window-2k     0  ready    0  0 bytes     1       1 MiB
heap                     used        4.9 KiB
sum     1010 bytes, +1.0 % of the kernel's figure
kernel  1000 bytes in RSS and hugetlb pages
peak    2.0 KiB (2,000) by the kernel
heap    5.9 KiB allocated, at most 6.8 KiB in memory, 7.8 KiB of addresses kept
plan    2.9 KiB (3,000)
";
        assert_eq!(ledger().to_string(), wanted);
    }

    #[test]
    fn the_record_has_stable_keys() {
        let record = serde_json::to_value(ledger()).unwrap();
        let keys =
            ["rows", "sum_bytes", "kernel_bytes", "kernel_peak_bytes", "planned_bytes", "heap"];
        assert_eq!(record.as_object().unwrap().len(), keys.len());
        assert!(keys.iter().all(|key| record.get(key).is_some()), "{record}");
        let wanted = serde_json::json!({
            "what": "slots", "class": "window-2k", "node": 0, "state": "home",
            "count": 2, "bytes": 2 << 20, "peak_count": 3, "peak_bytes": 3 << 20,
        });
        assert_eq!(record["rows"][0], wanted);
        assert!(record["rows"][3]["class"].is_null() && record["rows"][3]["peak_bytes"].is_null());
    }
}
