//! Texts that are cut, changed, too long or of no form at all.

use super::*;
use proptest::prelude::*;
use serde_json::json;

const CASES: u32 = if cfg!(feature = "long-tests") { 2000 } else { 60 };

/// The proof type that the binary form does not say.
fn named() -> PorepOptions {
    PorepOptions { registered_proof: Some("5".into()), ..PorepOptions::default() }
}

#[test]
fn broken_text_is_refused_by_offset() {
    let file = data("porep-2kib.c1.json");
    let read = |bytes: &[u8]| read_porep(bytes, &PorepOptions::default());
    refused(read(b""), "byte 0", "empty");
    refused(read(b" \n "), "byte 0", "empty");
    refused(read(b"[1,2]"), "byte 0", "neither JSON");
    refused(read(b"{}"), "top level", "none of Phase1Out");
    refused(read(b"{\"Phase1Out\":\"\"}"), "Phase1Out", "EOF");
    refused(read(b"{\"Phase1Out\":null}"), "Phase1Out", "null");
    refused(read(b"{\"Phase1Out\":\"ab!d\"}"), "Phase1Out, character 2", "\"!\"");
    refused(read(b"{\"Phase1Out\":\"\",\"c1out\":1}"), "top level", "more than one");
    refused(read(b"{\"Phase1Out\":\"YQ==\",\"Phase1Out\":\"YQ==\"}"), "top level", "duplicate");
    refused(read(&file[..file.len() - 1]), "byte 133724", "EOF");
    refused(read(&[&file[..], b" x"].concat()), "after the end (byte 133726)", "trailing");
    refused(read(b"AAAA"), "base64 text", "does not decode to a JSON object");
    // Cut within the base64, then within the JSON at a whole group.
    let text = String::from_utf8(file.clone()).unwrap();
    let cut = |n: usize| text.replacen(&text[40..40 + n], "", 1);
    refused(read(cut(1).as_bytes()), "Phase1Out", "");
    let mut wrapper: Value = serde_json::from_slice(&file).unwrap();
    let base64 = wrapper["Phase1Out"].as_str().unwrap()[..4000].to_owned();
    wrapper["Phase1Out"] = base64[..3999].into();
    refused(read(wrapper.to_string().as_bytes()), "Phase1Out, character 3999", "cut off");
    wrapper["Phase1Out"] = base64.into();
    refused(read(wrapper.to_string().as_bytes()), "(byte 3000)", "EOF");
    let twice = c1().to_string().replacen("{\"comm_d\"", "{\"comm_r\":[],\"comm_d\"", 1);
    refused(read(twice.as_bytes()), "comm_r", "length 0");
    let comm_r = c1()["comm_r"].to_string();
    let twice = c1().to_string().replacen('{', &format!("{{\"comm_r\":{comm_r},"), 1);
    refused(read(twice.as_bytes()), "", "duplicate field `comm_r`");
}

#[test]
fn broken_binary_is_refused_by_offset() {
    let binary = read(c1()).unwrap().to_bincode();
    let read = |bytes: &[u8]| read_porep(bytes, &named());
    assert!(read(&binary).is_ok());
    refused(read_porep(&binary, &PorepOptions::default()), "registered_proof", "name it by");
    refused(read(&binary[..100]), "byte 100", "ends too early");
    refused(read(&binary[..7]), "byte 0", "neither JSON");
    refused(read(&[&binary[..], &[0]].concat()), "byte 28248", "1 bytes follow");
    let mut changed = binary.clone();
    changed[8..16].copy_from_slice(&u64::MAX.to_le_bytes());
    refused(read(&changed), "byte 16", "at most 18");
    let mut changed = binary.clone();
    changed[20..52].fill(0xff);
    refused(read(&changed), "byte 52", "canonical");
    let mut changed = binary.clone();
    changed[16] = 3;
    refused(read(&changed), "byte 20", "variant");
    let mut changed = binary;
    changed[0] = 10;
    refused(read(&changed), "byte", "");
}

/// One challenge of a 32 GiB sector by its counts alone: every hash and index is zero.
fn hollow_32gib() -> Value {
    let dom = json!(vec![0; 32]);
    let many = |n: usize, value: &Value| json!(vec![value.clone(); n]);
    let level = |arity: usize| json!({"hashes": many(arity - 1, &dom), "index": 0});
    let data = json!({"data": {"Single": {
        "root": dom, "leaf": dom, "path": {"path": many(30, &level(2))},
    }}});
    let tree = json!({"data": {"Sub": {
        "base_proof": {"path": many(9, &level(8))}, "sub_proof": {"path": many(1, &level(8))},
        "root": dom, "leaf": dom,
    }}});
    let column = json!({
        "column": {"index": 0, "rows": many(11, &dom), "_h": null}, "inclusion_proof": tree,
    });
    let label = |l: usize| json!({"parents": many(37, &dom), "layer_index": l, "node": 0});
    json!({
        "comm_d_proofs": data,
        "comm_r_last_proof": tree,
        "replica_column_proofs": {
            "c_x": column, "drg_parents": many(6, &column), "exp_parents": many(8, &column),
        },
        "labeling_proofs": (1..=11).map(label).collect::<Vec<_>>(),
        "encoding_proof": label(11),
    })
}

