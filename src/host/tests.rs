use super::*;

fn topology() -> Topology {
    let node = |id: usize, cores: &[[usize; 2]]| numa::Node {
        id,
        cores: cores.iter().map(|core| core.to_vec()).collect(),
        memory_available_bytes: 100,
        hugepages: vec![HugePages { page_bytes: 2 << 20, total: 4, free: 3 }],
        ..Default::default()
    };
    Topology {
        nodes: vec![node(0, &[[0, 4], [1, 5]]), node(1, &[[2, 6], [3, 7]])],
        numa: true,
        memory_available_bytes: 190,
        hugepages: vec![HugePages { page_bytes: 2 << 20, total: 8, free: 6 }],
        transparent_bytes: None,
    }
}

fn limits() -> Limits {
    Limits {
        cpus: None,
        memory_nodes: Some(vec![0, 1]),
        cgroup: None,
        cgroup_high: None,
        hugetlb: Vec::new(),
        lock_bytes: None,
        address_bytes: None,
    }
}

#[test]
fn all_is_allowed() {
    let host = Host::new(&topology(), &limits(), 4096);
    assert_eq!(host.cpus(), (0..8).collect::<Vec<_>>());
    assert_eq!(host.memory.bytes, 190);
    assert!(host.memory.by.contains("MemAvailable"));
}

#[test]
fn a_process_bound_to_one_node_sees_that_node_alone() {
    let limits = Limits { cpus: Some(vec![0, 1, 5]), memory_nodes: Some(vec![0]), ..limits() };
    let host = Host::new(&topology(), &limits, 4096);
    assert_eq!(host.nodes.len(), 1);
    assert_eq!(host.nodes[0].cores, [vec![0], vec![1, 5]]);
    assert_eq!(host.memory.bytes, 100);
    assert!(host.memory.by.contains("allowed nodes 0"), "{}", host.memory.by);
}

#[test]
fn cpus_without_memory_and_memory_without_cpus() {
    let limits = Limits { cpus: Some(vec![0, 4]), memory_nodes: Some(vec![1]), ..limits() };
    let host = Host::new(&topology(), &limits, 4096);
    assert_eq!(host.nodes.len(), 2);
    assert_eq!(host.nodes[0].memory_available_bytes, 0);
    assert!(host.nodes[0].hugepages.is_empty());
    assert!(host.nodes[1].cores.is_empty());
}

#[test]
fn the_control_group_decides_where_it_is_tightest() {
    let mut limits = limits();
    let file = std::path::PathBuf::from("/sys/fs/cgroup/a/memory.max");
    limits.cgroup = Some(MemoryLimit { limit_bytes: 70, available_bytes: 60, file });
    let host = Host::new(&topology(), &limits, 4096);
    assert_eq!(host.memory.bytes, 60);
    assert!(host.memory.by.contains("/a/memory.max") && host.memory.by.contains("70"));
}

#[test]
fn where_the_control_group_slows_down_is_told() {
    let mut limits = limits();
    assert_eq!(Host::new(&topology(), &limits, 4096).throttle, None);
    let file = std::path::PathBuf::from("/sys/fs/cgroup/a/memory.high");
    limits.cgroup_high = Some(MemoryLimit { limit_bytes: 70, available_bytes: 60, file });
    let host = Host::new(&topology(), &limits, 4096);
    let throttle = host.throttle.unwrap();
    assert_eq!((throttle.bytes, host.memory.bytes), (60, 190));
    assert!(throttle.by.contains("/a/memory.high is 70"), "{}", throttle.by);
}

#[test]
fn sums_over_nodes_do_not_wrap() {
    let (mut topology, mut limits) = (topology(), limits());
    for node in &mut topology.nodes {
        node.memory_available_bytes = (1 << 63) + 50;
        node.hugepages[0].free = 1 << 43;
    }
    topology.nodes.push(numa::Node { id: 2, ..topology.nodes[0].clone() });
    limits.memory_nodes = Some(vec![0, 1]);
    let host = Host::new(&topology, &limits, 4096);
    assert_eq!(host.memory.bytes, 190);
    // Two nodes hold more than the host has left unpromised.
    assert_eq!(host.hugetlb_limits[0].available_bytes, 12 << 20);
}

