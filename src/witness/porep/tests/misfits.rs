//! What cannot satisfy the circuit is found while the witness is made, and where it is.

use ff::Field;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

use super::*;
use crate::input::flat::{Challenge, Column, Path};
use crate::witness::porep::block::Piece;

const LAYERS: usize = 2;

/// A piece of a challenge: its path, and the labels whose hash the path starts from, if it has
/// any that the circuit reads.
type Parts<'a> = (&'a mut Path, Option<&'a mut [Scalar]>);

fn parts(it: &mut Challenge, piece: Piece) -> Parts<'_> {
    fn column(it: &mut Column) -> Parts<'_> {
        (&mut it.path, Some(&mut it.rows))
    }
    match piece {
        Piece::Data => (&mut it.data, None),
        Piece::DrgParent(i) => column(&mut it.drg_parents[i]),
        Piece::ExpParent(i) => column(&mut it.exp_parents[i]),
        Piece::Replica => (&mut it.replica, None),
        Piece::Own => (&mut it.own.path, None),
    }
}

fn root(piece: Piece, layer: Option<usize>) -> Option<Misfit> {
    Some(Misfit::Root { piece, layer })
}

#[test]
fn every_value_of_every_piece_is_found_where_it_is() {
    let input = c1("porep-2kib.c1.json");
    let compiled = kinds::compile(input.circuit).unwrap();
    let sound = porep(&input);
    let mut changes = 0;
    let mut change = |piece: Piece, change: &dyn Fn(Parts)| {
        let mut porep = sound.clone();
        change(parts(&mut porep.partitions[0][1], piece));
        assert_eq!(native(&porep, &compiled, 0, 2).err(), root(piece, None));
        assert!(native(&porep, &compiled, 0, 0).is_ok());
        changes += 1;
    };
    let drg = (0..6).map(Piece::DrgParent);
    let exp = (0..8).map(Piece::ExpParent);
    for piece in [Piece::Data, Piece::Replica, Piece::Own].into_iter().chain(drg).chain(exp) {
        for bit in 0..6 {
            change(piece, &|(path, _)| path.position ^= 1 << bit);
        }
        let siblings = if piece == Piece::Data { 6 } else { 14 };
        for i in 0..siblings {
            change(piece, &|(path, _)| path.siblings[i] += Scalar::ONE);
        }
        if matches!(piece, Piece::DrgParent(_) | Piece::ExpParent(_)) {
            for row in 0..LAYERS {
                change(piece, &|(_, rows)| rows.unwrap()[row] += Scalar::ONE);
            }
        }
    }
    assert_eq!(changes, 12 + 16 * 20 + 14 * 2);
    assert!(native(&sound, &compiled, 0, 2).is_ok());
}

/// Several faults at once, of values and of sizes, in one block.
#[test]
fn random_blocks_that_do_not_fit_are_an_error() {
    let input = c1("porep-2kib.c1.json");
    let compiled = kinds::compile(input.circuit).unwrap();
    let sound = porep(&input);
    let mut roots = 0;
    for seed in 0..400 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut below = |bound: usize| rng.next_u32() as usize % bound;
        let mut porep = sound.clone();
        for _ in 0..=below(3) {
            let piece = match below(17) {
                0 => Piece::Data,
                1 => Piece::Replica,
                2 => Piece::Own,
                i @ 3..9 => Piece::DrgParent(i - 3),
                i => Piece::ExpParent(i - 9),
            };
            let (path, rows) = parts(&mut porep.partitions[0][1], piece);
            let sibling = below(path.siblings.len().max(1));
            match (below(8), rows) {
                (0, _) => path.siblings = path.siblings[..sibling].into(),
                (1, _) => path.position = u64::MAX / (1 + below(9) as u64),
                (2..4, Some(rows)) => rows[below(LAYERS)] += Scalar::from(1 + seed),
                (4, _) => path.position ^= 1 << below(6),
                _ if path.siblings.is_empty() => {}
                _ => path.siblings[sibling] += Scalar::from(1 + seed),
            }
        }
        match native(&porep, &compiled, 0, 2) {
            Err(Misfit::Root { layer: None, .. }) => roots += 1,
            Err(Misfit::Size(_)) => {}
            // Two faults may be each other's undoing.
            Ok(_) => assert!(porep.partitions == sound.partitions, "seed {seed}"),
            Err(other) => panic!("seed {seed}: {other:?}"),
        }
    }
    assert!((100..400).contains(&roots), "{roots}");
}

