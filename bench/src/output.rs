//! Standard output, which may be closed or full.

use std::io::Write;

/// Writes a text to standard output, whole.
///
/// # Errors
/// Nobody takes it: a reader that is gone, a full disk.
pub fn print(text: &str) -> Result<(), String> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(|e| format!("cannot write to standard output: {e}"))
}
