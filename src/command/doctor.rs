//! `berth doctor`: what of this host is right for the service, and how to mend what is not.
//!
//! Facts of the host are read under a root, `/` or a folder of files. What the kernel or a sandbox
//! does not tell is said to be untold, and is no fault. Where a setting is strict, the service
//! would not start, so there an error stands for what is a warning elsewhere.

use std::ffi::CString;
use std::fmt::Write;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use numa::pci::PciDevice;
use numa::{Limits, Topology};
use serde::Serialize;
use serde_json::json;

use super::args::Doctor;
use super::print;
use crate::config::{Config, HugePages, Mode};
use crate::error::{Error, Result};
use crate::host::Host;
use crate::input::class::CircuitId;

mod cpu;
mod gpu;
mod kernel;
mod memory;
mod plan;
mod service;

/// Of parameters that were made here, where BERTH_DEV_PARAMETERS does not allow them.
pub(super) const SERVE_TAKES_NO_DEV: &str =
    "serve refuses them unless BERTH_DEV_PARAMETERS=allow; proofs are valid on no network";

/// What a check came to; the worst is the greatest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
enum Status {
    Ok,
    Warning,
    Error,
}

/// One line of the screen, and under it what mends it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Check {
    name: &'static str,
    status: Status,
    fact: String,
    /// A command, or a line of the unit file; with every warning and every error.
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
}

impl Check {
    fn ok(name: &'static str, fact: impl Into<String>) -> Self {
        Check { name, status: Status::Ok, fact: fact.into(), remedy: None }
    }

    fn bad(
        name: &'static str,
        status: Status,
        fact: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Check { name, status, fact: fact.into(), remedy: Some(remedy.into()) }
    }

    fn warning(name: &'static str, fact: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::bad(name, Status::Warning, fact, remedy)
    }

    fn error(name: &'static str, fact: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::bad(name, Status::Error, fact, remedy)
    }
}

/// An error where a setting is strict, else a warning.
fn strictly(strict: bool) -> Status {
    if strict { Status::Error } else { Status::Warning }
}

/// What the checks look at.
struct Seen<'a> {
    root: &'a Path,
    config: &'a Config,
    topology: Topology,
    limits: Limits,
    /// On the PCI bus.
    cards: Vec<PciDevice>,
    host: Host,
}

impl<'a> Seen<'a> {
    fn new(config: &'a Config, root: &'a Path) -> std::io::Result<Self> {
        let topology = Topology::read(root)?;
        let limits = Limits::read(root)?;
        let cards = numa::pci::nvidia_gpus(root)?;
        // It reads the same files once more.
        let host = Host::read_under(root).map_err(std::io::Error::other)?;
        Ok(Seen { root, config, topology, limits, cards, host })
    }

    /// A path below the root as the host itself would name it.
    fn on_host(&self, path: &Path) -> PathBuf {
        Path::new("/").join(path.strip_prefix(self.root).unwrap_or(path))
    }

    /// The text of a file without white space at its ends; `None` where it cannot be read.
    fn text(&self, path: &str) -> Option<String> {
        text(self.root, path)
    }

    /// The page size that is insisted on, if one is.
    fn insisted_page_bytes(&self) -> Option<usize> {
        match self.config.hugepages {
            HugePages::Huge1G => Some(1 << 30),
            HugePages::Huge2M => Some(2 << 20),
            HugePages::Auto | HugePages::Off => None,
        }
    }
}

fn text(root: &Path, path: &str) -> Option<String> {
    std::fs::read_to_string(root.join(path)).ok().map(|text| text.trim().to_owned())
}

/// May this process open a path so? `mode` is of R_OK, W_OK, X_OK.
fn may(path: &Path, mode: i32) -> bool {
    let Ok(path) = CString::new(path.as_os_str().as_bytes()) else { return false };
    // SAFETY: the path ends in a NUL and outlives the call, which only looks.
    unsafe { libc::access(path.as_ptr(), mode) == 0 }
}

