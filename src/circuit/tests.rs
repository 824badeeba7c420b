//! Counts of formats.md section 8, classes, and what the compiler refuses.

pub(crate) mod replay;

use std::sync::OnceLock;

use bellperson::{Circuit, ConstraintSystem, LinearCombination, SynthesisError, Variable};
use blstrs::Scalar;
use ff::Field;

use super::compile::compile_circuit;
use super::compiled::{Compiled, QueryName, Rows};
use super::kinds;

/// in, aux, rows, lg, nnz A, nnz B, nnz C, dense A, dense B.
type Counts = [usize; 9];

fn counts(compiled: &Compiled) -> Counts {
    let shape = &compiled.shape;
    let terms = |rows: &Rows| -> usize {
        (0..rows.offsets.len().saturating_sub(1))
            .map(|row| rows.terms(row, &compiled.codes).count())
            .sum()
    };
    let (header, block) = (&compiled.header, &compiled.block);
    let nnz = |header, block| terms(header) + shape.repeats * terms(block);
    let points = |name| {
        let (bits, wides) = compiled.query_len(name);
        bits + wides
    };
    assert_eq!(points(QueryName::L), shape.aux());
    [
        shape.inputs(),
        shape.aux(),
        shape.rows(),
        shape.log_domain() as usize,
        nnz(&header.a, &block.a),
        nnz(&header.b, &block.b),
        nnz(&header.c, &block.c),
        points(QueryName::A) - shape.inputs(),
        // Of the inputs, ONE alone is dense in B.
        points(QueryName::B) - 1,
    ]
}

fn check(name: &str, expected: Counts) -> Compiled {
    let compiled = kinds::compile(name.parse().unwrap()).unwrap();
    check_compiled(name, &compiled, expected);
    compiled
}

fn check_compiled(name: &str, compiled: &Compiled, expected: Counts) {
    assert_eq!(counts(compiled), expected, "{name}");
    assert!(compiled.header.b_query.wides.contains(0), "{name}: ONE is dense in B");
}

/// Compiled once for all tests.
pub(crate) fn porep_2k() -> &'static Compiled {
    static COMPILED: OnceLock<Compiled> = OnceLock::new();
    COMPILED.get_or_init(|| kinds::compile("porep-2k".parse().unwrap()).unwrap())
}

fn wides(compiled: &Compiled) -> usize {
    let shape = &compiled.shape;
    shape.header.wides + shape.repeats * shape.block.wides
}

#[test]
fn porep_2k_counts() {
    let compiled =
        check("porep-2k", [40, 2685673, 2687921, 22, 6420965, 2689006, 5824682, 2674908, 685521]);
    assert_eq!(wides(&compiled), 43_806);
    assert_eq!(compiled.coefficients.len(), 1526);
    assert_eq!(compiled.coefficients[..2], [Scalar::ONE, -Scalar::ONE]);
    assert!(compiled.shape.slot_bytes() <= 2 << 20, "a slot for 2 KiB takes at most 2 MiB");
}

#[test]
fn porep_8m_counts() {
    check("porep-8m", [40, 3842449, 3844929, 22, 9388413, 3847886, 8234882, 3814996, 1011289]);
}

#[test]
fn post_2k_counts() {
    check("window-2k", [23, 22128, 21866, 15, 150262, 22230, 27456, 16770, 16028]);
    check("winning-2k", [133, 91674, 90750, 17, 621852, 92070, 113652, 69300, 66792]);
}

/// Of A, formats.md counts one term more: its coefficient is zero, so it is not kept.
#[test]
fn update_2k_counts() {
    let compiled =
        check("update-2k", [5, 1703569, 1705039, 21, 4030887, 1706537, 3616648, 1697189, 444403]);
    assert_eq!(compiled.shape.repeats, 0);
    assert_eq!(compiled.block, Default::default());
}

#[cfg(feature = "long-tests")]
#[test]
fn other_counts() {
    for (name, expected) in [
        ("porep-512m", [40, 4420837, 4423433, 23, 10872137, 4427326, 9439982, 4385040, 1174173]),
        (
            "porep-64g",
            [328, 131076643, 131185849, 27, 311892197, 131235764, 284512534, 130637542, 33386943],
        ),
        ("window-8m", [23, 65088, 64266, 16, 442262, 65350, 80736, 49330, 47148]),
        ("window-512m", [23, 86568, 85466, 17, 588262, 86910, 107376, 65610, 62708]),
        (
            "window-32g",
            [25840, 126902376, 125279217, 27, 862390719, 127398015, 157401792, 96179805, 91925766],
        ),
        (
            "window-64g",
            [25301, 131500200, 129887900, 27, 893299300, 132008500, 163088400, 99624500, 95413200],
        ),
        ("winning-8m", [133, 233442, 230670, 18, 1585452, 234366, 289476, 176748, 169488]),
        ("winning-512m", [133, 304326, 300630, 19, 2067252, 305514, 377388, 230472, 220836]),
        ("winning-32g", [133, 375210, 370590, 19, 2549052, 376662, 465300, 284196, 272184]),
        ("winning-64g", [133, 396000, 391314, 19, 2689368, 397518, 491040, 299838, 287694]),
    ] {
        check(name, expected);
    }
}

