//! The order of a query's points in the file, and where each belongs.
//!
//! In the file a query holds first its inputs, in global order, then its aux variables in order of
//! allocation, part by part. In the slot, and so in the arena, boolean and wide columns are apart.
//! An [`Order`] walks the file's order and tells both places, without a table per point.

use crate::circuit::compiled::{Compiled, Part, Query, QueryName, Selection};
use crate::circuit::shape::PartShape;

/// Aux variables of a part that one unit of work covers.
pub const UNIT: usize = 4096;

/// The query's variables in one kind of part.
struct PartOrder {
    /// Inputs that have a point.
    inputs: usize,
    /// Over the aux variables in order of allocation: which are boolean?
    boolean: Selection,
    /// Over the same: which have a point?
    dense: Selection,
}

/// The file order of one query.
pub struct Order<'a> {
    compiled: &'a Compiled,
    name: QueryName,
    header: PartOrder,
    block: PartOrder,
}

/// A point's variable: its part, and its column in that part: a wide column is its entry in the
/// part's wides, a boolean column the part's `wide_len` plus its bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    pub part: usize,
    pub column: usize,
}

impl<'a> Order<'a> {
    pub fn new(compiled: &'a Compiled, name: QueryName) -> Self {
        let part = |part: &Part, shape| PartOrder::new(part, shape, part.query(name));
        Order {
            compiled,
            name,
            header: part(&compiled.header, &compiled.shape.header),
            block: part(&compiled.block, &compiled.shape.block),
        }
    }

    fn part(&self, part: usize) -> &PartOrder {
        if part == 0 { &self.header } else { &self.block }
    }

    fn repeats(&self) -> usize {
        self.compiled.shape.repeats
    }

    /// Points of the query, as [`Compiled::query_len`] counts them.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        let points = |part: &PartOrder| part.inputs + part.dense.count;
        points(&self.header) + self.repeats() * points(&self.block)
    }

    /// Units of work: per part one for its inputs, then one per [`UNIT`] aux variables.
    pub fn units(&self) -> usize {
        let shape = &self.compiled.shape;
        units_of(&shape.header) + self.repeats() * units_of(&shape.block)
    }

    /// Part and number within the part of a unit.
    fn unit(&self, unit: usize) -> (usize, usize) {
        let shape = &self.compiled.shape;
        let header = units_of(&shape.header);
        match unit.checked_sub(header) {
            None => (0, unit),
            Some(rest) => (1 + rest / units_of(&shape.block), rest % units_of(&shape.block)),
        }
    }

    /// Aux variables that a unit covers; the unit 0 of a part is its inputs.
    fn aux(&self, part: usize, number: usize) -> std::ops::Range<usize> {
        let aux = self.compiled.shape.part(part).aux();
        ((number - 1) * UNIT).min(aux)..(number * UNIT).min(aux)
    }

    /// The points of a unit: a range of the query's points in the file.
    pub fn points(&self, unit: usize) -> std::ops::Range<usize> {
        let (part, number) = self.unit(unit);
        let order = self.part(part);
        let before = |header: usize, block: usize| match part {
            0 => 0,
            _ => header + (part - 1) * block,
        };
        if number == 0 {
            let first = before(self.header.inputs, self.block.inputs);
            return first..first + order.inputs;
        }
        let first = self.header.inputs
            + self.repeats() * self.block.inputs
            + before(self.header.dense.count, self.block.dense.count);
        let aux = self.aux(part, number);
        first + rank(&order.dense, aux.start)..first + rank(&order.dense, aux.end)
    }

    /// Calls `each(column, place)` for every point of a unit in the order of the file; the place
    /// is the point's index in the query's region of the arena: bits, then wides.
    pub fn walk(&self, unit: usize, mut each: impl FnMut(Column, usize)) {
        let (part, number) = self.unit(unit);
        let order = self.part(part);
        let shape = self.compiled.shape.part(part);
        let query = self.compiled.part(part).query(self.name);
        let (first_bit, first_wide) = self.compiled.query_first(self.name, part);
        let first_wide = self.compiled.query_len(self.name).0 + first_wide;
        if number == 0 {
            let chosen = (0..shape.inputs).filter(|&i| query.wides.contains(i));
            for (k, column) in chosen.enumerate() {
                each(Column { part, column }, first_wide + k);
            }
            return;
        }
        let aux = self.aux(part, number);
        let mut bit = rank(&order.boolean, aux.start);
        let mut wide = shape.inputs + aux.start - bit;
        let mut bit_place = first_bit + rank(&query.bits, bit);
        let mut wide_place = first_wide + rank(&query.wides, wide);
        for j in aux {
            let dense = order.dense.contains(j);
            if order.boolean.contains(j) {
                if dense {
                    each(Column { part, column: shape.wide_len() + bit }, bit_place);
                    bit_place += 1;
                }
                bit += 1;
            } else {
                if dense {
                    each(Column { part, column: wide }, wide_place);
                    wide_place += 1;
                }
                wide += 1;
            }
        }
    }
}

