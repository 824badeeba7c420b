//! The label of one layer: the bits of its parents, the hash over 37 of them, and its packing.

use blstrs::Scalar;

use super::bits::{Element, Pens};
use super::path::ELEMENT_END;
use super::sha256::{Block, CONSTANT, Sha256, VARIABLE};
use crate::input::flat::{DRG_PARENTS, EXP_PARENTS, LABEL_PARENTS};

/// Bits of the message: the replica id, layer and node, and the parents.
const MESSAGE_BITS: u32 = 256 * (2 + LABEL_PARENTS as u32);

/// The first block: the replica id, then the layer, which is a constant of the circuit, the node,
/// and zeros.
const START: [u32; 16] = {
    let mut variable = [CONSTANT; 16];
    let mut i = 0;
    while i < 8 {
        variable[i] = VARIABLE;
        i += 1;
    }
    variable[7] = ELEMENT_END;
    variable[9] = VARIABLE;
    variable[10] = VARIABLE;
    variable
};

/// Two parents; the last block has one parent, then the padding.
const PARENTS: [u32; 16] = {
    let mut variable = [VARIABLE; 16];
    variable[7] = ELEMENT_END;
    variable[15] = ELEMENT_END;
    variable
};

const LAST_PARENT: [u32; 16] = {
    let mut variable = PARENTS;
    let mut i = 8;
    while i < 16 {
        variable[i] = CONSTANT;
        i += 1;
    }
    variable
};

/// Writes the columns of the label of `node` in a layer, counted from 1, and gives the label.
/// The parents are those that the layer has, without the expander's in the first; they are hashed
/// in turn until there are [`LABEL_PARENTS`].
pub fn label<'a>(
    pens: &mut Pens,
    replica_id: &[u32; 8],
    layer: u32,
    node: u64,
    parents: impl Iterator<Item = &'a Scalar>,
) -> Scalar {
    let mut words = [[0; 8]; DRG_PARENTS + EXP_PARENTS];
    let mut count = 0;
    for (words, parent) in words.iter_mut().zip(parents) {
        let element = Element::of(parent);
        pens.bits.push_element(&element);
        *words = element.words();
        count += 1;
    }
    let mut parents = words[..count].iter().cycle().take(LABEL_PARENTS);

    let mut hash = Sha256::start();
    let mut block = Block { words: [0; 16], variable: START };
    block.words[..8].copy_from_slice(replica_id);
    block.words[8..11].copy_from_slice(&[layer, (node >> 32) as u32, node as u32]);
    hash.compress(&mut pens.bits, &block);
    while let Some(parent) = parents.next() {
        block.words[..8].copy_from_slice(parent);
        if let Some(parent) = parents.next() {
            block.words[8..].copy_from_slice(parent);
            block.variable = PARENTS;
        } else {
            block.words[8..].copy_from_slice(&[1 << 31, 0, 0, 0, 0, 0, 0, MESSAGE_BITS]);
            block.variable = LAST_PARENT;
        }
        hash.compress(&mut pens.bits, &block);
    }
    let label = Element::pack(hash.state());
    pens.wides.push(label);
    label
}

#[cfg(test)]
mod tests {
    use bellperson::gadgets::uint32::UInt32;
    use ff::Field;
    use rand_chacha::ChaCha8Rng;
    use rand_chacha::rand_core::{RngCore, SeedableRng};
    use storage_proofs_core::gadgets::uint64::UInt64;
    use storage_proofs_core::util::reverse_bit_numbering;
    use storage_proofs_porep::stacked::create_label_circuit;

    use super::*;
    use crate::witness::porep::oracle::{Recorder, element};

    fn check(replica_id: Scalar, layer: u32, node: u64, parents: &[Scalar]) {
        let mut cs = Recorder::default();
        let replica_bits = cs.given(replica_id).to_bits_le(&mut cs).unwrap();
        let node_bits = UInt64::alloc(&mut cs, Some(node)).unwrap();
        cs.bits.clear();
        let parent_bits: Vec<_> = parents
            .iter()
            .map(|parent| {
                let parent = cs.given(*parent);
                reverse_bit_numbering(parent.to_bits_le(&mut cs).unwrap())
            })
            .collect();
        let parent_bits = parent_bits.iter().cycle().take(LABEL_PARENTS).cloned().collect();
        let replica_bits = reverse_bit_numbering(replica_bits);
        let layer_number = UInt32::constant(layer);
        let theirs =
            create_label_circuit(&mut cs, &replica_bits, parent_bits, layer_number, node_bits)
                .unwrap();
        let words = Element::of(&replica_id).words();
        let ours = cs.compare(|pens| label(pens, &words, layer, node, parents.iter()));
        assert_eq!(Some(ours), theirs.get_value());
    }

    #[test]
    fn columns_are_those_of_the_gadget() {
        let mut rng = ChaCha8Rng::seed_from_u64(37);
        for (layer, node) in [(1, 0), (2, u64::MAX), (3, 1 << 35), (11, rng.next_u64())] {
            let parents = if layer == 1 { DRG_PARENTS } else { DRG_PARENTS + EXP_PARENTS };
            let parents: Vec<_> = (0..parents).map(|_| element(&mut rng)).collect();
            check(element(&mut rng), layer, node, &parents);
        }
        check(-Scalar::ONE, 2, 5, &[-Scalar::ONE; 14]);
        check(Scalar::ZERO, 1, 5, &[Scalar::ZERO; 6]);
    }
}
