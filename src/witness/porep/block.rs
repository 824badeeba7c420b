//! The parts of the PoRep circuit: the header, and the block of one challenge.
//!
//! A part is filled like the generic code fills it, column by column, from a plain description of
//! the challenge. On the way every commitment that the circuit compares is compared, so that a
//! witness that cannot satisfy the circuit is found while it is made, at no cost.

use std::fmt;

use blstrs::Scalar;
use ff::Field;

use super::bits::{Element, Pens, WrongCount};
use super::label::label;
use super::path::{Tree, climb, climb_data, fits};
use super::poseidon::Poseidon;
use crate::circuit::kinds;
use crate::circuit::shape::PartShape;
use crate::error::Error;
use crate::input::class::SectorSize;
use crate::input::flat::{Challenge, Column, Path};

/// Most layers of a sector size.
pub const LAYERS_MAX: usize = 11;

/// What distinguishes the PoRep circuits of the sector sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sector {
    /// 2 or 11.
    pub layers: usize,
    /// Levels of the binary tree over the data.
    pub data_levels: usize,
    /// Shape of the trees over column hashes and over the replica.
    pub tree: Tree,
}

impl Sector {
    /// The circuit of a sector size.
    pub fn of(size: SectorSize) -> Self {
        let (sub, top) = match size {
            SectorSize::K2 | SectorSize::M8 | SectorSize::M512 => (0, 0),
            SectorSize::K16 | SectorSize::G32 => (8, 0),
            SectorSize::K32 | SectorSize::G64 => (8, 2),
        };
        Sector::new(size.nodes(), kinds::layers(size), sub, top)
    }

    /// By nodes and layers of the sector size, and arities of the nodes over the trees of eight.
    pub fn new(nodes: u64, layers: usize, sub: usize, top: usize) -> Self {
        assert!(layers == 2 || layers == LAYERS_MAX, "no circuit has {layers} layers");
        let data_levels = nodes.ilog2() as usize;
        let upper: u32 = [sub, top].into_iter().filter(|arity| *arity > 0).map(usize::ilog2).sum();
        let base = data_levels - upper as usize;
        assert!(base.is_multiple_of(3), "no trees of eight have {nodes} leaves");
        let base_levels = base / 3;
        Sector { layers, data_levels, tree: Tree { base_levels, sub, top } }
    }
}

/// The values of a partition that all its challenges share.
#[derive(Clone, Copy, Debug)]
pub struct Roots {
    pub replica_id: Scalar,
    pub comm_d: Scalar,
    pub comm_r: Scalar,
    pub comm_r_last: Scalar,
    pub comm_c: Scalar,
}

/// A piece of a challenge with a path to a commitment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece {
    /// The data's leaf, in comm_d.
    Data,
    /// The column of a base parent, by its number, in comm_c.
    DrgParent(usize),
    /// The column of an expander parent, by its number, in comm_c.
    ExpParent(usize),
    /// The encoded data, in comm_r_last.
    Replica,
    /// The challenged column, in comm_c.
    Own,
}

/// Why a description is no witness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misfit {
    /// comm_r is not the hash of comm_c and comm_r_last.
    Commitments,
    /// The planes are those of another circuit.
    Count,
    /// There is no such challenge.
    Missing,
    /// Another number of labels or siblings than the sector size has, or a position beyond it.
    Size(Piece),
    /// Another root than the commitment. `layer` is the first layer, from 1, whose label is not
    /// the row of the challenged column, when the computed labels are part of the piece.
    Root { piece: Piece, layer: Option<usize> },
}

impl From<WrongCount> for Misfit {
    fn from(_: WrongCount) -> Self {
        Misfit::Count
    }
}

impl fmt::Display for Piece {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Piece::Data => write!(f, "comm_d path"),
            Piece::DrgParent(i) => write!(f, "drg parent {i}"),
            Piece::ExpParent(i) => write!(f, "exp parent {i}"),
            Piece::Replica => write!(f, "comm_r_last path"),
            Piece::Own => write!(f, "c_x"),
        }
    }
}

