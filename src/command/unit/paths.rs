//! Paths that stand in a unit. What systemd would read as something else is refused before anything
//! is printed.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::config::Config;
use crate::error::{Error, Result};

/// Refuses paths of settings that mean nothing in a unit, or something else than what they say.
///
/// # Errors
/// [`Error::Config`] naming the setting.
pub(super) fn check(config: &Config) -> Result<()> {
    let refuse = |what: &str, path: &Path, why: &str| {
        Err(Error::Config(format!("{what} is {}, {why}", path.display())))
    };
    for (name, path) in named(config) {
        if path.is_relative() {
            let why = "which means nothing in a unit; write an absolute path";
            return refuse(name, path, why);
        }
        let mut parts = path.as_os_str().as_bytes().split(|byte| *byte == b'/');
        if parts.any(|part| part == b"." || part == b"..") {
            return refuse(name, path, "which systemd does not take; write it without . and ..");
        }
    }
    for (name, folder) in written(config) {
        let what = format!("the folder that {name} has the service write");
        if folder == Path::new("/") {
            let why = "so a unit would open all of the host to it; name a path further below";
            return refuse(&what, folder, why);
        }
        if folder.as_os_str().as_bytes().iter().any(|byte| b"\"\\:".contains(byte)) {
            let why = "and a folder that a unit opens may hold no quotes, backslash or colon";
            return refuse(&what, folder, why);
        }
    }
    Ok(())
}

/// The program's path as text.
///
/// # Errors
/// [`Error::Config`] where systemd would start no program that lies there.
pub(super) fn program(path: &Path) -> Result<&str> {
    let odd = |c: char| c.is_control() || "\"'\\".contains(c);
    path.to_str().filter(|text| !text.contains(odd)).ok_or_else(|| {
        Error::Config(format!(
            "this program is {path:?}; systemd starts none whose path has quotes, a backslash, \
             control characters or bytes that are no text: copy it elsewhere"
        ))
    })
}

/// The settings with a path that stand in the unit.
fn named(config: &Config) -> Vec<(&'static str, &Path)> {
    let mut named = vec![("BERTH_STATE_DIR", config.state_dir.as_path())];
    // Another program's variable may have named it: the unit does, too.
    if config.came_from("BERTH_PARAMETER_CACHE") != "the default" {
        named.push(("BERTH_PARAMETER_CACHE", &config.parameter_cache));
    }
    named.extend(dev_parameters(config));
    named.extend(sockets(config));
    named
}

/// Folders that the service writes, with the setting that tells each, apart from its own in /run.
pub(super) fn written(config: &Config) -> Vec<(&'static str, &Path)> {
    let mut written = vec![("BERTH_STATE_DIR", config.state_dir.as_path())];
    let below = |(_, folder): &(_, &Path)| !folder.starts_with("/run/berth");
    written.extend(sockets(config).map(folder_of).filter(below));
    // Stamps of verified parameters are kept beside the dev parameters.
    written.extend(dev_parameters(config).map(folder_of));
    written
}

fn folder_of<'a>((name, path): (&'static str, &'a Path)) -> (&'static str, &'a Path) {
    (name, path.parent().unwrap_or(Path::new("/")))
}

/// Where the setting itself names it: else the unit does not say it.
fn dev_parameters(config: &Config) -> impl Iterator<Item = (&'static str, &Path)> {
    let name = "BERTH_DEV_PARAMETER_DIR";
    let path = config.dev_parameter_dir.as_deref().filter(|_| config.came_from(name) == name);
    path.map(|path| (name, path)).into_iter()
}

fn sockets(config: &Config) -> impl Iterator<Item = (&'static str, &Path)> {
    let listens = [("BERTH_LISTEN", &config.listen), ("BERTH_HTTP_LISTEN", &config.http_listen)];
    listens.into_iter().filter_map(|(name, listen)| {
        listen.strip_prefix("unix://").map(|path| (name, Path::new(path)))
    })
}
