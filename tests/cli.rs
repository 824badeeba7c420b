//! The program as an operator meets it, on the tiny WindowPoSt circuit: results, exit codes,
//! messages, files.

mod common;

use std::fs;

use common::{berth, data, json, run, scratch, window};

#[test]
fn parameters_are_made_once_and_a_proof_verifies() {
    let folder = scratch("first-run");
    let proof = folder.join("proof.bin");
    let parameters = folder.join("dev");
    let prove = || {
        let mut command = window("prove", &["--json", "--out", proof.to_str().unwrap()]);
        command.env("BERTH_DEV_PARAMETER_DIR", &parameters);
        let (code, stdout, stderr) = run(&mut command);
        assert_eq!(code, 0, "{stderr}");
        (serde_json::from_str::<serde_json::Value>(&stdout).unwrap(), stderr)
    };
    let (record, told) = prove();
    assert!(told.contains("making dev parameters"), "says so first: {told}");
    assert_eq!(record["verified"], true);
    assert_eq!(record["submittable"], false);
    assert_eq!(record["parameters"], "dev");
    assert_eq!(record["backend"], "cpu");
    assert_eq!(record["partitions"], 1);
    assert_eq!(fs::read(&proof).unwrap().len(), 192);
    for key in ["total", "parse", "parameters", "witness", "prove", "verify"] {
        assert!(record["timings_ms"][key].is_number(), "timings_ms.{key}");
    }
    for key in ["planned_bytes", "slot_bytes", "peak_bytes"] {
        assert!(record["memory"][key].is_u64(), "memory.{key}");
    }

    let (again, told) = prove();
    assert!(!told.contains("making dev parameters"), "a second run only reads: {told}");
    assert_ne!(record["proof"], again["proof"], "r and s are fresh");

    // Raw bytes and hex are both read; another proof's bytes are not accepted.
    let mut verify = window("verify", &[proof.to_str().unwrap()]);
    verify.env("BERTH_DEV_PARAMETER_DIR", &parameters);
    let (code, stdout, _) = run(&mut verify);
    assert_eq!(code, 0);
    assert!(stdout.contains("valid on no network"), "{stdout}");
    let hex = folder.join("proof.hex");
    fs::write(&hex, record["proof"].as_str().unwrap()).unwrap();
    let mut verify = window("verify", &[hex.to_str().unwrap(), "--json"]);
    verify.env("BERTH_DEV_PARAMETER_DIR", &parameters);
    assert_eq!(json(&mut verify)["verified"], true);
    let mut swapped = fs::read(&proof).unwrap();
    let (a, c) = (swapped[..48].to_vec(), swapped[144..].to_vec());
    swapped[..48].copy_from_slice(&c);
    swapped[144..].copy_from_slice(&a);
    fs::write(&proof, &swapped).unwrap();
    let mut verify = window("verify", &[proof.to_str().unwrap()]);
    verify.env("BERTH_DEV_PARAMETER_DIR", &parameters);
    assert_eq!(run(&mut verify).0, 6, "a proof that does not verify");
    fs::write(&proof, [0; 192]).unwrap();
    let mut verify = window("verify", &[proof.to_str().unwrap()]);
    verify.env("BERTH_DEV_PARAMETER_DIR", &parameters);
    assert_eq!(run(&mut verify).0, 6, "bytes that are no points");
    fs::write(&proof, &swapped[..191]).unwrap();
    let mut verify = window("verify", &[proof.to_str().unwrap()]);
    verify.env("BERTH_DEV_PARAMETER_DIR", &parameters);
    assert_eq!(run(&mut verify).0, 6, "a short proof");
    for length in [0, 191, 193, 384, (1 << 20) + 1, 3 << 20] {
        fs::write(&proof, vec![7; length]).unwrap();
        let mut verify = window("verify", &[proof.to_str().unwrap(), "--json"]);
        verify.env("BERTH_DEV_PARAMETER_DIR", &parameters);
        let (code, stdout, stderr) = run(&mut verify);
        assert_eq!(code, 6, "{length}: {stderr}");
        assert!(stdout.contains("\"verified\":false") && stderr.contains("192 bytes"), "{stderr}");
    }
    fs::remove_file(&proof).unwrap();
    assert_eq!(run(&mut window("verify", &[proof.to_str().unwrap()])).0, 5, "no file");
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn text_output_ends_with_the_honest_line() {
    let (code, stdout, stderr) = run(&mut window("prove", &[]));
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.lines().last().unwrap().contains("valid on no network"), "{stdout}");
    assert!(stderr.contains("plan"), "the plan is told before the work: {stderr}");
}

