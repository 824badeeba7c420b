//! Which parameters serve a circuit: the official ones, or dev parameters from a directory of
//! their own, or none, and then exactly which files are missing.

use std::fmt;
use std::path::{Path, PathBuf};

use super::marker::Marker;
use super::{file_error, io_error, names};
use crate::error::{Error, Result};
use crate::input::class::CircuitId;

/// A directory and the setting that named it, such as `BERTH_PARAMETER_CACHE` or `the default`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directory {
    pub path: PathBuf,
    pub set_by: String,
}

impl Directory {
    pub fn new(path: impl Into<PathBuf>, set_by: impl Into<String>) -> Self {
        Directory { path: path.into(), set_by: set_by.into() }
    }
}

/// Where parameters come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Of the network's trusted setup.
    Official,
    /// Made locally; proofs are valid on no network.
    Dev,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Origin::Official => "official",
            Origin::Dev => "dev",
        })
    }
}

/// The two files of one circuit's parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    pub id: CircuitId,
    pub origin: Origin,
    pub params: PathBuf,
    pub vk: PathBuf,
}

/// Files that are not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    pub id: CircuitId,
    /// Full paths of the official files that are missing.
    pub files: Vec<PathBuf>,
    official: Directory,
    dev: Option<Directory>,
}

/// What a search came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Search {
    Found(Found),
    Missing(Missing),
}

impl Search {
    /// The parameters, or the error that lists the missing files.
    ///
    /// # Errors
    /// [`Error::Parameters`].
    pub fn required(self) -> Result<Found> {
        match self {
            Search::Found(found) => Ok(found),
            Search::Missing(missing) => Err(Error::Parameters(missing.to_string())),
        }
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} (sectors of {}) needs parameters that are missing:",
            self.id, self.id.sector
        )?;
        for file in &self.files {
            write!(f, "\n  {}", file.display())?;
            if file.is_symlink() {
                f.write_str(" (a link to nothing)")?;
            }
        }
        write!(
            f,
            "\nThe directory is set by {}. `berth params list` gives names, content ids and \
             digests for any downloader",
            self.official.set_by
        )?;
        match &self.dev {
            Some(dev) => write!(
                f,
                "; no dev parameters lie in {} (set by {}), `berth params make-dev` makes some for \
                 trying and testing",
                dev.path.display(),
                dev.set_by
            ),
            None => f.write_str("; dev parameters are off"),
        }
    }
}

/// Finds a circuit's parameters. Official ones win. Verifying keys are published for all sizes
/// and often lie there alone, so a lone official `.vk` counts for nothing; a lone `.params` is an
/// unfinished download and an error. `dev` is `None` where dev parameters are off.
///
/// # Errors
/// [`Error::Config`] when both directories are one; [`Error::Parameters`] when dev parameters lie
/// in the official directory, unmarked ones in the dev directory, or half of an official pair.
pub fn find(id: CircuitId, official: &Directory, dev: Option<&Directory>) -> Result<Search> {
    if let Some(dev) = dev {
        refuse_same(official, dev)?;
    }
    let marker = Marker::path(&official.path, id);
    if marker.symlink_metadata().is_ok() {
        return Err(file_error(
            &marker,
            format!(
                "dev parameters lie in the official directory (set by {}); move these files to a \
                 directory of their own and name it in BERTH_DEV_PARAMETER_DIR",
                official.set_by
            ),
        ));
    }
    let found = pair(id, Origin::Official, &official.path);
    let mut missing: Vec<PathBuf> = Vec::new();
    for file in [&found.params, &found.vk] {
        // Only what is not there is missing; what cannot be looked at is an error.
        let there = file.try_exists();
        if !there.map_err(|e| io_error(file, "cannot be looked at", &e))? {
            missing.push(file.clone());
        }
    }
    if missing.is_empty() {
        return Ok(Search::Found(found));
    }
    let missing = Missing { id, files: missing, official: official.clone(), dev: dev.cloned() };
    if found.params.exists() {
        return Err(Error::Parameters(missing.to_string()));
    }
    let Some(dev) = dev else { return Ok(Search::Missing(missing)) };
    let found = pair(id, Origin::Dev, &dev.path);
    if !found.params.exists() || !found.vk.exists() {
        return Ok(Search::Missing(missing));
    }
    Marker::read(&dev.path, id)?;
    Ok(Search::Found(found))
}

/// The files of a circuit in a directory, there or not.
pub(super) fn pair(id: CircuitId, origin: Origin, directory: &Path) -> Found {
    Found {
        id,
        origin,
        params: directory.join(names::params(id)),
        vk: directory.join(names::vk(id)),
    }
}

