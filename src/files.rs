//! Files that are either whole or not there.

use std::fs::File;
use std::io::{self, Write};
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
}
