//! The sections of a parameter file and of its region in an arena.
//!
//! A `.params` file has no header, no padding and no checksum; its counts are all it says about
//! itself, so every length is checked against them and they against the circuit:
//!
//! ```text
//! alpha_g1 beta_g1 beta_g2 gamma_g2 delta_g1 delta_g2   864 bytes
//! ic h l a b_g1 b_g2, each: count (u32, big-endian), then points of 96 bytes (b_g2: 192)
//! ```
//!
//! A `.vk` file ends after `ic`. (bellperson `groth16/params.rs`, `verifying_key.rs`.)

use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{file_error, io_error};
use crate::circuit::compiled::{Compiled, QueryName};
use crate::error::{Error, Result};

/// Bytes of a G1 point, in a file as in memory.
pub const G1_BYTES: usize = 96;
/// Bytes of a G2 point, in a file as in memory.
pub const G2_BYTES: usize = 192;
/// The six points before the counted sections.
pub const HEAD_BYTES: u64 = 864;
/// Bytes of a count.
const COUNT_BYTES: u64 = 4;

/// A counted section of a parameter file, in the order of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Section {
    Ic,
    H,
    L,
    A,
    BG1,
    BG2,
}

impl Section {
    pub const ALL: [Section; 6] =
        [Section::Ic, Section::H, Section::L, Section::A, Section::BG1, Section::BG2];

    pub fn name(self) -> &'static str {
        match self {
            Section::Ic => "ic",
            Section::H => "h",
            Section::L => "l",
            Section::A => "a",
            Section::BG1 => "b_g1",
            Section::BG2 => "b_g2",
        }
    }

    /// Bytes of one of its points.
    pub fn point_bytes(self) -> u64 {
        if self == Section::BG2 { G2_BYTES as u64 } else { G1_BYTES as u64 }
    }
}

/// Points per section; `b_g1` and `b_g2` have the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    pub ic: u64,
    pub h: u64,
    pub l: u64,
    pub a: u64,
    pub b: u64,
}

impl Counts {
    /// The counts that a circuit needs.
    pub fn of(compiled: &Compiled) -> Self {
        let points = |name| {
            let (bits, wides) = compiled.query_len(name);
            (bits + wides) as u64
        };
        Counts {
            ic: compiled.shape.inputs() as u64,
            h: compiled.shape.domain() as u64 - 1,
            l: points(QueryName::L),
            a: points(QueryName::A),
            b: points(QueryName::B),
        }
    }

    pub fn of_section(&self, section: Section) -> u64 {
        match section {
            Section::Ic => self.ic,
            Section::H => self.h,
            Section::L => self.l,
            Section::A => self.a,
            Section::BG1 | Section::BG2 => self.b,
        }
    }

    /// Byte offset of a section's first point in the file; its count stands 4 bytes before.
    pub fn first_point(&self, section: Section) -> u64 {
        Section::ALL
            .iter()
            .take_while(|&&s| s < section)
            .fold(HEAD_BYTES + COUNT_BYTES, |offset, &s| {
                offset + self.of_section(s) * s.point_bytes() + COUNT_BYTES
            })
    }

    /// Bytes of the `.vk` file.
    pub fn vk_bytes(&self) -> u64 {
        self.first_point(Section::H) - COUNT_BYTES
    }

    /// Bytes of the `.params` file.
    pub fn params_bytes(&self) -> u64 {
        self.first_point(Section::BG2) + self.b * G2_BYTES as u64
    }

    /// The section and the point that a byte of the file belongs to, for messages.
    pub fn locate(&self, offset: u64) -> String {
        for section in Section::ALL.into_iter().rev() {
            let first = self.first_point(section);
            if offset >= first {
                return format!("{}[{}]", section.name(), (offset - first) / section.point_bytes());
            }
            if offset >= first - COUNT_BYTES {
                return format!("count of {}", section.name());
            }
        }
        let heads = [(672, "delta_g2"), (576, "delta_g1"), (384, "gamma_g2"), (192, "beta_g2")];
        let name = heads.iter().find(|(from, _)| offset >= *from).map(|(_, name)| *name);
        name.unwrap_or(if offset >= 96 { "beta_g1" } else { "alpha_g1" }).to_string()
    }
}

/// Opens a regular file that is not empty, and says in one sentence why it cannot.
pub(super) fn open(path: &Path) -> Result<(File, u64)> {
    let fail = |what: String| Err(file_error(path, what));
    // A pipe is not even opened, since that waits for a writer.
    if std::fs::metadata(path).is_ok_and(|meta| !meta.is_file() && !meta.is_dir()) {
        return fail("not a regular file".to_string());
    }
    let file = match File::open(path) {
        Ok(file) => file,
        Err(e) if e.kind() == ErrorKind::NotFound && path.is_symlink() => {
            return fail("the link points to nothing".to_string());
        }
        Err(e) => return Err(io_error(path, "cannot be opened", &e)),
    };
    let meta = match file.metadata() {
        Ok(meta) => meta,
        Err(e) => return Err(io_error(path, "cannot be examined", &e)),
    };
    if meta.is_dir() {
        return fail("a directory stands where the file should be".to_string());
    }
    if !meta.is_file() {
        return fail("not a regular file".to_string());
    }
    if meta.len() == 0 {
        return fail(
            "the file is empty; fetch it again, or make dev parameters again (--force)".to_string(),
        );
    }
    Ok((file, meta.len()))
}

