use super::*;
use crate::host::{MemoryBound, Node};

const MIB: usize = 1 << 20;

fn config(settings: &[(&str, &str)]) -> Config {
    Config::from_env(settings.iter().map(|(name, value)| ((*name).into(), (*value).into())))
        .unwrap()
}

/// Two nodes of two cores and 4 GiB each, without hugepages, that let nothing be locked.
fn host() -> Host {
    let node = |id: usize| Node {
        id,
        distances: Vec::new(),
        cores: vec![vec![2 * id], vec![2 * id + 1]],
        memory_available_bytes: 4 << 30,
        hugepages: vec![numa::HugePages { page_bytes: 2 * MIB, total: 0, free: 0 }],
    };
    Host {
        nodes: vec![node(0), node(1)],
        numa: true,
        base_page_bytes: 4096,
        transparent_bytes: Some(2 * MIB),
        lock_bytes: Some(0),
        memory: MemoryBound { bytes: 8 << 30, by: "the free memory of the host".to_owned() },
        ..Host::default()
    }
}

fn window() -> Vec<CircuitId> {
    vec!["window-2k".parse().unwrap()]
}

fn planned(settings: &[(&str, &str)], host: &Host) -> Result<Needs> {
    needs(&config(settings), host, window())
}

/// Needs as they would be for a large circuit on two nodes.
fn made_up() -> Needs {
    Needs {
        program: "/opt/berth 1/100%/$x".to_owned(),
        circuits: vec!["porep-32g".parse().unwrap(), "update-32g".parse().unwrap()],
        settings: vec![
            ("BERTH_NUMA", "strict".into()),
            ("BERTH_PARAMETER_CACHE", "/srv/a \"b\" 50%".into()),
        ],
        pools: vec![
            Pool { node: 0, page_bytes: 1 << 30, pages: 50 },
            Pool { node: 1, page_bytes: 2 << 20, pages: 700 },
        ],
        numa: true,
        arena_bytes: 55_000_000_000,
        srs_bytes: 47_373_928_632,
        serves: false,
    }
}

const SERVICE_TEXT: &str = r##"# Once: useradd -r -U -d /var/lib/berth -s /usr/sbin/nologin berth

[Unit]
Description=Berth, a Filecoin prover
Requires=berth-hugepages.service
After=berth-hugepages.service network.target nvidia-persistenced.service
StartLimitIntervalSec=600
StartLimitBurst=3

[Service]
Type=notify
# The build that printed this has no command serve: it exits with 2.
ExecStart="/opt/berth 1/100%%/$x" serve
Environment=BERTH_NUMA=strict
Environment="BERTH_PARAMETER_CACHE=/srv/a \"b\" 50%%"
User=berth
Group=berth
Restart=on-failure
RestartSec=10
# Settings and parameters that are wrong stay wrong.
RestartPreventExitStatus=2 4
# Parameters are read twice at the first start, at 100 MB/s or more.
TimeoutStartSec=1247
# BERTH_DRAIN_TIMEOUT and a minute.
TimeoutStopSec=960
WatchdogSec=60
# All arenas, rounded up to pages. What is in hugetlb pages is not counted by the kernel;
# the rest, or all of it with BERTH_HUGEPAGES=off, is locked.
LimitMEMLOCK=55000000000
LimitNOFILE=65536
# A core would be as large as the arenas.
LimitCORE=0
MemorySwapMax=0
OOMScoreAdjust=-900
RuntimeDirectory=berth
StateDirectory=berth
CapabilityBoundingSet=
NoNewPrivileges=yes
ProtectSystem=strict
ProtectHome=read-only
ProtectKernelTunables=yes
ProtectKernelModules=yes
ProtectKernelLogs=yes
ProtectControlGroups=yes
ProtectHostname=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
SystemCallArchitectures=native

[Install]
WantedBy=multi-user.target
"##;

#[track_caller]
fn same_lines(text: &str, expected: &str) {
    let (lines, expected): (Vec<_>, Vec<_>) = (text.lines().collect(), expected.lines().collect());
    for (number, (line, expected)) in lines.iter().zip(&expected).enumerate() {
        assert_eq!(line, expected, "line {}", number + 1);
    }
    assert_eq!(lines.len(), expected.len());
}

