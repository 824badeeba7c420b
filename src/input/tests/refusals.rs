//! What is refused: where, and for what reason.

use super::*;
use serde_json::json;

const P: &str = "/vanilla_proofs/StackedDrg2KiBV1/0/1";

/// The C1 with one list changed.
fn list(pointer: &str, change: impl Fn(&mut Vec<Value>)) -> Result<Input> {
    let mut bare = c1().clone();
    change(bare.pointer_mut(pointer).unwrap().as_array_mut().unwrap());
    read(&bare)
}

fn pop(list: &mut Vec<Value>) {
    list.pop();
}

fn double(list: &mut Vec<Value>) {
    list.push(list[0].clone());
}

// I-63
#[test]
fn counts_are_refused_where_they_differ() {
    let v = "vanilla_proofs.StackedDrg2KiBV1";
    let root = "/vanilla_proofs/StackedDrg2KiBV1";
    refused(list(root, Vec::clear), v, "no partitions at all");
    refused(list(root, double), v, "2 partitions where 1");
    let partition = format!("{root}/0");
    refused(list(&partition, Vec::clear), &format!("{v}[0]"), "0 challenges where 2");
    refused(list(&partition, pop), &format!("{v}[0]"), "1 challenges where 2");
    refused(list(&partition, double), &format!("{v}[0]"), "3 challenges where 2");
    let p = format!("{v}[0][1]");
    for (pointer, change, at, what) in [
        ("replica_column_proofs/drg_parents", pop as fn(&mut _), "drg_parents", "5 parents"),
        ("replica_column_proofs/drg_parents", double, "drg_parents", "more than 6"),
        ("replica_column_proofs/exp_parents", pop, "exp_parents", "7 parents"),
        ("replica_column_proofs/c_x/column/rows", pop, "c_x.column.rows", "1 layers where 2"),
        ("labeling_proofs", double, "labeling_proofs", "3 layers where 2"),
        ("labeling_proofs/1/parents", pop, "labeling_proofs[1].parents", "36 parents where 37"),
        ("encoding_proof/parents", pop, "encoding_proof.parents", "36 parents where 37"),
        ("comm_d_proofs/data/Single/path/path", pop, "path.path", "5 levels where 6"),
        ("comm_r_last_proof/data/Single/path/path", double, "path.path", "3 levels where 2"),
        ("comm_r_last_proof/data/Single/path/path/0/hashes", pop, "[0].hashes", "6 siblings"),
        ("comm_d_proofs/data/Single/path/path/3/hashes", double, "[3].hashes", "2 siblings"),
    ] {
        let outcome = list(&format!("{P}/{pointer}"), change);
        if let Err(Error::Input { at, .. }) = &outcome {
            assert!(at.starts_with(&p), "{at}");
        }
        refused(outcome, at, what);
    }
    let single = c1().pointer(&format!("{P}/comm_r_last_proof/data/Single")).unwrap();
    let sub = json!({"Sub": {
        "base_proof": single["path"], "sub_proof": single["path"],
        "root": single["root"], "leaf": single["leaf"],
    }});
    let outcome = set(&format!("{P}/comm_r_last_proof/data"), sub);
    refused(outcome, &format!("{p}.comm_r_last_proof.data"), "a \"Sub\" path where");
}

#[test]
fn zero_and_null_and_not_canonical_are_refused_by_path() {
    for field in ["comm_d", "comm_r", "seed"] {
        refused(set(&format!("/{field}"), json!(vec![0; 32])), field, "all zero");
    }
    for field in ["comm_d", "comm_r", "replica_id", "seed", "ticket", "vanilla_proofs"] {
        refused(set(&format!("/{field}"), Value::Null), field, "null");
    }
    refused(set("/registered_proof", Value::Null), "registered_proof", "null");
    let p = "vanilla_proofs.StackedDrg2KiBV1[0][1]";
    for (pointer, at) in [
        ("comm_d_proofs/data/Single/root", "comm_d_proofs.data.Single.root"),
        ("comm_d_proofs/data/Single/leaf", "comm_d_proofs.data.Single.leaf"),
        ("comm_r_last_proof/data/Single/path/path/1/hashes/6", "path.path[1].hashes[6]"),
        ("replica_column_proofs/c_x/column/rows/0", "replica_column_proofs.c_x.column.rows[0]"),
        ("replica_column_proofs/exp_parents/7/inclusion_proof/data/Single/leaf", "exp_parents[7]"),
        ("labeling_proofs/0/parents/36", "labeling_proofs[0].parents[36]"),
        ("encoding_proof/parents/0", "encoding_proof.parents[0]"),
    ] {
        let outcome = set(&format!("{P}/{pointer}"), json!(vec![255; 32]));
        refused(outcome, &format!("{p}."), "not a canonical field element");
        refused(set(&format!("{P}/{pointer}"), json!(vec![255; 32])), at, "canonical");
        refused(set(&format!("{P}/{pointer}"), Value::Null), at, "null");
        refused(set(&format!("{P}/{pointer}"), json!(vec![1; 31])), at, "length 31");
        refused(set(&format!("{P}/{pointer}"), json!(vec![1; 33])), at, "trailing");
    }
    for field in ["comm_d", "comm_r", "replica_id"] {
        refused(set(&format!("/{field}"), json!(vec![255; 32])), field, "not a canonical");
    }
    let phantom = set(&format!("{P}/replica_column_proofs/c_x/column/_h"), json!(0));
    refused(phantom, "c_x.column._h", "expected unit");
}

