//! The page ladder: 1 GiB, 2 MiB, transparent, plain.

use super::{ArenaPlan, HugePages, Mode, Node, Pages, Purpose};
use crate::error::{Error, Result};
use crate::host::Host;

const BYTES_1G: usize = 1 << 30;
const BYTES_2M: usize = 2 << 20;

/// Chooses the pages of every arena, in order; an arena takes its pages out of what is free for
/// the next ones.
pub(super) fn arenas(
    wanted: HugePages,
    host: &Host,
    home: &Node,
    needs: &[(Purpose, usize)],
    warnings: &mut Vec<String>,
) -> Result<Vec<ArenaPlan>> {
    let needs = || needs.iter().copied().filter(|(_, bytes)| *bytes > 0);
    let free = |page_bytes| {
        let pool = home.hugepages.iter().find(|pool| pool.page_bytes == page_bytes);
        pool.map_or(0, |pool| pool.free)
    };
    let (mut free_1g, mut free_2m) = (free(BYTES_1G), free(BYTES_2M));
    if let Some((page_bytes, free)) = match wanted {
        HugePages::Huge1G => Some((BYTES_1G, free_1g)),
        HugePages::Huge2M => Some((BYTES_2M, free_2m)),
        HugePages::Auto | HugePages::Off => None,
    } {
        let need = needs().map(|(_, bytes)| bytes.div_ceil(page_bytes)).sum();
        if need > free {
            return Err(short(home.id, page_bytes, need, free));
        }
    }
    let mut arenas = Vec::new();
    for (purpose, need_bytes) in needs() {
        let (pages, page_bytes) = match wanted {
            HugePages::Huge1G => (Pages::Huge1G, BYTES_1G),
            HugePages::Huge2M => (Pages::Huge2M, BYTES_2M),
            HugePages::Off => (Pages::Plain, host.base_page_bytes),
            // A page of 1 GiB for less than that would be mostly waste.
            HugePages::Auto if need_bytes >= BYTES_1G && fits(need_bytes, BYTES_1G, free_1g) => {
                (Pages::Huge1G, BYTES_1G)
            }
            HugePages::Auto if fits(need_bytes, BYTES_2M, free_2m) => (Pages::Huge2M, BYTES_2M),
            HugePages::Auto => match host.transparent_bytes {
                Some(bytes) => (Pages::Transparent, bytes),
                None => (Pages::Plain, host.base_page_bytes),
            },
        };
        let count = need_bytes.div_ceil(page_bytes);
        match pages {
            Pages::Huge1G => free_1g -= count,
            Pages::Huge2M => free_2m -= count,
            Pages::Transparent | Pages::Plain => {}
        }
        arenas.push(ArenaPlan {
            node: home.id,
            purpose,
            need_bytes,
            bytes: count * page_bytes,
            pages,
            page_bytes,
            bind: Mode::Off,
            lock: Mode::Off,
            cpus: home.cpus(),
        });
    }
    if wanted == HugePages::Auto {
        warn_of_ordinary(home.id, &arenas, free_2m, warnings);
    }
    Ok(arenas)
}

/// Says how many more hugepages would hold the arenas that `auto` left in ordinary pages.
fn warn_of_ordinary(node: usize, arenas: &[ArenaPlan], free: usize, warnings: &mut Vec<String>) {
    let ordinary = arenas.iter().filter(|arena| !arena.pages.hugetlb());
    let more: usize = ordinary.map(|arena| arena.bytes.div_ceil(BYTES_2M)).sum();
    if more > 0 {
        warnings.push(format!(
            "node {node}: {more} more free hugepages of 2 MiB would hold the arenas that are now \
             in ordinary pages ({free} are left free); {}",
            remedy(node, BYTES_2M)
        ));
    }
}

fn fits(bytes: usize, page_bytes: usize, free: usize) -> bool {
    bytes.div_ceil(page_bytes) <= free
}

/// The refusal of a pool that is too small: node, size, need, free, and what to do.
pub(crate) fn short(node: usize, page_bytes: usize, need: usize, free: usize) -> Error {
    Error::Host(format!(
        "node {node}: need {need} hugepages of {}, free {free}; {}",
        super::print::round(page_bytes as u64),
        remedy(node, page_bytes)
    ))
}

fn remedy(node: usize, page_bytes: usize) -> String {
    let kilobytes = page_bytes / 1024;
    let boot = if page_bytes == BYTES_1G {
        "hugepagesz=1G hugepages=N on the kernel's command line"
    } else {
        "vm.nr_hugepages in sysctl.conf"
    };
    format!(
        "reserve them early, before memory is fragmented: {boot}, or \
         /sys/devices/system/node/node{node}/hugepages/hugepages-{kilobytes}kB/nr_hugepages"
    )
}
