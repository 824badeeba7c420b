//! Sectors that were never sealed: sound vanilla proofs of any size out of a few values.
//!
//! A proof opens few nodes. The labels of a challenged node follow from its parents' columns,
//! which may be arbitrary; and trees that agree on all opened leaves are made of those leaves
//! alone, with arbitrary nodes wherever nothing opened lies below.

use std::collections::{BTreeMap, HashMap};

use blstrs::Scalar;
use ff::Field;
use filecoin_hashers::HashFunction;
use filecoin_hashers::poseidon::PoseidonHasher;
use filecoin_hashers::sha256::{Sha256Domain, Sha256Function};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use storage_proofs_core::api_version::ApiVersion;
use storage_proofs_core::drgraph::BASE_DEGREE;
use storage_proofs_porep::stacked::{EXP_DEGREE, StackedBucketGraph};

use super::bits::{Element, Pens, Wides};
use super::block::Sector;
use super::label::label;
use super::poseidon::Poseidon;
use crate::circuit::shape::PartShape;
use crate::error::{Error, Result};
use crate::input::Porep;
use crate::input::class::SectorSize;
use crate::input::flat::{Challenge, Column, DRG_PARENTS, EXP_PARENTS, Path};

type Graph = StackedBucketGraph<PoseidonHasher>;

/// The graph of a sector size, of the V1_1 proofs, drawn from a porep id.
///
/// # Errors
/// [`Error::Config`] when the published code makes none.
pub fn graph(size: SectorSize, porep_id: [u8; 32]) -> Result<Graph> {
    let nodes = size.nodes() as usize;
    Graph::new_stacked(nodes, BASE_DEGREE, EXP_DEGREE, porep_id, ApiVersion::V1_1_0)
        .map_err(|e| Error::Config(format!("the graph of {size} cannot be made: {e}")))
}

/// One partition with these challenges, all of them nodes from 1 on. The challenges are free, so
/// they are those of no seed: what is made here passes the check of hashes, not that of nodes.
///
/// # Errors
/// [`Error::Config`] as [`graph`], and for a challenge that is no such node.
pub fn porep(size: SectorSize, challenges: &[u32], seed: u64) -> Result<Porep> {
    if let Some(node) = challenges.iter().find(|node| !(1..size.nodes()).contains(&(**node).into()))
    {
        return Err(Error::Config(format!("{node} is no node from 1 on in a sector of {size}")));
    }
    let porep_id = [7; 32];
    let graph = graph(size, porep_id)?;
    let (sector, poseidon) = (Sector::of(size), Poseidon::published());
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let replica_id = Scalar::random(&mut rng);
    let mut columns = Columns { parents: BTreeMap::new(), labels: BTreeMap::new() };
    for node in challenges {
        columns.parents.insert(*node, parents(&graph, *node)?);
    }
    columns.fill(replica_id, sector.layers, &mut rng);
    let (mut data, mut replica) = (BTreeMap::new(), BTreeMap::new());
    for node in columns.parents.keys() {
        let leaf = Scalar::random(&mut rng);
        data.insert(u64::from(*node), leaf);
        replica.insert(u64::from(*node), leaf + columns.labels[node][sector.layers - 1]);
    }
    let hash = |children: &[Scalar]| poseidon.hash(&mut Wides::new(&mut []), children);
    let hashes = columns.labels.iter().map(|(node, rows)| (u64::from(*node), hash(rows))).collect();
    let arities = || sector.tree.arities().collect::<Vec<_>>();
    let trees = Trees {
        data: SparseTree::new(vec![2; sector.data_levels], data, seed + 1, sha256),
        replica: SparseTree::new(arities(), replica, seed + 2, hash),
        hashes: SparseTree::new(arities(), hashes, seed + 3, hash),
        columns,
    };
    Ok(Porep {
        sector: size,
        replica_id: replica_id.into(),
        comm_d: trees.data.root().into(),
        comm_r: hash(&[trees.hashes.root(), trees.replica.root()]).into(),
        seed: [0; 32],
        ticket: [0; 32],
        porep_id,
        partitions: vec![challenges.iter().map(|node| trees.challenge(*node)).collect()],
    })
}

/// Base parents, then expander parents.
fn parents(graph: &Graph, node: u32) -> Result<Vec<u32>> {
    let mut parents = vec![0; DRG_PARENTS + EXP_PARENTS];
    graph
        .base_parents(node as usize, &mut parents[..DRG_PARENTS])
        .and_then(|()| graph.expanded_parents(node as usize, &mut parents[DRG_PARENTS..]))
        .map_err(|e| Error::Config(format!("node {node} has no parents: {e}")))?;
    Ok(parents)
}

/// What is known of the labels.
struct Columns {
    /// Of the challenged nodes.
    parents: BTreeMap<u32, Vec<u32>>,
    /// Of challenged nodes and their parents, all layers.
    labels: BTreeMap<u32, Vec<Scalar>>,
}