#[test]
fn the_service_line_by_line() {
    let text = service::text(&made_up(), &config(&[("BERTH_DRAIN_TIMEOUT", "900")]));
    let (first, rest) = text.split_once('\n').unwrap();
    assert!(first.ends_with("berth unit --circuit porep-32g update-32g"), "{first}");
    let (second, rest) = rest.split_once('\n').unwrap();
    assert!(second.starts_with("# Print it anew"), "{second}");
    same_lines(rest, SERVICE_TEXT);

    let needs = Needs { serves: true, pools: Vec::new(), ..made_up() };
    let text = service::text(&needs, &config(&[]));
    assert!(!text.contains("no command serve"), "{text}");
    assert!(
        !text.contains("berth-hugepages")
            && text.contains("\nAfter=network.target nvidia-persistenced")
    );
}

#[test]
fn the_service_may_write_where_it_must() {
    let folders = |settings: &[(&str, &str)]| {
        let text = service::text(&made_up(), &config(settings));
        let lines = text.lines().filter(|line| {
            line.starts_with("StateDirectory=") || line.starts_with("ReadWritePaths=")
        });
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(folders(&[("BERTH_STATE_DIR", "/var/lib/a/b")]), ["StateDirectory=a/b"]);
    assert_eq!(folders(&[("BERTH_STATE_DIR", "/srv/state")]), ["ReadWritePaths=/srv/state"]);
    assert_eq!(folders(&[("BERTH_STATE_DIR", "/var/lib")]), ["ReadWritePaths=/var/lib"]);
    let sockets = [
        ("BERTH_LISTEN", "unix:///run/berth/grpc.sock"),
        ("BERTH_HTTP_LISTEN", "unix:///run/other/http.sock"),
        ("BERTH_DEV_PARAMETER_DIR", "/srv/berth/dev"),
    ];
    let expected =
        ["StateDirectory=berth", "ReadWritePaths=/run/other", "ReadWritePaths=/srv/berth"];
    assert_eq!(folders(&sockets), expected);
    let text = service::text(&made_up(), &config(&sockets));
    let (before, _) = text.split_once("ReadWritePaths=").unwrap();
    assert!(before.lines().last().unwrap().starts_with("# host is closed to writing."), "{text}");
}

#[test]
fn the_one_shot_names_every_pool() {
    let text = pages::text(&made_up());
    for line in [
        "Before=berth.service shutdown.target",
        "Type=oneshot",
        "RemainAfterExit=yes",
        "  devices/system/node/node0 1048576 50 \\",
        "  devices/system/node/node1 2048 700",
        "WantedBy=sysinit.target",
    ] {
        assert_eq!(text.lines().filter(|l| *l == line).count(), 1, "{line} in {text}");
    }
    // What systemd would take for something of its own.
    let (_, script) = text.split_once("-c '").unwrap();
    let (script, _) = script.split_once('\'').unwrap();
    assert!(!script.contains('%') && script.replace("\\\n", "").find('\\').is_none(), "{script}");
    assert_eq!(script.matches('$').count(), 2 * script.matches("$$").count(), "{script}");
    let flat = Needs { numa: false, ..made_up() };
    assert!(pages::text(&flat).contains("  kernel/mm 1048576 50 \\\n"));
}

#[test]
fn pages_are_planned_that_are_not_reserved_yet() {
    let needs = planned(&[], &host()).unwrap();
    let pages: usize = needs.pools.iter().map(|pool| pool.pages).sum();
    assert!(pages > 0 && needs.pools.iter().all(|pool| pool.page_bytes == 2 * MIB));
    assert_eq!(needs.arena_bytes, pages * 2 * MIB, "all arenas are in these pages");
    let settings = [
        ("BERTH_NUMA", "strict"),
        ("BERTH_HUGEPAGES", "2M"),
        ("BERTH_LOCK", "strict"),
        ("BERTH_CIRCUITS", "window-2k"),
    ];
    let told: Vec<_> = needs.settings.iter().map(|(name, value)| (*name, &**value)).collect();
    assert_eq!(told, settings);

    // A pool that holds some already changes nothing of the sum.
    let mut some = host();
    some.nodes[0].hugepages[0] = numa::HugePages { page_bytes: 2 * MIB, total: 9, free: 3 };
    assert_eq!(planned(&[], &some).unwrap().pools, needs.pools);

    // Each node has its own, and the plan of the service, made on what is then there, is the same.
    assert_eq!(needs.pools.iter().map(|pool| pool.node).collect::<Vec<_>>(), [0, 1]);
    let after = reserved(&host(), 2 * MIB, &needs.pools);
    for (node, pool) in after.nodes.iter().zip(&needs.pools) {
        assert_eq!(node.hugepages[0].free, pool.pages);
        let taken = (pool.pages * 2 * MIB) as u64;
        assert_eq!(node.memory_available_bytes, (4 << 30) - taken);
    }
    assert_eq!(after.memory.bytes, (8 << 30) - (pages * 2 * MIB) as u64);

    let needs = planned(&[("BERTH_HUGEPAGES", "1G")], &host()).unwrap();
    assert!(needs.pools.iter().all(|pool| pool.page_bytes == 1 << 30), "{:?}", needs.pools);
}

#[test]
fn what_is_set_is_kept() {
    let set = [
        ("BERTH_NUMA", "auto"),
        ("BERTH_HUGEPAGES", "off"),
        ("BERTH_SLOTS", "2"),
        ("BERTH_CIRCUITS", "porep-32g"),
        ("FIL_PROOFS_PARAMETER_CACHE", "/srv/parameters"),
        ("HOME", "/home/operator"),
    ];
    let needs = planned(&set, &host()).unwrap();
    assert_eq!(needs.pools, [], "no hugepages were wanted");
    let mut told: Vec<_> = needs.settings.iter().map(|(name, value)| (*name, &**value)).collect();
    told.sort_unstable();
    let expected = [
        ("BERTH_CIRCUITS", "window-2k"),
        ("BERTH_HUGEPAGES", "off"),
        ("BERTH_LOCK", "strict"),
        ("BERTH_NUMA", "auto"),
        ("BERTH_PARAMETER_CACHE", "/srv/parameters"),
        ("BERTH_SLOTS", "2"),
    ];
    assert_eq!(told, expected);
}

#[test]
fn what_can_never_be_is_refused() {
    let refusal = |settings: &[(&str, &str)], host: &Host| {
        let error = planned(settings, host).err().expect("it does not fit");
        assert_eq!(error.exit_code(), 3, "{error}");
        error.to_string()
    };
    let mut small = host();
    for node in &mut small.nodes {
        node.memory_available_bytes = 4 << 20;
    }
    let told = refusal(&[], &small);
    assert!(told.contains("not even with all") && told.contains("node 0: need"), "{told}");
    let free = "hugepages of 2 MiB (";
    assert!(told.contains(free) && told.contains("has free are 2 (4 MiB)"), "{told}");
    assert!(told.contains("and these nodes have 8 MiB"), "{told}");
    assert!(!told.contains("early") && !told.contains("nr_hugepages"), "no help here: {told}");
    // The pages could be had, but nothing would be left for the rest.
    let many = [("BERTH_SLOTS", "1000")];
    let mut tight = host();
    tight.nodes.truncate(1);
    tight.memory.bytes = planned(&many, &tight).unwrap().arena_bytes as u64;
    let told = refusal(&many, &tight);
    assert!(told.contains("with its hugepages reserved") && told.contains("there are"), "{told}");

    for name in ["BERTH_STATE_DIR", "BERTH_PARAMETER_CACHE", "BERTH_DEV_PARAMETER_DIR"] {
        let error = paths::check(&config(&[(name, "here")])).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().contains(name), "{error}");
    }
}

