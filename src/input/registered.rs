//! The registered proofs of the network: numbers, both spellings of their names, and what follows
//! from them (formats.md 2.1 and 2.2).

use storage_proofs_core::api_version::{ApiFeature, ApiVersion};

use super::class::SectorSize;

/// How a PoRep draws its challenges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// From the seed.
    Interactive,
    /// From the seed, out of a set fixed by the commitment.
    Synthetic,
    /// From the commitment alone.
    NonInteractive,
}

impl Family {
    /// The feature flag of the published crates.
    pub fn feature(self) -> Option<ApiFeature> {
        match self {
            Family::Interactive => None,
            Family::Synthetic => Some(ApiFeature::SyntheticPoRep),
            Family::NonInteractive => Some(ApiFeature::NonInteractivePoRep),
        }
    }
}

/// One registered seal proof.
#[derive(Clone, Copy, Debug)]
pub struct SealProof {
    /// Its number in Go, in the RPC and in the porep id.
    pub number: u64,
    /// The Rust name, which C1 files carry in `registered_proof`.
    pub name: &'static str,
    /// The Go name; it differs for the non-interactive ones.
    pub go_name: &'static str,
    /// Size of the sector.
    pub sector: SectorSize,
    /// Version of the graph and of the challenges.
    pub api_version: ApiVersion,
    /// How challenges are drawn.
    pub family: Family,
}

impl SealProof {
    /// Number as u64 little endian, nonce 0, zeros.
    pub fn porep_id(&self) -> [u8; 32] {
        let mut id = [0; 32];
        id[..8].copy_from_slice(&self.number.to_le_bytes());
        id
    }

    /// Number of circuit proofs of one sector.
    pub fn partitions(&self) -> usize {
        partitions(self.sector, self.family)
    }

    /// Challenges of one partition.
    pub fn challenges(&self) -> usize {
        challenges(self.sector)
    }

    /// Layers of labels.
    pub fn layers(&self) -> usize {
        layers(self.sector)
    }

    /// By Rust name, Go name or decimal number.
    pub fn find(text: &str) -> Option<&'static SealProof> {
        SEAL_PROOFS.iter().find(|proof| {
            proof.name == text || proof.go_name == text || proof.number.to_string() == text
        })
    }
}

fn is_large(sector: SectorSize) -> bool {
    matches!(sector, SectorSize::G32 | SectorSize::G64)
}

/// Number of circuit proofs of one sector.
pub fn partitions(sector: SectorSize, family: Family) -> usize {
    match (family, is_large(sector)) {
        (Family::NonInteractive, false) => 13,
        (Family::NonInteractive, true) => 126,
        (_, false) => 1,
        (_, true) => 10,
    }
}

/// Challenges of one PoRep partition.
pub fn challenges(sector: SectorSize) -> usize {
    if is_large(sector) { 18 } else { 2 }
}

/// Layers of labels of a sector.
pub fn layers(sector: SectorSize) -> usize {
    if is_large(sector) { 11 } else { 2 }
}

/// Sectors of one WindowPoSt circuit.
pub fn window_sectors(sector: SectorSize) -> usize {
    match sector {
        SectorSize::G32 => 2349,
        SectorSize::G64 => 2300,
        _ => 2,
    }
}

macro_rules! seal {
    ($number:literal $name:literal $go:literal $sector:ident $api:ident $family:ident) => {
        SealProof {
            number: $number,
            name: $name,
            go_name: $go,
            sector: SectorSize::$sector,
            api_version: ApiVersion::$api,
            family: Family::$family,
        }
    };
    ($number:literal $name:literal $sector:ident $api:ident $family:ident) => {
        seal!($number $name $name $sector $api $family)
    };
}

