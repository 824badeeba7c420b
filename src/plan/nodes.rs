//! Which nodes get a lane, and for whom the cores of the others work.
//!
//! - A lane with its copy of the SRS, its slots and its threads goes to every node with cores that
//!   holds them in its own memory, the nodes with the most cores first, as long as the host as a
//!   whole has room. There is at least one.
//! - Where not one node holds them, they go to the node with the most cores and are not bound to
//!   it; where no node has both cores and memory, to the one with the most memory.
//! - The cores of the other nodes work for the nearest lane that then still has room: at synthesis
//!   and in the lane, which on the CPU backend is most of the work. They are left idle rather than
//!   that a lane loses its place or the plan its room.
//! - Fewer slots or synthesis threads than nodes are for so many lanes, the first.
//! - `BERTH_NUMA=strict` refuses a node with cores that does not hold its share, and lends none.
//! - A page size that was asked for and is short on a node with a lane is refused under any
//!   setting; `BERTH_CPUS` leaves a node out.
//! - `BERTH_NUMA=off` takes all nodes as one.

use std::cmp::Reverse;

use super::Mode;
use super::layout::{Demand, Layout, Site};
use super::print::gather;
use crate::error::{Error, Result};
use crate::host::Node;

/// A node without a lane, and why.
struct Without<'a> {
    node: &'a Node,
    why: String,
}

/// Decides the nodes and lays the plan out on them; what the operator should know of it goes to
/// `warnings`. All nodes as one, where they are taken so, are put in `one`.
///
/// # Errors
/// [`Error::Host`] where there is no CPU or no memory, and, naming the node, where
/// `BERTH_NUMA=strict` or pages of a size that was asked for cannot be had.
pub(super) fn choose<'n>(
    demand: &Demand,
    nodes: &'n [Node],
    one: &'n mut Node,
    warnings: &mut Vec<String>,
) -> Result<Layout<'n>> {
    if nodes.iter().all(|node| node.cores.is_empty()) {
        return Err(Error::Host("no CPU is left to this process".to_owned()));
    }
    if !nodes.iter().any(has_memory) {
        return Err(Error::Host("no node has memory that this process may take".to_owned()));
    }
    let mut layout = match demand.config.numa {
        Mode::Off => {
            *one = whole(nodes);
            demand.lay_out(vec![Site::new(one)])
        }
        Mode::Strict => strict(demand, nodes, warnings)?,
        Mode::Auto => auto(demand, nodes, warnings),
    };
    let Some(short) = layout.short.take() else { return Ok(layout) };
    let several = if layout.nodes.len() > 1 { "; BERTH_CPUS can leave the node out" } else { "" };
    Err(Error::Host(format!("{short}{several}")))
}

fn has_memory(node: &Node) -> bool {
    node.memory_available_bytes > 0 || node.hugepages.iter().any(|pool| pool.free > 0)
}

/// All nodes as one, under the id of the one with the most cores.
fn whole(nodes: &[Node]) -> Node {
    let mut whole = Node { id: by_cores(nodes.iter().collect())[0].id, ..Node::default() };
    for node in nodes {
        whole.cores.extend(node.cores.iter().cloned());
        whole.memory_available_bytes =
            whole.memory_available_bytes.saturating_add(node.memory_available_bytes);
        for pool in &node.hugepages {
            match whole.hugepages.iter_mut().find(|sum| sum.page_bytes == pool.page_bytes) {
                Some(sum) => {
                    sum.total = sum.total.saturating_add(pool.total);
                    sum.free = sum.free.saturating_add(pool.free);
                }
                None => whole.hugepages.push(*pool),
            }
        }
    }
    whole.cores.sort_unstable();
    whole
}

/// The nodes with the most cores first, of equals the one with the lowest id.
fn by_cores(mut nodes: Vec<&Node>) -> Vec<&Node> {
    nodes.sort_by_key(|node| (Reverse(node.cores.len()), node.id));
    nodes
}

fn sites<'n>(lanes: &[&'n Node]) -> Vec<Site<'n>> {
    lanes.iter().map(|node| Site::new(node)).collect()
}