impl Columns {
    fn fill(&mut self, replica_id: Scalar, layers: usize, rng: &mut ChaCha8Rng) {
        let free = |node: &&u32| !self.parents.contains_key(*node);
        for node in self.parents.values().flatten().filter(free) {
            let random = || (0..layers).map(|_| Scalar::random(&mut *rng)).collect();
            self.labels.entry(*node).or_insert_with(random);
        }
        self.labels.extend(self.parents.keys().map(|node| (*node, Vec::new())));
        // Layer by layer and upwards, since a challenged node may be the parent of another.
        let replica_id = Element::of(&replica_id).words();
        let nodes: Vec<u32> = self.parents.keys().copied().collect();
        for row in 0..layers {
            for node in &nodes {
                let parents = self.hashed(*node, row);
                let mut nowhere = Pens::new(&PartShape::default(), &mut [], &mut []);
                let layer = row as u32 + 1;
                let label =
                    label(&mut nowhere, &replica_id, layer, u64::from(*node), parents.iter());
                self.labels.entry(*node).or_default().push(label);
            }
        }
    }

    /// The labels of parents that the label of layer `row` + 1 depends on.
    fn hashed(&self, node: u32, row: usize) -> Vec<Scalar> {
        let parents = &self.parents[&node];
        let drg = parents[..DRG_PARENTS].iter().map(|parent| self.labels[parent][row]);
        let exp = parents[DRG_PARENTS..].iter().filter(|_| row > 0);
        drg.chain(exp.map(|parent| self.labels[parent][row - 1])).collect()
    }
}

fn sha256(children: &[Scalar]) -> Scalar {
    let [left, right] = [children[0], children[1]].map(Sha256Domain::from);
    <Sha256Function as HashFunction<Sha256Domain>>::hash2(&left, &right).into()
}

struct Trees {
    columns: Columns,
    data: SparseTree,
    replica: SparseTree,
    hashes: SparseTree,
}

impl Trees {
    fn challenge(&self, node: u32) -> Challenge {
        let column = |node: u32| Column {
            rows: self.columns.labels[&node].clone().into(),
            path: self.hashes.path(node.into()),
        };
        let layers = self.columns.labels[&node].len();
        // The encoding key is the label of the last layer.
        let rows = (0..layers).chain([layers - 1]);
        let parents = &self.columns.parents[&node];
        let labels = rows.map(|row| {
            let hashed = self.columns.hashed(node, row);
            std::array::from_fn(|i| hashed[i % hashed.len()])
        });
        Challenge {
            node: node.into(),
            data: self.data.path(node.into()),
            replica: self.replica.path(node.into()),
            own: column(node),
            drg_parents: std::array::from_fn(|i| column(parents[i])),
            exp_parents: std::array::from_fn(|i| column(parents[DRG_PARENTS + i])),
            labels: labels.collect(),
        }
    }
}

/// A tree that is known at some leaves and above them.
struct SparseTree {
    arities: Vec<usize>,
    /// Known nodes of each level by index, the leaves first.
    levels: Vec<HashMap<u64, Scalar>>,
    seed: u64,
}

impl SparseTree {
    fn new(
        arities: Vec<usize>,
        leaves: BTreeMap<u64, Scalar>,
        seed: u64,
        hash: impl Fn(&[Scalar]) -> Scalar,
    ) -> Self {
        let levels = vec![leaves.into_iter().collect()];
        let mut tree = SparseTree { arities, levels, seed };
        for level in 0..tree.arities.len() {
            let arity = tree.arities[level] as u64;
            let mut above = HashMap::new();
            for index in tree.levels[level].keys() {
                let parent = index / arity;
                above.entry(parent).or_insert_with(|| {
                    let children: Vec<_> =
                        (0..arity).map(|i| tree.at(level, arity * parent + i)).collect();
                    hash(&children)
                });
            }
            tree.levels.push(above);
        }
        tree
    }

    /// A node, arbitrary where nothing is known.
    fn at(&self, level: usize, index: u64) -> Scalar {
        self.levels[level].get(&index).copied().unwrap_or_else(|| {
            let seed = self.seed << 40 | (level as u64) << 36 | index;
            Scalar::random(&mut ChaCha8Rng::seed_from_u64(seed))
        })
    }

    fn root(&self) -> Scalar {
        self.levels[self.arities.len()][&0]
    }

    fn path(&self, leaf: u64) -> Path {
        let (mut index, mut siblings) = (leaf, Vec::new());
        for (level, arity) in self.arities.iter().enumerate() {
            let first = index - index % *arity as u64;
            let level_of = first..first + *arity as u64;
            let others = level_of.filter(|sibling| *sibling != index);
            siblings.extend(others.map(|sibling| self.at(level, sibling)));
            index /= *arity as u64;
        }
        Path {
            position: leaf,
            leaf: self.at(0, leaf),
            root: self.root(),
            siblings: siblings.into(),
        }
    }
}