#[test]
fn exit_codes() {
    let c1 = data("porep-2kib.c1.json");
    let c1 = c1.to_str().unwrap();
    // 2: usage and configuration.
    assert_eq!(run(&mut berth(&["prove"])).0, 2);
    assert_eq!(run(&mut berth(&["prove", c1, "--miner", "x"])).0, 2);
    let (code, _, stderr) = run(window("prove", &[]).env("BERTH_SLOT", "3"));
    assert_eq!(code, 2);
    assert!(stderr.contains("BERTH_SLOTS"), "names the near one: {stderr}");
    assert_eq!(run(window("prove", &[]).env("BERTH_SLOTS", "none")).0, 2);
    // 3: host.
    let (code, _, stderr) = run(window("prove", &[]).env("BERTH_MEMORY_LIMIT", "1MiB"));
    assert_eq!(code, 3, "{stderr}");
    assert!(stderr.contains("BERTH_MEMORY_LIMIT"), "says which bound decided: {stderr}");
    // 4: parameters.
    let mut command = window("prove", &[]);
    let empty = scratch("no-parameters");
    command.env("BERTH_DEV_PARAMETERS", "off").env("BERTH_PARAMETER_CACHE", &empty);
    let (code, _, stderr) = run(&mut command);
    assert_eq!(code, 4, "{stderr}");
    let id = "0170db1f394b35d995252228ee359194b13199d259380541dc529fb0099096b0";
    for name in [format!("{id}.params"), format!("{id}.vk")] {
        assert!(stderr.contains(&name), "lists the file {name}: {stderr}");
    }
    fs::remove_dir_all(&empty).unwrap();
    // 5: input.
    let (code, _, stderr) = run(&mut berth(&["prove", c1, "--miner", "1"]));
    assert_eq!(code, 5);
    assert!(stderr.contains("replica id"), "{stderr}");
    assert_eq!(run(&mut berth(&["prove", "/nonexistent/c1.json"])).0, 5);
}

#[test]
fn wrong_miner_is_refused_within_a_second_and_before_any_slot() {
    let c1 = data("porep-2kib.c1.json");
    let began = std::time::Instant::now();
    let (code, _, stderr) = run(&mut berth(&["prove", c1.to_str().unwrap(), "--miner", "1038"]));
    assert_eq!(code, 5, "{stderr}");
    assert!(began.elapsed().as_secs_f64() < 5.0, "refused at once, {:?}", began.elapsed());
    assert!(!stderr.contains("arena"), "nothing was planned: {stderr}");
}

#[test]
fn a_refused_output_path_leaves_nothing() {
    let folder = scratch("output");
    let blocked = folder.join("is-a-folder");
    fs::create_dir(&blocked).unwrap();
    let (code, _, stderr) = run(&mut window("prove", &["--out", blocked.to_str().unwrap()]));
    assert_eq!(code, 3, "{stderr}");
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "no temporary file stays");
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_result_that_nobody_gets_is_no_success() {
    let full = || fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    for arguments in [&["params", "list"][..], &["plan", "--circuit", "window-2k", "--json"]] {
        let status = berth(arguments).stdout(full()).stderr(full()).status().unwrap();
        assert_eq!(status.code(), Some(3), "{arguments:?}");
    }
    // Nobody listens on standard error: the work goes on.
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = window("prove", &["--json"]);
    let output = command.stderr(writer).output().unwrap();
    assert!(output.status.success());
    assert!(String::from_utf8(output.stdout).unwrap().contains("\"verified\":true"));
}

