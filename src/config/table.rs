//! The table of all settings.

use std::time::Duration;

use super::parse::Text;
use super::{Backend, Config, DevParameters, HugePages, Mode, SrsPlace, WitnessMaker};

/// One row of the table.
pub struct Setting {
    /// Name of the variable.
    pub name: &'static str,
    /// What is allowed, in words.
    pub allowed: &'static str,
    /// The default, in words; where it is a value, the value.
    pub default: &'static str,
    pub help: &'static str,
    /// Puts a value in place; `None` if it is not allowed.
    pub(super) set: fn(&mut Config, Text) -> Option<()>,
}

macro_rules! settings {
    ($($name:literal: $help:literal, $allowed:literal, $default:literal, $set:expr;)*) => {
        [$(Setting {
            name: concat!("BERTH_", $name),
            allowed: $allowed,
            default: $default,
            help: $help,
            set: $set,
        },)*]
    };
}

const BACKENDS: [(&str, Backend); 3] =
    [("auto", Backend::Auto), ("cpu", Backend::Cpu), ("cuda", Backend::Cuda)];
const MODES: [(&str, Mode); 3] =
    [("auto", Mode::Auto), ("strict", Mode::Strict), ("off", Mode::Off)];
const HUGEPAGES: [(&str, HugePages); 4] = [
    ("auto", HugePages::Auto),
    ("1G", HugePages::Huge1G),
    ("2M", HugePages::Huge2M),
    ("off", HugePages::Off),
];
const WITNESS: [(&str, WitnessMaker); 3] = [
    ("auto", WitnessMaker::Auto),
    ("native", WitnessMaker::Native),
    ("generic", WitnessMaker::Generic),
];
const SRS: [(&str, SrsPlace); 3] =
    [("auto", SrsPlace::Auto), ("device", SrsPlace::Device), ("host", SrsPlace::Host)];
const DEV_PARAMETERS: [(&str, DevParameters); 3] =
    [("auto", DevParameters::Auto), ("allow", DevParameters::Allow), ("off", DevParameters::Off)];

/// Every setting there is.
pub static SETTINGS: [Setting; 23] = settings! {
    "BACKEND": "what proves: auto prefers CUDA, cuda requires it, cpu leaves it off",
        "auto, cpu, cuda", "auto",
        |c, t| t.word(&BACKENDS, &mut c.backend);
    "GPUS": "cards to use",
        "all, or a list of indices, UUIDs (GPU-...) and PCI addresses (0000:65:00.0)", "all",
        |c, t| t.gpus().map(|gpus| c.gpus = gpus);
    "PARTITION_WORKERS": "synthesis threads",
        "a number from 1 to 4096", "physical cores - 1, at least 1",
        |c, t| t.number(1, 4096).map(|n| c.partition_workers = Some(n));
    "SLOTS": "witnesses in memory at once",
        "a number from 1 to 65536", "partition workers + 2 per lane",
        |c, t| t.number(1, 65536).map(|n| c.slots = Some(n));
    "LANES_PER_GPU": "workspaces on each card",
        "a number from 1 to 16", "chosen by the plan",
        |c, t| t.number(1, 16).map(|n| c.lanes_per_gpu = Some(n));
    "CPUS": "CPUs to use",
        "a list such as 0-7,16", "all allowed CPUs",
        |c, t| t.cpus().map(|cpus| c.cpus = Some(cpus));
    "NUMA": "placement of memory: strict refuses what is not on its node, off asks for none",
        "auto, strict, off", "auto",
        |c, t| t.word(&MODES, &mut c.numa);
    "HUGEPAGES": "page size of the arenas: auto takes the best that is free",
        "auto, 1G, 2M, off", "auto",
        |c, t| t.word(&HUGEPAGES, &mut c.hugepages);
    "LOCK": "locking of arenas in memory: strict refuses a limit that is too small",
        "auto, strict, off", "auto",
        |c, t| t.word(&MODES, &mut c.lock);
    "WITNESS": "how the witness is made: by code written for the circuit (PoRep), or generic",
        "auto, native, generic", "auto",
        |c, t| t.word(&WITNESS, &mut c.witness);
    "DEVICE_MEMORY_LIMIT": "memory to use on each card",
        "a size such as 20GiB, 512MiB or 1073741824", "none",
        |c, t| t.size().map(|n| c.device_memory_limit_bytes = Some(n));
    "MEMORY_LIMIT": "host memory that the plan may come to",
        "a size such as 20GiB, 512MiB or 1073741824", "none",
        |c, t| t.size().map(|n| c.memory_limit_bytes = Some(n));
    "SRS": "where the SRS stays",
        "auto, device, host", "auto",
        |c, t| t.word(&SRS, &mut c.srs);
    "PARAMETER_CACHE": "official parameters",
        "a directory", "$FIL_PROOFS_PARAMETER_CACHE, else /var/tmp/filecoin-proof-parameters",
        |c, t| t.path().map(|path| c.parameter_cache = path);
    "DEV_PARAMETERS": "parameters made here, for trying only: auto lets prove make small ones, \
         allow lets serve use them",
        "auto, allow, off", "auto",
        |c, t| t.word(&DEV_PARAMETERS, &mut c.dev_parameters);
    "DEV_PARAMETER_DIR": "where dev parameters are",
        "a directory", "${XDG_CACHE_HOME:-$HOME/.cache}/berth/dev-parameters",
        |c, t| t.path().map(|path| c.dev_parameter_dir = Some(path));
    "CIRCUITS": "enabled circuits",
        "a list of KIND-SIZE such as porep-32g,update-32g (kinds porep, update, window, winning)",
        "the input's",
        |c, t| t.circuits().map(|list| c.circuits = Some(list));
    "LISTEN": "where the service answers gRPC",
        "ADDRESS:PORT or unix:///PATH", "127.0.0.1:9820",
        |c, t| t.listen().map(|to| c.listen = to);
    "HTTP_LISTEN": "where the service answers HTTP",
        "ADDRESS:PORT or unix:///PATH", "127.0.0.1:9821",
        |c, t| t.listen().map(|to| c.http_listen = to);
    "STATE_DIR": "the service's journal",
        "a directory", "/var/lib/berth",
        |c, t| t.path().map(|path| c.state_dir = path);
    "QUEUE_MAX": "requests that may wait",
        "a number from 1 to 1000000", "64",
        |c, t| t.number(1, 1_000_000).map(|n| c.queue_max = n);
    "DRAIN_TIMEOUT": "how long running partitions may take after SIGTERM",
        "seconds from 0 to 86400", "600",
        |c, t| t.number(0, 86400).map(|n| c.drain_timeout = Duration::from_secs(n as u64));
    "LOG": "what is logged to stderr",
        "off, error, warn, info, debug, trace, or a list of MODULE=LEVEL", "info",
        |c, t| t.log().map(|filter| c.log = filter);
};
