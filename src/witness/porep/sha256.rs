//! The columns of the SHA-256 circuit, 32 bits at a time.
//!
//! In the published circuit a word is 32 booleans, each a variable, a negated variable or a
//! constant. Constants give no columns; they come from the first state, from paddings and from
//! the few bits of a message that are always the same. The state is all constant or all
//! variable: after three rounds of a first block it is variable for good. Words of the message
//! mix both, and so do the sigmas made of them.
//!
//! A compression allocates, in this order: for words 16 to 63 of the schedule both xors of s0 and
//! of s1 and the 34 bits of the sum; for every round the 35 bits of e, both xors of S1, ch, the
//! 35 bits of a, both xors of S0, and for every bit maj and (b and c); last the sums that are the
//! new state. e and a of the last round go straight into the new state.

use std::mem;

use super::bits::Bits;

#[rustfmt::skip]
const ROUND_KEYS: [u32; 64] = [
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
];

#[rustfmt::skip]
const FIRST_STATE: [u32; 8] = [
    0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
];

/// Bits of the sums, for the most that their operands can add up to: four words of the schedule,
/// six to e and seven to a, two or more to the new state.
const SCHEDULE_BITS: u32 = 34;
const ROUND_BITS: u32 = 35;
const PAIR_BITS: u32 = 33;

/// Every bit is a variable.
pub const VARIABLE: u32 = !0;
/// Every bit is a constant.
pub const CONSTANT: u32 = 0;

/// Sixteen words of a message; `variable` has a one for every bit that is no constant.
#[derive(Clone, Copy)]
pub struct Block {
    pub words: [u32; 16],
    pub variable: [u32; 16],
}

/// A message that is being hashed.
pub struct Sha256 {
    state: [u32; 8],
    /// No block was hashed yet.
    first: bool,
}

impl Sha256 {
    /// Before the first block.
    pub fn start() -> Self {
        Sha256 { state: FIRST_STATE, first: true }
    }

    /// The state after the blocks so far: the digest, once the padding is among them.
    pub fn state(&self) -> &[u32; 8] {
        &self.state
    }

    /// Hashes a block and writes its columns. The first word of the message has variable bits:
    /// an all-constant start would keep constants in the state for longer than is looked for.
    pub fn compress(&mut self, bits: &mut Bits, block: &Block) {
        debug_assert!(!self.first || block.variable[0] != CONSTANT);
        // By value, so that the pen lives in registers.
        let mut pen = mem::take(bits);
        let schedule = expand(&mut pen, block);
        self.rounds(&mut pen, &schedule);
        *bits = pen;
    }

    fn rounds(&mut self, pen: &mut Bits, schedule: &[u32; 64]) {
        let mut round = Rounds { state: self.state, e: 0, a: 0 };
        let next = |i: usize| u64::from(ROUND_KEYS[i]) + u64::from(schedule[i]);
        let start = if self.first {
            // All constant.
            round.step(next(0));
            // ch and maj with two constant operands are an operand or a constant.
            pen.push(round.e, ROUND_BITS);
            pen.push(round.s1(), 64);
            pen.push(round.a, ROUND_BITS);
            pen.push(round.s0(), 64);
            round.step(next(1));
            // With one constant operand they are one column a bit.
            let [a, b, c, _, e, f, g, _] = round.state;
            pen.push(round.e, ROUND_BITS);
            pen.push(round.s1(), 64);
            pen.push(u64::from(e & (f ^ g)), 32);
            pen.push(round.a, ROUND_BITS);
            pen.push(round.s0(), 64);
            pen.push(u64::from((a ^ c) & (b ^ c)), 32);
            round.step(next(2));
            3
        } else {
            // a and e are columns of the block before.
            pen.push(round.s1(), 64);
            pen.push(round.ch(), 32);
            pen.push(round.s0(), 64);
            pen.push(round.maj(), 64);
            round.step(next(0));
            1
        };
        for i in start..64 {
            pen.push(round.e, ROUND_BITS);
            pen.push(round.s1(), 64);
            pen.push(round.ch(), 32);
            pen.push(round.a, ROUND_BITS);
            pen.push(round.s0(), 64);
            pen.push(round.maj(), 64);
            round.step(next(i));
        }
        self.state = round.finish(pen, &self.state);
        self.first = false;
    }
}

/// The working variables, and the sums that e and a are the low halves of.
struct Rounds {
    state: [u32; 8],
    e: u64,
    a: u64,
}