#[test]
fn numbers_and_nesting_are_refused_by_path() {
    let index = format!("{P}/comm_d_proofs/data/Single/path/path/2/index");
    let at = "comm_d_proofs.data.Single.path.path[2].index";
    for (value, what) in [
        (json!(2), "index 2 in a tree of arity 2"),
        (json!(u64::MAX), "index 18446744073709551615"),
        (json!(-1), "-1"),
        (json!(0.5), "0.5"),
        (json!("0"), "string"),
    ] {
        refused(set(&index, value), at, what);
    }
    let node = format!("{P}/labeling_proofs/1/node");
    refused(set(&node, json!(u64::MAX)), "labeling_proofs[1].node", "is not the challenge");
    let layer = format!("{P}/labeling_proofs/1/layer_index");
    refused(set(&layer, json!(1)), "labeling_proofs[1].layer_index", "layer 1 where layer 2");
    refused(set(&layer, json!(1u64 << 32)), "labeling_proofs[1].layer_index", "4294967296");
    refused(set("/seed/0", json!(256)), "seed[0]", "256");
    let text = c1().to_string();
    for number in ["1e999", "123456789012345678901234567890", "1e-999999999999", "-0"] {
        let changed = text.replacen("\"node\":", &format!("\"node\":{number},\"x\":"), 1);
        refused(read_porep(changed.as_bytes(), &PorepOptions::default()), "node", "");
    }
    let deep = "[".repeat(1 << 20);
    let changed = text.replacen("\"seed\":[", &format!("\"seed\":{deep}["), 1);
    refused(read_porep(changed.as_bytes(), &PorepOptions::default()), "", "");
    let deep = format!("{{\"vanilla_proofs\":{}", "{\"a\":".repeat(1 << 20));
    refused(read_porep(deep.as_bytes(), &PorepOptions::default()), "", "");
}

// I-54
#[test]
fn three_statements_of_the_size_are_compared() {
    let at = "vanilla_proofs.StackedDrg2KiBV1";
    let what = "type says 8 MiB, proofs are 2 KiB";
    refused(set("/registered_proof", json!("StackedDrg8MiBV1_1")), at, what);
    let what = "no registered proof";
    refused(set("/registered_proof", json!("StackedDrg4KiBV1_1")), "registered_proof", what);
    let mut other = c1().clone();
    let proofs = other["vanilla_proofs"]["StackedDrg2KiBV1"].take();
    other["vanilla_proofs"] = json!({"StackedDrg2KiBV1_1": proofs});
    refused(read(&other), "vanilla_proofs", "the variant is none of");
    other["vanilla_proofs"]["StackedDrg2KiBV1"] = json!([]);
    refused(read(&other), "vanilla_proofs", "second key");
    refused(set("/vanilla_proofs", json!({})), "vanilla_proofs", "no proofs");

    let mut wrapper: Value = serde_json::from_slice(&data("porep-2kib.c1.json")).unwrap();
    wrapper["SectorSize"] = json!(34359738368u64);
    let wrong = wrapper.to_string();
    let what = "says 32 GiB, the proof type and the proofs 2 KiB";
    refused(read_porep(wrong.as_bytes(), &PorepOptions::default()), "SectorSize", what);
    wrapper["SectorSize"] = json!(2049);
    let wrong = wrapper.to_string();
    refused(read_porep(wrong.as_bytes(), &PorepOptions::default()), "SectorSize", "2049 bytes");
    let options = PorepOptions { registered_proof: Some("0".into()), ..PorepOptions::default() };
    let outcome = read_porep(c1().to_string().as_bytes(), &options);
    refused(outcome, "--registered-proof", "StackedDrg2KiBV1 here, but StackedDrg2KiBV1_1");
}