#[test]
fn what_no_path_starts_from_is_found_too() {
    let input = c1("porep-2kib.c1.json");
    let compiled = kinds::compile(input.circuit).unwrap();
    let sound = porep(&input);
    let check = |corrupt: &dyn Fn(&mut Porep), header, block| {
        let mut porep = sound.clone();
        corrupt(&mut porep);
        let found = |part| native(&porep, &compiled, 0, part).err();
        assert_eq!((found(0), found(2)), (header, block));
    };
    fn second(change: fn(&mut Challenge)) -> impl Fn(&mut Porep) {
        move |porep| change(&mut porep.partitions[0][1])
    }
    check(&second(|it| it.data.leaf += Scalar::ONE), None, root(Piece::Data, None));
    // Labels are made anew from all that they depend on; the rows tell which is the first.
    let first = root(Piece::Replica, Some(1));
    check(&second(|it| it.node += 1), None, first);
    check(&|it| it.replica_id = (Scalar::from(it.replica_id) + Scalar::ONE).into(), None, first);
    let other_label = second(|it| it.own.rows[1] += Scalar::ONE);
    let other_root = |it: &mut Porep| it.partitions[0][0].replica.root += Scalar::ONE;
    let both = |it: &mut Porep| {
        other_label(it);
        other_root(it);
    };
    let commitments = Some(Misfit::Commitments);
    check(&both, commitments, root(Piece::Replica, Some(2)));
    check(&other_root, commitments, root(Piece::Replica, None));
    let comm_d = |it: &mut Porep| it.comm_d = (Scalar::from(it.comm_d) + Scalar::ONE).into();
    check(&comm_d, None, root(Piece::Data, None));
    let comm_r = |it: &mut Porep| it.comm_r = (Scalar::from(it.comm_r) + Scalar::ONE).into();
    check(&comm_r, commitments, None);
    let comm_c = |it: &mut Porep| it.partitions[0][0].own.path.root += Scalar::ONE;
    check(&comm_c, commitments, root(Piece::DrgParent(0), None));
    let none = Some(Misfit::Missing);
    check(&|it| it.partitions[0].truncate(1), None, none);
    check(&|it| it.partitions[0].clear(), none, none);
    check(&|it| it.partitions.clear(), none, none);
}

/// What no circuit reads changes no witness, and is named by the full check.
#[test]
fn what_no_circuit_reads_is_found_by_the_full_check() {
    let input = c1("porep-2kib.c1.json");
    let compiled = kinds::compile(input.circuit).unwrap();
    let sound = porep(&input);
    let parts = || (0..3).map(|part| native(&sound, &compiled, 0, part).unwrap());
    let check = |at: &str, change: &dyn Fn(&mut Challenge)| {
        let mut porep = sound.clone();
        change(&mut porep.partitions[0][1]);
        assert!(porep.partitions != sound.partitions);
        for (part, sound) in parts().enumerate() {
            assert!(native(&porep, &compiled, 0, part).unwrap() == sound, "{at}: part {part}");
        }
        let error = Vanilla::from(porep).check_hashes().unwrap_err();
        let place = format!("input: partition 0, challenge 1, {at}: ");
        assert!(error.to_string().starts_with(&place), "{error}, not {place}");
    };
    check("comm_d path", &|it| it.data.root += Scalar::ONE);
    check("comm_r_last path", &|it| it.replica.root += Scalar::ONE);
    check("comm_r_last path", &|it| it.replica.leaf += Scalar::ONE);
    check("c_x path", &|it| it.own.path.root += Scalar::ONE);
    check("c_x column", &|it| it.own.path.leaf += Scalar::ONE);
    for layer in 0..LAYERS {
        check("c_x column", &|it| it.own.rows[layer] += Scalar::ONE);
        for parent in [0, 36] {
            let at = format!("label of layer {}", layer + 1);
            check(&at, &|it| it.labels[layer][parent] += Scalar::ONE);
        }
    }
    check("encoding", &|it| it.labels[LAYERS][20] += Scalar::ONE);
    for i in 0..6 {
        check(&format!("drg parent {i} path"), &|it| it.drg_parents[i].path.root += Scalar::ONE);
        check(&format!("drg parent {i} column"), &|it| it.drg_parents[i].path.leaf += Scalar::ONE);
    }
    for i in 0..8 {
        check(&format!("exp parent {i} path"), &|it| it.exp_parents[i].path.root += Scalar::ONE);
        check(&format!("exp parent {i} column"), &|it| it.exp_parents[i].path.leaf += Scalar::ONE);
    }
}

