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
    // glibc's malloc maps an arena of 64 MiB and more of address space for every thread that asks
    // it for anything. No plan counts that, and under a limit on address space (ulimit -v) a thread
    // that finds none is lost: one arena does for what little the heap leaves to it.
    // The control build keeps its C library as it comes.
    #[cfg(all(target_env = "gnu", not(feature = "heap-arenas")))]
    // SAFETY: a setting of the allocator, made before any other thread exists.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1)
    };
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