impl Rounds {
    #[inline(always)]
    fn s1(&self) -> u64 {
        let e = self.state[4];
        let first = e.rotate_right(6) ^ e.rotate_right(11);
        pair(first, first ^ e.rotate_right(25))
    }

    #[inline(always)]
    fn s0(&self) -> u64 {
        let a = self.state[0];
        let first = a.rotate_right(2) ^ a.rotate_right(13);
        pair(first, first ^ a.rotate_right(22))
    }

    #[inline(always)]
    fn ch(&self) -> u64 {
        let [_, _, _, _, e, f, g, _] = self.state;
        u64::from(g ^ (e & (f ^ g)))
    }

    /// For every bit maj, then (b and c).
    #[inline(always)]
    fn maj(&self) -> u64 {
        let [a, b, c, ..] = self.state;
        spread((a & (b | c)) | (b & c)) | spread(b & c) << 1
    }

    /// One round, given the sum of its key and its word.
    #[inline(always)]
    fn step(&mut self, next: u64) {
        let [a, b, c, d, e, f, g, h] = self.state;
        let s1 = self.s1() >> 32;
        let s0 = self.s0() >> 32;
        let maj = (a & (b | c)) | (b & c);
        let sum = u64::from(h) + s1 + self.ch() + next;
        self.e = sum + u64::from(d);
        self.a = sum + s0 + u64::from(maj);
        self.state = [self.a as u32, a, b, c, self.e as u32, e, f, g];
    }

    /// The columns of the new state.
    fn finish(&self, pen: &mut Bits, before: &[u32; 8]) -> [u32; 8] {
        let mut after = [0; 8];
        for (i, after) in after.iter_mut().enumerate() {
            let (value, count) = match i {
                0 => (self.a, ROUND_BITS),
                4 => (self.e, ROUND_BITS),
                _ => (u64::from(self.state[i]), PAIR_BITS),
            };
            let sum = value + u64::from(before[i]);
            pen.push(sum, count);
            *after = sum as u32;
        }
        after
    }
}

/// The schedule of a block, and its columns.
#[inline(always)]
fn expand(pen: &mut Bits, block: &Block) -> [u32; 64] {
    let mut words = [0; 64];
    words[..16].copy_from_slice(&block.words);
    let mut variable = [VARIABLE; 64];
    variable[..16].copy_from_slice(&block.variable);
    for i in 16..64 {
        let s0 = sigma(pen, words[i - 15], variable[i - 15], [7, 18, 3]);
        let s1 = sigma(pen, words[i - 2], variable[i - 2], [17, 19, 10]);
        let sum =
            u64::from(words[i - 16]) + u64::from(s0) + u64::from(words[i - 7]) + u64::from(s1);
        words[i] = sum as u32;
        let sources = [i - 16, i - 15, i - 7, i - 2];
        if sources.iter().all(|source| variable[*source] == CONSTANT) {
            variable[i] = CONSTANT;
        } else {
            pen.push(sum, SCHEDULE_BITS);
        }
    }
    words
}

/// The columns of a small sigma: of the first xor, then of the second, which has none where the
/// shift lets in zeros.
#[inline(always)]
fn sigma(pen: &mut Bits, word: u32, variable: u32, [one, two, shift]: [u32; 3]) -> u32 {
    if variable == VARIABLE {
        let first = word.rotate_right(one) ^ word.rotate_right(two);
        let second = first ^ word >> shift;
        pen.push(u64::from(first) | u64::from(second & VARIABLE >> shift) << 32, 64 - shift);
        return second;
    }
    if variable != CONSTANT {
        sigma_of_mixed(pen, word, variable, [one, two, shift]);
    }
    word.rotate_right(one) ^ word.rotate_right(two) ^ word >> shift
}

/// An xor with a constant is the other operand or its negation, no column; the column of an xor
/// of negations is the xor of what they negate. So the columns are those of the word with zeros
/// for its constants, where both operands are variable.
#[cold]
fn sigma_of_mixed(pen: &mut Bits, word: u32, variable: u32, [one, two, shift]: [u32; 3]) {
    let word = word & variable;
    let first = word.rotate_right(one) ^ word.rotate_right(two);
    let (left, right) = (variable.rotate_right(one), variable.rotate_right(two));
    push_chosen(pen, first, left & right);
    push_chosen(pen, first ^ word >> shift, (left | right) & variable >> shift);
}

