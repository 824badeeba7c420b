//! The commands: argv to library calls, results to standard output, everything else to standard
//! error.

pub mod args;
mod doctor;
mod params;
mod plan;
mod progress;
mod prove;
mod request;
pub mod signal;
mod unit;
mod verify;

use std::io::Write;

use args::{Cli, Command};

use crate::config::Config;
use crate::error::{Error, Result};

/// What `berth --version` prints after the name.
#[cfg(not(feature = "heap-arenas"))]
pub const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (cuda: no, cpu backend only)");
#[cfg(feature = "heap-arenas")]
pub const VERSION: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    " (cuda: no, cpu backend only) CONTROL BUILD, for measuring only: lanes and slots come from \
     the C library's heap"
);

/// Writes a result to standard output, whole.
///
/// # Errors
/// [`Error::Host`] when it cannot be written: a result that nobody got is no success.
fn print(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(|e| Error::Host(format!("cannot write to standard output: {e}")))
}

/// Runs one command.
///
/// # Errors
/// Any [`Error`](crate::error::Error); its exit code is the program's.
pub fn run(cli: Cli) -> Result<()> {
    // First of all: before it, the signal would end the process.
    let usr1 = signal::Usr1::listen()?;
    let config = Config::from_env(std::env::vars_os())?;
    env_logger::Builder::new().parse_filters(&config.log).init();
    tell_panics_in_one_line();
    for notice in &config.notices {
        log::warn!("{notice}");
    }
    match cli.command {
        Command::Prove(args) => prove::run(&config, &args, &usr1),
        Command::Verify(args) => verify::run(&config, &args),
        Command::Plan(args) => plan::run(&config, &args),
        Command::Params(args) => params::run(&config, args),
        Command::Doctor(args) => doctor::run(&config, &args),
        Command::Unit(args) => unit::run(&config, &args),
    }
}

/// Panics are caught where they happen and told to whoever waits for the work; a backtrace in the
/// log would say no more. `RUST_BACKTRACE` brings it back.
fn tell_panics_in_one_line() {
    if std::env::var_os("RUST_BACKTRACE").is_none() {
        std::panic::set_hook(Box::new(|panic| {
            let thread = std::thread::current();
            log::error!("{}", one_line(thread.name().unwrap_or("a thread"), &panic.to_string()));
        }));
    }
}

fn one_line(thread: &str, panic: &str) -> String {
    format!("{thread} {}", panic.split_whitespace().collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_told_in_one_line() {
        let told = one_line("lane-0", "panicked at src/team.rs:1:2:\nno more\n  at all\n");
        assert_eq!(told, "lane-0 panicked at src/team.rs:1:2: no more at all");
    }
}
