//! Cards, their driver, and the way from their node's memory to them.

use std::collections::BTreeSet;

use numa::pci::{Link, PciDevice};

use super::{Check, Seen, Status, may, strictly};
use crate::config::{Backend, Mode};
use crate::host;

/// The first driver that takes what a CUDA 13 toolkit builds.
const DRIVER_MAJOR_MIN: u32 = 580;

pub(super) fn all(seen: &Seen) -> Vec<Check> {
    if seen.config.backend == Backend::Cpu {
        return vec![Check::ok("GPUs", "not looked at: BERTH_BACKEND=cpu")];
    }
    let on_bus = seen.cards.iter().map(|device| device.address.clone());
    let cards: BTreeSet<String> = on_bus.chain(of_driver(seen)).collect();
    if cards.is_empty() {
        return vec![Check::ok("GPUs", "none of NVIDIA; the CPU proves")];
    }
    let mut checks = vec![
        Check::warning(
            "GPUs",
            format!("{} of NVIDIA, but this build has no CUDA: the CPU proves", cards.len()),
            "in the unit: Environment=BERTH_BACKEND=cpu, if that is meant",
        ),
        driver(seen),
    ];
    if seen.text("proc/driver/nvidia/version").is_some() {
        checks.push(library(host::driver_present()));
        checks.push(device_files(seen, &cards));
    }
    for address in &cards {
        let device = seen.cards.iter().find(|device| device.address == *address);
        checks.push(card(seen, address, device));
    }
    checks
}

/// Addresses of the cards that the driver has taken; in a container there may be no other list.
fn of_driver(seen: &Seen) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(seen.root.join("proc/driver/nvidia/gpus")) else {
        return Vec::new();
    };
    entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

fn driver(seen: &Seen) -> Check {
    let name = "driver";
    let Some(text) = seen.text("proc/driver/nvidia/version") else {
        return Check::warning(
            name,
            "not loaded",
            "install the NVIDIA driver, 580 or later, and `modprobe nvidia`; in a container: \
             --gpus all",
        );
    };
    // The first word that is a version; there is a name of varying length before it.
    let version = text.split_whitespace().find_map(|word| {
        let (major, rest) = word.split_once('.')?;
        rest.starts_with(|c: char| c.is_ascii_digit()).then_some(())?;
        Some((word, major.parse::<u32>().ok()?))
    });
    match version {
        None => Check::ok(name, "loaded, its version is not told"),
        Some((word, major)) if major < DRIVER_MAJOR_MIN => Check::warning(
            name,
            format!("{word}; a build with CUDA needs {DRIVER_MAJOR_MIN} or later"),
            format!("install the NVIDIA driver {DRIVER_MAJOR_MIN} or later, then reboot"),
        ),
        Some((word, _)) => Check::ok(name, word),
    }
}

pub(super) fn library(present: bool) -> Check {
    let name = "libcuda";
    if present {
        return Check::ok(name, "can be opened");
    }
    Check::warning(
        name,
        "libcuda.so.1 cannot be opened, though the driver is loaded",
        "install the driver's libraries of the same version; in a container: \
         NVIDIA_DRIVER_CAPABILITIES=compute,utility",
    )
}

/// Files under /dev that libcuda opens.
fn device_files(seen: &Seen, cards: &BTreeSet<String>) -> Check {
    let name = "device files";
    let minors = cards.iter().filter_map(|address| information(seen, address, "Device Minor"));
    let files: Vec<String> = ["nvidiactl".to_owned(), "nvidia-uvm".to_owned()]
        .into_iter()
        .chain(minors.map(|minor| format!("nvidia{minor}")))
        .collect();
    let path = |file: &String| seen.root.join("dev").join(file);
    let missing: Vec<&str> =
        files.iter().filter(|file| !path(file).exists()).map(String::as_str).collect();
    if !missing.is_empty() {
        return Check::warning(
            name,
            format!("missing in /dev: {}", missing.join(", ")),
            "nvidia-modprobe -u -c 0, or nvidia-persistenced at boot; in a container: --gpus all",
        );
    }
    let closed: Vec<&str> = files
        .iter()
        .filter(|file| !may(&path(file), libc::R_OK | libc::W_OK))
        .map(String::as_str)
        .collect();
    if !closed.is_empty() {
        return Check::warning(
            name,
            format!("not to be opened by this user: {}", closed.join(", ")),
            "in the unit: SupplementaryGroups= of the group of these files; in a shell: that group",
        );
    }
    Check::ok(name, files.join(", "))
}

