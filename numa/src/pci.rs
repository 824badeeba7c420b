//! PCI devices: which there are, which node each is on, how its link runs.

use std::io::{ErrorKind, Result};
use std::path::Path;

use crate::files::{read, read_if_there, wrong};

const VENDOR_NVIDIA: u16 = 0x10de;
/// Class and subclass of a display controller: with a screen (VGA), or without (3D).
const DISPLAY_CLASSES: [u32; 2] = [0x0300, 0x0302];

/// One PCI device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PciDevice {
    /// As the kernel writes it: `0000:65:00.0`.
    pub address: String,
    pub vendor: u16,
    pub device: u16,
    /// Class, subclass and programming interface, a byte each.
    pub class: u32,
    /// `None` where the firmware does not say, or the kernel knows no nodes.
    pub node: Option<usize>,
    /// `None` for a device that is not on PCI Express, or whose link the kernel cannot read.
    pub link: Option<Link>,
}

/// A PCI Express link. An idle GPU may run its link below the best.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// In megatransfers per second and lane: 32,000 for generation 5.
    pub speed_now: u32,
    /// The best that the device can do, in the same unit.
    pub speed_max: u32,
    /// In lanes.
    pub width_now: u32,
    /// The most that the device has, in lanes.
    pub width_max: u32,
}

impl PciDevice {
    /// Whether this is a display controller of NVIDIA; its audio function and its switches are not.
    pub fn is_nvidia_gpu(&self) -> bool {
        is_nvidia_gpu(self.vendor, self.class)
    }
}

fn is_nvidia_gpu(vendor: u16, class: u32) -> bool {
    vendor == VENDOR_NVIDIA && DISPLAY_CLASSES.contains(&(class >> 8))
}

/// All PCI devices under `root`, ascending by address; none where there is no PCI bus.
///
/// # Errors
/// A file that is unreadable or not as the kernel writes it; the error names it.
pub fn devices(root: &Path) -> Result<Vec<PciDevice>> {
    devices_where(root, |_, _| true)
}

/// The GPUs of NVIDIA among [`devices`]. Nothing else is read of other devices than what they are:
/// to ask for the link of a sleeping device wakes it.
///
/// # Errors
/// As [`devices`].
pub fn nvidia_gpus(root: &Path) -> Result<Vec<PciDevice>> {
    devices_where(root, is_nvidia_gpu)
}

/// The devices whose vendor and class are wanted.
fn devices_where(root: &Path, wanted: impl Fn(u16, u32) -> bool) -> Result<Vec<PciDevice>> {
    let folder = root.join("sys/bus/pci/devices");
    let named = |e: std::io::Error| {
        std::io::Error::new(e.kind(), format!("cannot read {}: {e}", folder.display()))
    };
    let entries = match std::fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(named(e)),
    };
    let mut addresses = Vec::new();
    for entry in entries {
        let name = entry.map_err(named)?.file_name();
        addresses.extend(name.to_str().and_then(parse_address));
    }
    addresses.sort_unstable();
    let mut devices = Vec::new();
    for address in addresses {
        let address = format_address(address);
        devices.extend(device(&folder.join(&address), address, &wanted)?);
    }
    Ok(devices)
}

/// One device; `None` if it is not wanted, or was taken out since the bus was listed.
fn device(
    folder: &Path,
    address: String,
    wanted: impl Fn(u16, u32) -> bool,
) -> Result<Option<PciDevice>> {
    let Some(vendor) = read_hex(&folder.join("vendor"))? else { return Ok(None) };
    let Some(class) = read_hex(&folder.join("class"))? else { return Ok(None) };
    // Vendors and devices have 16 bits; what is longer is no such id and is caught here.
    let narrow = |name: &str, value: u32| {
        u16::try_from(value)
            .map_err(|_| wrong(&folder.join(name), &format!("{value:#x}"), "a number of 16 bits"))
    };
    let vendor = narrow("vendor", vendor)?;
    if !wanted(vendor, class) {
        return Ok(None);
    }
    let Some(device) = read_hex(&folder.join("device"))? else { return Ok(None) };
    let node_path = folder.join("numa_node");
    let node = match read_if_there(&node_path)? {
        None => None,
        Some(text) => {
            let number: i64 =
                text.trim_end().parse().map_err(|_| wrong(&node_path, &text, "a node"))?;
            usize::try_from(number).ok()
        }
    };
    let device = narrow("device", device)?;
    Ok(Some(PciDevice { address, vendor, device, class, node, link: link(folder) }))
}

