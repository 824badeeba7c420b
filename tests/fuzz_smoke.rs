//! The fuzz targets' own functions on a stable compiler: every real input, the kept finds of the
//! engine, and thousands of changed ones.
//!
//! With `BERTH_WRITE_CORPUS=1` the real inputs also become files of `tests/fuzz/corpus`, where the
//! engine starts from.

use std::path::{Path, PathBuf};

use berth::fuzz;
use berth::input::{PorepOptions, read_porep};
use serde_json::Value;

const ROUNDS: usize = if cfg!(feature = "long-tests") { 1000 } else { 100 };

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name)
}

fn data(name: &str) -> Vec<u8> {
    std::fs::read(folder("data").join(name)).unwrap()
}

/// A meta file as one line.
fn meta(name: &str) -> Vec<u8> {
    let meta: Value = serde_json::from_slice(&data(&format!("{name}.meta.json"))).unwrap();
    format!("{meta}\n").into_bytes()
}

/// A name, the bytes, and how many readings of them are accepted.
type Seed = (String, Vec<u8>, usize);

fn porep_seeds() -> Vec<Seed> {
    let mut seeds = Vec::new();
    for name in ["porep-2kib", "porep-2kib-v1", "porep-2kib-synthetic", "porep-2kib-ni"] {
        let wrapper = data(&format!("{name}.c1.json"));
        let input = read_porep(&wrapper, &PorepOptions::default()).unwrap();
        // The types that the target names for one and for thirteen partitions.
        let named = ["StackedDrg2KiBV1_1", "StackedDrg2KiBV1_2_Feat_NonInteractivePoRep"];
        let accepted = named[usize::from(input.non_interactive)] == input.registered_proof;
        // As it is and as base64, and with a type from outside if that is the one.
        let wrappers = 2 + usize::from(name == "porep-2kib");
        seeds.push((format!("{name}.wrapper"), wrapper, wrappers));
        seeds.push((format!("{name}.bincode"), input.to_bincode(), usize::from(accepted)));
    }
    let bare = data("porep-2kib-bare.phase1.json");
    let text = String::from_utf8(bare.clone()).unwrap();
    let task = format!("{{\"c1out\":{text},\"miner_id\":1074,\"sector_id\":42}}");
    // As it is, with a type, as base64; the bare form in a wrapper too.
    seeds.push(("bare".into(), bare, 4));
    seeds.push(("task".into(), task.into_bytes(), 3));
    for name in ["shape-16kib", "shape-32kib"] {
        let stacked = data(&format!("{name}.stacked.json"));
        seeds.push((name.into(), [meta(name), stacked].concat(), 1));
    }
    seeds
}

fn other_seeds() -> Vec<Seed> {
    use base64::Engine;
    let mut seeds = Vec::new();
    for name in ["windowpost-2kib", "winningpost-2kib", "snap-2kib"] {
        let list = data(&format!("{name}.vanilla.json"));
        let texts: Vec<String> = serde_json::from_slice(&list).unwrap();
        let blobs: Vec<u8> = texts
            .iter()
            .flat_map(|text| base64::engine::general_purpose::STANDARD.decode(text).unwrap())
            .collect();
        seeds.push((format!("{name}.list"), [meta(name), list].concat(), 1));
        seeds.push((format!("{name}.bincode"), [meta(name), blobs].concat(), 1));
    }
    seeds
}

/// Small ones for the parameter reader: whole files, what comes instead of them, and texts.
fn parameter_seeds() -> Vec<Seed> {
    let (params, vk) = fuzz::valid_parameters();
    let mut other_key = params.to_vec();
    // gamma and delta of G2 change places: still points, but no longer the key of the `.vk` file.
    other_key[384..576].copy_from_slice(&params[672..864]);
    other_key[672..864].copy_from_slice(&params[384..576]);
    vec![
        ("params".into(), params.to_vec(), 2),
        ("vk".into(), vk.to_vec(), 1),
        ("other-key".into(), other_key, 1),
        ("cut".into(), params[..params.len() - 1].to_vec(), 0),
        ("long".into(), [params, &[0]].concat(), 0),
        ("page".into(), b"<html><body>404 not found</body></html>".to_vec(), 0),
        ("empty".into(), Vec::new(), 0),
    ]
}

fn write_corpus(target: &str, seeds: &[Seed]) {
    if std::env::var_os("BERTH_WRITE_CORPUS").is_none() {
        return;
    }
    let folder = folder("fuzz/corpus").join(target);
    std::fs::create_dir_all(&folder).unwrap();
    for (name, bytes, _) in seeds {
        std::fs::write(folder.join(name), bytes).unwrap();
    }
}

