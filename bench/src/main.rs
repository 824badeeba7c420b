//! `berth-bench`: measures the prover, and the published one beside it on the same input.

// Both panic where nobody reads any more; `output` and `berth::tell` do not.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod batch;
mod child;
mod claim;
mod failure;
mod fragment;
mod host;
mod output;
mod pages;
mod pool;
mod recorder;
mod reference;
mod source;
mod statistics;
mod steps;
mod witness;

use std::path::PathBuf;
use std::process::ExitCode;

use berth::memory::heap::Heap;
use clap::{Parser, Subcommand};

/// As in the prover's program: the heap is part of what is measured.
#[global_allocator]
static HEAP: Heap = Heap;

#[derive(Parser)]
#[command(name = "berth-bench", version = berth::command::VERSION, about = "Measures berth")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Prove one request many times in this process: a line for each proof, then a summary
    Batch(batch::BatchArgs),
    /// Arenas against the ordinary heap: fresh processes of two builds in turn, one table
    Claim(claim::ClaimArgs),
    /// Fragment the host's physical memory: plenty free, hardly a whole 2 MiB of it
    Fragment {
        /// Leave this much of what is available as it is; without it all is taken that the kernel
        /// gives
        #[arg(long, value_name = "SIZE", value_parser = berth::config::parse_size)]
        keep_free: Option<u64>,
        /// Hold it until this process is ended, however that happens
        #[arg(long)]
        hold: bool,
    },
    /// Prove one C1 with berth and with filecoin-proofs in turn; medians and ratios
    Reference {
        /// C1 wrapper of a small sector
        #[arg(long, value_name = "FILE")]
        c1: PathBuf,
        /// Numeric miner id of the sector
        #[arg(long)]
        miner: u64,
        /// Rounds; each runs both provers once
        #[arg(long, default_value_t = 3, value_parser = batch::up_to::<1_000_000>)]
        runs: usize,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// How fast pages of each kind are made present, per thread
    Pages {
        /// Bytes of the arena, such as 2GiB
        #[arg(long, default_value = "2GiB", value_parser = pages::size)]
        size: u64,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// How fast witnesses of a PoRep are made, by native code and by the published code
    Witness(witness::WitnessArgs),
}

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
    let outcome = match Cli::parse().command {
        Command::Batch(args) => batch::run(&args),
        Command::Claim(args) => claim::run(&args),
        Command::Fragment { keep_free, hold } => fragment::run(keep_free, hold),
        Command::Reference { c1, miner, runs, json } => reference::run(&c1, miner, runs, json),
        Command::Pages { size, json } => pages::run(size, json),
        Command::Witness(args) => witness::run(&args),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            berth::tell!("berth-bench: {why}");
            ExitCode::from(why.exit_code())
        }
    }
}