#[cfg(feature = "long-tests")]
#[test]
fn porep_32g_counts() {
    let compiled = check(
        "porep-32g",
        [328, 130169893, 130278541, 27, 309404723, 130327340, 282656500, 129753292, 33112281],
    );
    assert_eq!(wides(&compiled), 1_699_102);
    assert_eq!(compiled.coefficients.len(), 2466);
    assert!(compiled.bytes() < 250 << 20, "{} bytes", compiled.bytes());
    let wides = |name| compiled.query_len(name).1;
    assert_eq!(wides(QueryName::A) - compiled.shape.inputs(), 1_288_261);
    assert_eq!(wides(QueryName::B) - 1, 1_229_274);
}

/// Of A, formats.md counts one term more: its coefficient is zero, so it is not kept.
#[cfg(feature = "long-tests")]
#[test]
fn update_counts() {
    for (name, expected) in [
        ("update-8m", [5, 9998039, 10007503, 24, 23284273, 10015181, 21302734, 9981015, 2567921]),
        (
            "update-512m",
            [5, 57401314, 57450479, 26, 135362847, 57500527, 121971144, 57212317, 14916879],
        ),
        (
            "update-32g",
            [5, 80978488, 81049499, 27, 190374907, 81118127, 172187492, 80743581, 20983607],
        ),
        (
            "update-64g",
            [5, 84931220, 85006101, 27, 199699027, 85077653, 180585650, 84682725, 22012683],
        ),
    ] {
        let compiled = check(name, expected);
        if name == "update-32g" {
            assert_eq!(wides(&compiled), 965_038);
        }
    }
}

/// Challenge 1 is challenge 0 shifted, also where no real input is at hand.
#[cfg(feature = "long-tests")]
#[test]
fn large_blocks_repeat() {
    use filecoin_proofs::constants::{SectorShapeSub8, SectorShapeTop2};
    use std::marker::PhantomData;

    for name in ["porep-32g", "porep-64g", "window-32g", "winning-64g"] {
        let id = name.parse().unwrap();
        let mut compiled = kinds::compile(id).unwrap();
        compiled.shape.repeats = 2;
        let mut replay = replay::Replay::new(&compiled);
        let mut cs = super::synthesis::Synthesis::new(&mut replay);
        let (blocks, cs) = (2, &mut cs);
        match name.ends_with("32g") {
            true => {
                kinds::Blank { id, blocks, tree: PhantomData::<SectorShapeSub8> }.synthesize(cs)
            }
            false => {
                kinds::Blank { id, blocks, tree: PhantomData::<SectorShapeTop2> }.synthesize(cs)
            }
        }
        .unwrap();
        replay.finish();
    }
}

#[test]
fn compiling_twice_gives_the_same() {
    let id = "window-2k".parse().unwrap();
    assert_eq!(kinds::compile(id).unwrap(), kinds::compile(id).unwrap());
}

/// Rows over four bits, two of them by a row of their own, and free columns.
#[derive(Clone, Copy)]
struct Rowed(fn(&mut Rower));

/// (coefficient, column) pairs.
type Combination = [(i64, Variable)];

struct Rower<'a> {
    one: Variable,
    vars: Vec<Variable>,
    enforce: &'a mut dyn FnMut([&Combination; 3]),
}

impl Rower<'_> {
    /// A * B = C, each a list of (coefficient, column); column -1 is ONE.
    fn row(&mut self, a: &[(i64, isize)], b: &[(i64, isize)], c: &[(i64, isize)]) {
        let variable = |&(coefficient, column): &(i64, isize)| {
            let variable = usize::try_from(column).map_or(self.one, |column| self.vars[column]);
            (coefficient, variable)
        };
        let [a, b, c] = [a, b, c].map(|terms| terms.iter().map(variable).collect::<Vec<_>>());
        (self.enforce)([&a, &b, &c]);
    }

    fn bit(&mut self, column: isize) {
        self.row(&[(1, -1), (-1, column)], &[(1, column)], &[]);
    }
}

impl Circuit<Scalar> for Rowed {
    fn synthesize<CS: ConstraintSystem<Scalar>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
        let vars = (0..8)
            .map(|_| cs.alloc(|| "", || Err(SynthesisError::AssignmentMissing)))
            .collect::<Result<Vec<_>, _>>()?;
        let sum = |terms: &Combination| {
            terms.iter().fold(LinearCombination::zero(), |sum, &(coefficient, variable)| {
                let size = Scalar::from(coefficient.unsigned_abs());
                sum + (if coefficient < 0 { -size } else { size }, variable)
            })
        };
        let mut enforce = |[a, b, c]: [&Combination; 3]| {
            cs.enforce(|| "", |_| sum(a), |_| sum(b), |_| sum(c));
        };
        (self.0)(&mut Rower { one: CS::one(), vars, enforce: &mut enforce });
        Ok(())
    }
}

