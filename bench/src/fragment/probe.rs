//! How fragmented memory is: what the buddy lists say, and what can really be had.

use std::fmt;

use super::{Area, STRETCH_BYTES};
use crate::pool::Added;

pub const BASE_PAGE_BYTES: usize = 4096;
/// Blocks of this order and above are whole stretches of 2 MiB.
const WHOLE_ORDER: usize = (STRETCH_BYTES / BASE_PAGE_BYTES).ilog2() as usize;
/// Stretches that are asked for, to see what comes: few, since others may want them.
const ASKED: usize = 64;

/// One look at the host's memory.
pub struct Probe {
    available_bytes: u64,
    /// In the buddy lists, all and in whole stretches.
    free_bytes: u64,
    whole_bytes: u64,
    /// Of [`ASKED`] stretches in a mapping that asks for transparent hugepages.
    transparent: usize,
    /// Of [`ASKED`] hugetlb pages, or why none could be asked for.
    reserved: Result<usize, String>,
}

impl Probe {
    pub fn take() -> Result<Self, String> {
        let buddies = read("/proc/buddyinfo")?;
        let (free_bytes, whole_bytes) = free(&buddies);
        let transparent = Area::new(ASKED)?.huge()? / STRETCH_BYTES;
        let reserved = Added::up_to(0, ASKED).map(|added| added.pages);
        let available_bytes = available_bytes()?;
        Ok(Probe { available_bytes, free_bytes, whole_bytes, transparent, reserved })
    }
}

impl fmt::Display for Probe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mib = |bytes: u64| bytes >> 20;
        write!(
            f,
            "{} MiB available, {} MiB free, {} MiB of it in whole stretches of 2 MiB; of {ASKED} \
             asked for: {} transparent hugepages, ",
            mib(self.available_bytes),
            mib(self.free_bytes),
            mib(self.whole_bytes),
            self.transparent
        )?;
        match &self.reserved {
            Ok(pages) => write!(f, "{pages} reserved"),
            Err(why) => write!(f, "reserving not tried: {why}"),
        }
    }
}

/// Bytes that the kernel could give to new pages.
pub fn available_bytes() -> Result<u64, String> {
    let meminfo = read("/proc/meminfo")?;
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kilobytes: Option<u64> =
        line.and_then(|l| l.trim().trim_end_matches("kB").trim().parse().ok());
    Ok(kilobytes.ok_or("/proc/meminfo has no MemAvailable")? * 1024)
}

/// Bytes of anonymous hugepages in the mapping that holds an address.
pub fn anonymous_huge_bytes(smaps: &str, address: usize) -> usize {
    let mut inside = false;
    for line in smaps.lines() {
        let range = line.split(' ').next().and_then(|first| first.split_once('-'));
        let range = range.and_then(|(first, end)| {
            let parse = |text| usize::from_str_radix(text, 16).ok();
            Some(parse(first)?..parse(end)?)
        });
        if let Some(range) = range {
            inside = range.contains(&address);
        } else if inside && let Some(rest) = line.strip_prefix("AnonHugePages:") {
            let kilobytes = rest.trim().trim_end_matches("kB").trim().parse::<usize>();
            return kilobytes.unwrap_or(0) * 1024;
        }
    }
    0
}

/// Free bytes in the buddy lists, all and in whole stretches.
fn free(buddies: &str) -> (u64, u64) {
    let (mut all, mut whole) = (0, 0);
    for line in buddies.lines() {
        let counts = line.split_whitespace().skip_while(|word| *word != "zone").skip(2);
        for (order, count) in counts.enumerate() {
            let bytes = count.parse::<u64>().unwrap_or(0) * ((BASE_PAGE_BYTES as u64) << order);
            all += bytes;
            whole += if order >= WHOLE_ORDER { bytes } else { 0 };
        }
    }
    (all, whole)
}

fn read(file: &str) -> Result<String, String> {
    std::fs::read_to_string(file).map_err(|e| format!("{file}: {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buddies_are_summed_by_order() {
        let text = "\
Node 0, zone      DMA      1      0      0      0      0      0      0      0      1      1      3
Node 1, zone   Normal      2      1      0      0      0      0      0      0      0      1      0
";
        let small = 4096 + (1 << 20) + 4 * 4096;
        let large = (2 << 20) + 3 * (4 << 20) + (2 << 20);
        assert_eq!(free(text), (small + large, large));
    }

    #[test]
    fn hugepages_of_the_mapping_that_holds_the_address() {
        let text = "\
7f00-7f10 rw-p 00000000 00:00 0
Size: 16 kB
AnonHugePages:      2048 kB
7f10-7f20 rw-p 00000000 00:00 0
AnonHugePages:      4096 kB
";
        assert_eq!(anonymous_huge_bytes(text, 0x7f00), 2 << 20);
        assert_eq!(anonymous_huge_bytes(text, 0x7f1f), 4 << 20);
        assert_eq!(anonymous_huge_bytes(text, 0x7f20), 0);
    }

    #[test]
    fn this_host_has_memory() {
        let probe = Probe::take().unwrap();
        assert!(probe.available_bytes > 0 && probe.free_bytes >= probe.whole_bytes);
        assert!(probe.transparent <= ASKED);
        // Without root there is a reason in place of a number.
        match &probe.reserved {
            Ok(pages) => assert!(*pages <= ASKED),
            Err(why) => assert!(why.contains("nr_hugepages"), "{why}"),
        }
    }
}