/// Every node with cores holds its share, or the start is refused. Fewer slots or synthesis threads
/// than nodes leave the last nodes idle: nothing of them is far then.
fn strict<'n>(
    demand: &Demand,
    nodes: &'n [Node],
    warnings: &mut Vec<String>,
) -> Result<Layout<'n>> {
    let all = by_cores(nodes.iter().filter(|node| !node.cores.is_empty()).collect());
    if let Some(node) = all.iter().find(|node| !has_memory(node)) {
        return Err(refusal(&all, node.id, &no_memory(node), "allow this process memory of it"));
    }
    let (most, by) = demand.lanes_max();
    let (lanes, idle) = all.split_at(most.min(all.len()));
    let layout = demand.lay_out(sites(lanes));
    if let Some(node) = layout.nodes.iter().find(|node| !node.local()) {
        let advice = "free memory there, or set fewer BERTH_SLOTS";
        return Err(refusal(&all, node.node, &node.need_and_free(), advice));
    }
    let why = format!("{by}={most} is for no more lanes, and BERTH_NUMA=strict lends nothing");
    let idle: Vec<_> = idle.iter().map(|node| (node.id, left_idle(node, &why))).collect();
    gather(&idle, warnings);
    Ok(layout)
}

/// What `BERTH_NUMA=strict` says of a node that does not hold its share, and how to leave it out.
fn refusal(all: &[&Node], id: usize, what: &str, advice: &str) -> Error {
    let others = || all.iter().filter(|node| node.id != id);
    let (mut ids, mut cpus): (Vec<usize>, Vec<usize>) =
        (others().map(|node| node.id).collect(), others().flat_map(|node| node.cpus()).collect());
    ids.sort_unstable();
    cpus.sort_unstable();
    let (ids, cpus) = (numa::format_list(&ids), numa::format_list(&cpus));
    let without = if all.len() > 1 {
        format!(
            ", or leave the node out: BERTH_CPUS={cpus}, or numactl --cpunodebind={ids} \
             --membind={ids}"
        )
    } else {
        String::new()
    };
    Error::Host(format!("{what} (BERTH_NUMA=strict); {advice}{without}"))
}

fn auto<'n>(demand: &Demand, nodes: &'n [Node], warnings: &mut Vec<String>) -> Layout<'n> {
    let with_cores = by_cores(nodes.iter().filter(|node| !node.cores.is_empty()).collect());
    let (mut lanes, bare): (Vec<&Node>, Vec<&Node>) =
        with_cores.into_iter().partition(|node| has_memory(node));
    let mut without: Vec<Without> =
        bare.into_iter().map(|node| Without { node, why: no_memory(node) }).collect();
    if lanes.is_empty() {
        return far(demand, nodes, &without, warnings);
    }
    let (most, by) = demand.lanes_max();
    for node in lanes.split_off(most.min(lanes.len())) {
        without.push(Without { node, why: format!("{by}={most} is for no more lanes") });
    }
    let mut layout = demand.lay_out(sites(&lanes));
    while lanes.len() > 1 {
        // A node that does not hold its share holds no larger one either.
        let short: Vec<usize> =
            (0..lanes.len()).filter(|&index| !layout.nodes[index].local()).collect();
        let kept = usize::from(short.len() == lanes.len());
        for &index in short[kept..].iter().rev() {
            let why = layout.nodes[index].need_and_free();
            without.push(Without { node: lanes.remove(index), why });
        }
        if short.is_empty() {
            let Some(why) = demand.excess(&layout) else { break };
            let (fits, why) = most_that_fit(demand, &lanes, why);
            for node in lanes.split_off(fits) {
                without.push(Without { node, why: format!("with a lane there {why}") });
            }
        }
        layout = demand.lay_out(sites(&lanes));
    }
    without.sort_by_key(|without| (Reverse(without.node.cores.len()), without.node.id));
    // The pool of another node may hold what the memory of the one that is left does not.
    let alone = |node| demand.lay_out(sites(&[node]));
    if let [home] = lanes[..]
        && let Some(why) = lacks(demand, &layout)
        && let Some(other) = without
            .iter_mut()
            .find(|other| has_memory(other.node) && lacks(demand, &alone(other.node)).is_none())
    {
        layout = alone(other.node);
        *other = Without { node: home, why };
    }
    lend(demand, layout, &without, warnings)
}