/// All registered seal proofs; the index is the number.
#[rustfmt::skip]
pub const SEAL_PROOFS: [SealProof; 20] = [
    seal!(0 "StackedDrg2KiBV1" K2 V1_0_0 Interactive),
    seal!(1 "StackedDrg8MiBV1" M8 V1_0_0 Interactive),
    seal!(2 "StackedDrg512MiBV1" M512 V1_0_0 Interactive),
    seal!(3 "StackedDrg32GiBV1" G32 V1_0_0 Interactive),
    seal!(4 "StackedDrg64GiBV1" G64 V1_0_0 Interactive),
    seal!(5 "StackedDrg2KiBV1_1" K2 V1_1_0 Interactive),
    seal!(6 "StackedDrg8MiBV1_1" M8 V1_1_0 Interactive),
    seal!(7 "StackedDrg512MiBV1_1" M512 V1_1_0 Interactive),
    seal!(8 "StackedDrg32GiBV1_1" G32 V1_1_0 Interactive),
    seal!(9 "StackedDrg64GiBV1_1" G64 V1_1_0 Interactive),
    seal!(10 "StackedDrg2KiBV1_1_Feat_SyntheticPoRep" K2 V1_2_0 Synthetic),
    seal!(11 "StackedDrg8MiBV1_1_Feat_SyntheticPoRep" M8 V1_2_0 Synthetic),
    seal!(12 "StackedDrg512MiBV1_1_Feat_SyntheticPoRep" M512 V1_2_0 Synthetic),
    seal!(13 "StackedDrg32GiBV1_1_Feat_SyntheticPoRep" G32 V1_2_0 Synthetic),
    seal!(14 "StackedDrg64GiBV1_1_Feat_SyntheticPoRep" G64 V1_2_0 Synthetic),
    seal!(15 "StackedDrg2KiBV1_2_Feat_NonInteractivePoRep" "StackedDrg2KiBV1_2_Feat_NiPoRep"
        K2 V1_2_0 NonInteractive),
    seal!(16 "StackedDrg8MiBV1_2_Feat_NonInteractivePoRep" "StackedDrg8MiBV1_2_Feat_NiPoRep"
        M8 V1_2_0 NonInteractive),
    seal!(17 "StackedDrg512MiBV1_2_Feat_NonInteractivePoRep" "StackedDrg512MiBV1_2_Feat_NiPoRep"
        M512 V1_2_0 NonInteractive),
    seal!(18 "StackedDrg32GiBV1_2_Feat_NonInteractivePoRep" "StackedDrg32GiBV1_2_Feat_NiPoRep"
        G32 V1_2_0 NonInteractive),
    seal!(19 "StackedDrg64GiBV1_2_Feat_NonInteractivePoRep" "StackedDrg64GiBV1_2_Feat_NiPoRep"
        G64 V1_2_0 NonInteractive),
];

/// One registered WindowPoSt, WinningPoSt or update proof.
#[derive(Clone, Copy, Debug)]
pub struct OtherProof {
    /// Its number in Go and in the RPC; each kind counts for itself.
    pub number: u64,
    /// The Rust name.
    pub name: &'static str,
    /// The Go name; it differs for the newer WindowPoSt.
    pub go_name: &'static str,
    /// Size of the sector.
    pub sector: SectorSize,
    /// Version of the challenges.
    pub api_version: ApiVersion,
}

