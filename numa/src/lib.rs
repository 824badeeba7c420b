//! Topology, placement and pinning of a Linux host.
//!
//! Everything that is read comes from files under a root (`/` on a real host, a folder of fixtures
//! in a test):
//!
//! ```text
//! sys/devices/system/node/node0/{cpulist,meminfo,hugepages/hugepages-2048kB/..}   topology
//! sys/devices/system/cpu/{online,cpu0/topology/thread_siblings_list}              topology
//! sys/kernel/mm/{hugepages,transparent_hugepage}                                  topology
//! proc/meminfo                                                                    topology
//! proc/self/{status,limits,cgroup,mountinfo}, the cgroup's own files              limits
//! ```
//!
//! Not considered: distances between nodes, caches, devices, memory that is not in a node.

mod files;
mod limits;
mod pin;
mod topology;

pub use files::{format_list, parse_list};
pub use limits::{Limits, MemoryLimit, status_bytes};
pub use pin::pin_current_thread;
pub use topology::{HugePages, Node, Topology};