/// The link, if all that there is to know of it is known. The kernel answers with an error or with
/// `Unknown` where it cannot read the device's registers; that is no fault of the host.
fn link(folder: &Path) -> Option<Link> {
    let text = |name: &str| read(&folder.join(name)).ok();
    let width = |name: &str| {
        let lanes: u32 = text(name)?.trim_end().parse().ok()?;
        (1..=32).contains(&lanes).then_some(lanes)
    };
    let speed = |name: &str| parse_speed(&text(name)?);
    Some(Link {
        speed_now: speed("current_link_speed")?,
        speed_max: speed("max_link_speed")?,
        width_now: width("current_link_width")?,
        width_max: width("max_link_width")?,
    })
}

/// Megatransfers per second of `2.5 GT/s PCIe` (`2.5 GT/s` before Linux 5.7).
fn parse_speed(text: &str) -> Option<u32> {
    let (number, unit) = text.trim_end().split_once(' ')?;
    if unit.split(' ').next() != Some("GT/s") {
        return None;
    }
    let (whole, tenths) = number.split_once('.').unwrap_or((number, "0"));
    let digit = tenths.len() == 1;
    let (whole, tenths): (u32, u32) = (whole.parse().ok()?, tenths.parse().ok()?);
    digit.then_some(whole.checked_mul(1000)?.checked_add(tenths * 100)?)
}

/// A number that sysfs writes as `0x10de`; `None` where there is no such file.
fn read_hex(path: &Path) -> Result<Option<u32>> {
    let Some(text) = read_if_there(path)? else { return Ok(None) };
    text.trim_end()
        .strip_prefix("0x")
        .and_then(|digits| parse_hex(digits, 8))
        .map(Some)
        .ok_or_else(|| wrong(path, &text, "a number such as 0x10de"))
}

/// A PCI address as the kernel writes it, from the forms that other programs use: `65:00.0` without
/// a domain, `00000000:65:00.0` of nvidia-smi, capital digits. `None` if it is none.
///
/// ```
/// assert_eq!(numa::pci::normalise_address("00000000:65:00.0").as_deref(), Some("0000:65:00.0"));
/// ```
pub fn normalise_address(text: &str) -> Option<String> {
    parse_address(text).map(format_address)
}

/// Domain, bus, device and function.
type Address = (u32, u32, u32, u32);

fn parse_address(text: &str) -> Option<Address> {
    let (rest, function) = text.split_once('.')?;
    let mut parts = rest.rsplit(':');
    let device = parse_hex(parts.next()?, 2).filter(|device| *device < 32)?;
    let bus = parse_hex(parts.next()?, 2)?;
    let domain = parts.next().map_or(Some(0), |domain| parse_hex(domain, 8))?;
    let function = parse_hex(function, 1).filter(|function| *function < 8)?;
    parts.next().is_none().then_some((domain, bus, device, function))
}

fn format_address((domain, bus, device, function): Address) -> String {
    format!("{domain:04x}:{bus:02x}:{device:02x}.{function}")
}

/// At least one and at most `digits_max` hexadecimal digits.
fn parse_hex(text: &str, digits_max: usize) -> Option<u32> {
    let right = text.len() <= digits_max && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if right { u32::from_str_radix(text, 16).ok() } else { None }
}

#[cfg(test)]
mod tests;