/// A path as a word for a shell.
fn shell_word(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%".contains(c);
    if text.chars().all(plain) { text } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

/// The check for a host whose files cannot be read.
fn unread(root: &Path, error: &std::io::Error) -> Check {
    let told = error.to_string();
    let remedy = match error.kind() {
        ErrorKind::NotFound if root == Path::new("/") => {
            "mount proc on /proc and sysfs on /sys".to_owned()
        }
        ErrorKind::NotFound => {
            "collect that file, too: `berth doctor --help` tells which are read, and how".to_owned()
        }
        // Its error begins with the name of the file.
        ErrorKind::InvalidData if told.contains(" holds ") => {
            let file = told.split(" holds ").next().unwrap_or_default();
            format!("look at {file}: no kernel writes that; if it is a copy, make it anew")
        }
        _ => "make that file readable for this user".to_owned(),
    };
    Check::error("nodes", format!("cannot read the host: {told}"), remedy)
}

/// Does a setting insist on something that a sandbox has not?
fn insists(config: &Config) -> bool {
    let sizes = matches!(config.hugepages, HugePages::Huge1G | HugePages::Huge2M);
    sizes || config.numa == Mode::Strict || config.lock == Mode::Strict
}

/// Runs the command.
///
/// # Errors
/// [`Error::Host`] when a check is an error, after all are printed; [`Error::Config`] for a circuit
/// that there is not, and for a root that is no folder.
pub fn run(config: &Config, args: &Doctor) -> Result<()> {
    let ids: Vec<CircuitId> =
        args.circuit.iter().map(|name| name.parse()).collect::<Result<_>>()?;
    if !args.sysroot.is_dir() {
        return Err(Error::Config(format!(
            "--sysroot {}: there is no such folder that can be read",
            args.sysroot.display()
        )));
    }
    let checks = examine(config, &args.sysroot, &ids);
    let worst = checks.iter().map(|check| check.status).max().unwrap_or(Status::Ok);
    if args.json {
        print(&format!("{}\n", json!({"status": worst, "checks": checks})))?;
    } else {
        print(&screen(&checks))?;
    }
    let errors: Vec<&str> = checks
        .iter()
        .filter(|check| check.status == Status::Error)
        .map(|check| check.name)
        .collect();
    if errors.is_empty() {
        return Ok(());
    }
    Err(Error::Host(format!("the service would not start: see {}", errors.join(", "))))
}

/// All checks, from the kernel up to the service.
fn examine(config: &Config, root: &Path, ids: &[CircuitId]) -> Vec<Check> {
    let mut checks = vec![service::build(config), kernel::release(config, root)];
    match Seen::new(config, root) {
        Ok(seen) => {
            let (plan, planned) = plan::all(&seen, ids);
            checks.extend(cpu::nodes(&seen));
            checks.push(cpu::governor(&seen));
            checks.push(cpu::isolation(&seen));
            checks.push(memory::hugepages(&seen));
            checks.push(memory::transparent(&seen));
            checks.push(memory::lock(&seen, plan.as_ref()));
            checks.push(memory::group(&seen));
            checks.extend(memory::group_hugepages(&seen));
            checks.push(memory::swap(&seen));
            checks.push(kernel::zone_reclaim(&seen));
            checks.push(kernel::balancing(&seen));
            checks.push(kernel::policy(&seen));
            checks.extend(gpu::all(&seen));
            checks.extend(planned);
        }
        Err(error) => checks.push(unread(root, &error)),
    }
    checks.extend(service::parameters(config, ids));
    checks.push(service::state(config));
    checks.push(service::files(root));
    checks
}

/// The checks as text: status, name and fact, and what mends it on a line of its own.
fn screen(checks: &[Check]) -> String {
    let mut text = String::new();
    for check in checks {
        let status = match check.status {
            Status::Ok => "ok",
            Status::Warning => "warning",
            Status::Error => "error",
        };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{status:<8} {:<14} {}", check.name, check.fact);
        if let Some(remedy) = &check.remedy {
            let _ = writeln!(text, "{:<8} -> {remedy}", "");
        }
    }
    text
}

#[cfg(test)]
mod tests;