/// Reads the counts of a parameter file and checks that they add up to its length exactly. No
/// point is looked at, so a sparse file will do.
///
/// # Errors
/// [`Error::Parameters`] naming file, section, offset, what was expected and what was found.
pub fn probe(path: &Path) -> Result<Counts> {
    let (file, length) = open(path)?;
    probe_open(path, &file, length)
}

fn probe_open(path: &Path, file: &File, length: u64) -> Result<Counts> {
    let mut found = [0u64; 6];
    let mut offset = HEAD_BYTES;
    for (section, found) in Section::ALL.into_iter().zip(&mut found) {
        let name = section.name();
        if offset + COUNT_BYTES > length {
            let what = format!("the count of section {name} at offset {offset}");
            return Err(short(path, file, length, offset + COUNT_BYTES, &what));
        }
        let mut count = [0; COUNT_BYTES as usize];
        file.read_exact_at(&mut count, offset)
            .map_err(|e| io_error(path, format!("section {name}, offset {offset}"), &e))?;
        *found = u64::from(u32::from_be_bytes(count));
        let first = offset + COUNT_BYTES;
        offset = first + *found * section.point_bytes();
        if offset > length {
            let what = format!("the {found} points of section {name} at offset {first}");
            return Err(short(path, file, length, offset, &what));
        }
    }
    let [ic, h, l, a, b, b_g2] = found;
    if offset != length {
        let what = format!(
            "the sections end at byte {offset}, the file at {length}: {} bytes too many; fetch the \
             file again",
            length - offset
        );
        return Err(file_error(path, what));
    }
    if b != b_g2 {
        let what = format!("section b_g2: expected {b} points as in b_g1, found {b_g2}");
        return Err(file_error(path, what));
    }
    Ok(Counts { ic, h, l, a, b })
}

/// Opens a parameter file whose counts must be those of the circuit.
pub(super) fn open_params(path: &Path, wanted: &Counts) -> Result<File> {
    let (file, length) = open(path)?;
    let found = probe_open(path, &file, length).map_err(|error| match error {
        Error::Parameters(text) => Error::Parameters(format!(
            "{text} (the circuit needs {} bytes, the file has {length})",
            wanted.params_bytes()
        )),
        other => other,
    })?;
    for section in Section::ALL {
        let (wanted_here, found_here) = (wanted.of_section(section), found.of_section(section));
        if wanted_here != found_here {
            let what = format!(
                "section {} at offset {}: expected {wanted_here} points, found {found_here}; the \
                 file is of another circuit",
                section.name(),
                found.first_point(section) - COUNT_BYTES,
            );
            return Err(file_error(path, what));
        }
    }
    Ok(file)
}

