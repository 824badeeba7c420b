//! The columns of the Poseidon circuit, with the published constants.
//!
//! The circuit allocates what its S-boxes see: the input of each S-box unless it is a variable
//! already (those of the first round are the preimage; the tag is a constant and its first S-box
//! none), then l^2, l^4 and l^5 with the next round's key; after the last round the digest. Sums
//! between the rounds are linear and give no columns.

use blstrs::Scalar;
use ff::Field;
use filecoin_hashers::{
    POSEIDON_CONSTANTS_2, POSEIDON_CONSTANTS_4, POSEIDON_CONSTANTS_8, POSEIDON_CONSTANTS_11,
};

use super::bits::Wides;
use super::field::dot;

/// Full rounds before the partial ones, and after them.
const HALF_ROUNDS: usize = 4;

/// The constants of one width, laid out in the order in which they are used.
struct Table<const WIDTH: usize> {
    /// The tag after the first S-box.
    tag: Scalar,
    /// Added to the preimage before the first S-boxes.
    first_keys: [Scalar; WIDTH],
    /// Added after the S-boxes of all full rounds but the last.
    keys: [[Scalar; WIDTH]; 2 * HALF_ROUNDS - 1],
    /// Column j makes element j of the product.
    mix: [[Scalar; WIDTH]; WIDTH],
    /// Taken in place of `mix` before the first partial round.
    first_partial_mix: [[Scalar; WIDTH]; WIDTH],
    partial: Vec<Partial<WIDTH>>,
}

/// A partial round: the first element becomes the product with `column`, and `row[j]` times the
/// first element is added to element j.
struct Partial<const WIDTH: usize> {
    key: Scalar,
    column: [Scalar; WIDTH],
    row: [Scalar; WIDTH],
}

/// Tables of all arities that the circuit hashes. They are made once, at start.
pub struct Poseidon {
    two: Table<3>,
    four: Table<5>,
    eight: Table<9>,
    eleven: Table<12>,
}

/// A table from the published constants, whose type is not named here.
macro_rules! table {
    ($constants:expr) => {{
        let constants = &*$constants;
        assert_eq!(constants.full_rounds, 2 * HALF_ROUNDS);
        let sparse = constants.sparse_matrixes.iter().map(|m| (&m.w_hat[..], &m.v_rest[..]));
        Table::new(
            constants.domain_tag,
            &constants.compressed_round_constants,
            &constants.mds_matrices.m,
            &constants.pre_sparse_matrix,
            sparse,
        )
    }};
}

impl Poseidon {
    /// With the published constants, which are computed on the first call.
    pub fn published() -> Self {
        Poseidon {
            two: table!(POSEIDON_CONSTANTS_2),
            four: table!(POSEIDON_CONSTANTS_4),
            eight: table!(POSEIDON_CONSTANTS_8),
            eleven: table!(POSEIDON_CONSTANTS_11),
        }
    }

    /// Hashes 2, 4, 8 or 11 elements, writes the columns and gives the digest.
    pub fn hash(&self, wides: &mut Wides, preimage: &[Scalar]) -> Scalar {
        match preimage.len() {
            2 => self.two.hash(wides, preimage),
            4 => self.four.hash(wides, preimage),
            8 => self.eight.hash(wides, preimage),
            11 => self.eleven.hash(wides, preimage),
            arity => panic!("the circuit hashes no {arity} elements"),
        }
    }

    /// What the tables take.
    pub fn bytes(&self) -> usize {
        self.two.bytes() + self.four.bytes() + self.eight.bytes() + self.eleven.bytes()
    }
}

