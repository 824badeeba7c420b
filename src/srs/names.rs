//! File names of the parameters of each circuit.
//!
//! A name is `v28-FAMILY-ID.params` or `.vk`, where ID is the SHA-256 of a text that describes the
//! circuit (storage-proofs 19.1: the `identifier` functions of stacked, fallback and update).

use sha2::{Digest, Sha256};

use crate::input::class::{CircuitId, Kind, SectorSize};

/// The tree over a sector's replica: base, sub and top arity.
fn tree(sector: SectorSize) -> &'static str {
    match sector {
        SectorSize::K2 | SectorSize::M8 | SectorSize::M512 => "8-0-0",
        SectorSize::K16 | SectorSize::G32 => "8-8-0",
        SectorSize::K32 | SectorSize::G64 => "8-8-2",
    }
}

fn production(sector: SectorSize) -> bool {
    matches!(sector, SectorSize::G32 | SectorSize::G64)
}

fn family(id: CircuitId) -> String {
    let tree = tree(id.sector);
    match id.kind {
        Kind::Porep => {
            format!("stacked-proof-of-replication-merkletree-poseidon_hasher-{tree}-sha256_hasher")
        }
        Kind::Update => format!("empty-sector-update-merkletree-poseidon_hasher-{tree}"),
        Kind::Window | Kind::Winning => {
            format!("proof-of-spacetime-fallback-merkletree-poseidon_hasher-{tree}")
        }
    }
}

fn identifier(id: CircuitId) -> String {
    let (nodes, bytes) = (id.sector.nodes(), id.sector.bytes());
    let fallback = |challenges: usize, sectors: usize| {
        format!(
            "FallbackPoSt::PublicParams{{sector_size: {bytes}, challenge_count: {challenges}, \
             sector_count: {sectors}}}"
        )
    };
    match id.kind {
        Kind::Porep => {
            let (layers, challenges) = if production(id.sector) { (11, 18) } else { (2, 2) };
            format!(
                "layered_drgporep::PublicParams{{ graph: stacked_graph::StackedGraph{{\
                 expansion_degree: 8 base_graph: drgraph::BucketGraph{{size: {nodes}; degree: 6; \
                 hasher: poseidon_hasher}} }}, challenges: LayerChallenges {{ layers: {layers}, \
                 max_count: {challenges} }}, tree: merkletree-poseidon_hasher-{} }}",
                tree(id.sector)
            )
        }
        Kind::Window => match id.sector {
            SectorSize::G32 => fallback(10, 2349),
            SectorSize::G64 => fallback(10, 2300),
            _ => fallback(10, 2),
        },
        Kind::Winning => fallback(1, 66),
        Kind::Update => {
            format!("empty_sector_update::PublicParams{{ sector_nodes: {nodes} }}")
        }
    }
}

/// The file name of a circuit's parameters without `.params` or `.vk`.
pub fn stem(id: CircuitId) -> String {
    let hash = Sha256::digest(identifier(id));
    let mut stem = format!("v28-{}-", family(id));
    for byte in hash {
        stem.push_str(&format!("{byte:02x}"));
    }
    stem
}

/// The name of the parameter file of a circuit.
pub fn params(id: CircuitId) -> String {
    stem(id) + ".params"
}

/// The name of the verifying key file of a circuit.
pub fn vk(id: CircuitId) -> String {
    stem(id) + ".vk"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::srs::manifest::Manifest;

    /// Ids as published, one circuit of each kind and size.
    const PUBLISHED: [(&str, &str); 20] = [
        ("porep-2k", "032d3138d22506ec0082ed72b2dcba18df18477904e35bafee82b3793b06832f"),
        ("porep-8m", "ecd683648512ab1765faa2a5f14bab48f676e633467f0aa8aad4b55dcb0652bb"),
        ("porep-512m", "6babf46ce344ae495d558e7770a585b2382d54f225af8ed0397b8be7c3fcd472"),
        ("porep-32g", "82a357d2f2ca81dc61bb45f4a762807aedee1b0a53fd6c4e77b46a01bfef7820"),
        ("porep-64g", "96f1b4a04c5c51e4759bbf224bbc2ef5a42c7100f16ec0637123f16a845ddfb2"),
        ("window-2k", "0170db1f394b35d995252228ee359194b13199d259380541dc529fb0099096b0"),
        ("window-8m", "5294475db5237a2e83c3e52fd6c2b03859a1831d45ed08c4f35dbf9a803165a9"),
        ("window-512m", "0cfb4f178bbb71cf2ecfcd42accce558b27199ab4fb59cb78f2483fe21ef36d9"),
        ("window-32g", "0377ded656c6f524f1618760bffe4e0a1c51d5a70c4509eedae8a27555733edc"),
        ("window-64g", "2627e4006b67f99cef990c0a47d5426cb7ab0a0ad58fc1061547bf2d28b09def"),
        ("winning-2k", "3ea05428c9d11689f23529cde32fd30aabd50f7d2c93657c1d3650bca3e8ea9e"),
        ("winning-8m", "50c7368dea9593ed0989e70974d28024efa9d156d585b7eea1be22b2e753f331"),
        ("winning-512m", "7d739b8cf60f1b0709eeebee7730e297683552e4b69cab6984ec0285663c5781"),
        ("winning-32g", "559e581f022bb4e4ec6e719e563bf0e026ad6de42e56c18714a2c692b1b88d7e"),
        ("winning-64g", "b62098629d07946e9028127e70295ed996fe3ed25b0f9f88eb610a0ab4385a3c"),
        ("update-2k", "fb9e095bebdd77511c0269b967b4d87ba8b8a525edaa0e165de23ba454510194"),
        ("update-8m", "92180959e1918d26350b8e6cfe217bbdd0a2d8de51ebec269078b364b715ad63"),
        ("update-512m", "61fa69f38b9cc771ba27b670124714b4ea77fbeae05e377fb859c4a43b73a30c"),
        ("update-32g", "3b7f44a9362e3985369454947bc94022e118211e49fd672d52bec1cbfd599d18"),
        ("update-64g", "102e1444a7e9a97ebf1e3d6855dcc77e66c011ea66f936d9b2c508f87f2f83a7"),
    ];

    #[test]
    fn ids_are_the_published_ones() {
        for (circuit, id) in PUBLISHED {
            let stem = stem(circuit.parse().unwrap());
            assert_eq!(stem.rsplit_once('-').unwrap().1, id, "{circuit}");
        }
    }

    #[test]
    fn names_of_all_published_circuits_stand_in_the_manifest() {
        let manifest = Manifest::built_in();
        for (circuit, _) in PUBLISHED {
            let id = circuit.parse().unwrap();
            for name in [params(id), vk(id)] {
                let entry = manifest.entry(&name).unwrap_or_else(|| panic!("{name}"));
                assert_eq!(entry.sector_size, id.sector.bytes(), "{name}");
            }
        }
    }

    #[test]
    fn toy_shapes_carry_the_trees_of_the_large_sectors() {
        let name = |text: &str| params(text.parse().unwrap());
        assert!(name("porep-16k").contains("poseidon_hasher-8-8-0-sha256_hasher-"));
        assert!(name("porep-32k").contains("poseidon_hasher-8-8-2-sha256_hasher-"));
        assert_ne!(name("window-16k"), name("winning-16k"));
    }
}