impl Piece {
    fn commitment(&self) -> &'static str {
        match self {
            Piece::Data => "comm_d",
            Piece::Replica => "comm_r_last",
            Piece::DrgParent(_) | Piece::ExpParent(_) | Piece::Own => "comm_c",
        }
    }
}

impl Misfit {
    /// As the error of a request: with the partition, and with the challenge of the part.
    pub fn error(self, partition: usize, part: usize) -> Error {
        let challenge = part.saturating_sub(1);
        let at = |piece: &dyn fmt::Display| {
            format!("partition {partition}, challenge {challenge}, {piece}")
        };
        match self {
            Misfit::Commitments => {
                let what = "it is not the hash of comm_c and comm_r_last of this challenge";
                Error::input(at(&"comm_r"), what)
            }
            Misfit::Count => {
                let what = "the circuit has other columns than the sector size";
                Error::input(format!("partition {partition}, part {part}"), what)
            }
            Misfit::Missing => {
                let what = "the partition has fewer challenges than the circuit";
                Error::input(format!("partition {partition}, challenge {challenge}"), what)
            }
            Misfit::Size(piece) => {
                let what = "labels, siblings or position are not of this sector size";
                Error::input(at(&piece), what)
            }
            Misfit::Root { piece, layer } => {
                let commitment = piece.commitment();
                let mut what = format!("it does not hash to {commitment}");
                if let Some(layer) = layer {
                    what += &format!("; the label of layer {layer} is not the row of c_x");
                }
                Error::input(at(&piece), what)
            }
        }
    }
}

/// Fills the header: part 0.
///
/// # Errors
/// [`Misfit::Commitments`] or [`Misfit::Count`].
pub fn fill_header(
    poseidon: &Poseidon,
    roots: &Roots,
    shape: &PartShape,
    wides: &mut [Scalar],
    bits: &mut [u64],
) -> Result<(), Misfit> {
    let mut pens = Pens::new(shape, wides, bits);
    for input in [Scalar::ONE, roots.replica_id, roots.comm_d, roots.comm_r] {
        pens.inputs.push(input);
    }
    let Roots { replica_id, comm_d, comm_r, comm_r_last, comm_c } = *roots;
    for wide in [replica_id, comm_d, comm_r, comm_r_last, comm_c] {
        pens.wides.push(wide);
    }
    pens.bits.push_element(&Element::of(&replica_id));
    if poseidon.hash(&mut pens.wides, &[comm_c, comm_r_last]) != comm_r {
        return Err(Misfit::Commitments);
    }
    Ok(pens.finish()?)
}

/// Fills a block: the part of one challenge.
///
/// # Errors
/// Any [`Misfit`] that a challenge can have, as soon as it is found.
pub fn fill_block(
    poseidon: &Poseidon,
    sector: &Sector,
    roots: &Roots,
    challenge: &Challenge,
    shape: &PartShape,
    wides: &mut [Scalar],
    bits: &mut [u64],
) -> Result<(), Misfit> {
    sector.check(challenge)?;
    let mut filler = Filler { poseidon, sector, roots, pens: Pens::new(shape, wides, bits) };
    filler.pens.wides.push(challenge.data.leaf);
    let root = climb_data(&mut filler.pens, &challenge.data);
    same(root, roots.comm_d, Piece::Data)?;
    for (i, parent) in challenge.drg_parents.iter().enumerate() {
        filler.parent(parent, Piece::DrgParent(i))?;
    }
    for (i, parent) in challenge.exp_parents.iter().enumerate() {
        filler.parent(parent, Piece::ExpParent(i))?;
    }
    let mut labels = [Scalar::ZERO; LAYERS_MAX];
    let labels = &mut labels[..sector.layers];
    filler.labels(challenge, labels);
    filler.replica(challenge, labels)?;
    Ok(filler.pens.finish()?)
}

