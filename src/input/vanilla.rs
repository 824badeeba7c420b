//! Whether vanilla proofs prove what they say: every hash that the circuit will compute, computed
//! here with the published parts, so that a fault is named by challenge, part and layer.
//!
//! Counts, nodes and indices have been checked on the raw form. `verify_all_partitions` of the
//! published crates, which says only yes or no, is the oracle in tests.

use filecoin_hashers::HashFunction;
use filecoin_hashers::poseidon::{PoseidonDomain, PoseidonFunction, PoseidonHasher};
use filecoin_hashers::sha256::Sha256Hasher;
use storage_proofs_core::merkle::{MerkleProofTrait, MerkleTreeTrait};
use storage_proofs_core::proof::ProofScheme;
use storage_proofs_porep::stacked::{self, ColumnProof, LabelingProof};
use storage_proofs_post::fallback::{PublicSector, SectorProof};
use storage_proofs_update::vanilla::{self as update, EmptySectorUpdate};

use super::convert::{TreeProof, poseidon};
use super::derive::Nodes;
use super::element::hex;
use super::guard::spread;
use super::parse::parse_binary;
use super::raw::{LABEL_PARENTS, RawColumnProof};
use super::{Porep, Update};
use crate::error::{Error, Result};

type ColumnOf<Tree> = ColumnProof<TreeProof<Tree>>;

/// Checks every challenge of a PoRep; `nodes` are the derived ones.
pub(crate) fn porep<Tree>(porep: &Porep<Tree>, nodes: &[Vec<Nodes>]) -> Result<()>
where
    Tree: 'static + MerkleTreeTrait<Hasher = PoseidonHasher>,
{
    for (k, challenges) in porep.partitions.iter().enumerate() {
        let roots = (challenges[0].comm_c(), challenges[0].comm_r_last());
        comm_r(&porep.comm_r, &roots.0, &roots.1, &format!("partition {k}, challenge 0"))?;
    }
    let per_partition = porep.partitions[0].len();
    spread(porep.partitions.len() * per_partition, &|number| {
        let (k, i) = (number / per_partition, number % per_partition);
        let partition = &porep.partitions[k];
        let at = format!("partition {k}, challenge {i}");
        Challenge { porep, first: &partition[0], nodes: &nodes[k][i], at }.check(&partition[i])
    })
}

fn show(domain: &PoseidonDomain) -> String {
    hex(AsRef::<[u8]>::as_ref(domain))
}

/// Poseidon(comm_c, comm_r_last).
pub(crate) fn comm_r_of(comm_c: PoseidonDomain, comm_r_last: PoseidonDomain) -> PoseidonDomain {
    PoseidonFunction::hash2(&comm_c, &comm_r_last)
}

/// comm_r = Poseidon(comm_c, comm_r_last).
pub(crate) fn comm_r(
    comm_r: &PoseidonDomain,
    comm_c: &PoseidonDomain,
    comm_r_last: &PoseidonDomain,
    at: &str,
) -> Result<()> {
    if PoseidonFunction::hash2(comm_c, comm_r_last) == *comm_r {
        return Ok(());
    }
    let (comm_r, comm_c, last) = (show(comm_r), show(comm_c), show(comm_r_last));
    let what = format!("{comm_r} is not the hash of comm_c {comm_c} and comm_r_last {last}");
    Err(Error::input(format!("{at}, comm_r"), what))
}

/// One challenge under check.
struct Challenge<'a, Tree: 'static + MerkleTreeTrait<Hasher = PoseidonHasher>> {
    porep: &'a Porep<Tree>,
    /// The challenge whose roots all others of its partition must have.
    first: &'a stacked::Proof<Tree, Sha256Hasher>,
    nodes: &'a Nodes,
    at: String,
}

impl<Tree: 'static + MerkleTreeTrait<Hasher = PoseidonHasher>> Challenge<'_, Tree> {
    fn refuse(&self, part: &str, what: &str) -> Result<()> {
        Err(Error::input(format!("{}, {part}", self.at), what))
    }

    fn check(&self, proof: &stacked::Proof<Tree, Sha256Hasher>) -> Result<()> {
        if proof.comm_d_proofs.root() != self.porep.comm_d {
            return self.refuse("comm_d path", "its root is not comm_d");
        }
        if !proof.comm_d_proofs.verify() {
            return self.refuse("comm_d path", "leaf and siblings do not hash to its root");
        }
        if proof.comm_r_last() != self.first.comm_r_last() {
            return self.refuse("comm_r_last path", "its root is not that of challenge 0");
        }
        if !proof.comm_r_last_proof.verify() {
            return self.refuse("comm_r_last path", "leaf and siblings do not hash to its root");
        }
        let columns = &proof.replica_column_proofs;
        self.column(&columns.c_x, self.nodes.challenge, "c_x")?;
        for (p, parent) in columns.drg_parents.iter().enumerate() {
            self.column(parent, self.nodes.drg[p], &format!("drg parent {p}"))?;
        }
        for (p, parent) in columns.exp_parents.iter().enumerate() {
            self.column(parent, self.nodes.exp[p], &format!("exp parent {p}"))?;
        }
        self.labels(proof)?;
        let (encoded, data) = (proof.comm_r_last_proof.leaf(), proof.comm_d_proofs.leaf());
        if !proof.encoding_proof.verify::<Sha256Hasher>(&self.porep.replica_id, &encoded, &data) {
            return self
                .refuse("encoding", "data plus key is not the leaf of the comm_r_last path");
        }
        Ok(())
    }

