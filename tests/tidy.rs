//! Tidiness as a test: module order, sizes, SAFETY comments, no dead files, no unfinished marks.

use std::fs;
use std::path::{Path, PathBuf};

const FILE_LINES_MAX: usize = 400;
const LINE_CHARS_MAX: usize = 100;
const FUNCTION_LINES_MAX: usize = 70;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Files below a folder of the project with one of the endings, sorted.
fn files(folder: &str, endings: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                if path.file_name().is_some_and(|name| name != "target") {
                    folders.push(path);
                }
            } else if endings.iter().any(|ending| path.to_string_lossy().ends_with(ending)) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn sources() -> Vec<PathBuf> {
    ["src", "numa", "bench", "tests", "csrc"]
        .iter()
        .flat_map(|folder| files(folder, &[".rs", ".c", ".h"]))
        .filter(|path| !path.ends_with("src/sys.rs"))
        .collect()
}

fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap().display().to_string()
}

#[track_caller]
fn none(faults: Vec<String>) {
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

/// Modules in the order of `src/lib.rs`.
fn modules() -> Vec<String> {
    let lib = fs::read_to_string(root().join("src/lib.rs")).unwrap();
    lib.lines()
        .filter_map(|line| line.strip_prefix("pub mod ").or(line.strip_prefix("mod ")))
        .map(|rest| rest.trim_end_matches(';').to_string())
        .collect()
}

#[test]
fn a_module_uses_only_those_above_it() {
    let modules = modules();
    assert!(modules.len() > 8, "the module list of src/lib.rs is not read: {modules:?}");
    let mut faults = Vec::new();
    for path in files("src", &[".rs"]) {
        let inside = path.strip_prefix(root().join("src")).unwrap().to_path_buf();
        let first = inside.components().next().unwrap().as_os_str().to_string_lossy().to_string();
        let module = first.trim_end_matches(".rs").to_string();
        if module == "lib" || module == "main" {
            continue;
        }
        let Some(place) = modules.iter().position(|name| *name == module) else {
            faults.push(format!("{}: not a module of src/lib.rs", shown(&path)));
            continue;
        };
        let text = fs::read_to_string(&path).unwrap();
        for (number, line) in code_lines(&text) {
            for used in line.split("crate::").skip(1) {
                let name: String =
                    used.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                if let Some(other) = modules.iter().position(|known| *known == name)
                    && other > place
                {
                    faults.push(format!(
                        "{}:{number}: {module} uses {name}, which stands below it",
                        shown(&path)
                    ));
                }
            }
        }
    }
    none(faults);
}

/// Lines before the file's test module, numbered from 1; comments are left out.
fn code_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines()
        .enumerate()
        .take_while(|(_, line)| !line.starts_with("#[cfg(test)]"))
        .filter(|(_, line)| !line.trim_start().starts_with("//"))
        .map(|(number, line)| (number + 1, line))
}

#[test]
fn files_and_lines_are_short() {
    let mut faults = Vec::new();
    for path in sources() {
        let text = fs::read_to_string(&path).unwrap();
        let lines = text.lines().count();
        if lines > FILE_LINES_MAX {
            faults.push(format!("{}: {lines} lines, at most {FILE_LINES_MAX}", shown(&path)));
        }
        for (number, line) in text.lines().enumerate() {
            let chars = line.chars().count();
            if chars > LINE_CHARS_MAX {
                faults.push(format!("{}:{}: {chars} characters", shown(&path), number + 1));
            }
        }
    }
    none(faults);
}

#[test]
fn functions_are_short() {
    let mut faults = Vec::new();
    for path in sources().into_iter().filter(|path| path.extension().is_some_and(|e| e == "rs")) {
        let text = fs::read_to_string(&path).unwrap();
        let mut open: Option<(usize, usize)> = None;
        for (number, line) in text.lines().enumerate() {
            let indent = line.len() - line.trim_start().len();
            let starts = ["fn ", "pub fn ", "pub(super) fn ", "pub(crate) fn ", "unsafe fn "];
            if open.is_none() && starts.iter().any(|start| line.trim_start().starts_with(start)) {
                open = Some((number, indent));
            }
            if let Some((first, depth)) = open
                && (line.trim_start() == "}" && indent == depth
                    || number == first && (line.ends_with('}') || line.ends_with(';')))
            {
                let length = number - first + 1;
                if length > FUNCTION_LINES_MAX {
                    faults.push(format!("{}:{}: {length} lines", shown(&path), first + 1));
                }
                open = None;
            }
        }
    }
    none(faults);
}

