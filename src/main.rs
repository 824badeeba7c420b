//! `berth`: argv to command; the only place that exits.

use std::process::ExitCode;

use berth::command::{self, args::Cli};
use clap::Parser;

/// jemalloc: its per-thread counters show that the data path allocates nothing.
#[global_allocator]
static HEAP: jemallocator::Jemalloc = jemallocator::Jemalloc;

fn main() -> ExitCode {
    // A file limit (ulimit -f) is then an error of the write, not the end of the process.
    // SAFETY: SIG_IGN is a valid disposition, set before any other thread exists.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    match command::run(Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            berth::tell!("berth: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}