#[test]
fn a_file_of_32_gib_length_is_read_up_to_its_challenges() {
    let challenge = hollow_32gib().to_string().replace("0,0", "200,100");
    let partition = format!("[{}]", vec![challenge; 18].join(","));
    let mut bare = c1().clone();
    bare["registered_proof"] = json!("StackedDrg32GiBV1_1");
    bare["vanilla_proofs"] = json!({"StackedDrg32GiBV1": "HERE"});
    let partitions = format!("[{}]", vec![partition; 10].join(","));
    let bare = bare.to_string().replacen("\"HERE\"", &partitions, 1);
    let wrapper = json!({
        "SectorNum": 41, "Phase1Out": STANDARD.encode(&bare), "SectorSize": 34359738368u64,
    });
    let wrapper = wrapper.to_string();
    assert!(wrapper.len() > 51_000_000);
    let begin = std::time::Instant::now();
    let outcome = read_porep(wrapper.as_bytes(), &PorepOptions::default());
    let took = begin.elapsed();
    assert!(took.as_secs() < 10, "{took:?}");
    refused(outcome, "StackedDrg32GiBV1[0][0].labeling_proofs[0].node", "is not the challenge");
}

#[test]
fn messages_stay_short() {
    let long = "x".repeat(1 << 20);
    let wrapper = json!({"SectorNum": long, "Phase1Out": ""}).to_string();
    let type_of = |text: &str| Meta { registered_proof: Some(text.into()), ..Meta::default() };
    let version = |text: &str| Meta { api_version: Some(text.into()), ..Meta::default() };
    for outcome in [
        set("/registered_proof", json!(long)),
        set("/seed", json!(long)),
        set("/vanilla_proofs", json!({&long: []})),
        read_porep(wrapper.as_bytes(), &PorepOptions::default()),
        read_vanilla(Kind::Window, b"[]", &type_of(&long)),
        read_vanilla(Kind::Porep, c1().to_string().as_bytes(), &version(&long)),
    ] {
        assert!(outcome.err().unwrap().to_string().len() < 1000);
    }
}

// I-71
#[test]
fn too_long_is_refused_before_it_is_read() {
    let path = std::env::temp_dir().join(format!("berth-input-{}", std::process::id()));
    let file = std::fs::File::create(&path).unwrap();
    file.set_len(C1_BYTES_MAX as u64 + 1).unwrap();
    let outcome = read_file(&path, C1_BYTES_MAX);
    std::fs::remove_file(&path).unwrap();
    let Err(Error::Input { at, .. }) = outcome else { panic!("a file past the limit was read") };
    assert_eq!(at, format!("{}: length", path.display()));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(CASES))]

    #[test]
    fn changed_bytes_never_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        binary in any::<bool>(),
    ) {
        static FORMS: OnceLock<[Vec<u8>; 2]> = OnceLock::new();
        let forms = FORMS.get_or_init(|| {
            [c1().to_string().into_bytes(), read(c1()).unwrap().to_bincode()]
        });
        let mut bytes = forms[usize::from(binary)].clone();
        for (index, byte) in changes {
            let at = index.index(bytes.len());
            bytes[at] = byte;
        }
        let options = named();
        if let Err(error) = read_porep(&bytes, &options) {
            prop_assert!(!error.to_string().contains("the library gave up"), "{}", error);
        }
    }

    #[test]
    fn any_bytes_never_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        start in 0..4usize,
    ) {
        let start: &[u8] = [&b""[..], b"{\"c1out\":", b"\x01\0\0\0\0\0\0\0", b"eyJ"][start];
        let outcome = read_porep(&[start, &bytes].concat(), &PorepOptions::default());
        prop_assert!(!outcome.err().unwrap().to_string().contains("the library gave up"));
    }

    #[test]
    fn changed_post_and_update_proofs_never_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        winning in any::<bool>(),
    ) {
        let (kind, name) = match winning {
            true => (Kind::Winning, "winningpost-2kib"),
            false => (Kind::Update, "snap-2kib"),
        };
        let list = data(&format!("{name}.vanilla.json"));
        let mut blob = parse::base64_list(&list).unwrap().remove(0);
        for (index, byte) in changes {
            let at = index.index(blob.len());
            blob[at] = byte;
        }
        if let Err(error) = read_blobs(kind, &[blob], &meta(name)) {
            prop_assert!(!error.to_string().contains("the library gave up"), "{}", error);
        }
    }
}
