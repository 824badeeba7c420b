//! Requests: bytes in any accepted encoding to typed vanilla proofs and public inputs.
//!
//! Everything that can be known to be wrong is refused here, before a slot is taken: with the JSON
//! path or byte offset while the form is at fault, with challenge, part and layer after that.

pub mod class;
mod convert;
mod derive;
mod element;
mod encoding;
pub mod flat;
mod guard;
mod held;
mod meta;
mod other;
mod parse;
mod porep;
mod post;
mod raw;
pub mod registered;
mod structure;
mod update;
mod vanilla;

use std::io::Read;
use std::marker::PhantomData;
use std::path::Path;

use blstrs::Scalar;
use filecoin_hashers::poseidon::{PoseidonDomain, PoseidonHasher};
use filecoin_hashers::sha256::Sha256Domain;
use filecoin_proofs::constants::{SectorShapeBase, SectorShapeSub8, SectorShapeTop2};
use serde::{Serialize, Serializer};
use storage_proofs_core::merkle::MerkleTreeTrait;
use storage_proofs_porep::stacked;
use storage_proofs_post::fallback::{PublicSector, SectorProof};
use storage_proofs_update::vanilla as published_update;

use crate::error::{Error, Result};
use class::{CircuitId, Kind, SectorSize};
pub use derive::{prover_id, replica_id};
pub(crate) use element::hex;
pub use encoding::miner_id;
use flat::Challenge;
pub(crate) use guard::GAVE_UP;
pub use meta::{Hex32, Meta, MetaSector, commitment};

/// Bytes of the longest commit-phase-1 output: a non-interactive one of 64 GiB in the wrapper
/// takes about 650 MB, an interactive one of 32 GiB about 51 MB.
pub const C1_BYTES_MAX: usize = 768 << 20;
/// Bytes of the longest set of other vanilla proofs: 2,349 sectors of WindowPoSt take 78 MB as
/// base64.
pub const VANILLA_BYTES_MAX: usize = 256 << 20;
/// Bytes of the longest meta file: 2,349 sectors take 300 KB.
pub const META_BYTES_MAX: usize = 4 << 20;

/// What a PoRep's file may not say by itself.
#[derive(Clone, Debug, Default)]
pub struct PorepOptions {
    /// Rust or Go name, or number; needed for bincode, else compared.
    pub registered_proof: Option<String>,
    /// The miner's number: the replica id is then recomputed.
    pub miner: Option<u64>,
    /// The sector's number: needed beside the miner where the file has none.
    pub sector: Option<u64>,
    /// Needed for the shapes of 16 and 32 KiB, else compared.
    pub meta: Option<Meta>,
    /// Compute no hash here: a native witness finds what does not fit while it is made, and
    /// [`Vanilla::check_hashes`] finds it at any time.
    pub hashes_later: bool,
}

/// Reads a commit-phase-1 output in any encoding and makes every check, but for those that the
/// options leave for later.
///
/// # Errors
/// [`Error::Input`] saying where and what, [`Error::Config`] for options that cannot be meant.
pub fn read_porep(bytes: &[u8], options: &PorepOptions) -> Result<Input> {
    within(bytes.len() as u64, C1_BYTES_MAX)?;
    guard::contain(|| porep::read_porep(bytes, options))
}

/// Reads the vanilla proofs of any kind but PoRep, a JSON array of base64 texts, and makes every
/// check. For [`Kind::Porep`] it is [`read_porep`] with the meta file.
///
/// # Errors
/// [`Error::Input`] saying where and what.
pub fn read_vanilla(kind: Kind, vanilla: &[u8], meta: &Meta) -> Result<Input> {
    if kind == Kind::Porep {
        let options = PorepOptions { meta: Some(meta.clone()), ..PorepOptions::default() };
        return read_porep(vanilla, &options);
    }
    within(vanilla.len() as u64, VANILLA_BYTES_MAX)?;
    read_blobs(kind, &parse::base64_list(vanilla)?, meta)
}

/// As [`read_vanilla`], from the bincode of each vanilla proof: one per sector (PoSt) or per
/// partition (SnapDeals).
///
/// # Errors
/// [`Error::Input`] saying where and what.
pub fn read_blobs(kind: Kind, blobs: &[impl AsRef<[u8]>], meta: &Meta) -> Result<Input> {
    let blobs: Vec<&[u8]> = blobs.iter().map(AsRef::as_ref).collect();
    within(blobs.iter().map(|blob| blob.len() as u64).sum(), VANILLA_BYTES_MAX)?;
    guard::contain(|| match kind {
        Kind::Porep => Err(Error::input("kind", "a PoRep is one C1, not a list of proofs")),
        Kind::Window | Kind::Winning => post::read_post(kind, &blobs, meta),
        Kind::Update => update::read_update(&blobs, meta),
    })
}

