//! Errors by boundary, and the exit code of each.
//!
//! A message says where the fault is and what to do about it; it is written for the operator who
//! reads it at night, not for us.

use std::fmt;

/// A line to standard error for the person who waits; one that cannot be written is not missed.
#[macro_export]
macro_rules! tell {
    ($($part:tt)*) => {{
        use std::io::Write;
        let _ = writeln!(std::io::stderr(), $($part)*);
    }};
}

/// What went wrong, sorted by who can mend it.
#[derive(Debug)]
pub enum Error {
    /// A command line or a `BERTH_*` setting that cannot be meant. Exit code 2.
    Config(String),
    /// The host cannot give what the plan needs: memory, pages, locked memory, cores. Exit code 3.
    Host(String),
    /// Groth16 parameters are missing, short, corrupt or of another circuit. Exit code 4.
    Parameters(String),
    /// A request that cannot be proven. Exit code 5.
    Input {
        /// JSON path, byte offset, or challenge, part and layer.
        at: String,
        what: String,
    },
    /// A proof that its own verifying key does not accept. Exit code 6.
    Unverified(String),
    /// A device failed and no other could take over. Exit code 7.
    Device(String),
}

pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    pub fn input(at: impl Into<String>, what: impl Into<String>) -> Self {
        Error::Input { at: at.into(), what: what.into() }
    }

    /// The documented exit code of the program for this error (README, "Exit codes").
    pub fn exit_code(&self) -> u8 {
        match self {
            Error::Config(_) => 2,
            Error::Host(_) => 3,
            Error::Parameters(_) => 4,
            Error::Input { .. } => 5,
            Error::Unverified(_) => 6,
            Error::Device(_) => 7,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Config(what) => write!(f, "configuration: {what}"),
            Error::Host(what) => write!(f, "host: {what}"),
            Error::Parameters(what) => write!(f, "parameters: {what}"),
            Error::Input { at, what } => write!(f, "input: {at}: {what}"),
            Error::Unverified(what) => write!(f, "proof: {what}"),
            Error::Device(what) => write!(f, "device: {what}"),
        }
    }
}

impl std::error::Error for Error {}
