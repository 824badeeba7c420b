//! The program and what the service keeps: build, parameters, state, files.

use std::path::Path;

use super::{Check, SERVE_TAKES_NO_DEV, may, shell_word, text};
use crate::command::VERSION;
use crate::config::{Backend, Config, DevParameters};
use crate::input::class::CircuitId;
use crate::prover::setup;
use crate::srs::find::{Origin, Search};
use crate::srs::manifest::Manifest;

/// Connections, parameters and logs need some; systemd and login shells give as many.
const OPEN_FILES_MIN: u64 = 1024;

pub(super) fn build(config: &Config) -> Check {
    let name = "build";
    if config.backend == Backend::Cuda {
        return Check::error(
            name,
            format!("{VERSION}; BERTH_BACKEND=cuda requires what this build has not"),
            "BERTH_BACKEND=auto, or cpu",
        );
    }
    Check::ok(name, VERSION)
}

/// The parameters of the circuits that were named or are enabled; else which circuits have some.
pub(super) fn parameters(config: &Config, named: &[CircuitId]) -> Vec<Check> {
    let mut ids = named.to_vec();
    if ids.is_empty() {
        ids.extend(config.circuits.iter().flatten());
    }
    if ids.is_empty() { vec![official(config)] } else { each(config, &ids) }
}

const NAME: &str = "parameters";

fn each(config: &Config, ids: &[CircuitId]) -> Vec<Check> {
    let directory = config.parameter_cache.display();
    ids.iter()
        .map(|id| match setup::search(config, *id) {
            Err(error) => Check::error(NAME, one_line(&error.to_string()), list(*id)),
            Ok(Search::Found(found)) if found.origin == Origin::Dev => {
                let end = match config.dev_parameters {
                    DevParameters::Allow => "for trying alone; proofs are valid on no network",
                    DevParameters::Auto | DevParameters::Off => SERVE_TAKES_NO_DEV,
                };
                Check::warning(NAME, format!("{id}: dev alone; {end}"), list(*id))
            }
            Ok(Search::Found(_)) => Check::ok(NAME, format!("{id}: official, in {directory}")),
            Ok(Search::Missing(_)) if setup::may_make_dev(config, *id) => Check::warning(
                NAME,
                format!("{id}: none in {directory}; `berth prove` would make dev parameters"),
                list(*id),
            ),
            Ok(Search::Missing(_)) => {
                Check::error(NAME, format!("{id}: none in {directory}"), list(*id))
            }
        })
        .collect()
}

fn list(id: CircuitId) -> String {
    format!("`berth params list --circuit {id}` tells names and content ids for any downloader")
}

/// Which circuits have official parameters, as none is named.
fn official(config: &Config) -> Check {
    let mut found = Vec::new();
    for id in Manifest::built_in().circuits() {
        match setup::search(config, id) {
            Ok(Search::Found(pair)) if pair.origin == Origin::Official => {
                found.push(id.to_string());
            }
            Ok(_) => {}
            Err(error) => return Check::error(NAME, one_line(&error.to_string()), list(id)),
        }
    }
    let directory = config.parameter_cache.display();
    if found.is_empty() {
        return Check::warning(
            NAME,
            format!("no official ones in {directory}"),
            "`berth params list` tells names and content ids for any downloader; \
             BERTH_PARAMETER_CACHE names another directory",
        );
    }
    Check::ok(NAME, format!("official of {} in {directory}", found.join(", ")))
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The directory of the journal.
pub(super) fn state(config: &Config) -> Check {
    let name = "state";
    let path = &config.state_dir;
    let shown = path.display();
    if path.is_dir() {
        if may(path, libc::W_OK | libc::X_OK) {
            return Check::ok(name, format!("{shown} can be written"));
        }
        return Check::warning(
            name,
            format!("{shown} cannot be written by this user"),
            format!("chown berth:berth {}", shell_word(path)),
        );
    }
    if path.exists() {
        let remedy = "take it away, or name a directory in BERTH_STATE_DIR";
        return Check::error(name, format!("{shown} is not a directory"), remedy);
    }
    Check::warning(
        name,
        format!("{shown} is not there"),
        format!(
            "useradd -r -U -d /var/lib/berth -s /usr/sbin/nologin berth; install -d -o berth -g \
             berth -m 750 {}",
            shell_word(path)
        ),
    )
}

/// The limit of open files.
pub(super) fn files(root: &Path) -> Check {
    let name = "open files";
    let limits = text(root, "proc/self/limits").unwrap_or_default();
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
    match line.and_then(|line| line.split_whitespace().next()) {
        None => Check::ok(name, "limit not told"),
        Some(soft) => match soft.parse::<u64>() {
            Ok(limit) if limit < OPEN_FILES_MIN => Check::warning(
                name,
                format!("at most {limit}"),
                "in the unit: LimitNOFILE=65536; in a shell: ulimit -n 65536",
            ),
            _ => Check::ok(name, format!("at most {soft}")),
        },
    }
}