impl PartOrder {
    fn new(part: &Part, shape: &PartShape, query: &Query) -> Self {
        let boolean = Selection::new(part.boolean.clone());
        let mut dense = vec![0u64; shape.aux().div_ceil(64)];
        let (mut bit, mut wide) = (0, shape.inputs);
        for j in 0..shape.aux() {
            let (selection, position) = if boolean.contains(j) {
                (&query.bits, &mut bit)
            } else {
                (&query.wides, &mut wide)
            };
            dense[j / 64] |= u64::from(selection.contains(*position)) << (j % 64);
            *position += 1;
        }
        let dense = Selection::new(dense);
        let inputs = rank(&query.wides, shape.inputs);
        assert_eq!(
            inputs + dense.count,
            query.bits.count + query.wides.count,
            "a query chooses variables, not paddings"
        );
        PartOrder { inputs, boolean, dense }
    }
}

/// Units of one part.
fn units_of(shape: &PartShape) -> usize {
    1 + shape.aux().div_ceil(UNIT)
}

/// Chosen positions before `position`.
fn rank(selection: &Selection, position: usize) -> usize {
    match selection.words.get(position / 64) {
        Some(word) => {
            let below = word & ((1u64 << (position % 64)) - 1);
            selection.rank[position / 64] as usize + below.count_ones() as usize
        }
        None => selection.count,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::srs::testing::Spec;

    /// All points in file order by a loop that knows nothing of ranks.
    fn naive(compiled: &Compiled, name: QueryName) -> Vec<(Column, usize)> {
        let shape = &compiled.shape;
        let mut places = std::collections::HashMap::new();
        for wide in [false, true] {
            for part in 0..shape.parts() {
                let query = compiled.part(part).query(name);
                let selection = if wide { &query.wides } else { &query.bits };
                for position in 0..selection.words.len() * 64 {
                    if selection.contains(position) {
                        places.insert((part, wide, position), places.len());
                    }
                }
            }
        }
        let mut points = Vec::new();
        for part in 0..shape.parts() {
            for i in 0..shape.part(part).inputs {
                if let Some(&place) = places.get(&(part, true, i)) {
                    points.push((Column { part, column: i }, place));
                }
            }
        }
        for part in 0..shape.parts() {
            let (mut bit, mut wide) = (0, shape.part(part).inputs);
            for j in 0..shape.part(part).aux() {
                let is_bit = compiled.part(part).boolean[j / 64] >> (j % 64) & 1 == 1;
                let position = if is_bit { &mut bit } else { &mut wide };
                let offset = if is_bit { shape.part(part).wide_len() } else { 0 };
                if let Some(&place) = places.get(&(part, !is_bit, *position)) {
                    points.push((Column { part, column: offset + *position }, place));
                }
                *position += 1;
            }
        }
        points
    }

    fn check(spec: &Spec) {
        let compiled = spec.compile();
        for name in [QueryName::L, QueryName::A, QueryName::B] {
            let order = Order::new(&compiled, name);
            let (bits, wides) = compiled.query_len(name);
            assert_eq!(order.len(), bits + wides);
            let mut got = vec![None; order.len()];
            for unit in 0..order.units() {
                let mut file = order.points(unit);
                order.walk(unit, |column, place| {
                    let index = file.next().expect("no more points than the range says");
                    assert!(got[index].replace((column, place)).is_none());
                });
                assert!(file.is_empty(), "as many points as the range says");
            }
            let got: Vec<_> = got.into_iter().map(Option::unwrap).collect();
            assert_eq!(got, naive(&compiled, name));
        }
    }

    #[test]
    fn the_walk_is_the_naive_loop() {
        for (seed, (aux, block, repeats)) in
            [(1, 0, 0), (64, 0, 0), (63, 65, 2), (200, 511, 3), (UNIT, UNIT + 1, 2), (5, 9000, 1)]
                .into_iter()
                .enumerate()
        {
            check(&Spec::random(seed as u64, aux, block, repeats));
        }
    }
}
