//! Inclusion paths: from a leaf to the root that it leads to, with the columns of every level.
//!
//! A level has the bits of the index among the siblings, the siblings, the picks that put the
//! element between them, and the hash. The index bits of all levels, packed, are one public
//! input: the position of the leaf.

use blstrs::Scalar;

use super::bits::{Element, Pens, Wides};
use super::poseidon::Poseidon;
use super::sha256::{Block, CONSTANT, Sha256, VARIABLE};
use crate::input::flat::Path;

/// Children of a node below the sub-trees.
const BASE_ARITY: usize = 8;

/// The Poseidon trees of a sector size: levels of eight, then at most one node over sub-trees and
/// at most one over those. An arity of zero is no node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tree {
    pub base_levels: usize,
    /// 0, 2, 4 or 8.
    pub sub: usize,
    /// 0, 2, 4 or 8.
    pub top: usize,
}

impl Tree {
    /// Arities from the leaves up.
    pub fn arities(&self) -> impl Iterator<Item = usize> + '_ {
        let base = std::iter::repeat_n(BASE_ARITY, self.base_levels);
        base.chain([self.sub, self.top]).filter(|arity| *arity > 0)
    }

    /// Siblings on a path.
    pub fn siblings(&self) -> usize {
        self.arities().map(|arity| arity - 1).sum()
    }

    /// Bits of a position.
    pub fn position_bits(&self) -> u32 {
        self.arities().map(usize::ilog2).sum()
    }
}

/// Has a path these many siblings, and a position of at most these bits?
pub fn fits(path: &Path, siblings: usize, position_bits: u32) -> bool {
    path.siblings.len() == siblings
        && path.position.checked_shr(position_bits).is_none_or(|rest| rest == 0)
}

/// Climbs a Poseidon tree whose size the path fits, from what the circuit has computed: the leaf
/// that the path names is not read. Gives the root.
pub fn climb(
    pens: &mut Pens,
    poseidon: &Poseidon,
    tree: &Tree,
    leaf: Scalar,
    path: &Path,
) -> Scalar {
    let (mut element, mut position, mut siblings) = (leaf, path.position, &path.siblings[..]);
    for arity in tree.arities() {
        let (here, above) = siblings.split_at(arity - 1);
        let index = position as usize % arity;
        pens.bits.push(index as u64, arity.ilog2());
        here.iter().for_each(|sibling| pens.wides.push(*sibling));
        let mut children = [element; BASE_ARITY];
        let children = &mut children[..arity];
        insert(pens, children, index, here);
        element = poseidon.hash(&mut pens.wides, children);
        (siblings, position) = (above, position / arity as u64);
    }
    pens.inputs.push(Scalar::from(path.position));
    element
}

/// Climbs the binary tree over the data, which SHA-256 makes, and gives the root.
pub fn climb_data(pens: &mut Pens, path: &Path) -> Scalar {
    let mut element = path.leaf;
    for (level, sibling) in path.siblings.iter().enumerate() {
        let index = (path.position >> level & 1) as usize;
        pens.bits.push(index as u64, 1);
        pens.wides.push(*sibling);
        let mut children = [element; 2];
        insert(pens, &mut children, index, std::slice::from_ref(sibling));
        element = hash_pair(pens, &children);
    }
    pens.inputs.push(Scalar::from(path.position));
    element
}

/// Words of a message of two field elements: the top bit of each element's 256 is constant.
const PAIR: [u32; 16] = {
    let mut variable = [VARIABLE; 16];
    variable[7] = ELEMENT_END;
    variable[15] = ELEMENT_END;
    variable
};

/// The last word of an element's eight: its top bit, in the last byte, is always zero.
pub const ELEMENT_END: u32 = !0x80;

/// What follows a message of 64 bytes.
const PAIR_PADDING: Block = {
    let mut words = [0; 16];
    words[0] = 1 << 31;
    words[15] = 512;
    Block { words, variable: [CONSTANT; 16] }
};