/// Reads a whole file whose length is looked at first.
///
/// # Errors
/// [`Error::Input`] with the path, for a file that cannot be read or is longer than `max` bytes.
pub fn read_file(path: &Path, max: usize) -> Result<Vec<u8>> {
    let refuse = |e: std::io::Error| Error::input(path.display().to_string(), e.to_string());
    let file = std::fs::File::open(path).map_err(refuse)?;
    let length = file.metadata().map_err(refuse)?.len();
    let within = |length: u64| {
        within(length, max).map_err(|error| match error {
            Error::Input { at, what } => Error::input(format!("{}: {at}", path.display()), what),
            other => other,
        })
    };
    within(length)?;
    let mut bytes = Vec::with_capacity(length as usize + 1);
    // A pipe has no length: it is read to one byte past the limit.
    file.take(max as u64 + 1).read_to_end(&mut bytes).map_err(refuse)?;
    within(bytes.len() as u64)?;
    Ok(bytes)
}

fn within(length: u64, max: usize) -> Result<()> {
    if length <= max as u64 {
        return Ok(());
    }
    Err(Error::input("length", format!("{length} bytes, where at most {max} are read")))
}

/// A request that passed every check: what the circuit reads, and what the proof is verified
/// against.
pub struct Input {
    /// The circuit that proves it.
    pub circuit: CircuitId,
    /// Serde name of the registered proof, or a shape's name for sizes that have none.
    pub registered_proof: String,
    /// True for NI-PoRep: circuit proofs, not submittable without aggregation.
    pub non_interactive: bool,
    /// The miner's number, as far as anyone says.
    pub miner: Option<u64>,
    /// The sector's number, for kinds that are about one sector and as far as anyone says.
    pub sector: Option<u64>,
    /// The payload of the miner's id address, as far as anyone says.
    pub prover_id: Option<[u8; 32]>,
    /// True if the replica id was recomputed from prover id and sector; false if a PoRep's was
    /// taken from the file. PoSt and SnapDeals have none: true if the prover id is known.
    pub miner_checked: bool,
    /// Per partition, without the leading ONE, in the verifying key's order; derived anew, never
    /// read from the vanilla proofs.
    pub public_inputs: Vec<Vec<Scalar>>,
    /// What the circuit reads.
    pub vanilla: Vanilla,
}

impl Input {
    /// Number of circuit proofs.
    pub fn partitions(&self) -> usize {
        self.public_inputs.len()
    }

    /// The one binary form of the vanilla proofs, whatever encoding they came in: for a PoRep the
    /// bincode form of a commit-phase-1 output, else bincode of the partitions with their public
    /// values.
    pub fn to_bincode(&self) -> Vec<u8> {
        bincode::serialize(&self.vanilla).expect("plain data always serializes into memory")
    }

    /// Bytes that the request holds in memory: its own, and those of its texts and vectors. What
    /// the allocator rounds up, or a vector has room for beyond its elements, comes on top.
    pub fn held_bytes(&self) -> usize {
        let inputs = &self.public_inputs;
        size_of::<Self>()
            + self.registered_proof.capacity()
            + inputs.capacity() * size_of::<Vec<Scalar>>()
            + inputs.iter().map(|inputs| inputs.capacity() * size_of::<Scalar>()).sum::<usize>()
            + self.vanilla.heap_bytes()
    }
}

/// Vanilla proofs by kind and tree: 8-0-0, 8-8-0 or 8-8-2.
pub enum Vanilla {
    /// PoRep of 2 KiB, 8 MiB and 512 MiB.
    PorepBase(Porep),
    /// PoRep of 16 KiB and 32 GiB.
    PorepSub8(Porep),
    /// PoRep of 32 KiB and 64 GiB.
    PorepTop2(Porep),
    /// PoSt, likewise.
    PostBase(Post<SectorShapeBase>),
    /// PoSt, likewise.
    PostSub8(Post<SectorShapeSub8>),
    /// PoSt, likewise.
    PostTop2(Post<SectorShapeTop2>),
    /// SnapDeals, likewise.
    UpdateBase(Update<SectorShapeBase>),
    /// SnapDeals, likewise.
    UpdateSub8(Update<SectorShapeSub8>),
    /// SnapDeals, likewise.
    UpdateTop2(Update<SectorShapeTop2>),
}

impl From<Porep> for Vanilla {
    fn from(porep: Porep) -> Self {
        match porep.sector {
            SectorSize::K2 | SectorSize::M8 | SectorSize::M512 => Vanilla::PorepBase(porep),
            SectorSize::K16 | SectorSize::G32 => Vanilla::PorepSub8(porep),
            SectorSize::K32 | SectorSize::G64 => Vanilla::PorepTop2(porep),
        }
    }
}

impl Vanilla {
    /// The PoRep, of whatever tree.
    pub fn porep(&self) -> Option<&Porep> {
        match self {
            Vanilla::PorepBase(porep) | Vanilla::PorepSub8(porep) | Vanilla::PorepTop2(porep) => {
                Some(porep)
            }
            _ => None,
        }
    }

    /// The full vanilla check of a PoRep, whose hashes may have been left for later; those of the
    /// other kinds are checked as they are read.
    ///
    /// # Errors
    /// [`Error::Input`] with partition, challenge, part and layer.
    pub fn check_hashes(&self) -> Result<()> {
        guard::contain(|| match self {
            Vanilla::PorepBase(porep) => vanilla::porep::<SectorShapeBase>(porep),
            Vanilla::PorepSub8(porep) => vanilla::porep::<SectorShapeSub8>(porep),
            Vanilla::PorepTop2(porep) => vanilla::porep::<SectorShapeTop2>(porep),
            _ => Ok(()),
        })
    }