/// The value of a line `Key: \t value` that the driver tells of a card.
fn information(seen: &Seen, address: &str, key: &str) -> Option<String> {
    let text = seen.text(&format!("proc/driver/nvidia/gpus/{address}/information"))?;
    text.lines().find_map(|line| {
        let (head, value) = line.split_once(':')?;
        (head.trim() == key).then(|| value.trim().to_owned())
    })
}

/// One card: what it is, its link, its node.
fn card(seen: &Seen, address: &str, device: Option<&PciDevice>) -> Check {
    let mut fact = vec![address.to_owned()];
    fact.extend(information(seen, address, "Model"));
    fact.extend(information(seen, address, "GPU UUID"));
    let mut faults = Vec::new();
    match device {
        None => fact.push("not in sys/bus/pci: node and link not told".into()),
        Some(device) => {
            match device.node {
                Some(node) => fact.push(format!("node {node}")),
                None => fact.push("node not told".into()),
            }
            faults.extend(node_fault(seen, device.node));
            if let Some(link) = &device.link {
                fact.push(format!("link {}", shown(link.speed_now, link.width_now)));
                faults.extend(link_fault(link));
            }
        }
    }
    let Some(worst) = faults.iter().map(|(status, _, _)| *status).max() else {
        return Check::ok("GPU", fact.join(", "));
    };
    let what: Vec<&str> = faults.iter().map(|(_, what, _)| what.as_str()).collect();
    let remedy: Vec<&str> = faults.iter().map(|(_, _, remedy)| remedy.as_str()).collect();
    let fact = format!("{}: {}", fact.join(", "), what.join("; "));
    Check::bad("GPU", worst, fact, remedy.join("; "))
}

type Fault = (Status, String, String);

/// Is there memory for slots on the node of a card, of the kind that other nodes have?
fn node_fault(seen: &Seen, node: Option<usize>) -> Option<Fault> {
    let status = strictly(seen.config.numa == Mode::Strict);
    let Some(node) = node else {
        // With one node there is no other that it could be on.
        return (seen.topology.nodes.len() > 1).then(|| {
            (
                Status::Warning,
                "its slots may be on the wrong node".to_owned(),
                "turn on NUMA (SRAT, _PXM) in the firmware; BERTH_CPUS names the CPUs near the card"
                    .to_owned(),
            )
        });
    };
    let here = seen.host.nodes.iter().find(|here| here.id == node);
    let Some(here) = here.filter(|here| here.memory_available_bytes > 0) else {
        return Some((
            status,
            format!("no memory of node {node} is open to this process, so no slot is near"),
            format!("in the unit: AllowedMemoryNodes= with {node}, AllowedCPUs= likewise"),
        ));
    };
    let free = |node: &host::Node| node.hugepages.iter().any(|pool| pool.free > 0);
    let elsewhere = seen.host.nodes.iter().find(|other| free(other))?;
    (!free(here)).then(|| {
        (
            status,
            format!("node {node} has no free hugepages, node {} has", elsewhere.id),
            format!("`berth unit` reserves some there: node{node}/hugepages of sysfs"),
        )
    })
}

fn link_fault(link: &Link) -> Option<Fault> {
    let fault = |what: String, remedy: &str| Some((Status::Warning, what, remedy.to_owned()));
    let best = shown(link.speed_max, link.width_max);
    if link.width_now < link.width_max {
        return fault(
            format!("it can do {best}"),
            "seat the card in a slot of full width; see `lspci -vv`, LnkSta",
        );
    }
    if link.speed_now < link.speed_max {
        return fault(
            format!("it can do {best}; an idle card lowers its link"),
            "look again while it works: nvidia-smi --query-gpu=pcie.link.gen.current --format=csv",
        );
    }
    None
}

/// `32 GT/s x16`.
fn shown(speed: u32, width: u32) -> String {
    format!("{} GT/s x{width}", f64::from(speed) / 1000.0)
}
