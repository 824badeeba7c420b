//! The sizes of a circuit and the layout of its witness in a slot.
//!
//! A circuit is a header followed by `repeats` equal blocks (challenges, sectors); a circuit
//! without such a structure is all header. Its witness is two planes:
//!
//! ```text
//! wides  | header inputs, header wide aux | pad | block 0 inputs, wide aux | pad | block 1 ...
//! bits   | header boolean aux             | pad | block 0 boolean aux      | pad | block 1 ...
//! ```
//!
//! Every part starts on 64 bytes in both planes (2 wides, 512 bits), so that different threads
//! can fill different parts. Within a part the order is the order of allocation in the circuit.

/// Bytes of one wide value: a scalar in Montgomery form, little-endian limbs (blst layout).
pub const WIDE_BYTES: usize = 32;
/// Parts are aligned to this in both planes, in bytes: one cache line.
pub const PART_ALIGN: usize = 64;

const WIDES_ALIGN: usize = PART_ALIGN / WIDE_BYTES;
const WORDS_ALIGN: usize = PART_ALIGN / 8;

/// The sizes of one part (header or block).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartShape {
    /// Public inputs; the header's include the leading ONE.
    pub inputs: usize,
    /// Aux variables that the rows force to be 0 or 1.
    pub bits: usize,
    /// The other aux variables.
    pub wides: usize,
    /// Rows, without the row that each input adds at the end of the circuit.
    pub rows: usize,
}

impl PartShape {
    pub fn aux(&self) -> usize {
        self.bits + self.wides
    }

    /// Entries of this part in the wide plane, inputs first, padding included.
    pub fn wide_len(&self) -> usize {
        (self.inputs + self.wides).next_multiple_of(WIDES_ALIGN)
    }

    /// 64-bit words of this part in the bit plane, padding included.
    pub fn word_len(&self) -> usize {
        self.bits.div_ceil(64).next_multiple_of(WORDS_ALIGN)
    }
}

/// The sizes of a whole circuit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    pub header: PartShape,
    pub block: PartShape,
    /// Number of blocks; 0 for a circuit that is all header.
    pub repeats: usize,
}

impl Shape {
    /// Parts: the header is part 0, block k is part k + 1.
    pub fn parts(&self) -> usize {
        1 + self.repeats
    }

    pub fn part(&self, part: usize) -> &PartShape {
        if part == 0 { &self.header } else { &self.block }
    }

    pub fn inputs(&self) -> usize {
        self.header.inputs + self.repeats * self.block.inputs
    }

    pub fn aux(&self) -> usize {
        self.header.aux() + self.repeats * self.block.aux()
    }

    /// Circuit rows, without the appended input rows.
    pub fn rows(&self) -> usize {
        self.header.rows + self.repeats * self.block.rows
    }

    /// The NTT domain is 2^log_domain >= rows + inputs.
    pub fn log_domain(&self) -> u32 {
        (self.rows() + self.inputs()).next_power_of_two().trailing_zeros().max(1)
    }

    pub fn domain(&self) -> usize {
        1 << self.log_domain()
    }

    /// First entry of a part in the wide plane.
    pub fn wide_base(&self, part: usize) -> usize {
        if part == 0 { 0 } else { self.header.wide_len() + (part - 1) * self.block.wide_len() }
    }

    /// First word of a part in the bit plane.
    pub fn word_base(&self, part: usize) -> usize {
        if part == 0 { 0 } else { self.header.word_len() + (part - 1) * self.block.word_len() }
    }

    /// Entries of the wide plane.
    pub fn wide_len(&self) -> usize {
        self.wide_base(self.parts())
    }

    /// 64-bit words of the bit plane.
    pub fn word_len(&self) -> usize {
        self.word_base(self.parts())
    }

    /// Bytes of a slot: the wide plane, then the bit plane. A multiple of 64.
    pub fn slot_bytes(&self) -> usize {
        self.wide_len() * WIDE_BYTES + self.word_len() * 8
    }
}

/// A filled witness: both planes of a slot, borrowed.
#[derive(Clone, Copy)]
pub struct Witness<'a> {
    pub shape: &'a Shape,
    /// `shape.wide_len()` scalars; padding is zero.
    pub wides: &'a [blstrs::Scalar],
    /// `shape.word_len()` words; bit i of a part is bit i % 64 of word i / 64; padding is zero.
    pub bits: &'a [u64],
}