fn hash_pair(pens: &mut Pens, children: &[Scalar; 2]) -> Scalar {
    let mut words = [0; 16];
    for (words, child) in words.chunks_exact_mut(8).zip(children) {
        let element = Element::of(child);
        pens.bits.push_element(&element);
        words.copy_from_slice(&element.words());
    }
    let mut hash = Sha256::start();
    hash.compress(&mut pens.bits, &Block { words, variable: PAIR });
    hash.compress(&mut pens.bits, &PAIR_PADDING);
    let digest = Element::pack(hash.state());
    pens.wides.push(digest);
    digest
}

/// Puts the element, which `children` is full of, at its index between the siblings.
///
/// Every child is picked by the index bits, and each pick is a column; the published insertion
/// of eight also makes bits of (b0 nor b1) and (b0 and b1).
fn insert(pens: &mut Pens, children: &mut [Scalar], index: usize, siblings: &[Scalar]) {
    children[..index].copy_from_slice(&siblings[..index]);
    children[index + 1..].copy_from_slice(&siblings[index..]);
    let element = children[index];
    match children.len() {
        2 => children.iter().for_each(|child| pens.wides.push(*child)),
        4 => picks_of_four(&mut pens.wides, children, index, element, siblings),
        8 => {
            let low = index as u64 % 4;
            pens.bits.push(u64::from(low == 0) | u64::from(low == 3) << 1, 2);
            picks_of_eight(&mut pens.wides, children, index, element, siblings);
        }
        arity => panic!("no tree of this circuit has an arity of {arity}"),
    }
}

/// The pick of a child by the low bits alone, then the child.
fn picks_of_four(wides: &mut Wides, children: &[Scalar], index: usize, a: Scalar, s: &[Scalar]) {
    let b0 = index & 1 == 1;
    let first = [pick(b0, s[0], a), pick(b0, a, s[0]), pick(b0, s[2], a), pick(b0, a, s[2])];
    for (first, child) in first.iter().zip(children) {
        wides.push(*first);
        wides.push(*child);
    }
}

fn picks_of_eight(wides: &mut Wides, children: &[Scalar], index: usize, a: Scalar, s: &[Scalar]) {
    let (b0, b1) = (index & 1 == 1, index & 2 == 2);
    let (nor, and) = (!b0 && !b1, b0 && b1);
    let mut push = |picks: &[Scalar]| picks.iter().for_each(|pick| wides.push(*pick));
    push(&[pick(nor, a, s[0]), children[0]]);
    let x00 = pick(b0, a, s[0]);
    push(&[x00, pick(b1, s[1], x00), children[1]]);
    let x10 = pick(b0, s[2], a);
    push(&[x10, pick(b1, x10, s[1]), children[2]]);
    push(&[pick(and, a, s[2]), children[3]]);
    push(&[pick(nor, a, s[4]), children[4]]);
    let x01 = pick(b0, a, s[4]);
    push(&[x01, pick(b1, s[5], x01), children[5]]);
    let x11 = pick(b0, s[6], a);
    push(&[x11, pick(b1, x11, s[5]), children[6]]);
    push(&[pick(and, a, s[6]), children[7]]);
}

fn pick(condition: bool, one: Scalar, other: Scalar) -> Scalar {
    if condition { one } else { other }
}

#[cfg(test)]
mod tests {
    use ff::Field;
    use filecoin_hashers::poseidon::PoseidonHasher;
    use filecoin_hashers::sha256::Sha256Hasher;
    use filecoin_hashers::{Hasher, PoseidonArity};
    use rand_chacha::ChaCha8Rng;
    use rand_chacha::rand_core::{RngCore, SeedableRng};
    use storage_proofs_core::gadgets::por::PoRCircuit;
    use storage_proofs_core::gadgets::variables::Root;
    use storage_proofs_core::merkle::{DiskStore, MerkleTreeWrapper};
    use typenum::{U0, U2, U4, U8};

    use super::*;
    use crate::witness::porep::oracle::{Recorder, element};

    /// A path whose ends no column shows.
    fn path(position: u64, siblings: Vec<Scalar>) -> Path {
        let none = Scalar::from(7);
        Path { position, leaf: none, root: none, siblings: siblings.into() }
    }