/// Is the root that a path leads to the commitment?
fn same(root: Scalar, commitment: Scalar, piece: Piece) -> Result<(), Misfit> {
    if root == commitment { Ok(()) } else { Err(Misfit::Root { piece, layer: None }) }
}

impl Sector {
    /// Refuses what the block could not be filled with.
    fn check(&self, challenge: &Challenge) -> Result<(), Misfit> {
        let (siblings, position_bits) = (self.tree.siblings(), self.tree.position_bits());
        let check = |fits: bool, piece| if fits { Ok(()) } else { Err(Misfit::Size(piece)) };
        let path = |path: &Path, piece| check(fits(path, siblings, position_bits), piece);
        let column = |column: &Column, piece| {
            check(column.rows.len() == self.layers, piece)?;
            path(&column.path, piece)
        };
        let data_levels = self.data_levels;
        check(fits(&challenge.data, data_levels, data_levels as u32), Piece::Data)?;
        for (i, parent) in challenge.drg_parents.iter().enumerate() {
            column(parent, Piece::DrgParent(i))?;
        }
        for (i, parent) in challenge.exp_parents.iter().enumerate() {
            column(parent, Piece::ExpParent(i))?;
        }
        path(&challenge.replica, Piece::Replica)?;
        column(&challenge.own, Piece::Own)
    }
}

/// A block that is being filled.
struct Filler<'a> {
    poseidon: &'a Poseidon,
    sector: &'a Sector,
    roots: &'a Roots,
    pens: Pens<'a>,
}

impl Filler<'_> {
    /// The column of a parent, its hash and its path.
    fn parent(&mut self, parent: &Column, piece: Piece) -> Result<(), Misfit> {
        parent.rows.iter().for_each(|row| self.pens.wides.push(*row));
        let root = self.column_root(&parent.rows, &parent.path);
        same(root, self.roots.comm_c, piece)
    }

    /// Hashes a column of labels and gives the root that it leads to.
    fn column_root(&mut self, labels: &[Scalar], path: &Path) -> Scalar {
        let hash = self.poseidon.hash(&mut self.pens.wides, labels);
        climb(&mut self.pens, self.poseidon, &self.sector.tree, hash, path)
    }

    /// The challenge's number and its label in every layer.
    fn labels(&mut self, challenge: &Challenge, labels: &mut [Scalar]) {
        let pens = &mut self.pens;
        pens.bits.push(challenge.node, 64);
        pens.inputs.push(Scalar::from(challenge.node));
        let replica_id = Element::of(&self.roots.replica_id).words();
        for (row, value) in labels.iter_mut().enumerate() {
            // Expander parents are those of the layer before, so the first layer has none.
            let drg = challenge.drg_parents.iter().map(|parent| &parent.rows[row]);
            let exp = challenge.exp_parents.iter().filter(|_| row > 0);
            let parents = drg.chain(exp.map(|parent| &parent.rows[row - 1]));
            *value = label(pens, &replica_id, row as u32 + 1, challenge.node, parents);
        }
    }

    /// The encoding and its path, then the column of the labels and its path.
    fn replica(&mut self, challenge: &Challenge, labels: &[Scalar]) -> Result<(), Misfit> {
        // Asked only when a root is wrong: no circuit reads the rows.
        let wrong = |misfit| match misfit {
            Misfit::Root { piece, .. } => {
                let layer = labels.iter().zip(&challenge.own.rows).position(|(a, b)| a != b);
                Misfit::Root { piece, layer: layer.map(|row| row + 1) }
            }
            other => other,
        };
        let encoded = labels[labels.len() - 1] + challenge.data.leaf;
        self.pens.wides.push(encoded);
        let (poseidon, tree) = (self.poseidon, &self.sector.tree);
        let root = climb(&mut self.pens, poseidon, tree, encoded, &challenge.replica);
        same(root, self.roots.comm_r_last, Piece::Replica).map_err(wrong)?;
        let root = self.column_root(labels, &challenge.own.path);
        same(root, self.roots.comm_c, Piece::Own).map_err(wrong)
    }
}
