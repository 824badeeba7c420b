//! A circuit, compiled once: header rows and one block of rows, never expanded.
//!
//! A row is three lists of terms (column, coefficient). A term is one 32-bit word:
//!
//! ```text
//! | coefficient code: 32 - column_bits | column code: column_bits |
//! ```
//!
//! The coefficient code is an index into the dictionary, which is sorted by frequency; the
//! all-ones code is an escape: the next word is the dictionary index. The column code says where
//! the value lies in the slot, so nothing is looked up on the way:
//!
//! ```text
//! 0 ..            header wides  (entry of the wide plane, header inputs first)
//! header_bits ..  header bits   (bit of the bit plane)
//! block_wides ..  block wides   (entry relative to the block's first, block inputs first)
//! block_bits ..   block bits    (bit relative to the block's first)
//! ```
//!
//! Paddings count, so that a code minus its base is a position in the plane. After all circuit
//! rows comes one row x_i * 0 = 0 for every input i in global order (header, block 0, block 1 ..),
//! as bellperson appends them; these are not stored.

use blstrs::Scalar;

use super::shape::Shape;

/// Rows of one of the three matrices for one part.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    /// Row r has the words `words[offsets[r]..offsets[r + 1]]`.
    pub offsets: Vec<u32>,
    pub words: Vec<u32>,
}

/// A choice of positions in a plane of one part.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Bit i % 64 of word i / 64: is position i chosen?
    pub words: Vec<u64>,
    /// Chosen positions before each word.
    pub rank: Vec<u32>,
    pub count: usize,
}

impl Selection {
    pub fn new(words: Vec<u64>) -> Self {
        let mut count = 0;
        let rank = words
            .iter()
            .map(|word| {
                let before = count;
                count += word.count_ones() as usize;
                before as u32
            })
            .collect();
        Selection { words, rank, count }
    }

    pub fn contains(&self, position: usize) -> bool {
        self.words.get(position / 64).is_some_and(|word| word >> (position % 64) & 1 == 1)
    }

    /// Chosen positions before this one, which is at most the last of the selection's words.
    pub fn rank(&self, position: usize) -> usize {
        let below = self.words[position / 64] & ((1 << (position % 64)) - 1);
        self.rank[position / 64] as usize + below.count_ones() as usize
    }
}

/// Which columns of a part have a point in a query of the SRS.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    /// Over the part's bit plane.
    pub bits: Selection,
    /// Over the part's entries of the wide plane, inputs first.
    pub wides: Selection,
}

/// One part (header or block).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    pub a: Rows,
    pub b: Rows,
    pub c: Rows,
    /// One bit per aux variable in order of allocation: boolean (1) or wide (0).
    pub boolean: Vec<u64>,
    /// All aux variables, no input.
    pub l: Query,
    /// All inputs and the aux variables dense in A.
    pub a_query: Query,
    /// The inputs and the aux variables dense in B (`b_g1` and `b_g2` alike). Of the inputs of
    /// Filecoin's circuits that is ONE alone.
    pub b_query: Query,
}

/// Bases of the column codes, see the module's picture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Codes {
    pub column_bits: u32,
    pub header_bits: u32,
    pub block_wides: u32,
    pub block_bits: u32,
}

/// Where the value of a term lies; positions are relative to the part's first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    HeaderWide(usize),
    HeaderBit(usize),
    BlockWide(usize),
    BlockBit(usize),
}

impl Codes {
    /// The codes that follow from a shape; none if there are more than 2^31 columns.
    pub fn new(shape: &Shape) -> Option<Self> {
        let header_bits = shape.header.wide_len();
        let block_wides = header_bits + 64 * shape.header.word_len();
        let block_bits = block_wides + shape.block.wide_len();
        let end = block_bits + 64 * shape.block.word_len();
        if end > 1 << 31 {
            return None;
        }
        Some(Codes {
            column_bits: end.next_power_of_two().trailing_zeros().max(1),
            header_bits: header_bits as u32,
            block_wides: block_wides as u32,
            block_bits: block_bits as u32,
        })
    }

