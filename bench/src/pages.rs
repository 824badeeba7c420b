//! How fast pages are made present: an arena of every page kind that the host can give now, on
//! every node that has CPUs and memory.
//!
//! Beside the wall time stands the CPU time of the populating threads, which hardly depends on
//! what else the host does.

use std::collections::HashMap;
use std::sync::Mutex;
use std::thread::ThreadId;
use std::time::Instant;

use berth::config::Mode;
use berth::host::{Host, Node};
use berth::memory::Arena;
use berth::plan::{ArenaPlan, Pages, Purpose};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::host::machine;
use crate::output;
use crate::statistics::median;

/// Rounds of each page kind; the median counts.
const ROUNDS: usize = 5;

/// One page kind on one node.
struct Row {
    node: usize,
    pages: Pages,
    page_bytes: usize,
    /// What was measured, or why nothing was.
    measured: Result<Measured, String>,
}

struct Measured {
    /// Threads that made pages present.
    threads: usize,
    /// Wall time, median.
    seconds: f64,
    /// CPU time of all threads, median.
    cpu_seconds: f64,
    gigabytes_per_second_per_thread: f64,
    gigabytes_per_cpu_second: f64,
}

/// The most bytes of an arena: 64 TiB, which round up to whole pages of any kind.
const BYTES_MAX: u64 = 1 << 46;

/// Reads a number of bytes from a page on.
pub fn size(text: &str) -> Result<u64, String> {
    let bytes = berth::config::parse_size(text)?;
    let page = berth::host::base_page_bytes() as u64;
    let fits = (page..=BYTES_MAX).contains(&bytes);
    fits.then_some(bytes).ok_or_else(|| format!("from {page} bytes (a page) to 64TiB"))
}

/// Measures arenas of `bytes`, rounded up to whole pages, and prints a line for each page kind.
///
/// # Errors
/// When the host cannot be read or an arena that should fit is refused.
pub fn run(bytes: u64, json: bool) -> Result<(), Failure> {
    let host = Host::read()?;
    let mut rows = Vec::new();
    let able = |node: &&Node| node.memory_available_bytes > 0 && !node.cores.is_empty();
    for node in host.nodes.iter().filter(able) {
        let mut kinds = vec![(Pages::Huge1G, 1 << 30), (Pages::Huge2M, 2 << 20)];
        kinds.extend(host.transparent_bytes.map(|bytes| (Pages::Transparent, bytes)));
        kinds.push((Pages::Plain, host.base_page_bytes));
        for (pages, page_bytes) in kinds {
            let bytes = (bytes as usize).next_multiple_of(page_bytes);
            let measured = match lacking(node, pages, page_bytes, bytes) {
                Some(why) => Err(why),
                None => Ok(measure(node, pages, page_bytes, bytes)?),
            };
            rows.push(Row { node: node.id, pages, page_bytes, measured });
        }
    }
    Ok(output::print(&table(&rows, bytes, json))?)
}

/// Why the node cannot give these pages now.
fn lacking(node: &Node, pages: Pages, page_bytes: usize, bytes: usize) -> Option<String> {
    if pages.hugetlb() {
        let pool = node.hugepages.iter().find(|pool| pool.page_bytes == page_bytes);
        let (need, free) = (bytes / page_bytes, pool.map_or(0, |pool| pool.free));
        return (free < need).then(|| format!("need {need} pages, free {free}"));
    }
    let free = node.memory_available_bytes;
    (free < bytes as u64).then(|| format!("need {bytes} bytes, free {free}"))
}

fn measure(
    node: &Node,
    pages: Pages,
    page_bytes: usize,
    bytes: usize,
) -> Result<Measured, Failure> {
    let plan = ArenaPlan {
        node: node.id,
        bytes,
        pages,
        page_bytes,
        bind: Mode::Auto,
        lock: Mode::Off,
        cpus: node.cpus(),
        ..ArenaPlan::unplaced(Purpose::Lane, bytes)
    };
    let (mut seconds, mut cpu_seconds, mut threads) = (Vec::new(), Vec::new(), 0);
    for _ in 0..ROUNDS {
        let began = Mutex::new(Instant::now());
        let last = Mutex::new((0.0, HashMap::<ThreadId, f64>::new()));
        Arena::map_showing(&plan, &|done, _| {
            if let (Ok(mut began), Ok(mut last)) = (began.lock(), last.lock()) {
                match done {
                    0 => *began = Instant::now(),
                    _ => {
                        last.0 = began.elapsed().as_secs_f64();
                        last.1.insert(std::thread::current().id(), thread_cpu_seconds());
                    }
                }
            }
        })?;
        let (wall, cpu) =
            last.into_inner().map_err(|_| "a populating thread panicked".to_string())?;
        seconds.push(wall);
        cpu_seconds.push(cpu.values().sum());
        threads = cpu.len();
    }
    let (seconds, cpu_seconds) = (median(seconds), median(cpu_seconds));
    let gigabytes = bytes as f64 / 1e9;
    Ok(Measured {
        threads,
        seconds,
        cpu_seconds,
        gigabytes_per_second_per_thread: gigabytes / seconds / threads as f64,
        gigabytes_per_cpu_second: gigabytes / cpu_seconds,
    })
}