// I-57
#[test]
fn another_miner_or_sector_is_named() {
    let file = data("porep-2kib.c1.json");
    assert!(read_porep(&file, &with(1037, 41)).unwrap().miner_checked);
    refused(read_porep(&file, &with(1037, 42)), "the given sector", "42 here, but 41 by SectorNum");
    let outcome = read_porep(&file, &with(1038, 41));
    refused(outcome, "replica_id", "the miner is wrong: it is that of miner 1037");
    let bare = c1().to_string();
    let outcome = read_porep(bare.as_bytes(), &with(1037, 42));
    refused(outcome, "replica_id", "the sector is wrong: it is that of sector 41");
    let mut ticket = c1().clone();
    ticket["ticket"][0] = json!(43);
    let outcome = read_porep(ticket.to_string().as_bytes(), &with(1037, 41));
    refused(outcome, "replica_id", "is another's");
    let miner = PorepOptions { miner: Some(1037), ..PorepOptions::default() };
    refused(read_porep(bare.as_bytes(), &miner), "sector number", "is needed beside");
    let sector = PorepOptions { sector: Some(43), ..PorepOptions::default() };
    refused(read_porep(bare.as_bytes(), &sector), "sector number", "without a miner");
    let unknown =
        PorepOptions { registered_proof: Some("StackedDrg".into()), ..PorepOptions::default() };
    assert!(matches!(read_porep(bare.as_bytes(), &unknown), Err(Error::Config(_))));
    let task = json!({"c1out": c1(), "miner_id": 1037, "prover_id": prover_id(1038)}).to_string();
    refused(read_porep(task.as_bytes(), &PorepOptions::default()), "prover_id", "by miner_id");
}

#[test]
fn prover_ids_from_two_sides_are_compared() {
    let task = json!({"c1out": c1(), "sector_id": 41, "prover_id": prover_id(1037)}).to_string();
    let input = read_porep(task.as_bytes(), &PorepOptions::default()).unwrap();
    assert!(input.miner_checked && input.miner.is_none());
    let mut meta = meta("porep-2kib");
    (meta.miner_id, meta.prover_id) = (None, Some(Hex32(prover_id(1038))));
    let options = PorepOptions { meta: Some(meta), ..PorepOptions::default() };
    refused(read_porep(task.as_bytes(), &options), "meta.prover_id", "by prover_id");
}

#[test]
fn another_seed_or_graph_is_named() {
    let outcome = set("/seed/0", json!(7));
    refused(outcome, "labeling_proofs[0].node", "and seed 0713202d3a47");
    // The V1 graph draws the same challenges and other parents.
    let outcome = set("/registered_proof", json!("StackedDrg2KiBV1"));
    refused(outcome, "drg_parents[0].column.index", "and seed 0613202d3a47");
    let mut ni = bare(&data("porep-2kib-ni.c1.json"));
    ni["registered_proof"] = json!("StackedDrg2KiBV1_1");
    refused(read(&ni), "vanilla_proofs", "13 partitions where 1 belong");
}

// I-65
#[test]
fn one_flipped_bit_in_each_kind_of_field_is_named() {
    let c = "partition 0, challenge 1, ";
    let columns = "replica_column_proofs";
    for (pointer, at) in [
        ("comm_d_proofs/data/Single/root", "comm_d path"),
        ("comm_d_proofs/data/Single/leaf", "comm_d path"),
        ("comm_d_proofs/data/Single/path/path/5/hashes/0", "comm_d path"),
        ("comm_r_last_proof/data/Single/root", "comm_r_last path"),
        ("comm_r_last_proof/data/Single/leaf", "comm_r_last path"),
        ("comm_r_last_proof/data/Single/path/path/1/hashes/3", "comm_r_last path"),
        (&format!("{columns}/c_x/column/rows/1"), "c_x column"),
        (&format!("{columns}/c_x/inclusion_proof/data/Single/root"), "c_x path"),
        (&format!("{columns}/c_x/inclusion_proof/data/Single/leaf"), "c_x column"),
        (&format!("{columns}/c_x/inclusion_proof/data/Single/path/path/0/hashes/0"), "c_x path"),
        (&format!("{columns}/drg_parents/3/column/rows/0"), "drg parent 3 column"),
        (&format!("{columns}/drg_parents/3/inclusion_proof/data/Single/root"), "drg parent 3 path"),
        (&format!("{columns}/exp_parents/7/column/rows/0"), "exp parent 7 column"),
        (
            &format!("{columns}/exp_parents/0/inclusion_proof/data/Single/path/path/1/hashes/6"),
            "exp parent 0 path",
        ),
        ("labeling_proofs/0/parents/0", "label of layer 1"),
        ("labeling_proofs/1/parents/36", "label of layer 2"),
        ("encoding_proof/parents/20", "encoding"),
    ] {
        let mut bare = c1().clone();
        let byte = bare.pointer_mut(&format!("{P}/{pointer}/0")).unwrap();
        *byte = json!(byte.as_u64().unwrap() ^ 1);
        refused(read(&bare), &format!("{c}{at}"), "");
    }
    let flip = |pointer: &str| {
        let byte = c1().pointer(pointer).unwrap().as_u64().unwrap();
        set(pointer, json!(byte ^ 1))
    };
    refused(flip("/comm_r/0"), "partition 0, challenge 0, comm_r", "is not the hash of comm_c");
    refused(flip("/comm_d/0"), "comm_d path", "its root is not comm_d");
    refused(flip("/replica_id/0"), "labeling_proofs[0].node", "replica id");
    for (field, at) in [
        ("comm_d_proofs", "comm_d_proofs"),
        ("comm_r_last_proof", "comm_r_last_proof"),
        ("replica_column_proofs/c_x/inclusion_proof", "c_x.inclusion_proof"),
        ("replica_column_proofs/drg_parents/5/inclusion_proof", "drg_parents[5].inclusion_proof"),
    ] {
        let outcome = flip(&format!("{P}/{field}/data/Single/path/path/0/index"));
        refused(outcome, at, "its path leads to leaf");
    }
    refused(flip(&format!("{P}/encoding_proof/node")), "encoding_proof.node", "challenge");
    refused(flip(&format!("{P}/encoding_proof/layer_index")), "encoding_proof.layer_index", "");
    let index = format!("{P}/replica_column_proofs/exp_parents/2/column/index");
    refused(flip(&index), "exp_parents[2].column.index", "belongs");
}

