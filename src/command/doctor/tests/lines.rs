//! The lines of kernel, processors, memory and cards.

use super::*;

#[test]
fn kernels() {
    let fixture = Fixture::new();
    let release = |text: &str| fixture.file("proc/sys/kernel/osrelease", text);
    fixture.expect(&[], "kernel", Good, &["6.1.0-28-amd64"]);
    release("5.14.0-503.el9.x86_64\n");
    fixture.expect(&[], "kernel", Good, &["5.14.0"]);
    release("5.10.0-33-amd64\n");
    fixture.expect(&[], "kernel", Warn, &["5.10.0", "SIGBUS", "5.14 or later"]);
    release("4.4.0-210-generic\n");
    fixture.expect(&[], "kernel", Warn, &["4.4.0-210", "5.14"]);
    release("4.4.0\n");
    fixture.expect(&[], "kernel", Warn, &["gVisor", "no hugepages", "runc"]);
    for strict in STRICT {
        fixture.expect(&[strict], "kernel", Bad, &["gVisor"]);
    }
}

#[test]
fn settings_of_the_kernel() {
    let fixture = Fixture::new();
    fixture.file("proc/sys/vm/zone_reclaim_mode", "1\n");
    fixture.expect(&[], "zone reclaim", Warn, &["mode 1", "sysctl -w vm.zone_reclaim_mode=0"]);
    fixture.file("proc/sys/kernel/numa_balancing", "1\n");
    fixture.expect(&[], "NUMA balancing", Warn, &["sysctl -w kernel.numa_balancing=0"]);
    fixture.file("proc/self/numa_maps", "55d1d2b9e000 interleave:0-1 file=/usr/bin/berth\n");
    fixture.expect(&[], "NUMA policy", Warn, &["interleave:0-1", "numactl"]);
    fixture.remove("sys/devices/system/node/node1");
    fixture.expect(&[], "NUMA balancing", Good, &["without effect"]);
    fixture.file(
        "proc/swaps",
        "Filename Type Size Used Priority\n/dev/nvme0n1p3 partition 8388604 0 -2\n",
    );
    fixture.expect(&[], "swap", Warn, &["/dev/nvme0n1p3 (8.0 GiB)", "swapoff", "MemorySwapMax=0"]);
}

#[test]
fn nodes_and_cpus() {
    let fixture = Fixture::new();
    let checks = fixture.checks(&[], &[]);
    let nodes: Vec<_> = checks.iter().filter(|check| check.name == "node").collect();
    let fact = "4 CPUs, 2 cores, SMT on; 64 GiB memory, 48 GiB available";
    assert_eq!(nodes[0].fact, format!("0: {fact}"));
    assert_eq!(nodes[1].fact, format!("1: {fact}"));

    fixture.file("proc/meminfo", "MemTotal: 1 kB\nMemFree: 1 kB\nMemAvailable: 268435456 kB\n");
    let texts = ["have 128 GiB of the 256 GiB", "BERTH_NUMA=auto"];
    fixture.expect(&[], "nodes", Warn, &texts);

    fixture.file("sys/devices/system/cpu/isolated", "2-3,6-7\n");
    fixture.file("sys/devices/system/cpu/nohz_full", "6-7\n");
    fixture.expect(&[], "isolated CPUs", Good, &["isolcpus 2-3,6-7, nohz_full 6-7"]);
    let status = |cpus: &str, nodes: &str| {
        let text = STATUS.replace("\t0-7\n", &format!("\t{cpus}\n"));
        fixture.file("proc/self/status", &text.replace("\t0-1\n", &format!("\t{nodes}\n")));
    };
    status("0-1,4-5", "0-1");
    fixture.expect(&[], "isolated CPUs", Warn, &["may not run on 2-3,6-7", "CPUAffinity=2-3,6-7"]);
    fixture.expect(&[], "node", Good, &["only CPUs 4-5 allowed"]);
    status("0-3", "0");
    fixture.expect(&[], "node", Good, &["closed to this process"]);
    let memory = "MemTotal: 1 kB\nMemFree: 1 kB\nMemAvailable: 134217728 kB\n";
    fixture.file("proc/meminfo", memory);
    status("0-3", "1");
    fixture.expect(&[], "nodes", Warn, &["no node has both", "AllowedMemoryNodes="]);
    let strict = [("BERTH_NUMA", "strict")];
    fixture.expect(&strict, "nodes", Bad, &["no node has both", "AllowedMemoryNodes="]);
    // What is only a warning can be planned; what is an error cannot.
    let planned = fixture.checks(&[("BERTH_NUMA", "auto")], &["window-2k"]);
    assert!(planned.iter().all(|check| check.name != "plan" || check.status < Bad), "{planned:?}");
    status("", "0-1");
    fixture.expect(&[], "nodes", Bad, &["none has CPUs"]);
    status("0-7", "");
    fixture.expect(&[], "nodes", Bad, &["none has memory"]);

    fixture.file("sys/devices/system/cpu/cpu3/cpufreq/scaling_governor", "powersave\n");
    status("0-7", "0-1");
    let texts = ["performance on 7 CPUs, powersave on 1 CPUs", "cpupower frequency-set"];
    fixture.expect(&[], "CPU governor", Warn, &texts);
    for cpu in 0..8 {
        fixture.remove(&format!("sys/devices/system/cpu/cpu{cpu}/cpufreq"));
    }
    fixture.expect(&[], "CPU governor", Good, &["virtual machine"]);
}

