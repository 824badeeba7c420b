//! The pens that write a part's columns in order: bits to the bit plane, scalars to the wide one.
//!
//! A pen that runs past its plane counts on and writes nothing, so that the columns of a block
//! need no check of their own: [`Pens::finish`] compares the counts with the part's, once.

use blstrs::Scalar;
use ff::PrimeField;

use crate::circuit::shape::PartShape;

/// Bits of a field element that a circuit takes apart.
pub const SCALAR_BITS: usize = 255;

/// Writes bits one after the other: bit i of the part is bit i % 64 of word i / 64.
#[derive(Default)]
pub struct Bits<'a> {
    words: &'a mut [u64],
    /// The word that is being filled.
    at: usize,
    word: u64,
    /// Bits of `word` that are there, below 64.
    filled: u32,
}

impl<'a> Bits<'a> {
    pub fn new(words: &'a mut [u64]) -> Self {
        Bits { words, at: 0, word: 0, filled: 0 }
    }

    /// Appends the low `count` bits of a value that has no others, lowest first; at most 64.
    #[inline(always)]
    pub fn push(&mut self, value: u64, count: u32) {
        debug_assert!(count == 64 || count < 64 && value >> count == 0, "{count} bits of {value}");
        let word = self.word | value << self.filled;
        // Whether the word is full or not, so that no branch depends on the place.
        if let Some(slot) = self.words.get_mut(self.at) {
            *slot = word;
        }
        // In two steps, because with no bit filled all 64 are shifted out.
        let rest = value >> 1 >> (63 - self.filled);
        let filled = self.filled + count;
        let full = filled >= 64;
        self.word = if full { rest } else { word };
        self.at += usize::from(full);
        self.filled = filled % 64;
    }

    /// Appends the 255 bits of a field element.
    pub fn push_element(&mut self, element: &Element) {
        for word in &element.0[..3] {
            self.push(*word, 64);
        }
        self.push(element.0[3], SCALAR_BITS as u32 - 192);
    }

    /// Bits so far.
    pub fn count(&self) -> usize {
        64 * self.at + self.filled as usize
    }

    /// Writes the last word and clears what lies behind it.
    pub fn finish(self) {
        let Bits { words, at, word, filled } = self;
        let mut rest = words.iter_mut().skip(at);
        if filled > 0
            && let Some(slot) = rest.next()
        {
            *slot = word;
        }
        rest.for_each(|slot| *slot = 0);
    }
}

/// Writes scalars one after the other.
pub struct Wides<'a> {
    plane: &'a mut [Scalar],
    at: usize,
}

impl<'a> Wides<'a> {
    pub fn new(plane: &'a mut [Scalar]) -> Self {
        Wides { plane, at: 0 }
    }

    #[inline(always)]
    pub fn push(&mut self, value: Scalar) {
        if let Some(slot) = self.plane.get_mut(self.at) {
            *slot = value;
        }
        self.at += 1;
    }

    /// Scalars so far.
    pub fn count(&self) -> usize {
        self.at
    }
}

/// All pens of one part.
pub struct Pens<'a> {
    shape: PartShape,
    pub inputs: Wides<'a>,
    pub wides: Wides<'a>,
    pub bits: Bits<'a>,
}

/// The columns are more or fewer than the part has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrongCount;

impl<'a> Pens<'a> {
    /// The planes are the part's own: `wide_len()` entries and `word_len()` words of its shape.
    pub fn new(shape: &PartShape, wides: &'a mut [Scalar], bits: &'a mut [u64]) -> Self {
        assert_eq!(wides.len(), shape.wide_len(), "the wide plane is the part's");
        assert_eq!(bits.len(), shape.word_len(), "the bit plane is the part's");
        let (inputs, rest) = wides.split_at_mut(shape.inputs);
        let (wides, padding) = rest.split_at_mut(shape.wides);
        padding.fill(Scalar::from(0));
        Pens {
            shape: *shape,
            inputs: Wides::new(inputs),
            wides: Wides::new(wides),
            bits: Bits::new(bits),
        }
    }

    /// Writes the paddings.
    ///
    /// # Errors
    /// [`WrongCount`] unless exactly the part's inputs, wides and bits were written.
    pub fn finish(self) -> Result<(), WrongCount> {
        let counts = (self.inputs.count(), self.wides.count(), self.bits.count());
        let shape = &self.shape;
        self.bits.finish();
        if counts == (shape.inputs, shape.wides, shape.bits) { Ok(()) } else { Err(WrongCount) }
    }
}

/// A field element out of Montgomery form: 255 bits, little-endian words.
#[derive(Clone, Copy, Default)]
pub struct Element([u64; 4]);

impl Element {
    pub fn of(scalar: &Scalar) -> Self {
        let bytes = scalar.to_repr();
        let mut words = [0; 4];
        for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
            *word = u64::from_le_bytes(bytes.try_into().expect("chunks of eight"));
        }
        Element(words)
    }

    /// The eight words that SHA-256 reads when it hashes the element's 32 bytes.
    pub fn words(&self) -> [u32; 8] {
        let mut words = [0; 8];
        for (pair, word) in words.chunks_exact_mut(2).zip(self.0) {
            pair[0] = (word as u32).swap_bytes();
            pair[1] = ((word >> 32) as u32).swap_bytes();
        }
        words
    }

    /// The field element of a digest: its first 254 bits, as the circuits pack them.
    pub fn pack(digest: &[u32; 8]) -> Scalar {
        let mut bytes = [0; 32];
        for (bytes, word) in bytes.chunks_exact_mut(4).zip(digest) {
            bytes.copy_from_slice(&word.to_be_bytes());
        }
        bytes[31] &= 0x3f;
        Scalar::from_bytes_le(&bytes).expect("254 bits are below the modulus")
    }
}