/// The error of a file that ends too early; an error page saved as a file is named as such.
fn short(path: &Path, file: &File, length: u64, need: u64, what: &str) -> Error {
    let mut begin = [0; 16];
    let read = file.read_at(&mut begin, 0).unwrap_or(0);
    let begin = &begin[..read];
    let page = begin.iter().all(|b| b.is_ascii_graphic() || b.is_ascii_whitespace());
    let hint = if page {
        format!("it begins with the text {:?}, so a page was saved", String::from_utf8_lossy(begin))
    } else {
        "it was cut short or its counts are damaged".to_string()
    };
    let what = format!(
        "too short: {what} need {need} bytes, the file has {length}; {hint}; fetch it again, or \
         make dev parameters again (--force)"
    );
    file_error(path, what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::srs::testing::Scratch;

    /// Inputs, aux, log of the domain, dense in A, dense in B, and the length of the published
    /// file (formats as counted from storage-proofs 19.1).
    const REAL: [(&str, u64, u64, u32, u64, u64, u64); 6] = [
        ("porep-2k", 40, 2_685_673, 22, 2_674_908, 685_521, 1_114_707_768),
        ("porep-32g", 328, 130_169_893, 27, 129_753_292, 33_112_281, 47_373_928_632),
        ("window-2k", 23, 22_128, 15, 16_770, 16_028, 11_501_496),
        ("window-32g", 25_840, 126_902_376, 27, 96_179_805, 91_925_766, 60_780_374_232),
        ("winning-32g", 133, 375_210, 19, 284_196, 272_184, 192_050_232),
        ("update-32g", 5, 80_978_488, 27, 80_743_581, 20_983_607, 34_453_501_368),
    ];

    fn counts(ic: u64, aux: u64, log: u32, dense_a: u64, dense_b: u64) -> Counts {
        Counts { ic, h: (1 << log) - 1, l: aux, a: ic + dense_a, b: 1 + dense_b }
    }

    fn sparse(path: &Path, counts: &Counts) -> File {
        let file = File::create(path).unwrap();
        file.set_len(counts.params_bytes()).unwrap();
        for section in Section::ALL {
            let count = counts.of_section(section) as u32;
            file.write_all_at(&count.to_be_bytes(), counts.first_point(section) - 4).unwrap();
        }
        file
    }

    #[test]
    fn offsets_of_the_real_2_kib_file() {
        let (_, ic, aux, log, a, b, length) = REAL[0];
        let counts = counts(ic, aux, log, a, b);
        let first = Section::ALL.map(|s| counts.first_point(s));
        let real = [868, 4_712, 402_657_804, 660_482_416, 917_277_428, 983_087_544];
        assert_eq!(first, real);
        assert_eq!((counts.vk_bytes(), counts.params_bytes()), (4_708, length));
    }

    #[test]
    fn sparse_files_of_the_real_lengths_are_measured() {
        let scratch = Scratch::new("layout-sparse");
        for (name, ic, aux, log, a, b, length) in REAL {
            let wanted = counts(ic, aux, log, a, b);
            let path = scratch.path(name);
            sparse(&path, &wanted);
            assert_eq!(probe(&path).unwrap(), wanted, "{name}");
            assert_eq!(wanted.params_bytes(), length, "{name}");
        }
    }

    #[test]
    fn damaged_files_are_refused_with_section_and_lengths() {
        let scratch = Scratch::new("layout-damage");
        let wanted = counts(3, 10, 4, 9, 5);
        let path = scratch.path("x.params");
        let refusal = |what: &dyn Fn(&File)| {
            what(&sparse(&path, &wanted));
            let error = open_params(&path, &wanted).unwrap_err();
            assert_eq!(error.exit_code(), 4);
            let text = error.to_string();
            assert!(text.contains("x.params"), "{text}");
            text
        };
        let length = wanted.params_bytes();
        let text = refusal(&|file| file.set_len(length - 1).unwrap());
        assert!(text.contains("b_g2") && text.contains(&(length - 1).to_string()), "{text}");
        assert!(text.contains(&length.to_string()), "{text}");
        let text = refusal(&|file| file.set_len(length + 1).unwrap());
        assert!(text.contains("1 bytes too many"), "{text}");
        let text = refusal(&|file| file.set_len(0).unwrap());
        assert!(text.contains("empty"), "{text}");
        let text = refusal(&|file| file.set_len(179).unwrap());
        assert!(text.contains("count of section ic at offset 864"), "{text}");
        let text = refusal(&|file| {
            file.write_all_at(&u32::MAX.to_be_bytes(), wanted.first_point(Section::L) - 4).unwrap()
        });
        assert!(text.contains("section l") && text.contains("4294967295"), "{text}");
    }

    #[test]
    fn pages_directories_and_dangling_links_are_named() {
        let scratch = Scratch::new("layout-kinds");
        let path = scratch.path("page");
        std::fs::write(&path, "<html><body>404 not found").unwrap();
        let text = probe(&path).unwrap_err().to_string();
        assert!(text.contains("<html>") && text.contains("page"), "{text}");
        let path = scratch.path("directory");
        std::fs::create_dir(&path).unwrap();
        assert!(probe(&path).unwrap_err().to_string().contains("a directory stands"));
        let path = scratch.path("link");
        std::os::unix::fs::symlink("nowhere", &path).unwrap();
        assert!(probe(&path).unwrap_err().to_string().contains("points to nothing"));
    }

    #[test]
    fn the_file_of_another_circuit_is_refused_by_section() {
        let scratch = Scratch::new("layout-other");
        let path = scratch.path("x.params");
        sparse(&path, &counts(3, 10, 4, 9, 5));
        let text = open_params(&path, &counts(3, 10, 4, 8, 5)).unwrap_err().to_string();
        assert!(text.contains("section a at offset"), "{text}");
        assert!(text.contains("expected 11 points, found 12"), "{text}");
    }

    #[test]
    fn bytes_are_located() {
        let counts = counts(3, 10, 4, 9, 5);
        assert_eq!(counts.locate(0), "alpha_g1");
        assert_eq!(counts.locate(863), "delta_g2");
        assert_eq!(counts.locate(864), "count of ic");
        assert_eq!(counts.locate(868 + 96), "ic[1]");
        assert_eq!(counts.locate(counts.first_point(Section::BG2) + 192 * 2 + 5), "b_g2[2]");
    }
}
