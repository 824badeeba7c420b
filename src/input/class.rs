//! Which circuit a request needs: the kind of proof and the size of the sector.

use std::fmt;
use std::str::FromStr;

use crate::error::Error;

/// The kind of proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// Proof of replication: a sealed sector.
    Porep,
    /// Empty sector update: SnapDeals.
    Update,
    /// WindowPoSt: sectors are still held.
    Window,
    /// WinningPoSt: the sector of a block's winner is held.
    Winning,
}

/// The size of a sector. 16 and 32 KiB are not sectors of any network: they carry the tree shapes
/// of 32 and 64 GiB at toy size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SectorSize {
    /// 2 KiB.
    K2,
    /// 16 KiB: the tree shape of 32 GiB.
    K16,
    /// 32 KiB: the tree shape of 64 GiB.
    K32,
    /// 8 MiB.
    M8,
    /// 512 MiB.
    M512,
    /// 32 GiB.
    G32,
    /// 64 GiB.
    G64,
}

impl SectorSize {
    /// Every size, ascending.
    pub const ALL: [SectorSize; 7] = [
        SectorSize::K2,
        SectorSize::K16,
        SectorSize::K32,
        SectorSize::M8,
        SectorSize::M512,
        SectorSize::G32,
        SectorSize::G64,
    ];

    /// Bytes of a sector.
    pub const fn bytes(self) -> u64 {
        match self {
            SectorSize::K2 => 2 << 10,
            SectorSize::K16 => 16 << 10,
            SectorSize::K32 => 32 << 10,
            SectorSize::M8 => 8 << 20,
            SectorSize::M512 => 512 << 20,
            SectorSize::G32 => 32 << 30,
            SectorSize::G64 => 64 << 30,
        }
    }

    /// Nodes of 32 bytes.
    pub const fn nodes(self) -> u64 {
        self.bytes() / 32
    }

    /// The size of so many bytes.
    pub fn from_bytes(bytes: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|size| size.bytes() == bytes)
    }

    fn short(self) -> &'static str {
        match self {
            SectorSize::K2 => "2k",
            SectorSize::K16 => "16k",
            SectorSize::K32 => "32k",
            SectorSize::M8 => "8m",
            SectorSize::M512 => "512m",
            SectorSize::G32 => "32g",
            SectorSize::G64 => "64g",
        }
    }
}

impl fmt::Display for SectorSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SectorSize::K2 => "2 KiB",
            SectorSize::K16 => "16 KiB",
            SectorSize::K32 => "32 KiB",
            SectorSize::M8 => "8 MiB",
            SectorSize::M512 => "512 MiB",
            SectorSize::G32 => "32 GiB",
            SectorSize::G64 => "64 GiB",
        })
    }
}

/// One circuit class, written `porep-2k`, `update-32g`, `window-8m`, `winning-512m`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CircuitId {
    /// What is proven.
    pub kind: Kind,
    /// Of which size of sector.
    pub sector: SectorSize,
}

impl fmt::Display for CircuitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            Kind::Porep => "porep",
            Kind::Update => "update",
            Kind::Window => "window",
            Kind::Winning => "winning",
        };
        write!(f, "{kind}-{}", self.sector.short())
    }
}

impl FromStr for CircuitId {
    type Err = Error;

    /// `snap-` is taken for `update-`, as the field says both.
    fn from_str(text: &str) -> Result<Self, Error> {
        let update = text.strip_prefix("snap-").map(|size| format!("update-{size}"));
        let text = update.as_deref().unwrap_or(text);
        for kind in [Kind::Porep, Kind::Update, Kind::Window, Kind::Winning] {
            for sector in SectorSize::ALL {
                let id = CircuitId { kind, sector };
                if id.to_string() == text {
                    return Ok(id);
                }
            }
        }
        Err(Error::Config(format!(
            "unknown circuit \"{text}\"; write KIND-SIZE with KIND porep, update, window or \
             winning and SIZE 2k, 8m, 512m, 32g or 64g, such as porep-32g"
        )))
    }
}