#[test]
fn pools_of_hugepages() {
    let fixture = Fixture::new();
    let two = ["node 0: 1000 of 1024 of 2 MiB free; node 1: 1000 of 1024 of 2 MiB free"];
    fixture.expect(&[], "hugepages", Good, &two);
    fixture.expect(&[("BERTH_HUGEPAGES", "2M")], "hugepages", Good, &[]);
    let texts = ["none of 1 GiB (BERTH_HUGEPAGES) is free on node 0-1", "hugepages-1048576kB"];
    fixture.expect(&[("BERTH_HUGEPAGES", "1G")], "hugepages", Bad, &texts);
    fixture.pool(1, 2048, 1024, 0);
    let texts = ["node 1: 0 of 1024 of 2 MiB free; none is free on node 1", "node1/hugepages"];
    fixture.expect(&[], "hugepages", Warn, &texts);
    fixture.expect(&[("BERTH_HUGEPAGES", "2M")], "hugepages", Warn, &["on node 1", "berth unit"]);
    fixture.pool(0, 2048, 0, 0);
    fixture.expect(&[], "hugepages", Warn, &["node 0: none; node 1: 0 of 1024"]);
    fixture.expect(&[("BERTH_HUGEPAGES", "2M")], "hugepages", Bad, &["echo N >/sys/devices"]);
    fixture.expect(&[("BERTH_HUGEPAGES", "off")], "hugepages", Good, &[]);
    for node in 0..2 {
        fixture.remove(&format!("sys/devices/system/node/node{node}/hugepages"));
    }
    fixture.expect(&[], "hugepages", Warn, &["has no pools", "CONFIG_HUGETLBFS"]);
}

#[test]
fn transparent_pages() {
    let fixture = Fixture::new();
    let file = |name: &str, text: &str| {
        fixture.file(&format!("sys/kernel/mm/transparent_hugepage/{name}"), text);
    };
    fixture.expect(&[], "THP", Good, &["madvise, defrag madvise"]);
    file("defrag", "always defer defer+madvise madvise [never]\n");
    fixture.expect(&[], "THP", Warn, &["not fragmented", "echo defer+madvise >"]);
    file("enabled", "always madvise [never]\n");
    fixture.expect(&[], "THP", Warn, &["4 KiB", "echo madvise >"]);
    fixture.expect(&[("BERTH_HUGEPAGES", "2M")], "THP", Good, &["never"]);
}

