use super::*;
use crate::fixture::Fixture;

const DEVICES: &str = "sys/bus/pci/devices";

/// A line is an address, vendor, device, class and node.
fn bus(lines: &str) -> Fixture {
    let fixture = Fixture::new();
    for line in lines.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        for (name, text) in ["vendor", "device", "class", "numa_node"].iter().zip(&words[1..]) {
            fixture.file(&format!("{DEVICES}/{}/{name}", words[0]), &format!("{text}\n"));
        }
    }
    fixture
}

fn link_files(fixture: &Fixture, address: &str, texts: [&str; 4]) {
    let names = ["current_link_speed", "max_link_speed", "current_link_width", "max_link_width"];
    for (name, text) in names.iter().zip(texts) {
        fixture.file(&format!("{DEVICES}/{address}/{name}"), &format!("{text}\n"));
    }
}

/// Devices of several real hosts on one bus: the A100 on node 5 of the hwloc issue 653; the virtio
/// disk behind a wide domain of hwloc's test 2pa-pcidomain32bits; an H200 in a virtual machine,
/// whose firmware names no node. The others are synthetic.
const BUS: &str = "\
10000:00:04.0 0x1af4 0x1001 0x010000 -1
0000:da:00.0 0x10de 0x20b0 0x030200 5
0000:00:06.0 0x10de 0x2335 0x030200 -1
0000:01:00.0 0x10de 0x2b85 0x030000 0
0000:01:00.1 0x10de 0x22e8 0x040300 0
0000:02:00.0 0x1002 0x744c 0x030000 0
0000:03:00.0 0x10de 0x22a3 0x068000 1";

/// The links are those of the H200 and of the GPU in nokyan/resources issue 512.
#[test]
fn devices_in_order_with_node_and_link() {
    let fixture = bus(BUS);
    let generation_5 = ["32.0 GT/s PCIe", "32.0 GT/s PCIe", "16", "16"];
    link_files(&fixture, "0000:00:06.0", generation_5);
    link_files(&fixture, "0000:01:00.0", ["16.0 GT/s PCIe", "32.0 GT/s PCIe", "8", "16"]);
    let all = devices(fixture.root()).unwrap();
    let order = ["00:06.0", "01:00.0", "01:00.1", "02:00.0", "03:00.0", "da:00.0", "10000:00:04.0"];
    let addresses: Vec<String> = all.iter().map(|device| device.address.clone()).collect();
    assert_eq!(addresses, order.map(|text| normalise_address(text).unwrap()));
    let link =
        |speed_now, width_now| Link { speed_now, speed_max: 32_000, width_now, width_max: 16 };
    let h200 = PciDevice {
        address: "0000:00:06.0".to_owned(),
        vendor: 0x10de,
        device: 0x2335,
        class: 0x03_0200,
        node: None,
        link: Some(link(32_000, 16)),
    };
    assert_eq!(all[0], h200);
    assert_eq!((all[1].node, all[1].link), (Some(0), Some(link(16_000, 8))));
    assert_eq!((all[6].node, all[6].link), (None, None));
}

/// Neither its audio function nor its bridges, nor another maker's GPU.
#[test]
fn gpus_are_display_controllers_of_nvidia() {
    let fixture = bus(BUS);
    let gpus = nvidia_gpus(fixture.root()).unwrap();
    let found: Vec<(&str, Option<usize>)> =
        gpus.iter().map(|gpu| (gpu.address.as_str(), gpu.node)).collect();
    let expected = [("0000:00:06.0", None), ("0000:01:00.0", Some(0)), ("0000:da:00.0", Some(5))];
    assert_eq!(found, expected);
    let all = devices(fixture.root()).unwrap();
    let of_all: Vec<PciDevice> = all.into_iter().filter(PciDevice::is_nvidia_gpu).collect();
    assert_eq!(of_all, gpus);
}

