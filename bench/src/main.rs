//! `berth-bench`: measures the prover, and the published one beside it on the same input.

mod child;
mod reference;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

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
