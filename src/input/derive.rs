//! What follows from the public values of a request: ids, challenges, parents, public inputs
//! (formats.md 2, 4 and 7). Nothing here is read from a vanilla proof.

use blstrs::Scalar;
use filecoin_hashers::poseidon::{PoseidonDomain, PoseidonHasher};
use filecoin_hashers::sha256::Sha256Domain;
use sha2::{Digest, Sha256};
use storage_proofs_core::api_version::ApiVersion;
use storage_proofs_core::drgraph::{BASE_DEGREE, Graph};
use storage_proofs_porep::stacked::{self, Challenges, EXP_DEGREE, StackedBucketGraph, Tau};
use storage_proofs_post::fallback;

use super::class::SectorSize;
use super::element::scalar;
use super::registered::{Family, SealProof};
use crate::error::{Error, Result};

/// All that a PoRep's circuit and challenges depend on beside its commitments.
#[derive(Clone, Debug)]
pub(crate) struct PorepConfig {
    pub name: String,
    pub sector: SectorSize,
    pub api_version: ApiVersion,
    pub family: Family,
    pub porep_id: [u8; 32],
    pub partitions: usize,
    pub challenges: usize,
    pub layers: usize,
}

impl From<&SealProof> for PorepConfig {
    fn from(proof: &SealProof) -> Self {
        PorepConfig {
            name: proof.name.to_owned(),
            sector: proof.sector,
            api_version: proof.api_version,
            family: proof.family,
            porep_id: proof.porep_id(),
            partitions: proof.partitions(),
            challenges: proof.challenges(),
            layers: proof.layers(),
        }
    }
}

impl PorepConfig {
    /// The published description of the challenges.
    pub fn published_challenges(&self) -> Challenges {
        match self.family {
            Family::Interactive => Challenges::new_interactive(self.challenges),
            Family::Synthetic => Challenges::new_synthetic(self.challenges),
            Family::NonInteractive => Challenges::new_non_interactive(self.challenges),
        }
    }

    /// The graph. Cheap at any size: parents are computed per node and no cache file is touched.
    pub fn graph(&self) -> Result<StackedBucketGraph<PoseidonHasher>> {
        StackedBucketGraph::new_stacked(
            self.sector.nodes() as usize,
            BASE_DEGREE,
            EXP_DEGREE,
            self.porep_id,
            self.api_version,
        )
        .map_err(|e| Error::input("registered_proof", format!("its graph cannot be made: {e}")))
    }
}

/// The payload of a miner's id address: its number in unsigned LEB128, then zeros.
pub fn prover_id(miner: u64) -> [u8; 32] {
    let (mut id, mut rest, mut i) = ([0; 32], miner, 0);
    while rest >= 0x80 {
        id[i] = rest as u8 | 0x80;
        rest >>= 7;
        i += 1;
    }
    id[i] = rest as u8;
    id
}

/// The id that binds a replica to its prover, sector, ticket and data.
pub fn replica_id(
    prover_id: &[u8; 32],
    sector_number: u64,
    ticket: &[u8; 32],
    comm_d: &[u8; 32],
    porep_id: &[u8; 32],
) -> [u8; 32] {
    let hash = Sha256::new()
        .chain_update(prover_id)
        .chain_update(sector_number.to_be_bytes())
        .chain_update(ticket)
        .chain_update(comm_d)
        .chain_update(porep_id)
        .finalize();
    masked(hash.into())
}

/// The two top bits cleared, so that the bytes are a field element.
pub(crate) fn masked(mut bytes: [u8; 32]) -> [u8; 32] {
    bytes[31] &= 0x3f;
    bytes
}

/// A challenged node and the nodes that its label depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Nodes {
    pub challenge: u32,
    pub drg: [u32; BASE_DEGREE],
    pub exp: [u32; EXP_DEGREE],
}

/// The published form of a PoRep's public values.
pub(crate) fn published(
    replica_id: PoseidonDomain,
    seed: [u8; 32],
    comm_d: Sha256Domain,
    comm_r: PoseidonDomain,
) -> stacked::PublicInputs<PoseidonDomain, Sha256Domain> {
    let tau = Some(Tau { comm_d, comm_r });
    stacked::PublicInputs { replica_id, seed: Some(seed), tau, k: None }
}