    fn column(&self, proof: &ColumnOf<Tree>, node: u32, part: &str) -> Result<()> {
        let comm_c = self.first.comm_c();
        if proof.root() != comm_c {
            let what = "its root is not that of c_x of challenge 0";
            return self.refuse(&format!("{part} path"), what);
        }
        if proof.verify(node, &comm_c) {
            return Ok(());
        }
        // Which of its two parts is at fault shows the leaf, which the published type hides.
        let bytes = bincode::serialize(proof)
            .map_err(|e| Error::input(self.at.clone(), format!("{part}: {e}")))?;
        let raw: RawColumnProof = parse_binary(&bytes, part)?;
        if poseidon(*raw.inclusion_proof.leaf()) != PoseidonDomain::from(proof.column_hash()) {
            let what = "its rows do not hash to the leaf of its path";
            return self.refuse(&format!("{part} column"), what);
        }
        let what = "leaf and siblings do not hash to its root";
        self.refuse(&format!("{part} path"), what)
    }

    /// Each label twice: from the parents that are written beside it, and from the parents'
    /// columns, which are what the circuit reads.
    fn labels(&self, proof: &stacked::Proof<Tree, Sha256Hasher>) -> Result<()> {
        let columns = &proof.replica_column_proofs;
        let row = |column: &ColumnOf<Tree>, layer: usize| {
            column.get_node_at_layer(layer).copied().map_err(|e| {
                Error::input(self.at.clone(), format!("no label of layer {layer}: {e}"))
            })
        };
        for (i, label) in proof.labeling_proofs.iter().enumerate() {
            let layer = i + 1;
            let expected = row(&columns.c_x, layer)?;
            if !label.verify(&self.porep.replica_id, &expected) {
                let what = "its parents do not hash to the row of c_x";
                return self.refuse(&format!("label of layer {layer}"), what);
            }
            let mut parents = Vec::with_capacity(LABEL_PARENTS);
            for column in &columns.drg_parents {
                parents.push(row(column, layer)?);
            }
            if layer > 1 {
                for column in &columns.exp_parents {
                    parents.push(row(column, layer - 1)?);
                }
            }
            let parents = parents.into_iter().cycle().take(LABEL_PARENTS).collect();
            let node = u64::from(self.nodes.challenge);
            let derived = LabelingProof::<PoseidonHasher>::new(layer as u32, node, parents);
            if !derived.verify(&self.porep.replica_id, &expected) {
                let what = "the columns of the parents do not hash to the row of c_x";
                return self.refuse(&format!("label of layer {layer}"), what);
            }
        }
        Ok(())
    }
}

/// Checks one sector of a PoSt: the commitment, then every path.
pub(crate) fn post<P: MerkleProofTrait<Hasher = PoseidonHasher>>(
    public: &PublicSector<PoseidonDomain>,
    proof: &SectorProof<P>,
    at: &str,
) -> Result<()> {
    comm_r(&public.comm_r, &proof.comm_c, &proof.comm_r_last, at)?;
    for (n, path) in proof.inclusion_proofs.iter().enumerate() {
        let refuse = |what: &str| Err(Error::input(format!("{at}, challenge {n}"), what));
        if path.root() != proof.comm_r_last {
            return refuse("the root of its path is not comm_r_last");
        }
        if !path.verify() {
            return refuse("leaf and siblings do not hash to the root of its path");
        }
    }
    Ok(())
}

/// Checks every partition of a SnapDeals proof as the published crate does: roots, paths, encoding
/// and apex tree. Commitments and leaf indices have been checked by name.
pub(crate) fn update<Tree>(update: &Update<Tree>, params: &update::PublicParams) -> Result<()>
where
    Tree: 'static + MerkleTreeTrait<Hasher = PoseidonHasher>,
{
    spread(update.partitions.len(), &|k| {
        let (public, proof) = &update.partitions[k];
        let at = format!("partition {k}");
        match EmptySectorUpdate::<Tree>::verify(params, public, proof) {
            Ok(true) => Ok(()),
            Ok(false) => {
                let what = "a path, the encoding or the apex tree of a challenge does not hold";
                Err(Error::input(at, what))
            }
            Err(e) => Err(Error::input(at, format!("{e:#}"))),
        }
    })
}
