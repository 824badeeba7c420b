//! JSON, base64 and bincode texts to typed values, with the place of the first fault.

use std::io::Cursor;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bincode::Options;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::element::{List, Text};
use crate::error::{Error, Result};

/// A path below a prefix.
pub(crate) fn join(prefix: &str, path: &str) -> String {
    match (prefix, path) {
        ("", path) => path.to_owned(),
        (prefix, "" | ".") => prefix.to_owned(),
        (prefix, path) => format!("{prefix}.{path}"),
    }
}

/// What a message repeats of the input: never more than a line.
pub(crate) fn short(text: &str) -> String {
    const CHARACTERS_MAX: usize = 200;
    match text.char_indices().nth(CHARACTERS_MAX) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

/// Parses one JSON text; nothing may follow it.
pub(crate) fn parse<'de, T: Deserialize<'de>>(
    json: &'de [u8],
    prefix: &str,
    skipped: usize,
) -> Result<T> {
    let refuse = |path: &str, error: serde_json::Error| {
        let lines: usize = json
            .split_inclusive(|b| *b == b'\n')
            .take(error.line().saturating_sub(1))
            .map(<[u8]>::len)
            .sum();
        // The column is that of the last byte read, from 1; at the end there is none to blame.
        let byte = skipped + lines + error.column().saturating_sub(usize::from(!error.is_eof()));
        // serde_path_to_error writes "?" for a key that it has not seen whole.
        let path = match join(prefix, path.trim_end_matches('?').trim_end_matches('.')) {
            path if path.is_empty() => "top level".to_owned(),
            path => path,
        };
        let path = short(&path);
        let text = error.to_string();
        let what = text.rsplit_once(" at line ").map_or(&*text, |(what, _)| what);
        Error::input(format!("{path} (byte {byte})"), short(what))
    };
    let mut deserializer = serde_json::Deserializer::from_slice(json);
    let value = serde_path_to_error::deserialize(&mut deserializer)
        .map_err(|error| refuse(&error.path().to_string(), error.into_inner()))?;
    deserializer.end().map_err(|error| refuse("after the end", error))?;
    Ok(value)
}

/// Decodes standard base64 with padding. `at` says of which field.
pub(crate) fn decode(text: &[u8], at: &str) -> Result<Vec<u8>> {
    use base64::DecodeError::{InvalidByte, InvalidLastSymbol, InvalidLength, InvalidPadding};
    STANDARD.decode(text).map_err(|error| match error {
        InvalidByte(offset, byte) => Error::input(
            format!("{at}, character {offset}"),
            format!("\"{}\" does not belong there in base64", byte.escape_ascii()),
        ),
        InvalidLastSymbol(offset, _) => Error::input(
            format!("{at}, character {offset}"),
            "the base64 ends within a byte: it was cut off",
        ),
        InvalidLength(_) | InvalidPadding => Error::input(
            format!("{at}, character {}", text.len()),
            "the base64 ends within a group of four characters: it was cut off",
        ),
    })
}

/// Parses one bincode value; nothing may follow it. `prefix` says of which blob.
pub(crate) fn parse_binary<T: DeserializeOwned>(bytes: &[u8], prefix: &str) -> Result<T> {
    let at = |byte: u64| match prefix {
        "" => format!("byte {byte}"),
        prefix => format!("{prefix}, byte {byte}"),
    };
    let mut cursor = Cursor::new(bytes);
    let options = bincode::DefaultOptions::new().with_fixint_encoding();
    let value = options.deserialize_from(&mut cursor).map_err(|error| {
        let what = match *error {
            bincode::ErrorKind::Io(_) => "the data ends too early".to_owned(),
            other => other.to_string(),
        };
        Error::input(at(cursor.position()), what)
    })?;
    match bytes.len() as u64 - cursor.position() {
        0 => Ok(value),
        more => Err(Error::input(at(cursor.position()), format!("{more} bytes follow the end"))),
    }
}

/// The most vanilla proofs of one request: the sectors of a WindowPoSt of 32 GiB sectors.
const BLOBS_MAX: usize = 2349;

/// Decodes a JSON array of base64 texts.
pub(crate) fn base64_list(json: &[u8]) -> Result<Vec<Vec<u8>>> {
    let texts: List<Text<'_>, BLOBS_MAX> = parse(json, "", 0)?;
    texts.iter().enumerate().map(|(i, text)| decode(text.0.as_bytes(), &format!("[{i}]"))).collect()
}