/// The boolean columns among the eight.
fn booleans(rows: fn(&mut Rower)) -> Vec<usize> {
    let compiled = compile_circuit(Rowed(rows), None::<(Rowed, usize)>).unwrap();
    (0..8).filter(|column| compiled.header.boolean[0] >> column & 1 == 1).collect()
}

#[test]
fn columns_that_rows_force() {
    let swapped = |r: &mut Rower| r.row(&[(1, 3)], &[(1, -1), (-1, 3)], &[]);
    assert_eq!(booleans(swapped), [3]);
    let negative = |r: &mut Rower| r.row(&[(-1, -1), (1, 3)], &[(-1, 3)], &[]);
    assert_eq!(booleans(negative), [3]);
    assert_eq!(
        booleans(|r| {
            r.bit(0);
            r.bit(1);
            r.row(&[(2, 0)], &[(1, 1)], &[(1, 0), (1, 1), (-1, 2)]); // xor
            r.row(&[(1, 0)], &[(1, 2)], &[(1, 3)]); // and
            r.row(&[(1, 0)], &[(1, -1), (-1, 2)], &[(1, 4)]); // and not
            r.row(&[(1, -1), (-1, 0)], &[(1, -1), (-1, 2)], &[(1, 5)]); // nor
            r.row(&[(1, 1), (-1, 2)], &[(1, 0)], &[(1, 6), (-1, 2)]); // ch
            r.row(&[(2, 0)], &[(1, 0)], &[(2, 0), (-1, 7)]); // x xor x
        }),
        [0, 1, 2, 3, 4, 5, 6, 7]
    );
}

/// (2 bc - b - c) * a = bc - maj.
fn majority(r: &mut Rower, [a, b, c, bc, maj]: [isize; 5]) {
    r.row(&[(2, bc), (-1, b), (-1, c)], &[(1, a)], &[(1, bc), (-1, maj)]);
}

#[test]
fn majority_needs_the_row_before() {
    fn bits(r: &mut Rower) {
        (0..4).for_each(|column| r.bit(column));
    }
    assert_eq!(
        booleans(|r| {
            bits(r);
            r.row(&[(1, 1)], &[(1, 2)], &[(1, 4)]);
            majority(r, [0, 1, 2, 4, 5]);
        }),
        [0, 1, 2, 3, 4, 5]
    );
    // The product is a bit of its own, or another product.
    assert_eq!(
        booleans(|r| {
            bits(r);
            majority(r, [0, 1, 2, 3, 5]);
        }),
        [0, 1, 2, 3]
    );
    assert_eq!(
        booleans(|r| {
            bits(r);
            r.row(&[(1, 1)], &[(1, -1), (-1, 2)], &[(1, 4)]);
            majority(r, [0, 1, 2, 4, 5]);
        }),
        [0, 1, 2, 3, 4]
    );
}

#[test]
fn columns_that_rows_leave_free() {
    // x y = 0, x (2 - x) = 0, x (1 + x) = 0, x (1 - x) = y, x (1 - x - y) = 0.
    assert!(booleans(|r| r.row(&[(1, -1), (-1, 0)], &[(1, 1)], &[])).is_empty());
    assert!(booleans(|r| r.row(&[(2, -1), (-1, 0)], &[(1, 0)], &[])).is_empty());
    assert!(booleans(|r| r.row(&[(1, -1), (1, 0)], &[(1, 0)], &[])).is_empty());
    assert!(booleans(|r| r.row(&[(1, -1), (-1, 0)], &[(1, 0)], &[(1, 1)])).is_empty());
    assert!(booleans(|r| r.row(&[(1, -1), (-1, 0), (-1, 1)], &[(1, 0)], &[])).is_empty());
    // An operand is no bit, or becomes one only later.
    assert_eq!(
        booleans(|r| {
            r.bit(0);
            r.row(&[(1, 0)], &[(1, 1)], &[(1, 2)]);
            r.bit(1);
        }),
        [0, 1]
    );
    // Sums, differences, multiples and results on the left.
    assert_eq!(
        booleans(|r| {
            r.bit(0);
            r.bit(1);
            r.row(&[(1, 0), (1, 1)], &[(1, -1)], &[(1, 2)]);
            r.row(&[(1, 0), (-1, 1)], &[(1, -1)], &[(1, 3)]);
            r.row(&[(1, 0)], &[(1, 1)], &[(2, 4)]);
            r.row(&[(1, 5)], &[(1, 1)], &[(1, 0)]);
            r.row(&[(1, 0)], &[(1, 1)], &[(1, 6), (1, 7)]);
        }),
        [0, 1]
    );
}

#[test]
fn a_circuit_that_does_not_begin_with_its_header_is_refused() {
    let header = Rowed(|r| r.bit(0));
    for (one, fits) in [
        (Rowed(|r| (0..2).for_each(|column| r.bit(column))), true),
        (Rowed(|r| r.bit(1)), false),
        (Rowed(|_| {}), false),
        (Rowed(|r| r.row(&[(1, -1), (-1, 0)], &[(2, 0)], &[])), false),
    ] {
        assert_eq!(compile_circuit(header, Some((one, 2))).is_ok(), fits);
    }
}
