//! The machine, as records name it.

use std::path::Path;

use serde_json::{Value, json};

/// The processor and its CPUs in one line.
pub fn machine() -> String {
    let cpus = std::thread::available_parallelism().map_or(0, usize::from);
    format!("{}, {cpus} CPUs", processor())
}

/// Kernel, processor, nodes with their cores and pools, memory and page kinds.
///
/// # Errors
/// A host whose files cannot be read.
pub fn record() -> Result<Value, String> {
    let topology = numa::Topology::read(Path::new("/")).map_err(|e| e.to_string())?;
    let nodes: Vec<Value> = topology
        .nodes
        .iter()
        .map(|node| {
            let pools: Vec<Value> = node
                .hugepages
                .iter()
                .map(|pool| {
                    json!({
                        "page_bytes": pool.page_bytes,
                        "total": pool.total,
                        "free": pool.free,
                    })
                })
                .collect();
            json!({
                "node": node.id,
                "cores": node.cores,
                "memory_bytes": node.memory_total_bytes,
                "hugepages": pools,
            })
        })
        .collect();
    let memory_bytes: u64 = topology.nodes.iter().map(|node| node.memory_total_bytes).sum();
    Ok(json!({
        "kernel": line("/proc/sys/kernel/osrelease"),
        "processor": processor(),
        "cores": topology.nodes.iter().map(|node| node.cores.len()).sum::<usize>(),
        "cpus": topology.nodes.iter().map(|node| node.cpus().len()).sum::<usize>(),
        "nodes": nodes,
        "memory_bytes": memory_bytes,
        "memory_available_bytes": topology.memory_available_bytes,
        "base_page_bytes": berth::host::base_page_bytes(),
        "transparent_hugepages": line("/sys/kernel/mm/transparent_hugepage/enabled"),
        "transparent_bytes": topology.transparent_bytes,
        "load": line("/proc/loadavg"),
    }))
}

fn processor() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    info.lines()
        .find_map(|line| line.strip_prefix("model name"))
        .map_or("unknown processor", |rest| rest.trim_start_matches([' ', '\t', ':']))
        .to_string()
}

/// A file of one line; `None` where the kernel has no such file.
fn line(file: &str) -> Option<String> {
    Some(std::fs::read_to_string(file).ok()?.trim().to_string())
}
