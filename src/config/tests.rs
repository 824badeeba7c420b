use super::*;

fn config(vars: &[(&str, &str)]) -> Result<Config> {
    Config::from_env(vars.iter().map(|(name, value)| ((*name).into(), (*value).into())))
}

fn refusal(vars: &[(&str, &str)]) -> String {
    match config(vars) {
        Err(error @ Error::Config(_)) => error.to_string(),
        other => panic!("{vars:?} gave {other:?}"),
    }
}

/// For every variable: values that are taken, and wrong ones beside the common wrong ones.
const TABLE: [(&str, &[&str], &[&str]); 23] = [
    ("BERTH_BACKEND", &["auto", "cpu", "cuda"], &["CPU", "gpu"]),
    (
        "BERTH_GPUS",
        &["all", "0", "0,3", "GPU-6e6e5d1f-0000-1111-2222-0123456789ab", "0000:65:00.0,65:00.0"],
        &["0,", "1024", "GPU-1", "65:00", "0000:65:00.x"],
    ),
    ("BERTH_PARTITION_WORKERS", &["1", "96"], &["0", "4097", "+1", "1.5"]),
    ("BERTH_SLOTS", &["1", "98"], &["0", "65537"]),
    ("BERTH_LANES_PER_GPU", &["1", "16"], &["0", "17"]),
    ("BERTH_CPUS", &["0", "0-7,16"], &["7-0", "0,", "0-65536"]),
    ("BERTH_NUMA", &["auto", "strict", "off"], &["on"]),
    ("BERTH_HUGEPAGES", &["auto", "1G", "2M", "off"], &["1g", "4K", "2MiB"]),
    ("BERTH_LOCK", &["auto", "strict", "off"], &["1"]),
    ("BERTH_WITNESS", &["auto", "native", "generic"], &["fast"]),
    ("BERTH_DEVICE_MEMORY_LIMIT", &["1", "20GiB"], &["0", "1.5G", "GiB", "1 GiB"]),
    ("BERTH_MEMORY_LIMIT", &["64G", "512MiB", "1073741824"], &["0", "50%", "17179869184G"]),
    ("BERTH_SRS", &["auto", "device", "host"], &["gpu"]),
    ("BERTH_PARAMETER_CACHE", &["/p", "./p"], &[]),
    ("BERTH_DEV_PARAMETERS", &["auto", "allow", "off"], &["yes"]),
    ("BERTH_DEV_PARAMETER_DIR", &["/d"], &[]),
    (
        "BERTH_CIRCUITS",
        &["porep-2k", "porep-32g,update-32g", "snap-2k"],
        &["porep", "porep-2k,", "swap-2k"],
    ),
    ("BERTH_LISTEN", &["0.0.0.0:9820", "[::1]:1", "unix:///run/berth.sock"], &["9820", "unix://"]),
    ("BERTH_HTTP_LISTEN", &["127.0.0.1:80"], &["127.0.0.1", "127.0.0.1:65536"]),
    ("BERTH_STATE_DIR", &["/var/lib/x"], &[]),
    ("BERTH_QUEUE_MAX", &["1", "1000000"], &["0", "1000001"]),
    ("BERTH_DRAIN_TIMEOUT", &["0", "86400"], &["86401", "10s"]),
    ("BERTH_LOG", &["debug", "warn,berth::srs=trace"], &["loud", "=info", "info,", "berth="]),
];

#[test]
fn every_variable_takes_its_values_and_refuses_others() {
    for (setting, (name, good, bad)) in SETTINGS.iter().zip(TABLE) {
        assert_eq!(setting.name, name);
        for value in good {
            let config = config(&[(name, value)]).unwrap();
            let row = config.values.iter().find(|row| row.name == name).unwrap();
            assert_eq!(row.value, **value);
            assert_eq!(row.origin, Origin::Environment(name.to_owned()));
        }
        // A directory may have any name; only empty ones and stray white space are refused.
        let is_path = setting.allowed == "a directory";
        let huge = "9".repeat(30);
        let common: &[&str] = if is_path { &[] } else { &["abc", "-1", &huge] };
        let trailing = format!("{} ", good[0]);
        for value in bad.iter().chain(common).chain(&["", &trailing[..], "a\nb"]) {
            let error = refusal(&[(name, value)]);
            assert!(error.contains(&format!("{value:?}")), "{error}");
            assert!(error.contains(name) && error.contains(setting.allowed), "{error}");
        }
    }
}

#[test]
fn defaults() {
    let config = config(&[("PATH", "/bin"), ("HOME", "/home/u")]).unwrap();
    assert_eq!(config.values.len(), SETTINGS.len());
    let changed: Vec<_> =
        config.values.iter().filter(|row| row.origin != Origin::Default).collect();
    assert_eq!(changed.len(), 1);
    assert_eq!(changed[0].value, "/home/u/.cache/berth/dev-parameters");
    assert_eq!(config.parameter_cache, PathBuf::from("/var/tmp/filecoin-proof-parameters"));
    assert!(config.notices.is_empty());
    // Defaults that the table gives as values are the values of the default configuration.
    for setting in &SETTINGS {
        let mut again = Config::default();
        let words = setting.default.contains(' ') || setting.default.contains('$');
        if !words && setting.default != "none" {
            (setting.set)(&mut again, Text::new(setting.default).unwrap()).unwrap();
            assert_eq!(again, Config::default(), "{}", setting.name);
        }
    }
}