/// What the engine found worth keeping, smallest form of it.
fn kept(target: &str) -> Vec<Vec<u8>> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder("fuzz/seeds").join(target))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    paths.iter().map(|path| std::fs::read(path).unwrap()).collect()
}

/// Numbers from a seed (splitmix64).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % bound.max(1) as u64) as usize
    }
}

/// One change of `bytes`, with `other` to splice from.
fn changed(bytes: &[u8], other: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let at = random.below(bytes.len());
    match random.below(8) {
        0 => bytes.truncate(at),
        1 | 2 => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << random.below(8);
            }
        }
        3 => {
            let from = random.below(other.len());
            bytes.truncate(at);
            bytes.extend_from_slice(&other[from..]);
        }
        4 => {
            // The same range of another file, or of this one: whole values change places.
            let length = random.below(400).min(bytes.len() - at);
            let from = random.below(other.len().saturating_sub(length));
            let end = (from + length).min(other.len());
            bytes[at..at + end - from].copy_from_slice(&other[from..end]);
        }
        5 => {
            // A number of the text, or else eight bytes of the binary form.
            let numbers = ["18446744073709551616", "-1", "1e999", "4294967296", "0.5", "null"];
            let digits = bytes[at..].iter().position(u8::is_ascii_digit);
            if bytes.first() == Some(&b'{')
                && let Some(start) = digits.map(|start| at + start)
            {
                let length = bytes[start..].iter().take_while(|b| b.is_ascii_digit()).count();
                let number = numbers[random.below(numbers.len())];
                bytes.splice(start..start + length, number.bytes());
            } else {
                let end = (at + 8).min(bytes.len());
                bytes[at..end].fill([0x00, 0xff, 0x7f][random.below(3)]);
            }
        }
        6 => {
            let deep = ["[", "{\"a\":", "\""][random.below(3)].repeat(1000 << random.below(7));
            bytes.splice(at..at, deep.bytes());
        }
        _ => {
            let length = random.below(2000).min(bytes.len() - at);
            let range = bytes[at..at + length].to_vec();
            bytes.splice(at..at, range);
        }
    }
    bytes
}

/// Changes of every seed, one to three at a time; the engine's finds are changed as well.
fn change(seeds: &[Vec<u8>], rounds: usize, target: fn(&[u8]) -> usize) {
    let mut random = Random(20_261_129);
    for round in 0..rounds {
        let other = &seeds[random.below(seeds.len())];
        let mut bytes = seeds[round % seeds.len()].clone();
        for _ in 0..=random.below(3) {
            bytes = changed(&bytes, other, &mut random);
        }
        target(&bytes);
    }
}

/// Runs every seed, expecting what is accepted, then every find, then changes of both.
fn smoke(target: &str, seeds: &[Seed], rounds: usize, call: fn(&[u8]) -> usize) {
    for (name, bytes, accepted) in seeds {
        assert_eq!(call(bytes), *accepted, "readings of {name} that are accepted");
    }
    let kept = kept(target);
    assert!(!kept.is_empty(), "no seeds of {target}");
    for bytes in &kept {
        call(bytes);
    }
    let short = seeds.iter().map(|(_, bytes, _)| bytes).filter(|bytes| bytes.len() < 200_000);
    let all: Vec<Vec<u8>> = short.cloned().chain(kept).collect();
    change(&all, rounds, call);
}

#[test]
fn requests() {
    let mut seeds = porep_seeds();
    seeds.extend(other_seeds());
    write_corpus("input", &seeds);
    smoke("input", &seeds, 4 * ROUNDS, fuzz::input);
}

#[test]
fn parameter_files() {
    let seeds = parameter_seeds();
    write_corpus("parameters", &seeds);
    smoke("parameters", &seeds, 10 * ROUNDS, fuzz::parameters);
}

/// Every length of a small file, and every byte of it changed.
#[test]
fn parameter_files_cut_and_changed_anywhere() {
    let (params, _) = fuzz::valid_parameters();
    for length in (0..params.len()).step_by(7) {
        assert_eq!(fuzz::parameters(&params[..length]), 0, "{length} bytes");
    }
    for at in (0..params.len()).step_by(13) {
        let mut bytes = params.to_vec();
        bytes[at] ^= 1 << (at % 8);
        assert_eq!(fuzz::parameters(&bytes), 0, "byte {at}");
    }
}