/// Seen with `systemd-analyze verify`: lines with such paths are ignored, or mean something else.
#[test]
fn paths_that_a_unit_cannot_say_are_refused() {
    let told = |name: &str, value: &str| {
        let error = paths::check(&config(&[(name, value)])).err()?;
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().contains(&format!(" {name} ")), "{error}");
        Some(error.to_string())
    };
    for name in ["BERTH_STATE_DIR", "BERTH_PARAMETER_CACHE", "BERTH_DEV_PARAMETER_DIR"] {
        for path in ["/var/lib/../x", "/srv/./x", "/srv/x/.", "/.."] {
            assert!(told(name, path).is_some_and(|why| why.contains("without . and ..")), "{path}");
        }
        assert_eq!(told(name, "/srv/..x/a.b/..."), None);
    }
    for name in ["BERTH_LISTEN", "BERTH_HTTP_LISTEN"] {
        for path in ["/run/berth/../x", "/run/berth/./x", "/run/a\"b/x", "/run/a\\b/x", "/x"] {
            assert!(told(name, &format!("unix://{path}")).is_some(), "{path}");
        }
        assert_eq!(told(name, "unix:///run/berth/x"), None);
        assert_eq!(told(name, "unix:///run/other/x"), None);
    }
    for path in ["/var/lib/a\"b", "/var/lib/a\\b", "/var/lib/a:b", "/srv/a\"b"] {
        assert!(told("BERTH_STATE_DIR", path).is_some_and(|why| why.contains("colon")), "{path}");
    }
    let all = |name, path| told(name, path).is_some_and(|why| why.contains("all of the host"));
    assert!(all("BERTH_STATE_DIR", "/") && all("BERTH_STATE_DIR", "//"));
    assert!(all("BERTH_DEV_PARAMETER_DIR", "/dev-parameters"));
    assert!(all("BERTH_DEV_PARAMETER_DIR", "/") && all("BERTH_LISTEN", "unix:///berth.sock"));
    let foreign = config(&[("FIL_PROOFS_PARAMETER_CACHE", "/srv/../x")]);
    assert!(paths::check(&foreign).is_err(), "the unit names what it says");
    // What a unit does not say is nobody's matter.
    assert!(paths::check(&config(&[("HOME", "/home/../x")])).is_ok());
    assert!(paths::check(&config(&[])).is_ok());
}