#[test]
fn unknown_names_are_errors_that_name_the_nearest() {
    for (name, near) in [
        ("BERTH_SLOT", "BERTH_SLOTS"),
        ("BERTH_PARTITIONS_WORKERS", "BERTH_PARTITION_WORKERS"),
        ("berth_slots", "BERTH_SLOTS"),
        ("BERTH_MEMORYLIMIT", "BERTH_MEMORY_LIMIT"),
        ("BERTH_", "BERTH_"),
    ] {
        let error = refusal(&[(name, "1")]);
        assert!(error.contains(name) && error.contains(near), "{error}");
    }
}

#[test]
fn a_name_that_is_not_unicode() {
    use std::os::unix::ffi::OsStringExt;
    let name = OsString::from_vec(b"BERTH_\xff".to_vec());
    assert!(Config::from_env([(name, "1".into())].into_iter()).is_err());
    let value = OsString::from_vec(b"/\xff".to_vec());
    assert!(Config::from_env([("BERTH_SLOTS".into(), value)].into_iter()).is_err());
}

/// What ends up in a unit or on a screen may hold no line of its own, whoever's variable it is.
#[test]
fn directories_of_other_programs_are_text() {
    use std::os::unix::ffi::OsStringExt;
    for name in ["FIL_PROOFS_PARAMETER_CACHE", "XDG_CACHE_HOME", "HOME"] {
        for bytes in [&b"/a\nUser=root"[..], b"/a\r", b"/a\x1b[0m", b"/a\x7f", b"/\xff", b"/a "] {
            let value = OsString::from_vec(bytes.to_vec());
            let error = Config::from_env([(name.into(), value.clone())].into_iter()).unwrap_err();
            assert_eq!(error.exit_code(), 2, "{error}");
            let error = error.to_string();
            assert!(error.contains(&format!("{name} is {value:?}")), "{error}");
        }
        assert!(config(&[(name, "/a b/\u{e9}")]).is_ok());
    }
    let ours = [("HOME", "/a\r"), ("BERTH_DEV_PARAMETER_DIR", "/d")];
    assert!(config(&ours).is_ok(), "what is not used is not looked at");
    assert!(config(&[("HOME", "/a\r"), ("XDG_CACHE_HOME", "/x")]).is_ok());
}

#[test]
fn near_misses_without_our_prefix_are_notices() {
    for (name, near) in [
        ("FFI_PROOFS_PARAMETER_CACHE", "FIL_PROOFS_PARAMETER_CACHE"),
        ("BERHT_SLOTS", "BERTH_SLOTS"),
        ("BETH_NUMA", "BERTH_NUMA"),
    ] {
        let config = config(&[(name, "x")]).unwrap();
        assert_eq!(config.notices.len(), 1, "{name}");
        assert!(config.notices[0].contains(near), "{:?}", config.notices);
    }
}

#[test]
fn old_card_tables_give_one_notice_each_and_no_effect() {
    let config = config(&[("BELLMAN_CUSTOM_GPU", "junk"), ("RUST_GPU_TOOLS_CUSTOM_GPU", "")]);
    let config = config.unwrap();
    assert_eq!(config.notices.len(), 2);
    assert_eq!(Config { notices: Vec::new(), ..config }, Config::default());
}

#[test]
fn parameter_directories() {
    let both = [("BERTH_PARAMETER_CACHE", "/ours"), ("FIL_PROOFS_PARAMETER_CACHE", "/theirs")];
    let ours = config(&both).unwrap();
    assert_eq!(ours.parameter_cache, PathBuf::from("/ours"));
    assert_eq!(ours.came_from("BERTH_PARAMETER_CACHE"), "BERTH_PARAMETER_CACHE");
    let theirs = config(&both[1..]).unwrap();
    assert_eq!(theirs.parameter_cache, PathBuf::from("/theirs"));
    assert_eq!(theirs.came_from("BERTH_PARAMETER_CACHE"), "FIL_PROOFS_PARAMETER_CACHE");
    assert!(refusal(&[("FIL_PROOFS_PARAMETER_CACHE", "")]).contains("FIL_PROOFS"));
    let ignored = [("BERTH_PARAMETER_CACHE", "/ours"), ("FIL_PROOFS_PARAMETER_CACHE", "\n")];
    assert!(config(&ignored).is_ok(), "what is not used is not looked at");

    let home = ("HOME", "/home/u");
    let dir = |vars: &[(&str, &str)]| config(vars).unwrap().dev_parameter_dir;
    assert_eq!(dir(&[]), None);
    assert_eq!(
        dir(&[home, ("XDG_CACHE_HOME", "/x")]),
        Some(PathBuf::from("/x/berth/dev-parameters"))
    );
    assert_eq!(
        dir(&[home, ("XDG_CACHE_HOME", "relative")]),
        Some(PathBuf::from("/home/u/.cache/berth/dev-parameters"))
    );
    assert_eq!(
        dir(&[home, ("XDG_CACHE_HOME", "/x"), ("BERTH_DEV_PARAMETER_DIR", "/d")]),
        Some(PathBuf::from("/d"))
    );
}
