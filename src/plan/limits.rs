//! What the host allows the plan: binding to nodes, locking in memory, devices.

use super::layout::{Demand, Layout};
use super::{ArenaPlan, ClassNeed, Config, Mode, NodePlan, size};
use crate::config::{Backend, SrsPlace, WitnessMaker};
use crate::error::{Error, Result};
use crate::host::Host;

/// Refuses what only a device could do, or native code for a circuit that has none, and says what
/// has no effect without a device.
pub(super) fn without_device(
    config: &Config,
    classes: &[ClassNeed],
    warnings: &mut Vec<String>,
) -> Result<()> {
    let refuse = |what: &str, why: &str| Err(Error::Config(format!("{what}: {why}")));
    if config.backend == Backend::Cuda {
        return refuse("BERTH_BACKEND=cuda", "this build has no CUDA; use auto or cpu");
    }
    if config.srs == SrsPlace::Device {
        return refuse("BERTH_SRS=device", "this build has no CUDA; use auto or host");
    }
    let none = |class: &&ClassNeed| !config.witness.is_native(class.id.kind);
    if config.witness == WitnessMaker::Native
        && let Some(class) = classes.iter().find(none)
    {
        let why = format!("there is no native code for {}; use auto", class.id);
        return refuse("BERTH_WITNESS=native", &why);
    }
    for name in ["BERTH_GPUS", "BERTH_LANES_PER_GPU", "BERTH_DEVICE_MEMORY_LIMIT"] {
        if config.came_from(name) == name {
            warnings.push(format!("{name} has no effect: this build has no CUDA"));
        }
    }
    Ok(())
}

/// Binds every arena to its node, if the kernel knows nodes. Where the one node of a plan does not
/// hold its arenas, those in ordinary pages go wherever there is room.
pub(super) fn place(config: &Config, host: &Host, layout: &mut Layout, warnings: &mut Vec<String>) {
    let mode = if host.numa { config.numa } else { Mode::Off };
    let far = |node: &&NodePlan| config.numa != Mode::Off && !node.local();
    for node in layout.nodes.iter().filter(far) {
        let what = node.need_and_free();
        assert_eq!(config.numa, Mode::Auto, "strict has refused this: {what}");
        warnings.push(format!("{what}; those in ordinary pages are not bound to it"));
    }
    for arena in &mut layout.arenas {
        // Pages of a pool were counted on this node, so that is where they must come from.
        let node = layout.nodes.iter().find(|node| node.node == arena.node);
        let here = arena.pages.hugetlb() || node.is_some_and(NodePlan::local);
        arena.bind = if here { mode } else { Mode::Off };
    }
}

/// Locks what is not hugetlb, if the limit allows it. The limit is that of the process, so it is
/// held against the arenas of all nodes together.
pub(super) fn lock(
    config: &Config,
    host: &Host,
    layout: &mut Layout,
    warnings: &mut Vec<String>,
) -> Result<()> {
    let need = layout.ordinary_bytes();
    let mut mode = config.lock;
    if let Some(limit) = host.lock_bytes
        && mode != Mode::Off
        && need as u64 > limit
    {
        let short = format!(
            "{} of arenas cannot be locked in memory: the limit is {} (raise LimitMEMLOCK in the \
             unit, or ulimit -l)",
            size(need as u64),
            size(limit)
        );
        if mode == Mode::Strict {
            return Err(Error::Host(format!("{short} (BERTH_LOCK=strict)")));
        }
        warnings.push(format!("{short}; they may be swapped out"));
        mode = Mode::Off;
    }
    let ordinary = |arena: &&mut ArenaPlan| !arena.pages.hugetlb();
    for arena in layout.arenas.iter_mut().filter(ordinary) {
        arena.lock = mode;
    }
    Ok(())
}

/// Warns where the control group would slow down a process of this plan: it is not refused, since
/// what it may take is more, but it would crawl.
pub(super) fn throttle(demand: &Demand, layout: &Layout, warnings: &mut Vec<String>) {
    let need = (layout.ordinary_bytes() + demand.beside_bytes(layout)) as u64;
    if let Some(throttle) = &demand.host.throttle
        && need > throttle.bytes
    {
        warnings.push(format!(
            "the plan needs {} outside of reserved pages and would be throttled from {} on, by {}; \
             raise that (MemoryHigh= of the unit), or set fewer BERTH_SLOTS",
            size(need),
            size(throttle.bytes),
            throttle.by
        ));
    }
}

/// Warns of a GPU whose node has no slots: what it reads would cross the link between the nodes.
pub(super) fn look_at_gpus(
    config: &Config,
    host: &Host,
    nodes: &[NodePlan],
    warnings: &mut Vec<String>,
) {
    if config.backend == Backend::Cpu || config.numa == Mode::Off {
        return;
    }
    for gpu in &host.gpus {
        if let Some(node) = gpu.node
            && !nodes.iter().any(|plan| plan.node == node)
        {
            let with: Vec<usize> = nodes.iter().map(|plan| plan.node).collect();
            warnings.push(format!(
                "GPU {} is on node {node}, which has no slots: those of node {} are far from it",
                gpu.address,
                numa::format_list(&with)
            ));
        }
    }
}