impl<const WIDTH: usize> Table<WIDTH> {
    fn new<'a>(
        tag: Scalar,
        keys: &[Scalar],
        mix: &[Vec<Scalar>],
        first_partial_mix: &[Vec<Scalar>],
        sparse: impl Iterator<Item = (&'a [Scalar], &'a [Scalar])>,
    ) -> Self {
        let row = |at: usize| -> [Scalar; WIDTH] { std::array::from_fn(|i| keys[at + i]) };
        let columns = |matrix: &[Vec<Scalar>]| -> [[Scalar; WIDTH]; WIDTH] {
            std::array::from_fn(|j| std::array::from_fn(|i| matrix[i][j]))
        };
        let partial_keys = &keys[(1 + HALF_ROUNDS) * WIDTH..];
        let partial: Vec<_> = sparse
            .zip(partial_keys)
            .map(|((column, row), key)| Partial {
                key: *key,
                column: std::array::from_fn(|i| column[i]),
                row: std::array::from_fn(|i| if i == 0 { Scalar::ZERO } else { row[i - 1] }),
            })
            .collect();
        let late = (1 + HALF_ROUNDS) * WIDTH + partial.len();
        assert_eq!(keys.len(), late + (HALF_ROUNDS - 1) * WIDTH);
        Table {
            tag: fifth_power(tag + keys[0]) + keys[WIDTH],
            first_keys: row(0),
            keys: std::array::from_fn(|round| match round {
                0..HALF_ROUNDS => row((1 + round) * WIDTH),
                _ => row(late + (round - HALF_ROUNDS) * WIDTH),
            }),
            mix: columns(mix),
            first_partial_mix: columns(first_partial_mix),
            partial,
        }
    }

    fn bytes(&self) -> usize {
        size_of::<Self>() + self.partial.len() * size_of::<Partial<WIDTH>>()
    }

    fn hash(&self, wides: &mut Wides, preimage: &[Scalar]) -> Scalar {
        let mut state = [self.tag; WIDTH];
        for i in 1..WIDTH {
            let sum = preimage[i - 1] + self.first_keys[i];
            state[i] = quintic(wides, sum) + self.keys[0][i];
            wides.push(state[i]);
        }
        state = product(&state, &self.mix);
        for round in 1..HALF_ROUNDS {
            self.full_round(wides, &mut state, Some(&self.keys[round]));
            let last = round == HALF_ROUNDS - 1;
            state = product(&state, if last { &self.first_partial_mix } else { &self.mix });
        }
        for partial in &self.partial {
            wides.push(state[0]);
            let first = quintic(wides, state[0]) + partial.key;
            wides.push(first);
            state[0] = first;
            let mixed = dot(&state, &partial.column);
            for (element, factor) in state.iter_mut().zip(&partial.row).skip(1) {
                *element += first * factor;
            }
            state[0] = mixed;
        }
        for round in HALF_ROUNDS..2 * HALF_ROUNDS {
            self.full_round(wides, &mut state, self.keys.get(round));
            state = product(&state, &self.mix);
        }
        wides.push(state[1]);
        state[1]
    }

    fn full_round(
        &self,
        wides: &mut Wides,
        state: &mut [Scalar; WIDTH],
        keys: Option<&[Scalar; WIDTH]>,
    ) {
        for (i, element) in state.iter_mut().enumerate() {
            wides.push(*element);
            *element = quintic(wides, *element);
            if let Some(keys) = keys {
                *element += keys[i];
            }
            wides.push(*element);
        }
    }
}

fn fifth_power(base: Scalar) -> Scalar {
    base.square().square() * base
}

/// The fifth power; its square and its fourth power are columns.
fn quintic(wides: &mut Wides, base: Scalar) -> Scalar {
    let square = base.square();
    wides.push(square);
    let fourth = square.square();
    wides.push(fourth);
    fourth * base
}

fn product<const WIDTH: usize>(
    state: &[Scalar; WIDTH],
    columns: &[[Scalar; WIDTH]; WIDTH],
) -> [Scalar; WIDTH] {
    std::array::from_fn(|j| dot(state, &columns[j]))
}

#[cfg(test)]
mod tests {
    use filecoin_hashers::poseidon::PoseidonFunction;
    use filecoin_hashers::{HashFunction, PoseidonArity};
    use rand_chacha::ChaCha8Rng;
    use rand_chacha::rand_core::SeedableRng;
    use typenum::{U2, U4, U8, U11};

    use super::*;
    use crate::witness::porep::oracle::Recorder;

    fn check<Arity: 'static + PoseidonArity>(poseidon: &Poseidon, preimage: &[Scalar]) {
        let mut cs = Recorder::default();
        let leaves: Vec<_> = preimage.iter().map(|value| cs.given(*value)).collect();
        let theirs =
            PoseidonFunction::hash_multi_leaf_circuit::<Arity, _>(&mut cs, &leaves, 0).unwrap();
        let digest = cs.compare(|pens| poseidon.hash(&mut pens.wides, preimage));
        assert_eq!(Some(digest), theirs.get_value());
    }

    #[test]
    fn columns_are_those_of_the_gadget() {
        let poseidon = Poseidon::published();
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        let edges = [Scalar::ZERO, Scalar::ONE, -Scalar::ONE];
        for seed in 0..60 {
            let values: Vec<_> = (0..11)
                .map(|i| match seed {
                    0..3 => edges[seed],
                    3..12 => edges[(seed / 3 + i * seed) % 3],
                    _ => Scalar::random(&mut rng),
                })
                .collect();
            check::<U2>(&poseidon, &values[..2]);
            check::<U4>(&poseidon, &values[..4]);
            check::<U8>(&poseidon, &values[..8]);
            check::<U11>(&poseidon, &values);
        }
    }
}
