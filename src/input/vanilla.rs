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

use super::convert::TreeProof;
use super::element::hex;
use super::flat::{Challenge, Column, LABEL_PARENTS};
use super::guard::spread;
use super::{Porep, Update};
use crate::error::{Error, Result};

type ColumnOf<Tree> = ColumnProof<TreeProof<Tree>>;

/// Checks every challenge of a PoRep.
pub(crate) fn porep<Tree>(porep: &Porep) -> Result<()>
where
    Tree: 'static + MerkleTreeTrait<Hasher = PoseidonHasher>,
{
    let roots = |k: usize| -> (PoseidonDomain, PoseidonDomain) {
        let first = &porep.partitions[k][0];
        (first.own.path.root.into(), first.replica.root.into())
    };
    for k in 0..porep.partitions.len() {
        let (comm_c, comm_r_last) = roots(k);
        comm_r(&porep.comm_r, &comm_c, &comm_r_last, &format!("partition {k}, challenge 0"))?;
    }
    let per_partition = porep.partitions[0].len();
    spread(porep.partitions.len() * per_partition, &|number| {
        let (k, i) = (number / per_partition, number % per_partition);
        let (comm_c, comm_r_last) = roots(k);
        let flat = &porep.partitions[k][i];
        let at = format!("partition {k}, challenge {i}");
        Checked { porep, comm_c, comm_r_last, flat, at }.check(&flat.proof::<Tree>(porep.sector))
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
struct Checked<'a> {
    porep: &'a Porep,
    /// The roots of its partition: those of the first challenge there.
    comm_c: PoseidonDomain,
    comm_r_last: PoseidonDomain,
    flat: &'a Challenge,
    at: String,
}

impl Checked<'_> {
    fn refuse(&self, part: &str, what: &str) -> Result<()> {
        Err(Error::input(format!("{}, {part}", self.at), what))
    }

    fn check<Tree>(&self, proof: &stacked::Proof<Tree, Sha256Hasher>) -> Result<()>
    where
        Tree: 'static + MerkleTreeTrait<Hasher = PoseidonHasher>,
    {
        if proof.comm_d_proofs.root() != self.porep.comm_d {
            return self.refuse("comm_d path", "its root is not comm_d");
        }
        if !proof.comm_d_proofs.verify() {
            return self.refuse("comm_d path", "leaf and siblings do not hash to its root");
        }
        if proof.comm_r_last() != self.comm_r_last {
            return self.refuse("comm_r_last path", "its root is not that of challenge 0");
        }
        if !proof.comm_r_last_proof.verify() {
            return self.refuse("comm_r_last path", "leaf and siblings do not hash to its root");
        }
        let (columns, flat) = (&proof.replica_column_proofs, self.flat);
        self.column::<Tree>(&columns.c_x, &flat.own, "c_x")?;
        for (p, (proof, flat)) in columns.drg_parents.iter().zip(&flat.drg_parents).enumerate() {
            self.column::<Tree>(proof, flat, &format!("drg parent {p}"))?;
        }
        for (p, (proof, flat)) in columns.exp_parents.iter().zip(&flat.exp_parents).enumerate() {
            self.column::<Tree>(proof, flat, &format!("exp parent {p}"))?;
        }
        self.labels(proof)?;
        let (encoded, data) = (proof.comm_r_last_proof.leaf(), proof.comm_d_proofs.leaf());
        if !proof.encoding_proof.verify::<Sha256Hasher>(&self.porep.replica_id, &encoded, &data) {
            return self
                .refuse("encoding", "data plus key is not the leaf of the comm_r_last path");
        }
        Ok(())
    }

    fn column<Tree>(&self, proof: &ColumnOf<Tree>, flat: &Column, part: &str) -> Result<()>
    where
        Tree: 'static + MerkleTreeTrait<Hasher = PoseidonHasher>,
    {
        if proof.root() != self.comm_c {
            let what = "its root is not that of c_x of challenge 0";
            return self.refuse(&format!("{part} path"), what);
        }
        if proof.verify(flat.path.position as u32, &self.comm_c) {
            return Ok(());
        }
        if flat.path.leaf != proof.column_hash() {
            let what = "its rows do not hash to the leaf of its path";
            return self.refuse(&format!("{part} column"), what);
        }
        let what = "leaf and siblings do not hash to its root";
        self.refuse(&format!("{part} path"), what)
    }

    /// Each label twice: from the parents that are written beside it, and from the parents'
    /// columns, which are what the circuit reads.
    fn labels<Tree>(&self, proof: &stacked::Proof<Tree, Sha256Hasher>) -> Result<()>
    where
        Tree: 'static + MerkleTreeTrait<Hasher = PoseidonHasher>,
    {
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
            let derived =
                LabelingProof::<PoseidonHasher>::new(layer as u32, self.flat.node, parents);
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
