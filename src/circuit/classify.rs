//! Which columns the rows force to be 0 or 1.
//!
//! A column is boolean by a row (1 - x) * x = 0, or if a short row defines it by columns that are
//! boolean already and every assignment of these gives 0 or 1: that is what xor, and, and-not,
//! nor and ch rows do. A maj row (2 bc - b - c) * a = bc - maj does so only for assignments with
//! bc = b and c, which the row before it says; so the row before is kept and assignments that it
//! forbids do not count. Rows are seen once, in row order.

use super::record::Terms;

/// The columns of a row are input indices with this bit set, or aux indices without it.
pub(super) const INPUT: u32 = 1 << 31;
/// The column of the input ONE.
const ONE: u32 = INPUT;

/// Coefficients by their first numbers in the recorder's dictionary.
const SMALL: [i32; 4] = [1, -1, 2, -2];

const MAX_TERMS: usize = 5;
/// A row over more columns than that defines nothing for us.
const MAX_VARIABLES: usize = 4;
const LANES: usize = 1 << MAX_VARIABLES;

/// A set of column numbers that grows with the circuit.
#[derive(Default)]
pub(super) struct Bits {
    pub words: Vec<u64>,
}

impl Bits {
    pub fn grow_to(&mut self, len: usize) {
        self.words.resize(len.div_ceil(64), 0);
    }

    pub fn insert(&mut self, at: usize) {
        self.words[at / 64] |= 1 << (at % 64);
    }

    pub fn contains(&self, at: usize) -> bool {
        self.words[at / 64] >> (at % 64) & 1 == 1
    }
}

/// A linear combination with coefficients of one digit, at most [`MAX_TERMS`] long.
#[derive(Clone, Copy, Default)]
struct Short {
    len: usize,
    terms: [(u32, i32); MAX_TERMS],
}

impl Short {
    fn new(terms: Terms) -> Option<Self> {
        if terms.columns.len() > MAX_TERMS {
            return None;
        }
        let mut short = Short { len: terms.columns.len(), ..Short::default() };
        let pairs = terms.columns.iter().zip(terms.coefficients);
        for (slot, (&column, &number)) in short.terms.iter_mut().zip(pairs) {
            *slot = (column, *SMALL.get(usize::from(number))?);
        }
        Some(short)
    }

    fn terms(&self) -> &[(u32, i32)] {
        &self.terms[..self.len]
    }
}

/// A row whose terms are all short.
#[derive(Clone, Copy)]
struct ShortRow {
    a: Short,
    b: Short,
    c: Short,
}

/// Columns that are boolean, and what the last row said.
#[derive(Default)]
pub(super) struct Classes {
    pub boolean: Bits,
    /// The last row, if it defined a boolean column.
    last: Option<ShortRow>,
}

impl Classes {
    /// Takes the next row into account.
    pub fn row(&mut self, a: Terms, b: Terms, c: Terms) {
        if let Some(column) = boolean_row(&a, &b, &c).or_else(|| boolean_row(&b, &a, &c)) {
            self.boolean.insert(column as usize);
            self.last = None;
            return;
        }
        let row = (|| Some(ShortRow { a: Short::new(a)?, b: Short::new(b)?, c: Short::new(c)? }))();
        self.last = row.and_then(|row| {
            let column = self.defined(&row)?;
            self.boolean.insert(column as usize);
            Some(row)
        });
    }

    fn is_boolean(&self, column: u32) -> bool {
        column & INPUT == 0 && self.boolean.contains(column as usize)
    }

    /// The column that the row newly forces to be 0 or 1.
    fn defined(&self, row: &ShortRow) -> Option<u32> {
        let mut variables = Variables::default();
        for &(column, _) in row.a.terms().iter().chain(row.b.terms()) {
            if column != ONE && !(self.is_boolean(column) && variables.insert(column)) {
                return None;
            }
        }
        let mut result = None;
        for &(column, coefficient) in row.c.terms() {
            if column == ONE || (self.is_boolean(column) && variables.insert(column)) {
                continue;
            }
            let free = column & INPUT == 0 && !self.is_boolean(column);
            if !free || coefficient.abs() != 1 || result.is_some() {
                return None;
            }
            result = Some((column, coefficient));
        }
        let (result, sign) = result?;
        let (a, b, c) = variables.row(row);
        let allowed = self.last.as_ref().and_then(|last| variables.allowed(last));
        let forced = (0..LANES).all(|lane| {
            let value = sign * (a[lane] * b[lane] - c[lane]);
            value == 0 || value == 1 || allowed.is_some_and(|allowed| !allowed[lane])
        });
        forced.then_some(result)
    }
}

/// Is it x * (1 - x) = 0, up to signs? Then which column is x?
fn boolean_row(x: &Terms, one_minus_x: &Terms, c: &Terms) -> Option<u32> {
    let (&[column], &[one, same]) = (x.columns, one_minus_x.columns) else { return None };
    let opposite = matches!(one_minus_x.coefficients, [0, 1] | [1, 0]);
    let fits = c.columns.is_empty() && one == ONE && same == column && column & INPUT == 0;
    (fits && opposite).then_some(column)
}

/// At most four boolean columns; lane i stands for the assignment with the bits of i.
#[derive(Default)]
struct Variables {
    len: usize,
    columns: [u32; MAX_VARIABLES],
}

impl Variables {
    fn position(&self, column: u32) -> Option<usize> {
        self.columns[..self.len].iter().position(|&known| known == column)
    }

    /// False if there is no room.
    fn insert(&mut self, column: u32) -> bool {
        if self.position(column).is_none() {
            if self.len == MAX_VARIABLES {
                return false;
            }
            self.columns[self.len] = column;
            self.len += 1;
        }
        true
    }

    /// The value under every assignment; columns that are not among the variables count nothing.
    fn lanes(&self, short: &Short) -> [i32; LANES] {
        let mut sum = [0; LANES];
        for &(column, coefficient) in short.terms() {
            if column == ONE {
                sum.iter_mut().for_each(|value| *value += coefficient);
            } else if let Some(position) = self.position(column) {
                for (lane, value) in sum.iter_mut().enumerate() {
                    *value += coefficient * (lane >> position & 1) as i32;
                }
            }
        }
        sum
    }

    fn row(&self, row: &ShortRow) -> ([i32; LANES], [i32; LANES], [i32; LANES]) {
        (self.lanes(&row.a), self.lanes(&row.b), self.lanes(&row.c))
    }

    /// The assignments under which another row holds, if it is over these variables alone.
    fn allowed(&self, other: &ShortRow) -> Option<[bool; LANES]> {
        let mut terms = other.a.terms().iter().chain(other.b.terms()).chain(other.c.terms());
        if !terms.all(|&(column, _)| column == ONE || self.position(column).is_some()) {
            return None;
        }
        let (a, b, c) = self.row(other);
        Some(std::array::from_fn(|lane| a[lane] * b[lane] == c[lane]))
    }
}
