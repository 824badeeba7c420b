//! Settings: `BERTH_*` variables to one typed value, by one table.
//!
//! A wrong value is an error that quotes it and lists what is allowed; an unknown `BERTH_` name is
//! an error that names the nearest known one. Every value remembers where it came from.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

use crate::error::{Error, Result};
use crate::input::class::{CircuitId, Kind};

mod parse;
mod table;

use parse::Text;
pub use table::{SETTINGS, Setting};

const PREFIX: &str = "BERTH_";
/// The prover libraries' own variable for the parameter directory, and their default.
const FOREIGN_CACHE: &str = "FIL_PROOFS_PARAMETER_CACHE";
const FOREIGN_CACHE_DEFAULT: &str = "/var/tmp/filecoin-proof-parameters";
/// Card tables of older provers; nothing here depends on a card's name.
const FOREIGN_CARDS: [&str; 2] = ["BELLMAN_CUSTOM_GPU", "RUST_GPU_TOOLS_CUSTOM_GPU"];

/// Bytes, read as settings are: `2GiB`, `512M`, `4096`.
///
/// # Errors
/// A text that says what is allowed.
pub fn parse_size(text: &str) -> std::result::Result<u64, String> {
    let bytes = Text::new(text).and_then(Text::size);
    bytes.ok_or_else(|| "bytes, or a number with KiB, MiB, GiB or TiB".to_owned())
}

/// Which backend proves: `auto` prefers CUDA, `cuda` requires it, `cpu` leaves it off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    Auto,
    Cpu,
    Cuda,
}

/// What to do about a thing that the host cannot give: warn, refuse, or not ask for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Auto,
    Strict,
    Off,
}

/// Page sizes of the arenas. `Auto` takes the best that is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HugePages {
    Auto,
    Huge1G,
    Huge2M,
    Off,
}

/// How the witness is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WitnessMaker {
    /// Native code where there is some.
    Auto,
    /// Native code or nothing.
    Native,
    /// The published circuit code, for every kind.
    Generic,
}

impl WitnessMaker {
    /// Is the witness of a kind made by native code?
    pub fn is_native(self, kind: Kind) -> bool {
        kind == Kind::Porep && self != WitnessMaker::Generic
    }
}

/// Where the SRS stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SrsPlace {
    Auto,
    Device,
    Host,
}

/// Whether parameters that were made locally may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DevParameters {
    Auto,
    Allow,
    Off,
}

/// Which cards to use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gpus {
    All,
    /// Each an index, a UUID (`GPU-...`) or a PCI address (`0000:65:00.0`).
    List(Vec<String>),
}

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    Default,
    /// The name of the variable.
    Environment(String),
}

/// A setting with its value as text, for the plan's print.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Value {
    pub name: &'static str,
    pub value: String,
    pub origin: Origin,
}

/// All settings. `None` means the default that the plan works out from the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// What proves.
    pub backend: Backend,
    /// Cards to use.
    pub gpus: Gpus,
    /// Synthesis threads.
    pub partition_workers: Option<usize>,
    /// Slots of each circuit.
    pub slots: Option<usize>,
    /// Workspaces on each card.
    pub lanes_per_gpu: Option<usize>,
    /// CPUs to use, ascending; `None`: all that are allowed.
    pub cpus: Option<Vec<usize>>,
    /// Placement of arenas on their node.
    pub numa: Mode,
    /// Page size of arenas.
    pub hugepages: HugePages,
    /// Locking of arenas in memory.
    pub lock: Mode,
    /// How the witness is made.
    pub witness: WitnessMaker,
    /// Bytes to use on each card; `None`: what is free.
    pub device_memory_limit_bytes: Option<u64>,
    /// Bytes that the plan may come to; `None`: what the host has.
    pub memory_limit_bytes: Option<u64>,
    /// Where the SRS stays.
    pub srs: SrsPlace,
    /// Directory of the official parameters.
    pub parameter_cache: PathBuf,
    /// Whether parameters made here may be used.
    pub dev_parameters: DevParameters,
    /// Directory of dev parameters; `None` where neither a variable nor a home tells one.
    pub dev_parameter_dir: Option<PathBuf>,
    /// Enabled circuits; `None`: the input's.
    pub circuits: Option<Vec<CircuitId>>,
    /// `ADDRESS:PORT` or `unix:///PATH` for gRPC.
    pub listen: String,
    /// Likewise for HTTP.
    pub http_listen: String,
    /// The service's journal.
    pub state_dir: PathBuf,
    /// Requests that may wait.
    pub queue_max: usize,
    /// How long running partitions may take after SIGTERM.
    pub drain_timeout: Duration,
    /// Filter of the log, in the form of `env_logger`.
    pub log: String,
    /// Every setting in the order of [`SETTINGS`].
    pub values: Vec<Value>,
    /// Things that the operator should know, such as variables without effect.
    pub notices: Vec<String>,
}

impl Config {
    /// Makes the configuration of an environment. Pure: reads nothing but `vars`.
    ///
    /// # Errors
    /// [`Error::Config`] for an unknown `BERTH_` name or a value that is not allowed.
    pub fn from_env(vars: impl Iterator<Item = (OsString, OsString)>) -> Result<Self> {
        let vars: BTreeMap<OsString, OsString> = vars.collect();
        let mut config = Config::default();
        for name in vars.keys() {
            config.look_at(name)?;
        }
        config.foreign_directories(&vars)?;
        for (index, setting) in SETTINGS.iter().enumerate() {
            let Some(value) = vars.get(OsStr::new(setting.name)) else { continue };
            let text = value.to_str().and_then(Text::new);
            if text.and_then(|text| (setting.set)(&mut config, text)).is_none() {
                return Err(Error::Config(format!(
                    "{} is {value:?}; allowed: {}",
                    setting.name, setting.allowed
                )));
            }
            config.values[index].value = value.to_string_lossy().into_owned();
            config.values[index].origin = Origin::Environment(setting.name.to_owned());
        }
        Ok(config)
    }