    /// The columns of the published path, and the arities of its levels.
    fn published<H, A, B, C>(arities: &[usize], leaf: Scalar, path: &Path) -> Recorder
    where
        H: 'static + Hasher,
        A: 'static + PoseidonArity,
        B: 'static + PoseidonArity,
        C: 'static + PoseidonArity,
    {
        let (mut position, mut siblings) = (path.position as usize, &path.siblings[..]);
        let mut levels = Vec::new();
        for arity in arities {
            let (here, above) = siblings.split_at(arity - 1);
            levels.push((here.iter().copied().map(Some).collect(), Some(position % arity)));
            (siblings, position) = (above, position / arity);
        }
        let mut cs = Recorder::default();
        let (leaf, root) = (cs.given(leaf), cs.given(Scalar::ZERO));
        let leaf = Root::from_allocated::<Recorder>(leaf);
        let root = Root::from_allocated::<Recorder>(root);
        type Tree<H, A, B, C> = MerkleTreeWrapper<H, DiskStore<<H as Hasher>::Domain>, A, B, C>;
        let auth: Vec<(Vec<_>, _)> = levels;
        PoRCircuit::<Tree<H, A, B, C>>::synthesize(&mut cs, leaf, auth.into(), root, true).unwrap();
        cs
    }

    fn check<B, C>(poseidon: &Poseidon, tree: Tree, seeds: u64)
    where
        B: 'static + PoseidonArity,
        C: 'static + PoseidonArity,
    {
        let arities: Vec<_> = tree.arities().collect();
        for seed in 0..seeds {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let siblings: Vec<_> = (0..tree.siblings()).map(|_| element(&mut rng)).collect();
            let position = rng.next_u64() % (1 << tree.position_bits());
            let path = path(position, siblings);
            assert!(fits(&path, tree.siblings(), tree.position_bits()));
            let leaf = element(&mut rng);
            let cs = published::<PoseidonHasher, U8, B, C>(&arities, leaf, &path);
            let root = cs.compare(|pens| climb(pens, poseidon, &tree, leaf, &path));
            assert_eq!(cs.wides.last(), Some(&root));
        }
    }

    #[test]
    fn poseidon_paths_are_those_of_the_gadget() {
        let poseidon = &Poseidon::published();
        check::<U0, U0>(poseidon, Tree { base_levels: 3, sub: 0, top: 0 }, 16);
        check::<U2, U0>(poseidon, Tree { base_levels: 1, sub: 2, top: 0 }, 8);
        check::<U4, U0>(poseidon, Tree { base_levels: 1, sub: 4, top: 0 }, 16);
        check::<U8, U0>(poseidon, Tree { base_levels: 2, sub: 8, top: 0 }, 8);
        check::<U8, U2>(poseidon, Tree { base_levels: 1, sub: 8, top: 2 }, 8);
        check::<U4, U8>(poseidon, Tree { base_levels: 1, sub: 4, top: 8 }, 8);
    }

    #[test]
    fn data_paths_are_those_of_the_gadget() {
        for seed in 0..6 {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let levels = 1 + seed as usize % 3;
            let siblings: Vec<_> = (0..levels).map(|_| element(&mut rng)).collect();
            let position = rng.next_u64() % (1 << levels);
            let path = Path { leaf: element(&mut rng), ..path(position, siblings) };
            let cs = published::<Sha256Hasher, U2, U0, U0>(&vec![2; levels], path.leaf, &path);
            let root = cs.compare(|pens| climb_data(pens, &path));
            assert_eq!(cs.wides.last(), Some(&root));
        }
    }

    #[test]
    fn a_path_of_another_size_does_not_fit() {
        let fits =
            |position, siblings, bits| fits(&path(position, vec![Scalar::ZERO; 3]), siblings, bits);
        assert!(fits(7, 3, 3) && !fits(8, 3, 3) && !fits(7, 2, 3));
        assert!(fits(u64::MAX, 3, 64) && !fits(u64::MAX, 3, 63));
    }
}