#[test]
fn limits_of_the_process() {
    let fixture = Fixture::new();
    fixture.expect(&[], "locked memory", Good, &["no limit"]);
    let limit = |bytes: &str| {
        fixture.file("proc/self/limits", &LIMITS.replacen("unlimited", bytes, 1));
    };
    limit("65536");
    fixture.expect(&[], "locked memory", Warn, &["at most 64 KiB", "LimitMEMLOCK=", "ulimit -l"]);
    fixture.expect(&[("BERTH_LOCK", "off")], "locked memory", Good, &["64 KiB"]);
    limit("0");
    fixture.expect(&[("BERTH_LOCK", "strict")], "locked memory", Bad, &["at most 0 bytes"]);
    // A plan tells how much is wanted.
    for (mode, least) in [("auto", Warn), ("strict", Bad)] {
        let settings =
            [("BERTH_CIRCUITS", "window-2k"), ("BERTH_LOCK", mode), ("BERTH_HUGEPAGES", "off")];
        limit("1048576");
        let texts = ["at most 1 MiB, and the plan has", "in ordinary pages", "LimitMEMLOCK="];
        fixture.expect(&settings, "locked memory", least, &texts);
        fixture.expect(&settings, "plan", Good, &["window-2k: "]);
        limit("68719476736");
        fixture.expect(&settings, "locked memory", Good, &["at most 64 GiB; the plan locks"]);
        limit("0");
        let pages = [settings[0], settings[1], ("BERTH_HUGEPAGES", "2M")];
        fixture.expect(&pages, "locked memory", Good, &["the plan locks 0 bytes"]);
    }
    limit("137438953472");
    fixture.expect(&[("BERTH_LOCK", "strict")], "locked memory", Good, &["at most 128 GiB"]);

    fixture.expect(&[], "open files", Good, &["at most 65536"]);
    fixture.file("proc/self/limits", &LIMITS.replace("65536", "256"));
    fixture.expect(&[], "open files", Warn, &["at most 256", "LimitNOFILE=65536"]);

    fixture.expect(&[], "control group", Good, &["no limit"]);
    fixture.file("sys/fs/cgroup/berth/memory.max", "2147483648\n");
    fixture.file("sys/fs/cgroup/berth/memory.current", "1073741824\n");
    let texts = [
        "/sys/fs/cgroup/berth/memory.max leaves 1 GiB of 2 GiB",
        "the host has 128 GiB",
        "MemoryMax=",
    ];
    fixture.expect(&[], "control group", Warn, &texts);
    fixture.file("sys/fs/cgroup/berth/memory.current", "2147483648\n");
    fixture.expect(&[], "control group", Bad, &["leaves 0 bytes"]);
    fixture.file("sys/fs/cgroup/berth/memory.max", "274877906944\n");
    fixture.expect(&[], "control group", Good, &["more than the host has"]);
}

#[test]
fn limits_on_hugepages() {
    let fixture = Fixture::new();
    let insists = [("BERTH_HUGEPAGES", "2M")];
    fixture.expect(&insists, "hugetlb group", Good, &["no limit"]);
    let file = |name: &str, text: &str| fixture.file(&format!("sys/fs/cgroup/berth/{name}"), text);
    file("hugetlb.2MB.max", "8589934592\n");
    file("hugetlb.2MB.current", "0\n");
    fixture.expect(&insists, "hugetlb group", Good, &["leaves 8 GiB", "have 3.9 GiB free"]);
    file("hugetlb.2MB.max", "1073741824\n");
    let texts = ["leaves 1 GiB", "echo max >/sys/fs/cgroup/berth/hugetlb.2MB.max"];
    fixture.expect(&insists, "hugetlb group", Warn, &texts);
    file("hugetlb.2MB.max", "0\n");
    fixture.expect(&[], "hugetlb group", Warn, &["leaves 0 bytes"]);
    fixture.expect(&insists, "hugetlb group", Bad, &["leaves 0 bytes"]);

    fixture.remove("sys/fs/cgroup");
    fixture.file("proc/self/cgroup", "5:hugetlb:/a\n");
    let mount = "35 31 0:32 / /sys/fs/cgroup/hugetlb rw - cgroup cgroup rw,hugetlb\n";
    fixture.file("proc/self/mountinfo", mount);
    fixture.file("sys/fs/cgroup/hugetlb/a/hugetlb.2MB.limit_in_bytes", "2097152\n");
    fixture.file("sys/fs/cgroup/hugetlb/a/hugetlb.2MB.usage_in_bytes", "0\n");
    let texts = ["leaves 2 MiB", "echo -1 >/sys/fs/cgroup/hugetlb/a/hugetlb.2MB.limit_in_bytes"];
    fixture.expect(&insists, "hugetlb group", Warn, &texts);
}