/// The challenged nodes of every partition.
pub(crate) fn porep_nodes(
    config: &PorepConfig,
    public: &stacked::PublicInputs<PoseidonDomain, Sha256Domain>,
) -> Result<Vec<Vec<Nodes>>> {
    let graph = config.graph()?;
    let challenges = config.published_challenges();
    let parents = |challenge: usize| {
        let mut nodes =
            Nodes { challenge: challenge as u32, drg: [0; BASE_DEGREE], exp: [0; EXP_DEGREE] };
        graph
            .base_parents(challenge, &mut nodes.drg)
            .and_then(|()| graph.expanded_parents(challenge, &mut nodes.exp))
            .map_err(|e| Error::input(format!("node {challenge}"), format!("no parents: {e}")))?;
        Ok(nodes)
    };
    (0..config.partitions)
        .map(|k| {
            let drawn = public.challenges(&challenges, graph.size(), Some(k));
            drawn.into_iter().map(parents).collect()
        })
        .collect()
}

/// The public inputs of one PoRep partition: replica id, comm_d, comm_r, then 18 per challenge.
pub(crate) fn porep_public_inputs(
    replica_id: &[u8; 32],
    comm_d: &[u8; 32],
    comm_r: &[u8; 32],
    nodes: &[Nodes],
) -> Vec<Scalar> {
    let mut inputs = vec![scalar(replica_id), scalar(comm_d), scalar(comm_r)];
    for node in nodes {
        let challenge = Scalar::from(u64::from(node.challenge));
        inputs.push(challenge);
        inputs.extend(node.drg.iter().chain(&node.exp).map(|p| Scalar::from(u64::from(*p))));
        inputs.extend([challenge; 3]);
    }
    inputs
}

/// The challenged leaves of the sector at `position` of a PoSt.
///
/// `randomness` is masked. Under API 1.0.0 the position counts, under 1.2.0 it does not.
pub(crate) fn post_challenges(
    params: &fallback::PublicParams,
    randomness: PoseidonDomain,
    sector_number: u64,
    position: usize,
) -> Vec<u64> {
    let first = match params.api_version {
        ApiVersion::V1_0_0 | ApiVersion::V1_1_0 => position * params.challenge_count,
        ApiVersion::V1_2_0 => 0,
    };
    (first..first + params.challenge_count)
        .map(|n| fallback::generate_leaf_challenge(params, randomness, sector_number, n as u64))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::element::hex;
    use super::super::registered::SEAL_PROOFS;
    use super::*;
    use filecoin_hashers::Domain;

    #[test]
    fn prover_ids_are_leb128() {
        for (miner, start) in
            [(0, "00"), (127, "7f"), (1000, "e807"), (1001, "e907"), (1002, "ea07")]
        {
            assert!(hex(&prover_id(miner)).starts_with(start));
            assert_eq!(
                hex(&prover_id(miner)).trim_end_matches('0').len(),
                start.trim_end_matches('0').len()
            );
        }
        assert_eq!(hex(&prover_id(u64::MAX))[..22].to_owned(), "ffffffffffffffffff0100");
    }

    #[test]
    fn replica_ids_equal_the_published() {
        let (prover, ticket, comm_d, porep) = (prover_id(77), [9; 32], [8; 32], [7; 32]);
        let published = stacked::generate_replica_id::<PoseidonHasher, _>(
            &prover,
            1 << 40,
            &ticket,
            comm_d,
            &porep,
        );
        assert_eq!(published.into_bytes(), replica_id(&prover, 1 << 40, &ticket, &comm_d, &porep));
    }

    #[test]
    fn large_graphs_are_cheap_and_in_range() {
        let begin = std::time::Instant::now();
        let id = |n: u8| PoseidonDomain::try_from_bytes(&[n; 32]).unwrap();
        let comm_d = Sha256Domain::try_from_bytes(&[3; 32]).unwrap();
        for proof in SEAL_PROOFS.iter().filter(|proof| proof.layers() == 11) {
            let config = PorepConfig::from(proof);
            let nodes = porep_nodes(&config, &published(id(1), [2; 32], comm_d, id(4))).unwrap();
            assert_eq!(nodes.len(), config.partitions);
            for node in nodes.iter().flatten() {
                assert!(node.challenge > 0 && u64::from(node.challenge) < config.sector.nodes());
                assert!(node.drg.contains(&(node.challenge - 1)));
                assert!(node.exp.iter().all(|p| u64::from(*p) < config.sector.nodes()));
            }
            assert!(nodes.iter().all(|nodes| nodes.len() == config.challenges));
        }
        assert!(begin.elapsed().as_secs() < 5);
    }
}
