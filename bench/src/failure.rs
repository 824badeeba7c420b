//! Why a command ended without what it was to do, and the exit code of that.

use std::fmt;

use berth::error::Error;

/// What went wrong.
#[derive(Debug)]
pub enum Failure {
    /// The prover's own error, with the exit code that `berth` ends with.
    Berth(Error),
    /// Proofs that failed, output that nobody takes, tools that do not work: exit code 1.
    Bench(String),
}

impl Failure {
    pub fn exit_code(&self) -> u8 {
        match self {
            Failure::Berth(error) => error.exit_code(),
            Failure::Bench(_) => 1,
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Berth(error)
    }
}

impl From<String> for Failure {
    fn from(what: String) -> Self {
        Failure::Bench(what)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Berth(error) => error.fmt(f),
            Failure::Bench(what) => what.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_the_prover_keeps_its_code() {
        assert_eq!(Failure::from(Error::Parameters("none".into())).exit_code(), 4);
        assert_eq!(Failure::from(Error::input("here", "wrong")).exit_code(), 5);
        let own = Failure::from("1 of 2 proofs failed".to_string());
        assert_eq!((own.exit_code(), own.to_string().as_str()), (1, "1 of 2 proofs failed"));
    }
}
