//! Files that are either whole or not there.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Writes a file under a temporary name beside it, syncs it, renames it and syncs the directory:
/// after a crash at any moment the name leads to all of the new bytes or to what it led to before.
///
/// # Errors
/// Those of the file system; the temporary file is then taken away.
pub fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let part = part_of(path);
    let written = File::create(&part)
        .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()))
        .and_then(|()| std::fs::rename(&part, path));
    if written.is_err() {
        // The first error is the one to report; a leftover is only untidy.
        let _ = std::fs::remove_file(&part);
        return written;
    }
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(directory.unwrap_or(Path::new(".")))?.sync_all()
}

/// Can `path` be written by [`write_whole`]? Asked before hours of work go into the bytes: a file
/// is made and taken away beside it.
///
/// # Errors
/// Those of the file system, and for what exists and is not a regular file (a device, a pipe, a
/// directory, a link), which a rename would replace.
pub fn probe_whole(path: &Path) -> io::Result<()> {
    match std::fs::symlink_metadata(path) {
        Ok(there) if !there.is_file() => {
            let what = "it is there and not a regular file, which would be replaced";
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, what));
        }
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let part = part_of(path);
    File::create(&part)?;
    std::fs::remove_file(&part)
}

/// Bytes that this user may still write where `path` is, or where it would be made.
///
/// # Errors
/// Those of the file system.
pub fn free_bytes(path: &Path) -> io::Result<u64> {
    let there = path.ancestors().find(|folder| folder.exists()).unwrap_or(Path::new("."));
    let name = CString::new(there.as_os_str().as_bytes())?;
    // SAFETY: plain data for which all zeros is a value.
    let mut system: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: the name ends with a zero, and `system` is a valid place for the result.
    match unsafe { libc::statvfs(name.as_ptr(), &mut system) } {
        0 => Ok(system.f_bavail.saturating_mul(system.f_frsize)),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The temporary name beside a file.
fn part_of(path: &Path) -> PathBuf {
    let mut part = path.as_os_str().to_owned();
    part.push(format!(".part-{}", std::process::id()));
    PathBuf::from(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_whole_or_not_there() {
        let folder = std::env::temp_dir().join(format!("berth-files-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("file");
        for bytes in [&b"first"[..], b"", b"second"] {
            write_whole(&path, bytes).unwrap();
            assert_eq!(std::fs::read(&path).unwrap(), bytes);
        }
        let taken = folder.join("taken");
        std::fs::create_dir(&taken).unwrap();
        assert!(write_whole(&taken, b"x").is_err(), "a directory is not replaced");
        assert!(write_whole(&folder.join("absent/file"), b"x").is_err());
        probe_whole(&path).unwrap();
        probe_whole(&folder.join("new")).unwrap();
        assert!(probe_whole(&taken).is_err(), "a directory");
        assert!(probe_whole(&folder.join("absent/file")).is_err());
        assert!(probe_whole(Path::new("/dev/null")).is_err(), "a device");
        let link = folder.join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(probe_whole(&link).is_err(), "a link");
        std::fs::remove_file(&link).unwrap();
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 2, "nothing else is left");
        std::fs::remove_dir_all(&folder).unwrap();
    }
    #[test]
    fn free_space_is_that_of_the_nearest_folder() {
        let folder = std::env::temp_dir();
        let free = free_bytes(&folder).unwrap();
        let absent = free_bytes(&folder.join("absent/for sure")).unwrap();
        // Others write there, too.
        assert!(free > 0 && absent.abs_diff(free) < free / 2, "{free} and {absent}");
        assert_eq!(free_bytes(Path::new("/proc")).unwrap(), 0, "nothing is written there");
        assert!(free_bytes(Path::new("relative, and absent")).unwrap() > 0);
    }
}
