//! `berth`: argv to command; the only place that exits.

use std::process::ExitCode;

use berth::command::{self, args::Cli};
use berth::memory::heap::Heap;
use berth::memory::transparent;
use clap::Parser;

/// The heap that closes: the threads of the data path allocate nothing after the start.
#[global_allocator]
static HEAP: Heap = Heap;

fn main() -> ExitCode {
    // What is touched before stays, and counts.
    transparent::do_without();
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