/// How many of the first nodes the host as a whole has room for, one at least, and why not for one
/// more; `why` not for all. By halves: there may be hundreds.
fn most_that_fit(demand: &Demand, lanes: &[&Node], mut why: String) -> (usize, String) {
    let (mut fits, mut over) = (1, lanes.len());
    while over - fits > 1 {
        let middle = fits.midpoint(over);
        match demand.excess(&demand.lay_out(sites(&lanes[..middle]))) {
            None => fits = middle,
            Some(excess) => (over, why) = (middle, excess),
        }
    }
    (fits, why)
}

/// What the node of the only lane, or the host, lacks for it.
fn lacks(demand: &Demand, layout: &Layout) -> Option<String> {
    let node = &layout.nodes[0];
    if node.local() { demand.excess(layout) } else { Some(node.need_and_free()) }
}

/// The lane on the node with the most memory, all cores on others.
fn far<'n>(
    demand: &Demand,
    nodes: &'n [Node],
    without: &[Without<'n>],
    warnings: &mut Vec<String>,
) -> Layout<'n> {
    let bytes = |node: &Node| {
        let pools = node.hugepages.iter().map(|pool| pool.free.saturating_mul(pool.page_bytes));
        pools.fold(node.memory_available_bytes, |sum, bytes| sum.saturating_add(bytes as u64))
    };
    let home = nodes
        .iter()
        .reduce(|best, node| if bytes(node) > bytes(best) { node } else { best })
        .expect("a node has memory");
    let mut site = Site::new(home);
    for other in without {
        site.borrow(other.node);
    }
    let told: Vec<_> =
        without.iter().map(|other| (other.node.id, lent(other.node, home, &other.why))).collect();
    gather(&told, warnings);
    demand.lay_out(vec![site])
}

/// Gives the cores of nodes without a lane to those with one. There may be hundreds of either: a
/// lane that had no room for the cores of one node is not tried with as many of another, since
/// nothing is taken back in between.
fn lend<'n>(
    demand: &Demand,
    mut layout: Layout<'n>,
    without: &[Without<'n>],
    warnings: &mut Vec<String>,
) -> Layout<'n> {
    let mut refused = vec![(usize::MAX, usize::MAX); layout.sites.len()];
    let (mut lenders, mut idle) = (Vec::new(), Vec::new());
    for Without { node, why } in without {
        let (cores, cpus) = (node.cores.len(), node.cores.iter().map(Vec::len).sum());
        let open = |index: &usize| cores < refused[*index].0 || cpus < refused[*index].1;
        let open = (0..layout.sites.len()).filter(open);
        let mut nearest: Vec<usize> = open.collect();
        nearest.sort_by_cached_key(|&index| node.distance(layout.sites[index].node.id));
        let with = nearest.into_iter().find_map(|index| {
            let mut sites = layout.sites.clone();
            sites[index].borrow(node);
            let next = demand.lay_out(sites);
            let place = next.local() || !layout.local();
            let fits = place && next.short.is_none() && demand.excess(&next).is_none();
            if !fits {
                refused[index] = (cores, cpus);
            }
            fits.then_some((index, next))
        });
        match with {
            Some((index, next)) => {
                lenders.push((node.id, lent(node, next.sites[index].node, why)));
                layout = next;
            }
            None => {
                let why = format!("{why}, and no other lane has room for what more threads need");
                idle.push((node.id, left_idle(node, &why)));
            }
        }
    }
    gather(&lenders, warnings);
    gather(&idle, warnings);
    layout
}

fn no_memory(node: &Node) -> String {
    let cpus = numa::format_list(&node.cpus());
    format!("node {} with CPUs {cpus} has no memory that this process may take", node.id)
}

fn lent(node: &Node, to: &Node, why: &str) -> String {
    let (id, cores, to) = (node.id, cores(node), to.id);
    format!("node {id} lends {cores} to the lane on node {to}, across the link: {why}")
}

fn left_idle(node: &Node, why: &str) -> String {
    format!("node {} leaves {} idle: {why}", node.id, cores(node))
}

fn cores(node: &Node) -> String {
    match node.cores.len() {
        1 => "its core".to_owned(),
        cores => format!("its {cores} cores"),
    }
}