impl OtherProof {
    /// By Rust name, Go name or decimal number in the table of one kind.
    pub fn find(table: &'static [OtherProof], text: &str) -> Option<&'static OtherProof> {
        table.iter().find(|proof| {
            proof.name == text || proof.go_name == text || proof.number.to_string() == text
        })
    }
}

macro_rules! other {
    ($number:literal $name:literal $go:literal $sector:ident $api:ident) => {
        OtherProof {
            number: $number,
            name: $name,
            go_name: $go,
            sector: SectorSize::$sector,
            api_version: ApiVersion::$api,
        }
    };
    ($number:literal $name:literal $sector:ident $api:ident) => {
        other!($number $name $name $sector $api)
    };
}

/// WinningPoSt. Its 66 paths are derived under API 1.0.0 alone.
#[rustfmt::skip]
pub const WINNING_PROOFS: [OtherProof; 5] = [
    other!(0 "StackedDrgWinning2KiBV1" K2 V1_0_0),
    other!(1 "StackedDrgWinning8MiBV1" M8 V1_0_0),
    other!(2 "StackedDrgWinning512MiBV1" M512 V1_0_0),
    other!(3 "StackedDrgWinning32GiBV1" G32 V1_0_0),
    other!(4 "StackedDrgWinning64GiBV1" G64 V1_0_0),
];

/// WindowPoSt. Go writes V1_1 where Rust writes V1_2.
#[rustfmt::skip]
pub const WINDOW_PROOFS: [OtherProof; 10] = [
    other!(5 "StackedDrgWindow2KiBV1" K2 V1_0_0),
    other!(6 "StackedDrgWindow8MiBV1" M8 V1_0_0),
    other!(7 "StackedDrgWindow512MiBV1" M512 V1_0_0),
    other!(8 "StackedDrgWindow32GiBV1" G32 V1_0_0),
    other!(9 "StackedDrgWindow64GiBV1" G64 V1_0_0),
    other!(10 "StackedDrgWindow2KiBV1_2" "StackedDrgWindow2KiBV1_1" K2 V1_2_0),
    other!(11 "StackedDrgWindow8MiBV1_2" "StackedDrgWindow8MiBV1_1" M8 V1_2_0),
    other!(12 "StackedDrgWindow512MiBV1_2" "StackedDrgWindow512MiBV1_1" M512 V1_2_0),
    other!(13 "StackedDrgWindow32GiBV1_2" "StackedDrgWindow32GiBV1_1" G32 V1_2_0),
    other!(14 "StackedDrgWindow64GiBV1_2" "StackedDrgWindow64GiBV1_1" G64 V1_2_0),
];

/// Empty sector updates: SnapDeals.
#[rustfmt::skip]
pub const UPDATE_PROOFS: [OtherProof; 5] = [
    other!(0 "StackedDrg2KiBV1" K2 V1_1_0),
    other!(1 "StackedDrg8MiBV1" M8 V1_1_0),
    other!(2 "StackedDrg512MiBV1" M512 V1_1_0),
    other!(3 "StackedDrg32GiBV1" G32 V1_1_0),
    other!(4 "StackedDrg64GiBV1" G64 V1_1_0),
];

#[cfg(test)]
mod tests {
    use super::*;
    use filecoin_proofs_api::{RegisteredPoStProof, RegisteredSealProof, RegisteredUpdateProof};

    fn published<T: serde::de::DeserializeOwned>(name: &str) -> T {
        serde_json::from_value(serde_json::Value::String(name.into())).unwrap()
    }

    // I-59
    #[test]
    fn seal_proofs_round_trip_and_equal_the_published_table() {
        for (number, proof) in SEAL_PROOFS.iter().enumerate() {
            assert_eq!(proof.number, number as u64);
            for text in [proof.name, proof.go_name, &number.to_string()] {
                assert_eq!(SealProof::find(text).unwrap().number, proof.number);
            }
            let config = published::<RegisteredSealProof>(proof.name).as_v1_config();
            assert_eq!(u64::from(config.sector_size), proof.sector.bytes());
            assert_eq!(config.porep_id, proof.porep_id());
            assert_eq!(usize::from(config.partitions), proof.partitions());
            assert!(config.api_version == proof.api_version);
            assert_eq!(config.api_features, Vec::from_iter(proof.family.feature()));
            assert_eq!(
                config.minimum_challenges().div_ceil(proof.partitions()),
                proof.challenges()
            );
        }
        assert!(SealProof::find("StackedDrg2KiBV1_3").is_none());
        assert!(SealProof::find("20").is_none());
    }

    #[test]
    fn other_proofs_equal_the_published_tables() {
        for proof in WINNING_PROOFS.iter().chain(&WINDOW_PROOFS) {
            let config = published::<RegisteredPoStProof>(proof.name).as_v1_config();
            assert_eq!(u64::from(config.sector_size), proof.sector.bytes());
            assert!(config.api_version == proof.api_version);
            if proof.number >= 5 {
                assert_eq!(config.sector_count, window_sectors(proof.sector));
            }
        }
        for proof in &UPDATE_PROOFS {
            let config = published::<RegisteredUpdateProof>(proof.name);
            assert_eq!(u64::from(config.sector_size()), proof.sector.bytes());
            assert!(config.version() == proof.api_version);
        }
        assert_eq!(
            OtherProof::find(&WINDOW_PROOFS, "StackedDrgWindow32GiBV1_1").unwrap().number,
            13
        );
    }
}
