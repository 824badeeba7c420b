//! Random bytes of the operating system.

use crate::error::{Error, Result};

/// Fills at most 256 bytes, which the system gives whole or not at all.
pub fn fill(bytes: &mut [u8]) -> Result<()> {
    assert!(bytes.len() <= 256, "more may come in parts");
    loop {
        // SAFETY: the buffer is live and as long as stated.
        let got = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
        if got == bytes.len() as isize {
            return Ok(());
        }
        let error = std::io::Error::last_os_error();
        if got < 0 && error.kind() != std::io::ErrorKind::Interrupted {
            return Err(Error::Host(format!("the system gives no random numbers: {error}")));
        }
    }
}