#[test]
fn the_tighter_of_promises_and_control_group_binds_hugetlb_pages() {
    let (mut topology, mut limits) = (topology(), limits());
    assert_eq!(Host::new(&topology, &limits, 4096).hugetlb_limits, []);

    // Three pages are free on each of two nodes, but two of the six are promised.
    topology.hugepages[0].free = 4;
    let bound = |topology: &Topology, limits: &Limits| {
        let [limit] = &Host::new(topology, limits, 4096).hugetlb_limits[..] else {
            panic!("one size has a limit")
        };
        assert_eq!(limit.page_bytes, 2 << 20);
        (limit.available_bytes >> 20, limit.by.clone())
    };
    let (megabytes, by) = bound(&topology, &limits);
    assert_eq!(megabytes, 8);
    assert!(by.contains("resv_hugepages"), "{by}");

    let file = std::path::PathBuf::from("/sys/fs/cgroup/a/hugetlb.2MB.max");
    limits.hugetlb = vec![numa::HugetlbLimit {
        page_bytes: 2 << 20,
        limit_bytes: 10 << 20,
        available_bytes: 6 << 20,
        file,
    }];
    let (megabytes, by) = bound(&topology, &limits);
    assert_eq!(megabytes, 6);
    let limit = &Host::new(&topology, &limits, 4096).hugetlb_limits[0];
    assert_eq!(limit.remedy, "raise the limit /sys/fs/cgroup/a/hugetlb.2MB.max");
    assert!(by.contains("/a/hugetlb.2MB.max") && by.contains("10485760"), "{by}");
    limits.hugetlb[0].available_bytes = 10 << 20;
    assert_eq!(bound(&topology, &limits).0, 8);

    // A process on one of the nodes is not bound by what both hold; the group still binds it.
    limits.memory_nodes = Some(vec![0]);
    assert_eq!(bound(&topology, &limits).0, 10);
}

/// Files of a host with two GPUs, one of which is on a node that this process may not use.
#[test]
fn gpus_are_told_with_their_nodes() {
    let root = std::env::temp_dir().join(format!("berth-host-{}", std::process::id()));
    let file = |path: &str, text: &str| {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    file("proc/meminfo", "MemTotal: 9 kB\nMemFree: 9 kB\nMemAvailable: 9 kB\n");
    file("proc/self/status", "Name:\tx\n");
    file("sys/devices/system/cpu/online", "0\n");
    let gpus = [("0000:65:00.0", "1"), ("0000:17:00.0", "-1")];
    for (address, node) in gpus {
        let folder = format!("sys/bus/pci/devices/{address}");
        for (name, text) in
            [("vendor", "0x10de"), ("device", "0x2330"), ("class", "0x030200"), ("numa_node", node)]
        {
            file(&format!("{folder}/{name}"), text);
        }
    }
    let host = Host::read_under(&root);
    std::fs::remove_dir_all(&root).unwrap();
    let gpu = |address: &str, node| Gpu { address: address.to_owned(), node };
    let expected = [gpu("0000:17:00.0", None), gpu("0000:65:00.0", Some(1))];
    assert_eq!(host.unwrap().gpus, expected);
}

/// `core_affinity` asks the kernel in another way.
#[test]
fn this_host_has_the_cpus_of_the_affinity_mask() {
    let host = Host::read().unwrap();
    let mut cpus: Vec<usize> =
        core_affinity::get_core_ids().unwrap().iter().map(|core| core.id).collect();
    cpus.sort_unstable();
    assert_eq!(host.cpus(), cpus);
    assert!(host.base_page_bytes.is_power_of_two());
    assert!(host.memory.bytes > 0);
}