#[test]
fn sizes_are_checked_before_anything_is_written() {
    fn cut(values: &mut Box<[Scalar]>, length: usize) {
        let mut longer = std::mem::take(values).into_vec();
        longer.resize(length, Scalar::ONE);
        *values = longer.into();
    }
    let input = c1("porep-2kib.c1.json");
    let compiled = kinds::compile(input.circuit).unwrap();
    let sound = porep(&input);
    let in_block = |corrupt: &dyn Fn(&mut Challenge), piece: Piece| {
        let mut porep = sound.clone();
        corrupt(&mut porep.partitions[0][0]);
        assert_eq!(native(&porep, &compiled, 0, 1).err(), Some(Misfit::Size(piece)));
    };
    in_block(&|it| cut(&mut it.data.siblings, 5), Piece::Data);
    in_block(&|it| it.data.position += 64, Piece::Data);
    in_block(&|it| cut(&mut it.drg_parents[2].rows, 1), Piece::DrgParent(2));
    in_block(&|it| cut(&mut it.drg_parents[0].path.siblings, 15), Piece::DrgParent(0));
    in_block(&|it| cut(&mut it.exp_parents[7].rows, 3), Piece::ExpParent(7));
    in_block(&|it| it.exp_parents[1].path.position |= 1 << 63, Piece::ExpParent(1));
    in_block(&|it| cut(&mut it.replica.siblings, 0), Piece::Replica);
    in_block(&|it| cut(&mut it.own.rows, 0), Piece::Own);

    // The circuit of another size.
    let mut other = sound.clone();
    other.sector = SectorSize::M8;
    assert_eq!(native(&other, &compiled, 0, 1).err(), Some(Misfit::Size(Piece::Data)));
    let mut other = kinds::compile(input.circuit).unwrap();
    other.shape.header.wides += 2;
    assert_eq!(native(&sound, &other, 0, 0).err(), Some(Misfit::Count));
    other.shape.block.bits += 1;
    assert_eq!(native(&sound, &other, 0, 2).err(), Some(Misfit::Count));
}

#[test]
fn misfits_say_where() {
    let told = |misfit: Misfit, part| misfit.error(4, part).to_string();
    let misfit = Misfit::Root { piece: Piece::ExpParent(3), layer: None };
    let place = "input: partition 4, challenge";
    assert_eq!(told(misfit, 2), format!("{place} 1, exp parent 3: it does not hash to comm_c"));
    let misfit = Misfit::Root { piece: Piece::Replica, layer: Some(2) };
    let expected = "0, comm_r_last path: it does not hash to comm_r_last; the label of layer 2 is \
                    not the row of c_x";
    assert_eq!(told(misfit, 1), format!("{place} {expected}"));
    assert!(told(Misfit::Commitments, 0).starts_with(&format!("{place} 0, comm_r: ")));
    assert!(told(Misfit::Missing, 18).starts_with(&format!("{place} 17: ")));
    assert!(told(Misfit::Count, 2).starts_with("input: partition 4, part 2: "));
    let size = Misfit::Size(Piece::Own);
    assert!(told(size, 1).starts_with(&format!("{place} 0, c_x: ")));
}
