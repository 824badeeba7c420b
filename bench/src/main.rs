//! `berth-bench`: measures the prover, and the published one beside it on the same input.

mod child;
mod pages;
mod reference;

use std::path::PathBuf;
use std::process::ExitCode;

use berth::memory::heap::Heap;
use clap::{Parser, Subcommand};

/// The program's own heap, since it is measured in this process too.
#[global_allocator]
static HEAP: Heap = Heap;

#[derive(Parser)]
#[command(name = "berth-bench", version, about = "Measures berth")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Prove one C1 with berth and with filecoin-proofs in turn; medians and ratios
    Reference {
        /// C1 wrapper of a small sector
        #[arg(long, value_name = "FILE")]
        c1: PathBuf,
        /// Numeric miner id of the sector
        #[arg(long)]
        miner: u64,
        /// Rounds; each runs both provers once
        #[arg(long, default_value_t = 3)]
        runs: usize,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// How fast pages of each kind are made present, per thread
    Pages {
        /// Bytes of the arena, such as 2GiB
        #[arg(long, default_value = "2GiB", value_parser = berth::config::parse_size)]
        size: u64,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// One proof with filecoin-proofs in this process (what `reference` runs as a child)
    #[command(hide = true)]
    ReferenceOnce {
        #[arg(long)]
        c1: PathBuf,
        #[arg(long)]
        miner: u64,
    },
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Reference { c1, miner, runs, json } => reference::run(&c1, miner, runs, json),
        Command::Pages { size, json } => pages::run(size, json),
        Command::ReferenceOnce { c1, miner } => reference::once(&c1, miner),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("berth-bench: {why}");
            ExitCode::FAILURE
        }
    }
}