    /// Bytes of heap behind it.
    fn heap_bytes(&self) -> usize {
        match self.porep() {
            Some(porep) => porep.heap_bytes(),
            None => held::heap_bytes(self),
        }
    }
}

/// The challenges of a PoRep as they are published, made one at a time.
struct Published<'a, Tree>(&'a [Challenge], SectorSize, PhantomData<Tree>);

impl<Tree> Serialize for Published<'_, Tree>
where
    Tree: 'static + MerkleTreeTrait<Hasher = PoseidonHasher>,
{
    fn serialize<S: Serializer>(&self, to: S) -> std::result::Result<S::Ok, S::Error> {
        to.collect_seq(self.0.iter().map(|challenge| challenge.proof::<Tree>(self.1)))
    }
}

/// The one binary form, see [`Input::to_bincode`].
impl Serialize for Vanilla {
    fn serialize<S: Serializer>(&self, to: S) -> std::result::Result<S::Ok, S::Error> {
        fn porep<Tree, S>(porep: &Porep, to: S) -> std::result::Result<S::Ok, S::Error>
        where
            Tree: 'static + MerkleTreeTrait<Hasher = PoseidonHasher>,
            S: Serializer,
        {
            let Porep { partitions, comm_r, comm_d, replica_id, seed, ticket, .. } = porep;
            let partitions: Vec<Published<'_, Tree>> =
                partitions.iter().map(|it| Published(it, porep.sector, PhantomData)).collect();
            (partitions, comm_r, comm_d, replica_id, seed, ticket).serialize(to)
        }
        match self {
            Vanilla::PorepBase(value) => porep::<SectorShapeBase, S>(value, to),
            Vanilla::PorepSub8(value) => porep::<SectorShapeSub8, S>(value, to),
            Vanilla::PorepTop2(value) => porep::<SectorShapeTop2, S>(value, to),
            Vanilla::PostBase(value) => value.partitions.serialize(to),
            Vanilla::PostSub8(value) => value.partitions.serialize(to),
            Vanilla::PostTop2(value) => value.partitions.serialize(to),
            Vanilla::UpdateBase(value) => value.partitions.serialize(to),
            Vanilla::UpdateSub8(value) => value.partitions.serialize(to),
            Vanilla::UpdateTop2(value) => value.partitions.serialize(to),
        }
    }
}

/// A PoRep commit-phase-1 output.
#[derive(Clone)]
pub struct Porep {
    pub sector: SectorSize,
    /// What binds the replica to prover, sector, ticket and data.
    pub replica_id: PoseidonDomain,
    /// Commitment to the data.
    pub comm_d: Sha256Domain,
    /// Commitment to the replica.
    pub comm_r: PoseidonDomain,
    /// Seed of the interactive challenge; without effect for NI-PoRep.
    pub seed: [u8; 32],
    /// Ticket of precommitment.
    pub ticket: [u8; 32],
    /// What the graph is drawn from.
    pub porep_id: [u8; 32],
    /// Partitions of challenges.
    pub partitions: Vec<Vec<Challenge>>,
}

impl Porep {
    /// The published form of the public values, which circuits are made from; without a partition.
    pub fn published(&self) -> stacked::PublicInputs<PoseidonDomain, Sha256Domain> {
        derive::published(self.replica_id, self.seed, self.comm_d, self.comm_r)
    }

    fn heap_bytes(&self) -> usize {
        let partition = |it: &Vec<Challenge>| {
            it.capacity() * size_of::<Challenge>()
                + it.iter().map(Challenge::heap_bytes).sum::<usize>()
        };
        self.partitions.capacity() * size_of::<Vec<Challenge>>()
            + self.partitions.iter().map(partition).sum::<usize>()
    }
}

/// WindowPoSt or WinningPoSt: partitions of exactly as many sectors as the circuit has, the last
/// one repeated where there are fewer.
pub struct Post<Tree: 'static + MerkleTreeTrait> {
    /// As a field element, the circuit's `prover_id`.
    pub prover_id: Scalar,
    /// The effective randomness: the given one with its two top bits cleared.
    pub randomness: [u8; 32],
    /// Partitions of sectors; a WinningPoSt's are its 66 paths, one each.
    pub partitions: Vec<Vec<PostSector<Tree>>>,
}

/// One sector of a PoSt circuit.
pub type PostSector<Tree> =
    (PublicSector<PoseidonDomain>, SectorProof<<Tree as MerkleTreeTrait>::Proof>);

/// SnapDeals: one vanilla proof and its public inputs per partition.
pub struct Update<Tree: 'static + MerkleTreeTrait<Hasher = PoseidonHasher>> {
    /// Partitions, each with its public values.
    pub partitions: Vec<(published_update::PublicInputs, published_update::PartitionProof<Tree>)>,
}

#[cfg(test)]
mod tests;
