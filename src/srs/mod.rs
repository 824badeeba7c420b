//! Groth16 parameters: found, checked, read into an arena as the lane wants them, or made for
//! trying and testing.
//!
//! ```text
//! find --> stamp --> layout --> key --> read: windows of the file -> points -> arena
//! names    digest    counts     .vk     order: file order <-> slot order
//!                                  \-> check: every point's order, kept by nobody
//! ```

pub mod check;
pub mod find;
pub mod key;
pub mod layout;
pub mod manifest;
pub mod marker;
pub mod names;
mod order;
mod points;
mod random;
pub mod read;
pub mod setup;
pub mod stamp;
#[cfg(test)]
mod testing;
mod windows;

use std::path::Path;

use crate::error::Error;

/// An error of parameters that begins with the file's path.
fn file_error(path: &Path, what: impl std::fmt::Display) -> Error {
    Error::Parameters(format!("{}: {what}", path.display()))
}

/// The error of a file that the system does not open or read. Where the process or the host is out
/// of something, the file is not at fault.
fn io_error(path: &Path, what: impl std::fmt::Display, error: &std::io::Error) -> Error {
    let advice = match error.raw_os_error() {
        Some(libc::EMFILE) => "raise ulimit -n, or LimitNOFILE= of the unit",
        Some(libc::ENFILE) => {
            "the whole host is out of files: raise fs.file-max (it is not ulimit -n, LimitNOFILE=)"
        }
        Some(libc::ENOMEM) => "the kernel has no memory left for it: free some",
        _ => return file_error(path, format!("{what}: {error}")),
    };
    Error::Host(format!("{}: {what}: {error} ({advice})", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_not_at_fault_where_the_host_is_out_of_something() {
        let told = |code| {
            let error = std::io::Error::from_raw_os_error(code);
            let error = io_error(Path::new("/p/a.params"), "cannot be opened", &error);
            (error.exit_code(), error.to_string())
        };
        for (code, part) in [
            (libc::EMFILE, "ulimit -n, or LimitNOFILE="),
            (libc::ENFILE, "fs.file-max"),
            (libc::ENOMEM, "memory"),
        ] {
            let (exit, text) = told(code);
            assert_eq!(exit, 3, "{text}");
            assert!(text.contains("/p/a.params: cannot be opened: "), "{text}");
            assert!(text.contains(part) && text.contains(&format!("os error {code}")), "{text}");
        }
        for code in [libc::EACCES, libc::ENOENT, libc::EIO] {
            let (exit, text) = told(code);
            assert_eq!(exit, 4, "{text}");
            assert!(text.starts_with("parameters: /p/a.params: cannot be opened: "), "{text}");
        }
    }

    /// A process with so few files that it cannot open another says that of itself.
    #[test]
    fn files_are_short_for_real() {
        const CHILD: &str = "BERTH_TEST_FEW_FILES";
        if std::env::var_os(CHILD).is_some() {
            let few = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
            // SAFETY: the call reads one struct; this process is for this test alone.
            assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &few) }, 0);
            let error = layout::probe(Path::new("/proc/self/exe")).unwrap_err();
            assert_eq!(error.exit_code(), 3, "{error}");
            assert!(error.to_string().contains("LimitNOFILE="), "{error}");
            return;
        }
        let status = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "srs::tests::files_are_short_for_real", "--nocapture"])
            .env(CHILD, "1")
            .status()
            .unwrap();
        assert!(status.success());
    }
}
