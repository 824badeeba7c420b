//! Filled witnesses against the published circuits, value by value and row by row.

mod inputs;
mod oracle;
mod small;

use bellperson::SynthesisError;
use blstrs::Scalar;
use ff::Field;

use super::compact::{BadRow, check_rows};
use super::generic::{fill_part, synthesize};
use crate::circuit::compiled::Compiled;
use crate::circuit::kinds;
use crate::circuit::shape::Witness;
use crate::error::Error;
use crate::input::class::Kind;
use crate::input::{Input, Vanilla};

/// Planes full of what must be overwritten.
fn planes(compiled: &Compiled) -> (Vec<Scalar>, Vec<u64>) {
    let shape = &compiled.shape;
    (vec![Scalar::from(7); shape.wide_len()], vec![!0; shape.word_len()])
}

fn fill(input: &Input, compiled: &Compiled, partition: usize) -> (Vec<Scalar>, Vec<u64>) {
    let (mut wides, mut bits) = planes(compiled);
    let shape = &compiled.shape;
    for part in 0..shape.parts() {
        let wides = &mut wides[shape.wide_base(part)..shape.wide_base(part + 1)];
        let bits = &mut bits[shape.word_base(part)..shape.word_base(part + 1)];
        fill_part(input, compiled, partition, part, wides, bits).unwrap();
    }
    (wides, bits)
}

fn witness<'a>(compiled: &'a Compiled, planes: &'a (Vec<Scalar>, Vec<u64>)) -> Witness<'a> {
    Witness { shape: &compiled.shape, wides: &planes.0, bits: &planes.1 }
}

fn paddings_are_zero(compiled: &Compiled, planes: &(Vec<Scalar>, Vec<u64>)) {
    let shape = &compiled.shape;
    for part in 0..shape.parts() {
        let sizes = shape.part(part);
        let wides = &planes.0[shape.wide_base(part)..shape.wide_base(part + 1)];
        assert!(wides[sizes.inputs + sizes.wides..].iter().all(|wide| *wide == Scalar::ZERO));
        let words = &planes.1[shape.word_base(part)..shape.word_base(part + 1)];
        for bit in sizes.bits..64 * words.len() {
            assert_eq!(words[bit / 64] >> (bit % 64) & 1, 0, "part {part}, bit {bit}");
        }
    }
}

fn check(input: &Input) -> [usize; 3] {
    check_with(&kinds::compile(input.circuit).unwrap(), input)
}

/// Fills the first partition and compares rows and values with the whole published circuit.
/// Gives the number of terms with the coefficient zero in A, B and C.
fn check_with(compiled: &Compiled, input: &Input) -> [usize; 3] {
    let planes = fill(input, compiled, 0);
    let witness = witness(compiled, &planes);
    paddings_are_zero(compiled, &planes);
    let blocks = 0..compiled.shape.repeats;
    oracle::compare(compiled, witness, |cs| synthesize(input, 0, blocks, cs))
}

#[test]
fn porep_2k() {
    check_with(crate::circuit::tests::porep_2k(), &inputs::c1("porep-2kib.c1.json"));
}

#[test]
fn porep_16k_sub_tree() {
    check(&inputs::shape("shape-16kib"));
}

#[test]
fn porep_32k_top_tree() {
    check(&inputs::shape("shape-32kib"));
}

#[test]
fn post_2k() {
    check(&inputs::vanilla(Kind::Window, "windowpost-2kib"));
    check(&inputs::vanilla(Kind::Winning, "winningpost-2kib"));
}

#[test]
fn update_2k() {
    let zeros = check(&inputs::vanilla(Kind::Update, "snap-2kib"));
    // The one term more that formats.md counts.
    assert_eq!(zeros, [1, 0, 0]);
}

/// Values alone: the rows of the same circuit are compared above.
fn check_values(compiled: &Compiled, input: &Input, partition: usize) {
    let planes = fill(input, compiled, partition);
    let witness = witness(compiled, &planes);
    assert_eq!(check_rows(compiled, &witness), Ok(()));
    let blocks = 0..compiled.shape.repeats;
    oracle::compare_values(compiled, witness, |cs| synthesize(input, partition, blocks, cs));
}

#[test]
fn a_partition_of_many() {
    let input = inputs::c1("porep-2kib-ni.c1.json");
    check_values(crate::circuit::tests::porep_2k(), &input, 12);
}

#[cfg(feature = "long-tests")]
#[test]
fn every_other_porep() {
    let compiled = crate::circuit::tests::porep_2k();
    let files = ["porep-2kib-v1.c1.json", "porep-2kib-synthetic.c1.json"];
    for file in files.into_iter().chain(["porep-2kib-bare.phase1.json"]) {
        check_values(compiled, &inputs::c1(file), 0);
    }
    let many = inputs::c1("porep-2kib-ni.c1.json");
    for partition in 0..many.partitions() {
        check_values(compiled, &many, partition);
    }
    check(&inputs::c1("porep-8mib.c1.json"));
}

