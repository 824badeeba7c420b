//! Each check in its forms, on made-up files of a host with two nodes (synthetic; those of the
//! driver are in the form of driver 580.159.04 beside an H200).

use super::*;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

mod lines;

/// The files of a host that has all that it should have; removed on drop.
struct Fixture(PathBuf);

const MOUNTS: &str =
    "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
const LIMITS: &str = "Limit  Soft Limit  Hard Limit  Units\n\
                      Max open files            65536                65536                files\n\
                      Max locked memory         unlimited            unlimited            bytes\n";
const STATUS: &str = "Name:\tberth\nCapEff:\t0000000000000000\n\
                      Cpus_allowed_list:\t0-7\nMems_allowed_list:\t0-1\n";
const CARDS: [(&str, usize); 2] = [("0000:17:00.0", 0), ("0000:65:00.0", 1)];
const UUID: &str = "GPU-00000000-1111-2222-3333-444444444444";
const MODULE: &str = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release \
                      Build  (builder@host)  \nGCC version:  gcc version 15.3.0 (GCC) \n";

impl Fixture {
    fn new() -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("berth-doctor-{}-{number}", std::process::id());
        let fixture = Fixture(std::env::temp_dir().join(name));
        for folder in ["parameters", "state"] {
            std::fs::create_dir_all(fixture.0.join(folder)).unwrap();
        }
        for (path, text) in [
            ("proc/sys/kernel/osrelease", "6.1.0-28-amd64\n"),
            ("proc/sys/kernel/numa_balancing", "0\n"),
            ("proc/sys/vm/zone_reclaim_mode", "0\n"),
            ("proc/swaps", "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"),
            ("proc/meminfo", "MemTotal: 128 kB\nMemFree: 1 kB\nMemAvailable: 134217728 kB\n"),
            ("proc/self/status", STATUS),
            ("proc/self/limits", LIMITS),
            ("proc/self/cgroup", "0::/berth\n"),
            ("proc/self/mountinfo", MOUNTS),
            ("proc/self/numa_maps", "55d1d2b9e000 default file=/usr/bin/berth mapped=2 N0=2\n"),
            ("sys/devices/system/cpu/online", "0-7\n"),
            ("sys/devices/system/cpu/isolated", "\n"),
            ("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"),
            ("sys/kernel/mm/transparent_hugepage/hpage_pmd_size", "2097152\n"),
            (
                "sys/kernel/mm/transparent_hugepage/defrag",
                "always defer defer+madvise [madvise] never\n",
            ),
        ] {
            fixture.file(path, text);
        }
        for cpu in 0..8 {
            let folder = format!("sys/devices/system/cpu/cpu{cpu}");
            let siblings = format!("{},{}\n", cpu / 2 * 2, cpu / 2 * 2 + 1);
            fixture.file(&format!("{folder}/topology/thread_siblings_list"), &siblings);
            fixture.file(&format!("{folder}/cpufreq/scaling_governor"), "performance\n");
        }
        for (node, cpus) in [(0, "0-3\n"), (1, "4-7\n")] {
            let folder = format!("sys/devices/system/node/node{node}");
            fixture.file(&format!("{folder}/cpulist"), cpus);
            let meminfo = ["MemTotal", "MemFree", "Active(file)", "Inactive(file)"]
                .iter()
                .zip([67_108_864, 50_331_648, 0, 0])
                .map(|(key, kilobytes)| format!("Node {node} {key}: {kilobytes} kB\n"));
            fixture.file(&format!("{folder}/meminfo"), &meminfo.collect::<String>());
            fixture.pool(node, 2048, 1024, 1000);
            fixture.pool(node, 1_048_576, 0, 0);
        }
        fixture
    }

    fn file(&self, path: &str, text: &str) {
        let path = self.0.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn remove(&self, path: &str) {
        let path = self.0.join(path);
        if path.is_dir() {
            std::fs::remove_dir_all(path).unwrap();
        } else {
            std::fs::remove_file(path).unwrap();
        }
    }

    fn pool(&self, node: usize, kilobytes: usize, total: usize, free: usize) {
        let folder =
            format!("sys/devices/system/node/node{node}/hugepages/hugepages-{kilobytes}kB");
        self.file(&format!("{folder}/nr_hugepages"), &format!("{total}\n"));
        self.file(&format!("{folder}/free_hugepages"), &format!("{free}\n"));
    }

    /// Two cards with all that belongs to them, but libcuda.
    fn cards(&self) {
        self.file("proc/driver/nvidia/version", MODULE);
        for file in ["nvidiactl", "nvidia-uvm", "nvidia0", "nvidia1"] {
            self.file(&format!("dev/{file}"), "");
        }
        for (minor, (address, node)) in CARDS.iter().enumerate() {
            let information = format!(
                "Model: \t\t NVIDIA H200\nIRQ:   \t\t 41\nGPU UUID: \t {UUID}\n\
                 Bus Location: \t {address}\nDevice Minor: \t {minor}\n"
            );
            self.file(&format!("proc/driver/nvidia/gpus/{address}/information"), &information);
            for (name, text) in [
                ("vendor", "0x10de"),
                ("device", "0x2335"),
                ("class", "0x030200"),
                ("numa_node", &node.to_string()),
                ("current_link_speed", "32.0 GT/s PCIe"),
                ("max_link_speed", "32.0 GT/s PCIe"),
                ("current_link_width", "16"),
                ("max_link_width", "16"),
            ] {
                self.device(address, name, text);
            }
        }
        // A switch of the same vendor is no card.
        self.device("0000:10:00.0", "vendor", "0x10de");
        self.device("0000:10:00.0", "class", "0x068000");
    }

    fn device(&self, address: &str, name: &str, text: &str) {
        self.file(&format!("sys/bus/pci/devices/{address}/{name}"), &format!("{text}\n"));
    }

    fn config(&self, settings: &[(&str, &str)]) -> Config {
        let folder = |name| self.0.join(name).into_os_string();
        let mut vars = vec![
            ("BERTH_PARAMETER_CACHE".into(), folder("parameters")),
            ("BERTH_STATE_DIR".into(), folder("state")),
        ];
        vars.extend(settings.iter().map(|(name, value)| ((*name).into(), (*value).into())));
        Config::from_env(vars.into_iter()).unwrap()
    }

    /// All checks under these settings, for these circuits.
    fn checks(&self, settings: &[(&str, &str)], circuits: &[&str]) -> Vec<Check> {
        let ids: Vec<CircuitId> = circuits.iter().map(|name| name.parse().unwrap()).collect();
        let checks = examine(&self.config(settings), &self.0, &ids);
        for check in &checks {
            let mends = check.remedy.is_some();
            assert_eq!(mends, check.status != Status::Ok, "bad news with what mends it: {check:?}");
        }
        checks
    }

    /// The worst check of a name must be so, and its fact and remedy must hold the texts.
    #[track_caller]
    fn expect(&self, settings: &[(&str, &str)], name: &str, status: Status, texts: &[&str]) {
        let checks = self.checks(settings, &[]);
        let named = checks.iter().filter(|check| check.name == name);
        let check = named.max_by_key(|check| check.status).unwrap_or_else(|| panic!("no {name}"));
        let told = format!("{} -> {}", check.fact, check.remedy.as_deref().unwrap_or_default());
        assert_eq!(check.status, status, "{told}");
        for text in texts {
            assert!(told.contains(text), "{text:?} is not in: {told}");
        }
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

use Status::{Error as Bad, Ok as Good, Warning as Warn};

const STRICT: [(&str, &str); 3] =
    [("BERTH_HUGEPAGES", "2M"), ("BERTH_NUMA", "strict"), ("BERTH_LOCK", "strict")];

#[test]
fn a_good_host_is_good_and_fits_one_screen() {
    let fixture = Fixture::new();
    let checks = fixture.checks(&STRICT, &[]);
    let bad: Vec<_> = checks.iter().filter(|check| check.status != Good).collect();
    assert!(bad.iter().all(|check| check.name == "parameters"), "{bad:?}");
    fixture.cards();
    let text = screen(&fixture.checks(&STRICT, &["window-2k"]));
    assert!(text.lines().count() <= 40, "{text}");
    for check in fixture.checks(&[("BERTH_BACKEND", "cpu")], &[]) {
        assert!(check.status == Good || check.name == "parameters", "{check:?}");
    }
}

#[test]
fn a_sandbox_that_says_little_makes_no_error() {
    let fixture = Fixture::new();
    for folder in ["proc", "sys"] {
        fixture.remove(folder);
    }
    fixture.file("proc/meminfo", "MemTotal: 9 kB\nMemFree: 4096 kB\nMemAvailable: 4096 kB\n");
    fixture.file("proc/self/status", "Name:\tberth\n");
    fixture.file("sys/devices/system/cpu/online", "0\n");
    let checks = fixture.checks(&[], &[]);
    assert!(checks.iter().all(|check| check.status < Bad), "{checks:?}");
    // Nothing at all: the lines that can be had are printed, and one error.
    fixture.remove("proc");
    fixture.expect(&[], "nodes", Bad, &["proc/meminfo", "collect that file", "doctor --help"]);
    fixture.expect(&[], "kernel", Good, &["not told"]);
    let missing = std::io::Error::from(ErrorKind::NotFound);
    let remedy = unread(Path::new("/"), &missing).remedy.unwrap();
    assert_eq!(remedy, "mount proc on /proc and sysfs on /sys");
}

#[test]
fn a_file_that_no_kernel_writes_is_named() {
    for (file, text) in [
        ("sys/fs/cgroup/berth/memory.max", "lots\n"),
        ("sys/fs/cgroup/berth/hugetlb.2MB.max", "-7\n"),
        ("sys/devices/system/cpu/online", "0-x\n"),
        ("proc/self/limits", "Max locked memory  many many bytes\n"),
    ] {
        let fixture = Fixture::new();
        fixture.file(file, text);
        let path = fixture.0.join(file);
        let remedy = format!("-> look at {}: no kernel writes that", path.display());
        fixture.expect(&[], "nodes", Bad, &["cannot read the host: ", &remedy]);
    }
}

#[test]
fn plans_are_made_when_they_are_cheap_or_asked_for() {
    let fixture = Fixture::new();
    fixture.expect(&[], "plan", Good, &["not made", "--circuit"]);
    fixture.expect(&[("BERTH_CIRCUITS", "porep-32g")], "plan", Good, &["not made"]);
    let small = ("BERTH_CIRCUITS", "window-2k");
    let near = [small, ("BERTH_NUMA", "off")];
    fixture.expect(&near, "plan", Good, &["window-2k: ", "hugepages of 2 MiB"]);
    for node in 0..2 {
        fixture.pool(node, 2048, 1, 1);
    }
    fixture.expect(&near, "plan", Warn, &["berth unit --circuit window-2k`"]);
    let strict = [small, ("BERTH_HUGEPAGES", "2M")];
    fixture.expect(&strict, "plan", Bad, &["need", "free", "berth unit"]);
    let limit = [small, ("BERTH_MEMORY_LIMIT", "1MiB")];
    fixture.expect(&limit, "plan", Bad, &["-> a greater BERTH_MEMORY_LIMIT", "BERTH_SLOTS"]);
    let one = [small, ("BERTH_HUGEPAGES", "1G"), ("BERTH_NUMA", "off")];
    fixture.expect(&one, "plan", Bad, &["hugepagesz=1G hugepages=0:3 on the kernel"]);
    let two = fixture.checks(&[("BERTH_HUGEPAGES", "2M")], &["window-2k", "porep-2k"]);
    let remedies: String = two.iter().filter_map(|check| check.remedy.clone()).collect();
    assert!(remedies.contains("`berth unit --circuit porep-2k window-2k`"), "{remedies}");
    assert!(!remedies.contains(".."), "{remedies}");
    fixture.file("proc/meminfo", "MemTotal: 9 kB\nMemFree: 9 kB\nMemAvailable: 9 kB\n");
    // What this process has already counts as there, so the need is far beyond that.
    let many = [small, near[1], ("BERTH_SLOTS", "30000")];
    fixture.expect(&many, "plan", Bad, &["-> more memory, fewer slots"]);
    let named = fixture.checks(&[], &["window-2k", "window-2k"]);
    assert!(named.iter().any(|check| check.fact.starts_with("window-2k: ")), "{named:?}");
}

#[test]
fn parameters_and_state() {
    let fixture = Fixture::new();
    fixture.expect(&[], "parameters", Warn, &["no official ones in", "berth params list"]);
    let small = [("BERTH_CIRCUITS", "window-2k")];
    let dev = [small[0], ("BERTH_DEV_PARAMETER_DIR", "/nonexistent/dev")];
    fixture.expect(&dev, "parameters", Warn, &["window-2k: none in", "dev parameters"]);
    fixture.expect(&small, "parameters", Bad, &["window-2k: none in"]);
    let large = [("BERTH_CIRCUITS", "porep-32g"), dev[1]];
    fixture.expect(&large, "parameters", Bad, &["porep-32g: none in", "--circuit porep-32g"]);
    let id = "window-2k".parse().unwrap();
    let names = [crate::srs::names::params(id), crate::srs::names::vk(id)];
    for name in &names {
        fixture.file(&format!("parameters/{name}"), "");
    }
    fixture.expect(&small, "parameters", Good, &["window-2k: official"]);
    fixture.expect(&[], "parameters", Good, &["official of window-2k"]);
    fixture.remove(&format!("parameters/{}", names[1]));
    fixture.expect(&[], "parameters", Bad, &[&names[1]]);

    fixture.expect(&[], "state", Good, &["can be written"]);
    fixture.remove("state");
    let path = fixture.0.join("state");
    let make = format!("; install -d -o berth -g berth -m 750 {}", path.display());
    fixture.expect(&[], "state", Warn, &["is not there", "-> useradd -r -U ", &make]);
    let spaced = [("BERTH_STATE_DIR", "/nonexistent/it's here")];
    fixture.expect(&spaced, "state", Warn, &["-m 750 '/nonexistent/it'\\''s here'"]);
    fixture.file("state", "");
    fixture.expect(&[], "state", Bad, &["not a directory", "BERTH_STATE_DIR"]);
}