#[test]
fn no_bus_is_no_device() {
    let fixture = Fixture::new();
    assert_eq!(devices(fixture.root()).unwrap(), []);
    assert_eq!(nvidia_gpus(fixture.root()).unwrap(), []);
}

#[test]
fn a_device_taken_out_is_left_out_and_a_kernel_without_nodes_names_none() {
    let fixture = bus(BUS);
    fixture.remove(&format!("{DEVICES}/0000:01:00.0/numa_node"));
    fixture.remove(&format!("{DEVICES}/0000:da:00.0/vendor"));
    let gpus = nvidia_gpus(fixture.root()).unwrap();
    assert_eq!(gpus.len(), 2);
    assert_eq!((gpus[1].address.as_str(), gpus[1].node), ("0000:01:00.0", None));
}

#[test]
fn a_wrong_file_is_named() {
    for (name, text) in
        [("vendor", "10de"), ("vendor", "0x110de"), ("class", "0xzz"), ("numa_node", "x")]
    {
        let fixture = bus(BUS);
        fixture.file(&format!("{DEVICES}/0000:da:00.0/{name}"), text);
        let error = devices(fixture.root()).unwrap_err().to_string();
        assert!(error.contains(&format!("0000:da:00.0/{name}")), "{error}");
        assert!(error.contains(text), "{error}");
    }
}

#[test]
fn a_link_is_told_only_if_all_of_it_is_known() {
    let good = ["2.5 GT/s", "64.0 GT/s PCIe", "1", "16"];
    let fixture = bus(BUS);
    let link = || nvidia_gpus(fixture.root()).unwrap()[2].link;
    link_files(&fixture, "0000:da:00.0", good);
    let expected = Link { speed_now: 2_500, speed_max: 64_000, width_now: 1, width_max: 16 };
    assert_eq!(link(), Some(expected));
    for (place, text) in [(0, "Unknown"), (1, "Unknown speed"), (1, "5.0"), (2, "63"), (3, "0")] {
        let mut texts = good;
        texts[place] = text;
        link_files(&fixture, "0000:da:00.0", texts);
        assert_eq!(link(), None, "{text}");
    }
    link_files(&fixture, "0000:da:00.0", good);
    fixture.remove(&format!("{DEVICES}/0000:da:00.0/max_link_width"));
    assert_eq!(link(), None);
}

/// The wide domain is that of nvidia-docker issue 1316.
#[test]
fn addresses_of_all_forms_become_the_kernel_s() {
    for (text, expected) in [
        ("65:00.0", "0000:65:00.0"),
        ("0:65:0.0", "0000:65:00.0"),
        ("0000:65:00.0", "0000:65:00.0"),
        ("00000000:65:00.0", "0000:65:00.0"),
        ("0000:DA:1F.7", "0000:da:1f.7"),
        ("10000:00:04.0", "10000:00:04.0"),
        ("00010000:00:04.0", "10000:00:04.0"),
        ("03F8CFDD:00:00.0", "3f8cfdd:00:00.0"),
    ] {
        assert_eq!(normalise_address(text).as_deref(), Some(expected));
        assert_eq!(normalise_address(expected).as_deref(), Some(expected));
    }
    for wrong in [
        "",
        "0",
        "65:00",
        "65:00.",
        "65:00.8",
        "65:20.0",
        "165:00.0",
        "000000000:65:00.0",
        "+5:00.0",
        "0:0000:65:00.0",
        "65:00.0 ",
        "GPU-65:00.0",
        ":65:00.0",
        "65:00.0.0",
        "00.0",
    ] {
        assert_eq!(normalise_address(wrong), None, "{wrong:?}");
    }
}

#[test]
fn this_host() {
    for device in devices(Path::new("/")).unwrap() {
        assert_eq!(normalise_address(&device.address).as_ref(), Some(&device.address));
        assert!(device.class < 1 << 24, "{device:?}");
    }
}