#[test]
fn drivers_and_device_files() {
    let fixture = Fixture::new();
    fixture.expect(&[], "GPUs", Good, &["none of NVIDIA"]);
    fixture.cards();
    fixture.expect(&[], "GPUs", Warn, &["2 of NVIDIA", "no CUDA", "BERTH_BACKEND=cpu"]);
    fixture.expect(&[("BERTH_BACKEND", "cpu")], "GPUs", Good, &["not looked at"]);
    fixture.expect(&[("BERTH_BACKEND", "cuda")], "build", Bad, &["cuda: no", "auto, or cpu"]);
    fixture.expect(&[], "driver", Good, &["580.159.04"]);
    let old = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.86.15  Thu Jan 23 2025\n";
    fixture.file("proc/driver/nvidia/version", old);
    fixture.expect(&[], "driver", Warn, &["570.86.15", "580 or later"]);
    assert_eq!(gpu::library(true).status, Good);
    let library = gpu::library(false);
    assert!(library.status == Warn && library.fact.contains("libcuda.so.1"));

    fixture.expect(&[], "device files", Good, &["nvidiactl, nvidia-uvm, nvidia0, nvidia1"]);
    fixture.remove("dev/nvidia-uvm");
    fixture.remove("dev/nvidia1");
    fixture.expect(&[], "device files", Warn, &["nvidia-uvm, nvidia1", "nvidia-modprobe -u"]);

    fixture.remove("proc/driver/nvidia");
    fixture.expect(&[], "driver", Warn, &["not loaded", "modprobe nvidia"]);
    fixture.expect(&[], "GPU", Good, &["0000:"]);
}

#[test]
fn cards_with_link_and_node() {
    let fixture = Fixture::new();
    fixture.cards();
    let card = format!("0000:65:00.0, NVIDIA H200, {UUID}, node 1, link 32 GT/s x16");
    fixture.expect(&[("BERTH_NUMA", "strict")], "GPU", Good, &[&card]);
    let checks = fixture.checks(&[], &[]);
    assert_eq!(checks.iter().filter(|check| check.name == "GPU").count(), 2, "{checks:?}");

    fixture.device(CARDS[0].0, "current_link_speed", "2.5 GT/s PCIe");
    let texts = ["link 2.5 GT/s x16: it can do 32 GT/s x16", "idle card lowers", "nvidia-smi"];
    fixture.expect(&[], "GPU", Warn, &texts);
    fixture.device(CARDS[0].0, "current_link_width", "8");
    fixture.expect(&[], "GPU", Warn, &["link 2.5 GT/s x8", "full width"]);
    fixture.device(CARDS[0].0, "current_link_width", "16");
    fixture.device(CARDS[0].0, "current_link_speed", "32.0 GT/s PCIe");

    let strict = [("BERTH_NUMA", "strict")];
    fixture.pool(1, 2048, 0, 0);
    let texts = ["node 1 has no free hugepages, node 0 has", "node1/hugepages of sysfs"];
    fixture.expect(&[], "GPU", Warn, &texts);
    fixture.expect(&strict, "GPU", Bad, &texts);
    fixture.pool(1, 2048, 1024, 1000);
    fixture.file("proc/self/status", &STATUS.replace("\t0-1\n", "\t0\n"));
    let texts = ["no memory of node 1 is open", "AllowedMemoryNodes="];
    fixture.expect(&[], "GPU", Warn, &texts);
    fixture.expect(&strict, "GPU", Bad, &texts);
    fixture.file("proc/self/status", STATUS);

    fixture.device(CARDS[0].0, "numa_node", "-1");
    fixture.expect(&[], "GPU", Warn, &["node not told", "firmware"]);
    // In a container the driver may tell more than the bus.
    fixture.remove("sys/bus");
    fixture.expect(&[], "GPU", Good, &["NVIDIA H200", "not in sys/bus/pci"]);
}