    /// The configuration of this process's environment.
    ///
    /// # Errors
    /// As [`Config::from_env`].
    pub fn read() -> Result<Self> {
        Self::from_env(std::env::vars_os())
    }

    /// Refuses a name that looks like ours and is none; notes what nearly is one.
    fn look_at(&mut self, name: &OsStr) -> Result<()> {
        let name = name.to_string_lossy();
        let known = || SETTINGS.iter().map(|setting| setting.name).chain([FOREIGN_CACHE]);
        if known().any(|known| known == name) {
            return Ok(());
        }
        if FOREIGN_CARDS.contains(&&*name) {
            self.notices.push(format!(
                "{name} has no effect: limits come from the card itself, not from its name"
            ));
            return Ok(());
        }
        let upper = name.to_ascii_uppercase();
        let (near, distance) = known()
            .map(|known| (known, distance(&upper, known)))
            .min_by_key(|(_, distance)| *distance)
            .expect("the table has rows");
        if upper.starts_with(PREFIX) {
            return Err(Error::Config(format!(
                "unknown setting {name}; the nearest known one is {near} (berth plan prints all)"
            )));
        }
        if distance <= 2 {
            self.notices.push(format!("{name} has no effect; is {near} meant?"));
        }
        Ok(())
    }

    /// Directories that variables of other programs tell; ours come later and win.
    fn foreign_directories(&mut self, vars: &BTreeMap<OsString, OsString>) -> Result<()> {
        if let Some(value) = vars.get(OsStr::new(FOREIGN_CACHE))
            && !vars.contains_key(OsStr::new("BERTH_PARAMETER_CACHE"))
        {
            self.parameter_cache = directory(FOREIGN_CACHE, value)?;
            self.origin("BERTH_PARAMETER_CACHE", value, FOREIGN_CACHE);
        }
        // The XDG base directory specification: a value that is not absolute counts as unset.
        let absolute = |name: &str| {
            vars.get(OsStr::new(name)).map(PathBuf::from).filter(|path| path.is_absolute())
        };
        let (cache, from, below) = match absolute("XDG_CACHE_HOME") {
            Some(cache) => (Some(cache), "XDG_CACHE_HOME", "berth/dev-parameters"),
            None => (absolute("HOME"), "HOME", ".cache/berth/dev-parameters"),
        };
        if let Some(cache) = cache
            && !vars.contains_key(OsStr::new("BERTH_DEV_PARAMETER_DIR"))
        {
            let path = directory(from, cache.as_os_str())?.join(below);
            self.origin("BERTH_DEV_PARAMETER_DIR", path.as_os_str(), from);
            self.dev_parameter_dir = Some(path);
        }
        Ok(())
    }

    fn origin(&mut self, name: &str, value: &OsStr, from: &str) {
        let row = self.values.iter_mut().find(|row| row.name == name);
        let row = row.expect("the name is in the table");
        row.value = value.to_string_lossy().into_owned();
        row.origin = Origin::Environment(from.to_owned());
    }

    /// Where the value of a setting came from, as a clause for messages: `BERTH_SLOTS` or
    /// `the default`.
    pub fn came_from(&self, name: &str) -> &str {
        match self.values.iter().find(|row| row.name == name).map(|row| &row.origin) {
            Some(Origin::Environment(variable)) => variable,
            _ => "the default",
        }
    }
}

impl Default for Config {
    /// The configuration of an empty environment.
    fn default() -> Self {
        Config {
            backend: Backend::Auto,
            gpus: Gpus::All,
            partition_workers: None,
            slots: None,
            lanes_per_gpu: None,
            cpus: None,
            numa: Mode::Auto,
            hugepages: HugePages::Auto,
            lock: Mode::Auto,
            witness: WitnessMaker::Auto,
            device_memory_limit_bytes: None,
            memory_limit_bytes: None,
            srs: SrsPlace::Auto,
            parameter_cache: PathBuf::from(FOREIGN_CACHE_DEFAULT),
            dev_parameters: DevParameters::Auto,
            dev_parameter_dir: None,
            circuits: None,
            listen: "127.0.0.1:9820".to_owned(),
            http_listen: "127.0.0.1:9821".to_owned(),
            state_dir: PathBuf::from("/var/lib/berth"),
            queue_max: 64,
            drain_timeout: Duration::from_secs(600),
            log: "info".to_owned(),
            values: SETTINGS
                .iter()
                .map(|setting| Value {
                    name: setting.name,
                    value: match setting.name {
                        "BERTH_PARAMETER_CACHE" => FOREIGN_CACHE_DEFAULT.to_owned(),
                        _ => setting.default.to_owned(),
                    },
                    origin: Origin::Default,
                })
                .collect(),
            notices: Vec::new(),
        }
    }
}

/// The directory that another program's variable tells: text as in our own, for it is printed, and
/// written into units, as those are.
fn directory(name: &str, value: &OsStr) -> Result<PathBuf> {
    let path = value.to_str().and_then(Text::new).and_then(Text::path);
    path.ok_or_else(|| {
        Error::Config(format!(
            "{name} is {value:?}; allowed: a directory whose name is text, without control \
             characters or white space at its ends (or unset it)"
        ))
    })
}

/// Edit distance (Levenshtein) of two names.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let change = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests;