#[test]
fn upper_trees_are_checked_too() {
    let (file, meta) = (data("shape-32kib.stacked.json"), meta("shape-32kib"));
    let right: Value = serde_json::from_slice(&file).unwrap();
    let read = |bare: &Value| read_vanilla(Kind::Porep, bare.to_string().as_bytes(), &meta);
    assert!(read(&right).is_ok());
    let top = "/vanilla_proofs/0/1/replica_column_proofs/exp_parents/3/inclusion_proof/data/Top";
    for (field, at) in [
        ("sub_proof/path/0/hashes/6/0", "partition 0, challenge 1, exp parent 3 path"),
        ("top_proof/path/0/hashes/0/0", "partition 0, challenge 1, exp parent 3 path"),
        ("sub_proof/path/0/index", "exp_parents[3].inclusion_proof"),
        ("top_proof/path/0/index", "exp_parents[3].inclusion_proof"),
    ] {
        let mut bare = right.clone();
        let number = bare.pointer_mut(&format!("{top}/{field}")).unwrap();
        *number = json!(number.as_u64().unwrap() ^ 1);
        refused(read(&bare), at, "");
    }
    for (field, what) in [("sub_proof", "0 levels where 1"), ("top_proof", "0 levels where 1")] {
        let mut bare = right.clone();
        *bare.pointer_mut(&format!("{top}/{field}/path")).unwrap() = json!([]);
        refused(read(&bare), &format!("exp_parents[3].inclusion_proof.data.Top.{field}"), what);
    }
}

#[test]
fn a_meta_file_that_differs_is_named() {
    let file = data("porep-2kib.c1.json");
    let change = |change: fn(&mut Meta), at: &str| {
        let mut meta = meta("porep-2kib");
        change(&mut meta);
        refused(read_vanilla(Kind::Porep, &file, &meta), at, "");
    };
    change(|meta| meta.seed = Some(Hex32([1; 32])), "seed");
    change(|meta| meta.comm_r = Some(Hex32([1; 32])), "comm_r");
    change(|meta| meta.sector_size = Some(8 << 20), "meta.sector_size");
    change(|meta| meta.sector_size = Some(77), "meta.sector_size");
    change(|meta| meta.sector_number = Some(1), "meta.sector_number");
    change(|meta| meta.api_version = Some("1.2.0".into()), "meta.api_version");
    change(|meta| meta.registered_proof_number = Some(6), "meta.registered_proof_number");
    change(|meta| meta.partitions = Some(2), "meta.partitions");
    let shape = data("shape-16kib.stacked.json");
    let mut wrong = meta("shape-16kib");
    wrong.api_version = Some("1.0.0".into());
    refused(read_vanilla(Kind::Porep, &shape, &wrong), "drg_parents", "seed");
    wrong.sector_size = Some(32 << 10);
    refused(read_vanilla(Kind::Porep, &shape, &wrong), "comm_d_proofs", "9 levels where 10");
    wrong.porep_id = None;
    refused(read_vanilla(Kind::Porep, &shape, &wrong), "meta.porep_id", "missing");
}