fn refuse_same(official: &Directory, dev: &Directory) -> Result<()> {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    if real(&official.path) == real(&dev.path) {
        return Err(Error::Config(format!(
            "the dev parameter directory {} (set by {}) is the official parameter directory (set \
             by {}); dev parameters never lie there: name another directory",
            dev.path.display(),
            dev.set_by,
            official.set_by
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::srs::layout::Counts;
    use crate::srs::testing::Scratch;

    struct Case {
        _scratch: Scratch,
        id: CircuitId,
        official: Directory,
        dev: Directory,
    }

    impl Case {
        fn new(name: &str) -> Self {
            let scratch = Scratch::new(name);
            let [official, dev] = ["official", "dev"].map(|n| scratch.path(n));
            std::fs::create_dir(&official).unwrap();
            std::fs::create_dir(&dev).unwrap();
            Case {
                _scratch: scratch,
                id: "porep-2k".parse().unwrap(),
                official: Directory::new(official, "BERTH_PARAMETER_CACHE"),
                dev: Directory::new(dev, "the default"),
            }
        }

        fn find(&self) -> Result<Search> {
            find(self.id, &self.official, Some(&self.dev))
        }

        fn put(&self, directory: &Directory, name: String) {
            std::fs::write(directory.path.join(name), "x").unwrap();
        }

        fn mark(&self, directory: &Directory) {
            let counts = Counts { ic: 1, h: 1, l: 1, a: 1, b: 1 };
            Marker::new(self.id, counts).write(&directory.path, self.id).unwrap();
        }
    }

    #[test]
    fn an_empty_directory_lists_exactly_the_two_files() {
        let case = Case::new("find-empty");
        let error = case.find().unwrap().required().unwrap_err();
        assert_eq!(error.exit_code(), 4);
        let text = error.to_string();
        for name in [names::params(case.id), names::vk(case.id)] {
            let full = case.official.path.join(name).display().to_string();
            assert_eq!(text.matches(&full).count(), 1, "{text}");
        }
        for part in ["porep-2k", "2 KiB", "BERTH_PARAMETER_CACHE"] {
            assert!(text.contains(part), "{text}");
        }
    }

    #[test]
    fn official_parameters_win() {
        let case = Case::new("find-official");
        for name in [names::params(case.id), names::vk(case.id)] {
            case.put(&case.dev, name.clone());
            case.put(&case.official, name);
        }
        case.mark(&case.dev);
        let found = case.find().unwrap().required().unwrap();
        assert_eq!(found.origin, Origin::Official);
        assert!(found.params.starts_with(&case.official.path));
    }

    #[test]
    fn a_lone_official_key_leaves_room_for_dev_parameters() {
        let case = Case::new("find-dev");
        case.put(&case.official, names::vk(case.id));
        for name in [names::params(case.id), names::vk(case.id)] {
            case.put(&case.dev, name);
        }
        let text = case.find().unwrap_err().to_string();
        assert!(text.contains("dev marker") && text.contains(".dev.json"), "{text}");
        case.mark(&case.dev);
        assert_eq!(case.find().unwrap().required().unwrap().origin, Origin::Dev);
        assert!(matches!(find(case.id, &case.official, None), Ok(Search::Missing(_))));
    }

    #[test]
    fn a_lone_official_params_file_is_an_error_that_names_the_key() {
        let case = Case::new("find-half");
        case.put(&case.official, names::params(case.id));
        let text = case.find().unwrap_err().to_string();
        assert!(text.contains(&names::vk(case.id)), "{text}");
        assert!(!text.contains(&names::params(case.id)), "{text}");
    }

    #[test]
    fn dev_parameters_in_the_official_directory_are_refused() {
        let case = Case::new("find-marker");
        for name in [names::params(case.id), names::vk(case.id)] {
            case.put(&case.official, name);
        }
        case.mark(&case.official);
        let text = case.find().unwrap_err().to_string();
        assert!(text.contains("official directory"), "{text}");
    }

    #[test]
    fn one_directory_for_both_is_refused_also_through_a_link() {
        let case = Case::new("find-same");
        let link = case.dev.path.join("link");
        std::os::unix::fs::symlink(&case.official.path, &link).unwrap();
        for path in [case.official.path.clone(), link] {
            let dev = Directory::new(path, "BERTH_DEV_PARAMETER_DIR");
            let error = find(case.id, &case.official, Some(&dev)).unwrap_err();
            assert_eq!(error.exit_code(), 2);
            assert!(error.to_string().contains("BERTH_DEV_PARAMETER_DIR"));
        }
    }

    #[test]
    fn a_dangling_link_is_missing_and_said_to_be_one() {
        let case = Case::new("find-link");
        let link = case.official.path.join(names::params(case.id));
        std::os::unix::fs::symlink("nowhere", link).unwrap();
        let text = case.find().unwrap().required().unwrap_err().to_string();
        assert!(text.contains("a link to nothing"), "{text}");
    }
}