#[test]
fn every_unsafe_block_says_why_it_is_sound() {
    let mut faults = Vec::new();
    for path in sources().into_iter().filter(|path| path.extension().is_some_and(|e| e == "rs")) {
        let text = fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        for (number, line) in lines.iter().enumerate() {
            let code = line.split("//").next().unwrap();
            if !code.contains("unsafe {") && !code.contains("unsafe impl") {
                continue;
            }
            let near = &lines[number.saturating_sub(10)..=number];
            if !shown(&path).ends_with("tidy.rs") && !near.iter().any(|l| l.contains("SAFETY:")) {
                faults.push(format!("{}:{}: {}", shown(&path), number + 1, line.trim()));
            }
        }
    }
    none(faults);
}

#[test]
fn no_file_is_dead() {
    let mut faults = Vec::new();
    for folder in ["src", "numa/src", "bench/src"] {
        let files = files(folder, &[".rs"]);
        let texts: Vec<String> =
            files.iter().map(|path| fs::read_to_string(path).unwrap()).collect();
        for path in &files {
            let stem = path.file_stem().unwrap().to_string_lossy().to_string();
            if ["lib", "main"].contains(&stem.as_str()) {
                continue;
            }
            let name = if stem == "mod" {
                path.parent().unwrap().file_name().unwrap().to_string_lossy().to_string()
            } else {
                stem
            };
            let declared = texts.iter().any(|text| {
                text.lines().any(|line| line.trim_end().ends_with(&format!("mod {name};")))
            });
            if !declared {
                faults.push(shown(path));
            }
        }
    }
    let header = fs::read_to_string(root().join("csrc/berth.h")).unwrap();
    for path in files("csrc", &[".h"]) {
        let name = path.file_name().unwrap().to_string_lossy().to_string();
        let used = files("csrc", &[".c", ".h"])
            .iter()
            .any(|other| fs::read_to_string(other).unwrap().contains(&format!("\"{name}\"")));
        if name != "berth.h" && !used && !header.contains(&name) {
            faults.push(shown(&path));
        }
    }
    none(faults);
}

#[test]
fn nothing_is_left_unfinished() {
    let marks = ["TODO", "FIXME", "XXX"];
    let macros = ["todo!(", "unimplemented!(", "dbg!(", "allow(dead_code)", "#[ignore"];
    let mut faults = Vec::new();
    for path in sources() {
        let text = fs::read_to_string(&path).unwrap();
        for (number, line) in text.lines().enumerate() {
            let marked = marks.iter().chain(&macros).any(|mark| line.contains(mark));
            if marked && !shown(&path).ends_with("tidy.rs") {
                faults.push(format!("{}:{}: {}", shown(&path), number + 1, line.trim()));
            }
        }
    }
    none(faults);
}

#[test]
fn every_field_case_names_tests_that_are_there() {
    const CASES: usize = 68;
    let parts = ["bare metal", "CUDA", "bench", "service", "native witness"];
    let table = fs::read_to_string(root().join("tests/field_cases.md")).unwrap();
    let rows: Vec<Vec<&str>> = table
        .lines()
        .filter(|line| line.starts_with("| I-"))
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    assert_eq!(rows.len(), CASES, "one row for each field case");
    let mut faults = Vec::new();
    for (number, row) in rows.iter().enumerate() {
        let [id, _, place] = row[..] else { panic!("three columns: {row:?}") };
        if number > 0 && rows[number - 1][0] >= id {
            faults.push(format!("{id}: out of order, or twice"));
        }
        let tests: Vec<_> =
            place.split('`').skip(1).step_by(2).filter_map(|name| name.split_once("::")).collect();
        for (file, test) in &tests {
            let text = fs::read_to_string(root().join(file)).unwrap_or_default();
            let lines: Vec<&str> = text.lines().map(str::trim).collect();
            let at = lines.iter().position(|line| line.starts_with(&format!("fn {test}(")));
            if at.is_none_or(|at| !lines[at.saturating_sub(3)..at].contains(&"#[test]")) {
                faults.push(format!("{id}: no test {test} in {file}"));
            }
        }
        let later = place.split_once("not yet: ").map(|(_, part)| part);
        match later {
            Some(part) if !parts.iter().any(|known| part.starts_with(known)) => {
                faults.push(format!("{id}: not yet, but for what? {part}"));
            }
            None if tests.is_empty() => faults.push(format!("{id}: neither a test nor a reason")),
            _ => {}
        }
    }
    none(faults);
}
