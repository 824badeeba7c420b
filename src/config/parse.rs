//! Values of settings, from text; `None` is a value that is not allowed.

use std::net::SocketAddr;
use std::path::PathBuf;

use super::Gpus;
use crate::input::class::CircuitId;

/// Cards are counted below this.
const GPUS_MAX: usize = 1024;

/// The text of a value: not empty, without white space at its ends, without control characters.
#[derive(Clone, Copy)]
pub(super) struct Text<'a>(&'a str);

impl<'a> Text<'a> {
    pub(super) fn new(text: &'a str) -> Option<Self> {
        let fits = !text.is_empty() && text == text.trim() && !text.contains(char::is_control);
        fits.then_some(Text(text))
    }

    pub(super) fn word<T: Copy>(self, words: &[(&str, T)], place: &mut T) -> Option<()> {
        let (_, value) = words.iter().find(|(word, _)| *word == self.0)?;
        *place = *value;
        Some(())
    }

    pub(super) fn number(self, least: usize, most: usize) -> Option<usize> {
        let number = digits(self.0)?.try_into().ok()?;
        (least..=most).contains(&number).then_some(number)
    }

    /// Bytes, or KiB, MiB, GiB, TiB (also K, M, G, T), at least 1.
    pub(super) fn size(self) -> Option<u64> {
        let split = self.0.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.0.len());
        let (number, unit) = self.0.split_at(split);
        let unit_bytes = match unit {
            "" => 1,
            "K" | "KiB" => 1 << 10,
            "M" | "MiB" => 1 << 20,
            "G" | "GiB" => 1 << 30,
            "T" | "TiB" => 1 << 40,
            _ => return None,
        };
        digits(number)?.checked_mul(unit_bytes).filter(|bytes| *bytes > 0)
    }

    pub(super) fn cpus(self) -> Option<Vec<usize>> {
        numa::parse_list(self.0)
    }

    pub(super) fn path(self) -> Option<PathBuf> {
        Some(PathBuf::from(self.0))
    }

    pub(super) fn gpus(self) -> Option<Gpus> {
        if self.0 == "all" {
            return Some(Gpus::All);
        }
        let cards: Vec<String> = self.0.split(',').map(str::to_owned).collect();
        cards.iter().all(|card| is_card(card)).then_some(Gpus::List(cards))
    }

    pub(super) fn circuits(self) -> Option<Vec<CircuitId>> {
        let mut list = Vec::new();
        for text in self.0.split(',') {
            let id = text.parse().ok()?;
            if !list.contains(&id) {
                list.push(id);
            }
        }
        Some(list)
    }

    pub(super) fn listen(self) -> Option<String> {
        let fits = match self.0.strip_prefix("unix://") {
            Some(path) => path.starts_with('/') && path.len() > 1,
            None => self.0.parse::<SocketAddr>().is_ok(),
        };
        fits.then(|| self.0.to_owned())
    }

    pub(super) fn log(self) -> Option<String> {
        let level = |text: &str| text.parse::<log::LevelFilter>().is_ok();
        let fits = self.0.split(',').all(|part| match part.split_once('=') {
            None => level(part),
            Some((module, of)) => !module.is_empty() && level(of),
        });
        fits.then(|| self.0.to_owned())
    }
}

/// A number of digits alone: no sign, no space.
fn digits(text: &str) -> Option<u64> {
    let fits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if fits { text.parse().ok() } else { None }
}

/// An index, `GPU-` with 8-4-4-4-12 hexadecimal digits, or `[domain:]bus:device.function`.
fn is_card(text: &str) -> bool {
    let hex = |part: &str, lens: &[usize]| {
        lens.contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    if let Some(uuid) = text.strip_prefix("GPU-") {
        let parts: Vec<&str> = uuid.split('-').collect();
        return parts.len() == 5
            && parts.iter().zip([8, 4, 4, 4, 12]).all(|(part, len)| hex(part, &[len]));
    }
    if let Some((slot, function)) = text.rsplit_once('.') {
        let parts: Vec<&str> = slot.split(':').collect();
        return hex(function, &[1])
            && match parts[..] {
                [bus, device] => hex(bus, &[2]) && hex(device, &[2]),
                [domain, bus, device] => {
                    hex(domain, &[4, 8]) && hex(bus, &[2]) && hex(device, &[2])
                }
                _ => false,
            };
    }
    digits(text).is_some_and(|index| index < GPUS_MAX as u64)
}