/// Appends the chosen bits of a word.
fn push_chosen(pen: &mut Bits, word: u32, chosen: u32) {
    for i in 0..32 {
        if chosen >> i & 1 == 1 {
            pen.push(u64::from(word >> i & 1), 1);
        }
    }
}

#[inline(always)]
fn pair(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

/// Bit i to bit 2 i.
#[inline(always)]
fn spread(word: u32) -> u64 {
    let mut x = u64::from(word);
    x = (x | x << 16) & 0x0000_ffff_0000_ffff;
    x = (x | x << 8) & 0x00ff_00ff_00ff_00ff;
    x = (x | x << 4) & 0x0f0f_0f0f_0f0f_0f0f;
    x = (x | x << 2) & 0x3333_3333_3333_3333;
    (x | x << 1) & 0x5555_5555_5555_5555
}

#[cfg(test)]
mod tests {
    use bellperson::gadgets::boolean::{AllocatedBit, Boolean};
    use bellperson::gadgets::sha256::sha256;
    use rand_chacha::ChaCha8Rng;
    use rand_chacha::rand_core::{RngCore, SeedableRng};
    use sha2::{Digest, Sha256 as Published};

    use super::*;
    use crate::witness::porep::oracle::Recorder;

    /// Hashes a message with its padding by the gadget and by ours, the chosen bits being
    /// variables; the padding and its length are constants.
    fn check(message: &[u32], variable: &[u32]) {
        let mut cs = Recorder::default();
        let mut input = Vec::new();
        for (word, variable) in message.iter().zip(variable) {
            for i in (0..32).rev() {
                let bit = word >> i & 1 == 1;
                input.push(match variable >> i & 1 {
                    1 => AllocatedBit::alloc(&mut cs, Some(bit)).unwrap().into(),
                    _ => Boolean::constant(bit),
                });
            }
        }
        // The message's bits are not columns of the gadget.
        cs.bits.clear();
        let digest = sha256(&mut cs, &input).unwrap();

        let mut words = message.to_vec();
        words.push(1 << 31);
        words.resize((words.len() + 2).next_multiple_of(16), 0);
        *words.last_mut().unwrap() = 32 * message.len() as u32;
        let mut masks = variable.to_vec();
        masks.resize(words.len(), CONSTANT);
        let mut hash = Sha256::start();
        cs.compare(|pens| {
            for (words, variable) in words.chunks_exact(16).zip(masks.chunks_exact(16)) {
                let (words, variable) = (words.try_into().unwrap(), variable.try_into().unwrap());
                hash.compress(&mut pens.bits, &Block { words, variable });
            }
        });
        let bits = hash.state().iter().flat_map(|word| (0..32).rev().map(move |i| word >> i & 1));
        for (ours, theirs) in bits.zip(digest) {
            assert_eq!(ours == 1, theirs.get_value().unwrap());
        }
        let bytes: Vec<u8> = message.iter().flat_map(|word| word.to_be_bytes()).collect();
        let ours: Vec<u8> = hash.state().iter().flat_map(|word| word.to_be_bytes()).collect();
        assert_eq!(ours, Published::digest(bytes)[..]);
    }

    #[test]
    fn columns_are_those_of_the_gadget() {
        let mut rng = ChaCha8Rng::seed_from_u64(256);
        for len in [13, 14, 16, 31, 40] {
            for value in [0, !0] {
                check(&vec![value; len], &vec![VARIABLE; len]);
            }
            let message: Vec<u32> = (0..len).map(|_| rng.next_u32()).collect();
            check(&message, &vec![VARIABLE; len]);
        }
    }

    #[test]
    fn constant_bits_give_no_columns() {
        let mut rng = ChaCha8Rng::seed_from_u64(257);
        for seed in 0..24 {
            let message: Vec<u32> = (0..32).map(|_| rng.next_u32()).collect();
            let mut mask = || match rng.next_u32() % (2 + seed % 4) {
                0 => CONSTANT,
                1 => VARIABLE,
                2 => rng.next_u32(),
                _ => !(1 << (rng.next_u32() % 32)),
            };
            let mut variable: Vec<u32> = (0..32).map(|_| mask()).collect();
            variable[0] |= 1 << (seed % 32);
            check(&message, &variable);
        }
    }

    #[test]
    fn bits_are_spread() {
        for i in 0..32 {
            assert_eq!(spread(1 << i), 1 << (2 * i));
        }
        assert_eq!(spread(!0), 0x5555_5555_5555_5555);
    }
}
