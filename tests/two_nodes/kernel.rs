//! What the kernel says of memory and threads, asked without the program's own C.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::c_void;
use std::fs;
use std::ptr::null_mut;

/// One mapping of this process, from /proc/self/numa_maps.
#[derive(Clone, Debug)]
pub struct Mapped {
    pub address: usize,
    /// `default`, `bind:0`, ...
    pub policy: String,
    /// Pages that are there, by node.
    pub pages: BTreeMap<usize, usize>,
    pub page_bytes: usize,
    pub line: String,
}

/// All mappings, ascending by address.
pub fn mappings(numa_maps: &str) -> Vec<Mapped> {
    numa_maps.lines().map(mapped).collect()
}

fn mapped(line: &str) -> Mapped {
    let mut words = line.split(' ');
    let address = usize::from_str_radix(words.next().unwrap(), 16).unwrap();
    let policy = words.next().unwrap().to_string();
    let mut mapped =
        Mapped { address, policy, pages: BTreeMap::new(), page_bytes: 0, line: line.to_string() };
    for (key, value) in words.filter_map(|word| word.split_once('=')) {
        if key == "kernelpagesize_kB" {
            mapped.page_bytes = value.parse::<usize>().unwrap() * 1024;
        } else if let Some(node) = key.strip_prefix('N').and_then(|n| n.parse().ok()) {
            mapped.pages.insert(node, value.parse().unwrap());
        }
    }
    mapped
}

/// Pages of every mapping in hugepages of 2 MiB, by (policy, node).
pub fn huge_pages(mappings: &[Mapped]) -> BTreeMap<(String, usize), usize> {
    let mut sums = BTreeMap::new();
    for mapped in mappings.iter().filter(|mapped| mapped.page_bytes == 2 << 20) {
        for (node, pages) in &mapped.pages {
            *sums.entry((mapped.policy.clone(), *node)).or_insert(0) += pages;
        }
    }
    sums
}

/// The mapping that an address is in.
pub fn mapping_of(address: usize) -> Mapped {
    let all = mappings(&fs::read_to_string("/proc/self/numa_maps").unwrap());
    all.into_iter().rev().find(|mapped| mapped.address <= address).unwrap()
}

/// The node of the page at an address, by get_mempolicy(2).
pub fn node_by_policy(address: *const u8) -> i32 {
    let mut node: i32 = -1;
    // linux/mempolicy.h: MPOL_F_NODE (tell the node), MPOL_F_ADDR (of the page at the address).
    let flags = 1 | 1 << 1;
    // SAFETY: the call writes one int to `node`; no mask is asked for.
    let failed = unsafe {
        libc::syscall(libc::SYS_get_mempolicy, &raw mut node, null_mut::<u64>(), 0, address, flags)
    };
    assert_eq!(failed, 0, "get_mempolicy: {}", std::io::Error::last_os_error());
    node
}

/// The nodes of the pages at some addresses, by move_pages(2), which moves nothing when it is not
/// told where to; negative where there is no page.
pub fn nodes_by_move(addresses: &[*const u8]) -> Vec<i32> {
    let mut nodes = vec![i32::MIN; addresses.len()];
    // SAFETY: both lists have `addresses.len()` entries, and the list of targets is null.
    let failed = unsafe {
        libc::syscall(
            libc::SYS_move_pages,
            0,
            addresses.len(),
            addresses.as_ptr().cast::<*mut c_void>(),
            null_mut::<i32>(),
            nodes.as_mut_ptr(),
            0,
        )
    };
    assert_eq!(failed, 0, "move_pages: {}", std::io::Error::last_os_error());
    nodes
}

/// A thread of this process.
#[derive(Clone, Debug)]
pub struct Thread {
    pub name: String,
    /// A list as the kernel writes it.
    pub allowed: String,
    /// Where it ran last.
    pub cpu: usize,
    /// User and system time, in clock ticks.
    pub ticks: u64,
}

/// All threads, in the order in which they were made.
pub fn threads() -> Vec<Thread> {
    let mut ids: Vec<u32> = fs::read_dir("/proc/self/task")
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_str().unwrap().parse().unwrap())
        .collect();
    ids.sort_unstable();
    ids.into_iter().filter_map(thread).collect()
}

/// `None` for a thread that has ended meanwhile.
fn thread(id: u32) -> Option<Thread> {
    let read = |name: &str| fs::read_to_string(format!("/proc/self/task/{id}/{name}")).ok();
    let status = read("status")?;
    let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    let stat = read("stat")?;
    // proc_pid_stat(5): the name may hold anything, so fields are counted after its bracket, from
    // the third on; utime is the 14th, stime the 15th, processor the 39th.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let number = |field: usize| fields[field - 3].parse::<u64>().unwrap();
    Some(Thread {
        name: read("comm")?.trim().to_string(),
        allowed: allowed.trim().to_string(),
        cpu: number(39) as usize,
        ticks: number(14) + number(15),
    })
}

/// The CPUs on which threads were found, by name, over some time.
#[derive(Default)]
pub struct Sightings {
    pub cpus: BTreeMap<String, BTreeSet<usize>>,
    pub looks: usize,
}

impl Sightings {
    pub fn look(&mut self) {
        self.looks += 1;
        for thread in threads() {
            self.cpus.entry(thread.name).or_default().insert(thread.cpu);
        }
    }
}
