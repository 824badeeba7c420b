//! Small files of sysfs and procfs.

use std::io::{Error, ErrorKind, Result};
use std::path::Path;

/// No list is longer than this: a wrong file must not fill the memory.
const LIST_MAX: usize = 1 << 16;

/// Reads a kernel list such as `0-3,8,10-11`; an empty text is an empty list. `None` for anything
/// else, such as ranges that run backwards or numbers beyond 65,535.
pub fn parse_list(text: &str) -> Option<Vec<usize>> {
    let text = text.trim_end_matches('\n');
    if text.is_empty() {
        return Some(Vec::new());
    }
    // Marked, not listed: ranges that repeat must not fill the memory either.
    let mut listed: Vec<bool> = Vec::new();
    for range in text.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last) = (number(first)?, number(last)?);
        if first > last || last >= LIST_MAX {
            return None;
        }
        listed.resize(listed.len().max(last + 1), false);
        listed[first..=last].fill(true);
    }
    Some((0..listed.len()).filter(|number| listed[*number]).collect())
}

/// Writes ascending numbers as the kernel does: `0-3,8`.
pub fn format_list(list: &[usize]) -> String {
    let mut text = String::new();
    for run in list.chunk_by(|a, b| a + 1 == *b) {
        if !text.is_empty() {
            text.push(',');
        }
        match run {
            [one] => text += &one.to_string(),
            [first, .., last] => text += &format!("{first}-{last}"),
            [] => {}
        }
    }
    text
}

fn number(text: &str) -> Option<usize> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if digits { text.parse().ok() } else { None }
}

/// The text of a file; the error names the file.
pub(crate) fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path)
        .map_err(|e| Error::new(e.kind(), format!("cannot read {}: {e}", path.display())))
}

/// The text of a file, or `None` where there is no such file.
pub(crate) fn read_if_there(path: &Path) -> Result<Option<String>> {
    match read(path) {
        Ok(text) => Ok(Some(text)),
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(e) => Err(e),
    }
}

pub(crate) fn read_list(path: &Path) -> Result<Vec<usize>> {
    let text = read(path)?;
    parse_list(&text).ok_or_else(|| wrong(path, &text, "a list such as 0-3,8"))
}

pub(crate) fn read_number(path: &Path) -> Result<u64> {
    let text = read(path)?;
    text.trim_end().parse().map_err(|_| wrong(path, &text, "a number"))
}

pub(crate) fn wrong(path: &Path, text: &str, expected: &str) -> Error {
    let text: String = text.chars().take(80).collect();
    let message = format!("{} holds {text:?} where {expected} should be", path.display());
    Error::new(ErrorKind::InvalidData, message)
}

/// The value in bytes of a line `[Node 0 ]Key:  123 kB`; a file without the line is wrong.
pub(crate) fn kilobytes(path: &Path, text: &str, key: &str) -> Result<u64> {
    text.lines()
        .find_map(|line| {
            let (head, value) = line.split_once(':')?;
            (head.split_whitespace().next_back() == Some(key)).then_some(value)
        })
        .and_then(|value| value.split_whitespace().next()?.parse::<u64>().ok())
        .and_then(|kilobytes| kilobytes.checked_mul(1024))
        .ok_or_else(|| wrong(path, text, &format!("a line \"{key}: <number> kB\"")))
}

/// Numbers N of the entries `<prefix>N<suffix>` of a folder, ascending.
pub(crate) fn numbered(folder: &Path, prefix: &str, suffix: &str) -> Result<Vec<usize>> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(Error::new(e.kind(), format!("{}: {e}", folder.display()))),
    };
    let mut numbers = Vec::new();
    for entry in entries {
        let name = entry?.file_name();
        let digits = name
            .to_str()
            .and_then(|name| name.strip_prefix(prefix))
            .and_then(|name| name.strip_suffix(suffix));
        numbers.extend(digits.and_then(number));
    }
    numbers.sort_unstable();
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists() {
        assert_eq!(parse_list("\n"), Some(vec![]));
        assert_eq!(parse_list("0-3,8,10-11\n"), Some(vec![0, 1, 2, 3, 8, 10, 11]));
        assert_eq!(parse_list("5,1-2"), Some(vec![1, 2, 5]));
        assert_eq!(parse_list("0-2047").map(|list| list.len()), Some(2048));
        for wrong in ["abc", "-1", "3-1", "1,", ",", "1-", "+1", " 1", "1 ", "0-99999999999999999"]
        {
            assert_eq!(parse_list(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn lists_written_are_lists_read() {
        for text in ["", "0", "0-3,8,10-11", "5-6", "0-65535", "1023-1025,8191,65535"] {
            assert_eq!(format_list(&parse_list(text).unwrap()), text);
        }
        // Every second number, every third and so on: all lengths of runs and gaps.
        for step in 1..=40 {
            let list: Vec<usize> = (0..LIST_MAX).filter(|n| n % step < step.div_ceil(2)).collect();
            assert_eq!(parse_list(&format_list(&list)), Some(list));
        }
    }

    #[test]
    fn a_list_that_repeats_itself_takes_no_more_memory() {
        let text = "0-65535,".repeat(1000) + "7";
        assert_eq!(
            parse_list(&text).map(|list| (list.len(), list.capacity() < 1 << 20)),
            Some((LIST_MAX, true))
        );
        assert_eq!(parse_list("0-65536"), None);
        assert_eq!(parse_list("65536"), None);
    }

    #[test]
    fn meminfo_lines_match_whole_keys() {
        let text = "Node 1 MemTotal:  8 kB\nNode 1 MemFree: 3 kB\nNode 1 Active(file): 2 kB\n";
        let path = Path::new("meminfo");
        assert_eq!(kilobytes(path, text, "MemFree").unwrap(), 3072);
        assert_eq!(kilobytes(path, text, "Active(file)").unwrap(), 2048);
        assert!(kilobytes(path, text, "Free").unwrap_err().to_string().contains("Free"));
    }
}