    /// The coefficient code that says that the next word is the dictionary index.
    pub fn escape(&self) -> u32 {
        u32::MAX >> self.column_bits
    }

    pub fn place(&self, column_code: u32) -> Place {
        let at = |base: u32| (column_code - base) as usize;
        if column_code < self.header_bits {
            Place::HeaderWide(at(0))
        } else if column_code < self.block_wides {
            Place::HeaderBit(at(self.header_bits))
        } else if column_code < self.block_bits {
            Place::BlockWide(at(self.block_wides))
        } else {
            Place::BlockBit(at(self.block_bits))
        }
    }
}

impl Rows {
    /// The terms of a row: (dictionary index, column code).
    pub fn terms(&self, row: usize, codes: &Codes) -> impl Iterator<Item = (u32, u32)> + '_ {
        let (column_bits, escape) = (codes.column_bits, codes.escape());
        let range = self.offsets[row] as usize..self.offsets[row + 1] as usize;
        let mut words = self.words[range].iter();
        std::iter::from_fn(move || {
            let word = *words.next()?;
            let code = word >> column_bits;
            let coefficient = if code == escape { *words.next()? } else { code };
            Some((coefficient, word & ((1 << column_bits) - 1)))
        })
    }
}

/// A compiled circuit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compiled {
    pub shape: Shape,
    pub codes: Codes,
    /// Distinct nonzero coefficients, most frequent first.
    pub coefficients: Vec<Scalar>,
    pub header: Part,
    pub block: Part,
}

/// One of the queries of the SRS that follow the columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueryName {
    L,
    A,
    B,
}

impl Part {
    pub fn query(&self, name: QueryName) -> &Query {
        match name {
            QueryName::L => &self.l,
            QueryName::A => &self.a_query,
            QueryName::B => &self.b_query,
        }
    }
}

impl Compiled {
    /// Part 0 is the header, part k + 1 is block k.
    pub fn part(&self, part: usize) -> &Part {
        if part == 0 { &self.header } else { &self.block }
    }

    /// Points of a query that belong to boolean columns, and to wide ones. In the arena a query
    /// is `[bits of part 0, bits of part 1, ..][wides of part 0, wides of part 1, ..]`.
    pub fn query_len(&self, name: QueryName) -> (usize, usize) {
        let (header, block) = (self.header.query(name), self.block.query(name));
        let repeats = self.shape.repeats;
        (
            header.bits.count + repeats * block.bits.count,
            header.wides.count + repeats * block.wides.count,
        )
    }

    /// Index of the first boolean and of the first wide point of a part within its query's
    /// boolean points and wide points.
    pub fn query_first(&self, name: QueryName, part: usize) -> (usize, usize) {
        if part == 0 {
            return (0, 0);
        }
        let (header, block) = (self.header.query(name), self.block.query(name));
        (
            header.bits.count + (part - 1) * block.bits.count,
            header.wides.count + (part - 1) * block.wides.count,
        )
    }

    /// Bytes of heap that the compiled form keeps.
    pub fn bytes(&self) -> usize {
        fn rows(rows: &Rows) -> usize {
            4 * (rows.offsets.len() + rows.words.len())
        }
        fn selection(selection: &Selection) -> usize {
            8 * selection.words.len() + 4 * selection.rank.len()
        }
        fn part(part: &Part) -> usize {
            let queries: usize = [&part.l, &part.a_query, &part.b_query]
                .iter()
                .map(|query| selection(&query.bits) + selection(&query.wides))
                .sum();
            rows(&part.a) + rows(&part.b) + rows(&part.c) + 8 * part.boolean.len() + queries
        }
        part(&self.header) + part(&self.block) + 32 * self.coefficients.len()
    }
}