#[test]
fn what_is_not_a_file_is_not_replaced() {
    let folder = scratch("not-a-file");
    let target = folder.join("target");
    fs::write(&target, b"kept").unwrap();
    let link = folder.join("link");
    std::os::unix::fs::symlink(&target, &link).unwrap();
    for path in [link.to_str().unwrap(), "/dev/full", folder.to_str().unwrap()] {
        let (code, _, stderr) = run(&mut window("prove", &["--out", path]));
        assert_eq!(code, 3, "{path}: {stderr}");
        assert!(!stderr.contains("plan"), "refused before the work: {stderr}");
    }
    assert_eq!(fs::read(&target).unwrap(), b"kept");
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn options_that_cannot_be_meant_are_refused() {
    assert_eq!(run(&mut window("verify", &["x", "--miner", "1022"])).0, 2);
    assert_eq!(run(&mut window("prove", &["--sector", "9"])).0, 2);
    assert_eq!(run(&mut window("prove", &["--registered-proof", "nonsense"])).0, 2);
    let c1 = data("porep-2kib.c1.json");
    let c1 = c1.to_str().unwrap();
    assert_eq!(run(&mut berth(&["prove", c1, "--vanilla", c1])).0, 2);
    let (code, _, stderr) =
        run(window("prove", &[]).env("BERTH_PARAMETER_CACHE", "/nonexistent/parameters"));
    assert_eq!(code, 4, "a slip in the name is no reason for dev parameters: {stderr}");
    assert!(stderr.contains("/nonexistent/parameters"), "{stderr}");
}

// I-46, and what looks official but was never published.
#[test]
fn unpublished_files_in_the_official_directory_are_refused() {
    let folder = scratch("unpublished");
    let (dev, official) = (folder.join("dev"), folder.join("official"));
    fs::create_dir(&official).unwrap();
    let proof = folder.join("proof");
    let mut prove = window("prove", &["--out", proof.to_str().unwrap()]);
    assert_eq!(run(prove.env("BERTH_DEV_PARAMETER_DIR", &dev)).0, 0);
    for entry in fs::read_dir(&dev).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if name.ends_with(".params") || name.ends_with(".vk") {
            fs::rename(entry.path(), official.join(name)).unwrap();
        }
    }
    let other = folder.join("other");
    for command in [window("prove", &[]), window("verify", &[proof.to_str().unwrap()])] {
        let mut command = command;
        command.env("BERTH_PARAMETER_CACHE", &official).env("BERTH_DEV_PARAMETER_DIR", &other);
        let (code, _, stderr) = run(&mut command);
        assert_eq!(code, 4, "{stderr}");
        assert!(stderr.contains("digest"), "{stderr}");
    }
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn too_little_address_space_is_an_error_not_a_crash() {
    use std::os::unix::process::CommandExt;
    let under = |limit: u64| {
        let mut command = window("prove", &[]);
        let limit = libc::rlimit { rlim_cur: limit, rlim_max: limit };
        // SAFETY: setrlimit is async-signal-safe and the closure touches nothing else.
        unsafe {
            command.pre_exec(move || match libc::setrlimit(libc::RLIMIT_AS, &limit) {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            })
        };
        run(command.env("BERTH_HUGEPAGES", "off"))
    };
    for limit in [100u64 << 20, 200 << 20] {
        let (code, _, stderr) = under(limit);
        assert_eq!(code, 3, "{stderr}");
        assert!(stderr.contains("ulimit -v"), "{stderr}");
    }
    // Where it just fits or just does not, threads are what is made last.
    for kilobytes in [300_000, 350_000, 400_000, 400_000, 400_000, 450_000] {
        let (code, _, stderr) = under(kilobytes << 10);
        assert!(code == 0 || code == 3, "{kilobytes} KB: {code}: {stderr}");
    }
}

#[test]
fn a_fault_of_the_meta_file_names_the_meta_file() {
    let folder = scratch("meta");
    let meta = folder.join("public.json");
    let text = fs::read_to_string(data("windowpost-2kib.meta.json")).unwrap();
    let mut values: serde_json::Value = serde_json::from_str(&text).unwrap();
    values.as_object_mut().unwrap().remove("randomness").unwrap();
    fs::write(&meta, values.to_string()).unwrap();
    let vanilla = data("windowpost-2kib.vanilla.json");
    let request = |vanilla: &str, meta: &str| {
        run(&mut berth(&["prove", "--kind", "window", "--vanilla", vanilla, "--meta", meta]))
    };
    let (code, _, stderr) = request(vanilla.to_str().unwrap(), meta.to_str().unwrap());
    assert_eq!(code, 5, "{stderr}");
    assert!(stderr.contains("public.json: meta.randomness"), "{stderr}");
    let broken = folder.join("broken.json");
    fs::write(&broken, "[\"AAAA\"]").unwrap();
    let meta = data("windowpost-2kib.meta.json");
    let (code, _, stderr) = request(broken.to_str().unwrap(), meta.to_str().unwrap());
    assert_eq!(code, 5, "{stderr}");
    assert!(stderr.contains("broken.json"), "{stderr}");
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_plan_is_of_a_file_or_of_names() {
    let c1 = data("porep-2kib.c1.json");
    let c1 = c1.to_str().unwrap();
    let (code, _, stderr) = run(&mut berth(&["plan", "--circuit", "porep-2k", c1]));
    assert_eq!(code, 2, "{stderr}");
    assert!(stderr.contains("give a C1 or --circuit, not both"), "{stderr}");
    let (code, _, stderr) = run(&mut berth(&["plan", "--circuit", "porep-3k"]));
    assert!(code == 2 && stderr.contains("unknown circuit"), "{stderr}");
    let (code, _, stderr) = run(&mut berth(&["plan"]));
    assert_eq!(code, 2, "{stderr}");
    assert!(stderr.contains("C1") && stderr.contains("--circuit"), "{stderr}");
}

#[test]
fn large_parameters_are_not_made_by_a_slip() {
    for circuit in ["porep-32g", "update-64g", "winning-32g"] {
        // The small one before it is not made either.
        let (code, _, stderr) =
            run(&mut berth(&["params", "make-dev", "window-2k", circuit, "--force"]));
        assert_eq!(code, 2, "{stderr}");
        for word in ["--large", circuit, "minutes", "free"] {
            assert!(stderr.contains(word), "no {word}: {stderr}");
        }
        assert!(!stderr.contains("making dev parameters"), "{stderr}");
    }
}

#[test]
fn parameters_that_the_disk_cannot_hold_are_not_begun() {
    use std::process::Command;
    let folder = scratch("small-disk");
    let script = "mount -t tmpfs -o size=1m none \"$0\" || exit 99; exec \"$@\"";
    for arguments in [vec!["params", "make-dev", "window-2k"], {
        let request = common::vanilla("window", "windowpost-2kib");
        vec!["prove".to_string()].into_iter().chain(request).map(|a| &*a.leak()).collect()
    }] {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount", "sh", "-c", script]);
        command.arg(&folder).arg(env!("CARGO_BIN_EXE_berth")).args(&arguments);
        command.env("BERTH_DEV_PARAMETER_DIR", &folder).env("BERTH_HUGEPAGES", "off");
        command.env("BERTH_PARAMETER_CACHE", folder.join(".."));
        let output = command.output().unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        if output.status.code() == Some(99) || told.contains("unshare:") {
            eprintln!("not run: no file system of its own can be mounted here: {told}");
            break;
        }
        assert_eq!(output.status.code(), Some(3), "{arguments:?}: {told}");
        assert!(told.contains("window-2k need 11.0 MiB (11,501,496) in"), "{told}");
        assert!(told.contains("are free there"), "{told}");
    }
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn plans_are_stable_json() {
    let c1 = data("porep-2kib.c1.json");
    let plan = |slots: &str| {
        json(berth(&["plan", c1.to_str().unwrap(), "--json"]).env("BERTH_SLOTS", slots))
    };
    let one = plan("1");
    for key in ["total_bytes", "slot_bytes", "slots", "partition_workers"] {
        assert!(one[key].is_u64(), "{key}: {one}");
    }
    for arena in one["arenas"].as_array().unwrap() {
        for key in ["node", "bytes", "page_bytes"] {
            assert!(arena[key].is_u64(), "arenas[].{key}: {arena}");
        }
    }
    let slot = one["slot_bytes"].as_u64().unwrap();
    assert!(slot <= 2 << 20, "a 2 KiB slot takes at most 2 MiB, not {slot}");
    // Arenas differ by the slot bytes alone, rounded up once to the page.
    let bytes = |plan: &serde_json::Value, purpose: &str| {
        let arenas = plan["arenas"].as_array().unwrap().clone();
        let of = arenas.iter().filter(|arena| arena["purpose"] == purpose);
        of.map(|arena| arena["bytes"].as_u64().unwrap()).sum::<u64>()
    };
    for slots in [1u64, 2, 4] {
        let plan = plan(&slots.to_string());
        let page = plan["arenas"][0]["page_bytes"].as_u64().unwrap();
        assert_eq!(bytes(&plan, "slots"), (slots * slot).next_multiple_of(page));
        for purpose in ["lane", "srs"] {
            assert_eq!(bytes(&plan, purpose), bytes(&one, purpose), "{purpose}");
        }
    }
}

#[test]
fn help_and_version_say_what_is_built_in() {
    let (code, stdout, _) = run(&mut berth(&["--version"]));
    assert_eq!(code, 0);
    assert!(stdout.contains("cuda: no"), "{stdout}");
    for command in ["prove", "verify", "plan", "params"] {
        let (code, stdout, _) = run(&mut berth(&[command, "--help"]));
        assert_eq!(code, 0);
        assert!(command == "params" || stdout.contains("Examples:"), "{command}: {stdout}");
    }
    let (code, _, stderr) = run(window("prove", &[]).env("BERTH_BACKEND", "cuda"));
    assert_eq!(code, 2, "a CPU build cannot do what is required: {stderr}");
}