#[test]
fn parts_are_filled_by_different_threads_at_once() {
    let input = inputs::vanilla(Kind::Winning, "winningpost-2kib");
    let compiled = kinds::compile(input.circuit).unwrap();
    let alone = fill(&input, &compiled, 0);
    let mut together = planes(&compiled);
    let shape = compiled.shape;
    std::thread::scope(|scope| {
        let (mut wides, mut bits) = (&mut together.0[..], &mut together.1[..]);
        for part in 0..shape.parts() {
            let (mine, rest) = wides.split_at_mut(shape.part(part).wide_len());
            let (my_bits, other_bits) = bits.split_at_mut(shape.part(part).word_len());
            (wides, bits) = (rest, other_bits);
            let (input, compiled) = (&input, &compiled);
            scope.spawn(move || fill_part(input, compiled, 0, part, mine, my_bits).unwrap());
        }
    });
    assert!(together == alone);
}

#[test]
fn a_wrong_value_breaks_a_row_of_its_part() {
    let input = inputs::vanilla(Kind::Window, "windowpost-2kib");
    let compiled = kinds::compile(input.circuit).unwrap();
    let mut planes = fill(&input, &compiled, 0);
    for part in [1, 2] {
        let wide = compiled.shape.wide_base(part) + compiled.shape.block.inputs;
        planes.0[wide] += Scalar::ONE;
        let bad = check_rows(&compiled, &witness(&compiled, &planes)).unwrap_err();
        assert_eq!(bad.part, part);
        planes.0[wide] -= Scalar::ONE;
        planes.1[compiled.shape.word_base(part)] ^= 1;
        let bad = check_rows(&compiled, &witness(&compiled, &planes)).unwrap_err();
        assert_eq!(bad.part, part);
        planes.1[compiled.shape.word_base(part)] ^= 1;
    }
    assert_eq!(check_rows(&compiled, &witness(&compiled, &planes)), Ok(()));
    let said = BadRow { part: 2, row: 5 }.to_string();
    assert_eq!(said, "row 5 of block 1 does not hold");
}

/// What `fill_part` says of one part.
fn refusal(input: &Input, part: usize) -> String {
    let compiled = kinds::compile(input.circuit).unwrap();
    let (mut wides, mut bits) = planes(&compiled);
    let sizes = compiled.shape.part(part);
    wides.truncate(sizes.wide_len());
    bits.truncate(sizes.word_len());
    let error = fill_part(input, &compiled, 0, part, &mut wides, &mut bits).unwrap_err();
    assert!(matches!(error, Error::Input { .. }));
    error.to_string()
}

#[test]
fn a_vanilla_proof_that_does_not_fit_is_refused_where_it_is() {
    let mut input = inputs::vanilla(Kind::Window, "windowpost-2kib");
    let Vanilla::PostBase(post) = &mut input.vanilla else { unreachable!() };
    post.partitions[0][1].1.inclusion_proofs.pop();
    let said = refusal(&input, 2);
    assert_eq!(said, "input: partition 0, sector 1: the vanilla proof is shorter than the circuit");
    let Vanilla::PostBase(post) = &mut input.vanilla else { unreachable!() };
    let extra = post.partitions[0][1].1.inclusion_proofs[0].clone();
    post.partitions[0][1].1.inclusion_proofs.extend([extra.clone(), extra]);
    let said = refusal(&input, 2);
    assert_eq!(said, "input: partition 0, sector 1: the vanilla proof is longer than the circuit");
}

#[test]
fn a_panic_of_the_circuit_code_is_an_error() {
    let mut input = inputs::vanilla(Kind::Window, "windowpost-2kib");
    let Vanilla::PostBase(post) = &mut input.vanilla else { unreachable!() };
    post.partitions[0].pop();
    let said = refusal(&input, 2);
    assert!(said.starts_with("input: partition 0, sector 1: the circuit code gave up"), "{said}");
}

#[test]
fn an_error_of_the_circuit_is_told() {
    let compiled = kinds::compile("window-2k".parse().unwrap()).unwrap();
    let (mut wides, mut bits) = planes(&compiled);
    wides.truncate(2);
    bits.truncate(0);
    let outcome = super::generic::fill_with(&compiled, 0, &mut wides, &mut bits, |_| {
        Err(SynthesisError::DivisionByZero)
    });
    assert_eq!(outcome, Err("no witness: division by zero".to_string()));
}