#[test]
fn programs_that_systemd_starts() {
    use std::os::unix::ffi::OsStrExt;
    for path in ["/usr/bin/berth", "/opt/a b/100%/$x;y"] {
        assert_eq!(paths::program(Path::new(path)).unwrap(), path);
    }
    for bytes in [&b"/a\"b"[..], b"/a'b", b"/a\\b", b"/a\nb", b"/a\x7fb", b"/a\xffb"] {
        let path = Path::new(std::ffi::OsStr::from_bytes(bytes));
        let error = paths::program(path).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().contains("copy it elsewhere"), "{error}");
    }
}

#[test]
fn units_are_written_both_or_not_at_all() {
    let folder = std::env::temp_dir().join(format!("berth-unit-out-{}", std::process::id()));
    std::fs::create_dir_all(folder.join(PAGES)).unwrap();
    let units = [(SERVICE, "a".to_owned()), (PAGES, "b".to_owned())];
    for bad in ["a folder", "a link"] {
        let error = write(&folder, &units).unwrap_err();
        assert!(error.exit_code() == 3 && error.to_string().contains(PAGES), "{bad}: {error}");
        assert!(!folder.join(SERVICE).exists(), "{bad}: not one without the other");
        let _ = std::fs::remove_dir(folder.join(PAGES));
        let _ = std::fs::remove_file(folder.join(PAGES));
        std::os::unix::fs::symlink("/dev/null", folder.join(PAGES)).unwrap();
    }
    std::fs::remove_file(folder.join(PAGES)).unwrap();
    write(&folder, &units).unwrap();
    assert_eq!(std::fs::read_to_string(folder.join(PAGES)).unwrap(), "b");
    assert_eq!(std::fs::read_to_string(folder.join(SERVICE)).unwrap(), "a");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn circuits_are_named_enabled_or_found() {
    let folder = std::env::temp_dir().join(format!("berth-unit-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let cache = ("BERTH_PARAMETER_CACHE", folder.to_str().unwrap());
    let named = |settings: &[(&str, &str)], names: &[&str]| {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let ids = circuits(&config(settings), &names)?;
        Ok::<_, Error>(ids.iter().map(CircuitId::to_string).collect::<Vec<_>>())
    };
    let enabled = [cache, ("BERTH_CIRCUITS", "porep-2k")];
    assert_eq!(named(&enabled, &["window-2k", "window-2k"]).unwrap(), ["window-2k"]);
    assert_eq!(named(&enabled, &[]).unwrap(), ["porep-2k"]);
    let error = named(&[cache], &[]).unwrap_err();
    assert!(error.exit_code() == 2 && error.to_string().contains("--circuit"), "{error}");
    let id = window()[0];
    for name in [crate::srs::names::params(id), crate::srs::names::vk(id)] {
        std::fs::write(folder.join(name), "").unwrap();
    }
    assert_eq!(named(&[cache], &[]).unwrap(), ["window-2k"]);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn words_of_a_unit() {
    for (text, expected) in [
        ("A=b", "A=b"),
        ("A=b c", "\"A=b c\""),
        ("A=\"\\", "\"A=\\\"\\\\\""),
        ("A=5%", "A=5%%"),
        ("A=\n", "\"A=\\n\""),
        ("", "\"\""),
    ] {
        assert_eq!(word(text), expected);
    }
}
