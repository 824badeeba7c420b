//! Topology, placement and pinning of a Linux host.
//!
//! Everything that is read comes from files under a root (`/` on a real host, a folder of fixtures
//! in a test), without libnuma. These are all:
//!
//! ```text
//! sys/devices/system/cpu/online                                        topology
//! sys/devices/system/cpu/cpu0/topology/thread_siblings_list            topology (if there)
//! sys/devices/system/node/node0/{cpulist,meminfo}                      topology
//! sys/devices/system/node/node0/distance                               topology (if there)
//! sys/devices/system/node/node0/hugepages/hugepages-2048kB/
//!     {nr_hugepages,free_hugepages}                                    topology (if there)
//! sys/kernel/mm/hugepages/hugepages-2048kB/
//!     {nr_hugepages,free_hugepages,resv_hugepages}                     topology (if there)
//! sys/kernel/mm/transparent_hugepage/{enabled,hpage_pmd_size}          topology (if there)
//! proc/meminfo                                                         topology
//! proc/self/status                                                     limits
//! proc/self/{limits,cgroup,mountinfo}                                  limits (if there)
//! <group>/{memory.max,memory.current,memory.stat}                      limits, cgroup v2
//! <group>/hugetlb.2MB.{,rsvd.}{max,current}                            limits, cgroup v2
//! <group>/memory.{limit_in_bytes,usage_in_bytes,stat}                  limits, cgroup v1
//! <group>/hugetlb.2MB.{,rsvd.}{limit_in_bytes,usage_in_bytes}          limits, cgroup v1
//! sys/bus/pci/devices/0000:00:00.0/{vendor,device,class}               pci
//! sys/bus/pci/devices/0000:00:00.0/numa_node                           pci (if there)
//! sys/bus/pci/devices/0000:00:00.0/
//!     {current,max}_link_{speed,width}                                 pci (if there)
//! ```
//!
//! `<group>` is each folder from the control group of this process up to the root of its hierarchy,
//! where `proc/self/mountinfo` says that it is mounted. The cpuset controller has no row: the
//! kernel writes what it leaves, with the affinity mask, as `Cpus_allowed_list` and
//! `Mems_allowed_list` in `proc/self/status`.
//!
//! Any number of CPUs and nodes up to 65,536 will do. Not considered: caches, devices beyond PCI,
//! memory that is not in a node.

mod files;
mod limits;
pub mod pci;
mod pin;
mod topology;

#[cfg(test)]
mod fixture;

pub use files::{format_list, parse_list};
pub use limits::{HugetlbLimit, Limits, MemoryLimit, status_bytes};
pub use pin::{bind_current_thread, current_cpus, pin_current_thread};
pub use topology::{HugePages, Node, Topology};
