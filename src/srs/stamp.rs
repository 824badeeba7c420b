//! A file's digest, computed once and remembered in a stamp.
//!
//! The digest is the first 32 hex digits of the BLAKE2b-512 of the whole file (44 GiB take a
//! minute). The stamp lies in a directory of berth's own, never beside the file, and holds what
//! changes with the file: size, inode, times of change of content and of inode.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::layout;
use super::manifest::Manifest;
use super::{file_error, io_error};
use crate::error::Result;
use crate::files::write_whole;

/// Bytes that are read at once.
const WINDOW: usize = 4 << 20;

/// What a stamp remembers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Stamp {
    path: PathBuf,
    size: u64,
    device: u64,
    inode: u64,
    /// Seconds and nanoseconds.
    modified: (i64, i64),
    changed: (i64, i64),
    digest: String,
}

/// A file whose digest is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    pub digest: String,
    /// False where the manifest does not have the file.
    pub published: bool,
    /// True if a stamp told the digest and the file was not read.
    pub stamped: bool,
}

/// Compares a file with the manifest by digest, reading it only if no stamp in the directory
/// `stamps` fits it. `progress` is called with bytes read and bytes in all. A stamp that cannot
/// be written is a warning: the file is then read again next time.
///
/// # Errors
/// [`crate::error::Error::Parameters`] when the file cannot be read, changes meanwhile, or is not
/// the published one; it names both digests and is never followed by a deletion.
pub fn verify(
    path: &Path,
    manifest: &Manifest,
    stamps: &Path,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Verified> {
    let (mut file, size) = layout::open(path)?;
    let now = state(path, &file, String::new())?;
    let at = stamp_path(path, stamps);
    let known = trusted(stamps)
        .then(|| std::fs::read(&at).ok())
        .flatten()
        .and_then(|bytes| serde_json::from_slice::<Stamp>(&bytes).ok())
        .filter(|stamp| Stamp { digest: String::new(), ..stamp.clone() } == now);
    let stamped = known.is_some();
    let stamp = match known {
        Some(stamp) => stamp,
        None => {
            let digest = digest(path, &mut file, size, progress)?;
            if state(path, &file, String::new())? != now {
                return Err(file_error(path, "the file changed while it was being checked"));
            }
            Stamp { digest, ..now }
        }
    };
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let entry = manifest.entry(&name);
    if let Some(entry) = entry.filter(|entry| entry.digest != stamp.digest) {
        return Err(file_error(
            path,
            format!(
                "expected digest {}, found {} (BLAKE2b-512, first 32 hex digits). Either the file \
                 is damaged or of another setup: fetch it again, content id {}; or the manifest, \
                 {}, is of another time than the file: use the one that belongs to it",
                entry.digest,
                stamp.digest,
                entry.cid,
                manifest.source()
            ),
        ));
    }
    if !stamped {
        let bytes = serde_json::to_vec_pretty(&stamp).expect("a stamp is plain data");
        let written = make_private(stamps).and_then(|()| write_whole(&at, &bytes));
        if let Err(error) = written {
            log::warn!("{}: cannot write the stamp of a checked file: {error}", at.display());
        }
    }
    Ok(Verified { digest: stamp.digest, published: entry.is_some(), stamped })
}

/// Makes the directory of the stamps, for its owner alone.
fn make_private(stamps: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    if let Some(parent) = stamps.parent() {
        std::fs::create_dir_all(parent)?;
    }
    match std::fs::DirBuilder::new().mode(0o700).create(stamps) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

/// Is the directory ours, and can nobody else write it? A stamp of somebody else's hand says
/// nothing about a file.
fn trusted(stamps: &Path) -> bool {
    // SAFETY: geteuid has no preconditions.
    let user = unsafe { libc::geteuid() };
    std::fs::symlink_metadata(stamps)
        .is_ok_and(|meta| meta.is_dir() && meta.uid() == user && meta.mode() & 0o022 == 0)
}

/// The file's state as a stamp without, or with, its digest.
fn state(path: &Path, file: &File, digest: String) -> Result<Stamp> {
    let meta = file.metadata().map_err(|e| io_error(path, "cannot be examined", &e))?;
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    Ok(Stamp {
        path,
        size: meta.len(),
        device: meta.dev(),
        inode: meta.ino(),
        modified: (meta.mtime(), meta.mtime_nsec()),
        changed: (meta.ctime(), meta.ctime_nsec()),
        digest,
    })
}

/// One stamp per full path, so that files of one name in two directories keep apart.
fn stamp_path(path: &Path, stamps: &Path) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    let full = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    let hash = blake2b_simd::blake2b(full.as_os_str().as_bytes());
    stamps.join(format!("{}.stamp.json", &hash.to_hex()[..32]))
}

fn digest(
    path: &Path,
    file: &mut File,
    size: u64,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<String> {
    let mut state = blake2b_simd::State::new();
    let mut window = vec![0; WINDOW];
    let mut done = 0u64;
    loop {
        let read = match file.read(&mut window) {
            Ok(0) => break,
            Ok(read) => read,
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(e) => {
                return Err(io_error(path, format!("cannot be read at offset {done}"), &e));
            }
        };
        state.update(&window[..read]);
        done += read as u64;
        progress(done, size);
    }
    Ok(state.finalize().to_hex()[..32].to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::srs::testing::Scratch;

    /// A file of 10 MB, a manifest that has it, and a directory for stamps.
    struct Case {
        scratch: Scratch,
        file: PathBuf,
        manifest: Manifest,
    }

    impl Case {
        fn new(name: &str) -> Self {
            let scratch = Scratch::new(name);
            let file = scratch.path("x.params");
            let bytes: Vec<u8> = (0..10_000_000u32).map(|i| (i / 3) as u8).collect();
            std::fs::write(&file, &bytes).unwrap();
            let digest = blake2b_simd::blake2b(&bytes).to_hex()[..32].to_string();
            let manifest = Self::manifest(&scratch, &digest);
            Case { scratch, file, manifest }
        }

        fn manifest(scratch: &Scratch, digest: &str) -> Manifest {
            let path = scratch.path("parameters.json");
            let text =
                format!(r#"{{"x.params":{{"cid":"QmX","digest":"{digest}","sector_size":1}}}}"#);
            std::fs::write(&path, text).unwrap();
            Manifest::read(&path).unwrap()
        }

        /// The outcome, and the bytes that were read.
        fn verify(&self, manifest: &Manifest) -> (Result<Verified>, u64) {
            let mut read = 0;
            let stamps = self.scratch.path("cache/stamps");
            let result = verify(&self.file, manifest, &stamps, &mut |done, _| read = done);
            (result, read)
        }
    }

    #[test]
    fn the_second_start_reads_nothing_and_a_change_drops_the_stamp() {
        let case = Case::new("stamp-twice");
        let (first, read) = case.verify(&case.manifest);
        assert_eq!((first.unwrap().stamped, read), (false, 10_000_000));
        let (second, read) = case.verify(&case.manifest);
        let second = second.unwrap();
        assert_eq!((second.stamped, second.published, read), (true, true, 0));
        // Another time of change, the same bytes: read again, and fine.
        let file = File::options().write(true).open(&case.file).unwrap();
        file.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
        let (third, read) = case.verify(&case.manifest);
        assert_eq!((third.unwrap().stamped, read), (false, 10_000_000));
        // An edit that keeps the length, with the old time put back.
        use std::os::unix::fs::FileExt;
        file.write_all_at(b"!", 5_000_000).unwrap();
        file.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
        let (fourth, read) = case.verify(&case.manifest);
        assert!(fourth.is_err() && read == 10_000_000);
        assert!(case.file.exists(), "never deleted");
    }

    #[test]
    fn a_stamp_that_others_could_have_written_is_not_trusted() {
        use std::os::unix::fs::PermissionsExt;
        let case = Case::new("stamp-shared");
        case.verify(&case.manifest).0.unwrap();
        let stamps = case.scratch.path("cache/stamps");
        assert_eq!(std::fs::metadata(&stamps).unwrap().permissions().mode() & 0o777, 0o700);
        std::fs::set_permissions(&stamps, PermissionsExt::from_mode(0o777)).unwrap();
        let (again, read) = case.verify(&case.manifest);
        assert_eq!((again.unwrap().stamped, read), (false, 10_000_000));
    }

    #[test]
    fn a_mismatch_names_both_digests_and_both_explanations() {
        let case = Case::new("stamp-mismatch");
        let digest = case.manifest.entry("x.params").unwrap().digest.clone();
        let other = Case::manifest(&case.scratch, "00112233445566778899aabbccddeeff");
        for _ in 0..2 {
            let text = case.verify(&other).0.unwrap_err().to_string();
            for part in [&digest, "00112233445566778899aabbccddeeff", "x.params", "QmX"] {
                assert!(text.contains(part), "{text}");
            }
            assert!(text.contains("damaged") && text.contains("parameters.json"), "{text}");
        }
        // A stamp never overrules the manifest.
        case.verify(&case.manifest).0.unwrap();
        assert!(case.verify(&other).0.is_err());
    }

    #[test]
    fn a_file_without_an_entry_is_measured_and_said_to_be_unpublished() {
        let case = Case::new("stamp-unlisted");
        let verified = case.verify(&Manifest::built_in()).0.unwrap();
        assert!(!verified.published);
        assert_eq!(verified.digest, case.manifest.entry("x.params").unwrap().digest);
    }

    #[test]
    fn a_stamp_that_is_not_one_is_ignored_and_an_unwritable_directory_only_warns() {
        let case = Case::new("stamp-bad");
        let stamps = case.scratch.path("stamps");
        std::fs::create_dir(&stamps).unwrap();
        std::fs::write(stamp_path(&case.file, &stamps), "{").unwrap();
        let verified = verify(&case.file, &case.manifest, &stamps, &mut |_, _| ()).unwrap();
        assert!(!verified.stamped);
        let blocked = case.file.join("stamps");
        let verified = verify(&case.file, &case.manifest, &blocked, &mut |_, _| ()).unwrap();
        assert!(!verified.stamped);
    }
}