/// CPU time of the calling thread since it began.
pub fn thread_cpu_seconds() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid place for the result; the clock is there since Linux 2.6.12.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// What a page kind is called; its size stands beside it.
fn name(pages: Pages) -> &'static str {
    match pages {
        Pages::Huge1G | Pages::Huge2M => "reserved",
        Pages::Transparent => "transparent",
        Pages::Plain => "plain",
    }
}

fn table(rows: &[Row], bytes: u64, json: bool) -> String {
    if json {
        let record = |row: &Row| {
            let mut record = json!({
                "node": row.node,
                "pages": name(row.pages),
                "page_bytes": row.page_bytes,
            });
            match &row.measured {
                Ok(measured) => {
                    record["threads"] = json!(measured.threads);
                    record["seconds"] = json!(measured.seconds);
                    record["cpu_seconds"] = json!(measured.cpu_seconds);
                    record["gigabytes_per_second_per_thread"] =
                        json!(measured.gigabytes_per_second_per_thread);
                    record["gigabytes_per_cpu_second"] = json!(measured.gigabytes_per_cpu_second);
                }
                Err(why) => record["not_measured"] = json!(why),
            }
            record
        };
        let rows: Vec<Value> = rows.iter().map(record).collect();
        let all = json!({"machine": machine(), "bytes": bytes, "rounds": ROUNDS, "rows": rows});
        return format!("{all}\n");
    }
    let mut lines = vec![
        format!("machine: {}; {bytes} bytes, median of {ROUNDS}", machine()),
        "node  pages        page bytes  threads  seconds  GB/s per thread  CPU s  GB per CPU s"
            .into(),
    ];
    for row in rows {
        let kind = format!("{:<4}  {:<11} {:>11}", row.node, name(row.pages), row.page_bytes);
        lines.push(match &row.measured {
            Ok(measured) => format!(
                "{kind}  {:>7}  {:>7.3}  {:>15.2}  {:>5.3}  {:>12.2}",
                measured.threads,
                measured.seconds,
                measured.gigabytes_per_second_per_thread,
                measured.cpu_seconds,
                measured.gigabytes_per_cpu_second
            ),
            Err(why) => format!("{kind}  not measured: {why}"),
        });
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_from_a_page_to_what_can_be_rounded() {
        assert_eq!(size("64TiB"), Ok(BYTES_MAX));
        assert_eq!(size("2MiB"), Ok(2 << 20));
        for wrong in ["0", "1", "65TiB", "18446744073709551615", "x"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn kinds_are_in_lower_case() {
        let row = Row {
            node: 0,
            pages: Pages::Transparent,
            page_bytes: 2 << 20,
            measured: Err("none free".into()),
        };
        let text = table(&[row], 2 << 20, false);
        assert!(
            text.ends_with("0     transparent     2097152  not measured: none free\n"),
            "{text}"
        );
    }

    #[test]
    fn two_steps_of_plain_pages_have_a_speed() {
        let host = Host::read().unwrap();
        let node = host.nodes.iter().find(|node| node.memory_available_bytes > 0).unwrap();
        let measured = measure(node, Pages::Plain, host.base_page_bytes, 128 << 20).unwrap();
        assert!((1..=2).contains(&measured.threads));
        assert!(measured.seconds > 0.0 && measured.seconds < 60.0, "{}", measured.seconds);
        let most = measured.seconds * measured.threads as f64 + 0.1;
        assert!(measured.cpu_seconds > 0.0 && measured.cpu_seconds < most);
        assert!(lacking(node, Pages::Plain, host.base_page_bytes, usize::MAX).is_some());
        assert!(lacking(node, Pages::Huge1G, 1 << 30, 1 << 60).unwrap().starts_with("need "));
    }
}
