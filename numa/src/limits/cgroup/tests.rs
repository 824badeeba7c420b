use super::*;
use crate::fixture::Fixture;

/// What the kernel writes where nothing was set.
const NOTHING_SET: &str = "9223372036854771712";

/// A process in group `/a/b` of version 2, all of which is shown.
fn v2() -> Fixture {
    let fixture = Fixture::new();
    fixture.file("proc/self/cgroup", "0::/a/b\n");
    fixture.file(
        "proc/self/mountinfo",
        "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n",
    );
    fixture
}

/// A process in a container of version 1, beside a version 2 without controllers.
fn v1() -> Fixture {
    let fixture = Fixture::new();
    let groups = "5:hugetlb:/docker/x\n4:cpu,memory:/docker/x\n3:cpuset:/\n0::/\n";
    fixture.file("proc/self/cgroup", groups);
    fixture.file(
        "proc/self/mountinfo",
        "34 31 0:31 /docker/x /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n\
         35 31 0:32 /docker/x /sys/fs/cgroup/memory rw - cgroup cgroup rw,cpu,memory\n\
         36 31 0:33 /docker/x /sys/fs/cgroup/hugetlb rw - cgroup cgroup rw,hugetlb\n\
         41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
    );
    fixture
}

fn files(fixture: &Fixture, folder: &str, files: &[(&str, &str)]) {
    for (name, text) in files {
        fixture.file(&format!("{folder}/{name}"), &format!("{text}\n"));
    }
}

/// Page size, limit and what is left, of each limit.
fn figures(fixture: &Fixture) -> Vec<(usize, u64, u64)> {
    let limits = hugetlb(fixture.root()).unwrap();
    limits.iter().map(|l| (l.page_bytes, l.limit_bytes, l.available_bytes)).collect()
}

#[test]
fn memory_v2_takes_the_tightest_ancestor() {
    let fixture = v2();
    assert_eq!(memory(fixture.root()).unwrap(), None);
    let stat = "anon 500\nfile 450\nactive_file 100\ninactive_file 50";
    let group = [("memory.max", "1000"), ("memory.current", "700"), ("memory.stat", stat)];
    files(&fixture, "sys/fs/cgroup/a", &group);
    fixture.file("sys/fs/cgroup/a/b/memory.max", "max\n");
    let limit = memory(fixture.root()).unwrap().unwrap();
    assert_eq!((limit.limit_bytes, limit.available_bytes), (1000, 450));
    assert!(limit.file.ends_with("sys/fs/cgroup/a/memory.max"));

    let group = [("memory.max", "100"), ("memory.current", "40")];
    files(&fixture, "sys/fs/cgroup/a/b", &group);
    let limit = memory(fixture.root()).unwrap().unwrap();
    assert_eq!((limit.limit_bytes, limit.available_bytes), (100, 60));
}

#[test]
fn memory_v1_beside_an_empty_v2() {
    let fixture = v1();
    let group = "sys/fs/cgroup/memory";
    files(&fixture, group, &[("memory.limit_in_bytes", NOTHING_SET)]);
    assert_eq!(memory(fixture.root()).unwrap(), None);
    let used = [("memory.limit_in_bytes", "5000"), ("memory.usage_in_bytes", "6000")];
    files(&fixture, group, &used);
    let limit = || memory(fixture.root()).unwrap().unwrap();
    assert_eq!((limit().limit_bytes, limit().available_bytes), (5000, 0));
    let stat = "cache 9\nactive_file 7\ntotal_active_file 1500\ntotal_inactive_file 500";
    files(&fixture, group, &[("memory.stat", stat)]);
    assert_eq!((limit().limit_bytes, limit().available_bytes), (5000, 1000));
}

#[test]
fn hugetlb_v2_takes_the_tightest_ancestor_for_each_size() {
    let fixture = v2();
    assert_eq!(figures(&fixture), []);
    let inner = [
        ("hugetlb.2MB.max", "max"),
        ("hugetlb.2MB.current", "0"),
        ("hugetlb.2MB.rsvd.max", "max"),
        ("hugetlb.1GB.max", "8589934592"),
        ("hugetlb.1GB.current", "1073741824"),
    ];
    files(&fixture, "sys/fs/cgroup/a/b", &inner);
    assert_eq!(figures(&fixture), [(1 << 30, 8 << 30, 7 << 30)]);

    let outer = [
        ("hugetlb.2MB.max", "83886080"),
        ("hugetlb.2MB.current", "20971520"),
        ("hugetlb.1GB.max", "9663676416"),
        ("hugetlb.1GB.current", "7516192768"),
        ("hugetlb.64KB.max", "65536"),
        ("hugetlb.64KB.current", "131072"),
    ];
    files(&fixture, "sys/fs/cgroup/a", &outer);
    let expected =
        [(64 << 10, 64 << 10, 0), (2 << 20, 80 << 20, 60 << 20), (1 << 30, 9 << 30, 2 << 30)];
    assert_eq!(figures(&fixture), expected);
    let limits = hugetlb(fixture.root()).unwrap();
    assert!(limits[1].file.ends_with("sys/fs/cgroup/a/hugetlb.2MB.max"));
}

/// As seen on Linux 6.18.
#[test]
fn hugetlb_v2_without_limits() {
    let fixture = v2();
    let group = [
        ("hugetlb.2MB.max", NOTHING_SET),
        ("hugetlb.2MB.current", "0"),
        ("hugetlb.2MB.rsvd.max", "max"),
        ("hugetlb.2MB.rsvd.current", "0"),
        ("hugetlb.1GB.max", NOTHING_SET),
    ];
    files(&fixture, "sys/fs/cgroup/a/b", &group);
    assert_eq!(figures(&fixture), []);
}

/// Pages that mappings were promised bind even where none of them is in use yet.
#[test]
fn hugetlb_v2_counts_promises_too() {
    let fixture = v2();
    let group = [
        ("hugetlb.2MB.max", "83886080"),
        ("hugetlb.2MB.current", "0"),
        ("hugetlb.2MB.rsvd.max", "41943040"),
        ("hugetlb.2MB.rsvd.current", "10485760"),
    ];
    files(&fixture, "sys/fs/cgroup/a/b", &group);
    assert_eq!(figures(&fixture), [(2 << 20, 40 << 20, 30 << 20)]);
    let limits = hugetlb(fixture.root()).unwrap();
    assert!(limits[0].file.ends_with("sys/fs/cgroup/a/b/hugetlb.2MB.rsvd.max"));
}

#[test]
fn hugetlb_v1_with_and_without_limits() {
    let fixture = v1();
    let group = "sys/fs/cgroup/hugetlb";
    // What it makes of -1 is rounded down to a page, here of 1 GiB.
    let none = [
        ("hugetlb.2MB.limit_in_bytes", NOTHING_SET),
        ("hugetlb.1GB.limit_in_bytes", "9223372035781033984"),
        ("hugetlb.1GB.rsvd.limit_in_bytes", "9223372035781033984"),
    ];
    files(&fixture, group, &none);
    assert_eq!(figures(&fixture), []);
    let some = [
        ("hugetlb.2MB.limit_in_bytes", "41943040"),
        ("hugetlb.2MB.usage_in_bytes", "2097152"),
        ("hugetlb.1GB.rsvd.limit_in_bytes", "2147483648"),
        ("hugetlb.1GB.rsvd.usage_in_bytes", "0"),
    ];
    files(&fixture, group, &some);
    assert_eq!(figures(&fixture), [(2 << 20, 40 << 20, 38 << 20), (1 << 30, 2 << 30, 2 << 30)]);
}

#[test]
fn a_wrong_or_missing_file_is_named() {
    let fixture = v2();
    fixture.file("sys/fs/cgroup/a/hugetlb.2MB.max", "lots\n");
    let error = hugetlb(fixture.root()).unwrap_err().to_string();
    assert!(error.contains("a/hugetlb.2MB.max") && error.contains("lots"), "{error}");
    fixture.file("sys/fs/cgroup/a/hugetlb.2MB.max", "0\n");
    let error = hugetlb(fixture.root()).unwrap_err().to_string();
    assert!(error.contains("a/hugetlb.2MB.current"), "{error}");
}

/// A name that only begins like what the mount shows is another group.
#[test]
fn the_group_is_looked_for_where_it_is_shown() {
    let fixture = v2();
    fixture.file("proc/self/cgroup", "0::/docker/xy\n");
    let mounts = |order: [&str; 2]| -> String {
        order.iter().map(|line| format!("30 23 0:26 {line} rw - cgroup2 cgroup2 rw\n")).collect()
    };
    let (part, all) = ("/docker/x /part", "/ /all");
    files(&fixture, "part", &[("memory.max", "10"), ("memory.current", "0")]);
    files(&fixture, "part/y", &[("memory.max", "1"), ("memory.current", "0")]);
    files(&fixture, "all/docker/xy", &[("memory.max", "30"), ("memory.current", "0")]);
    let limit = || memory(fixture.root()).unwrap().unwrap().limit_bytes;
    for order in [[part, all], [all, part]] {
        fixture.file("proc/self/mountinfo", &mounts(order));
        assert_eq!(limit(), 30);
    }
    // Nothing shows the group: the nearest that is seen is the root of what is shown.
    fixture.file("proc/self/mountinfo", &mounts([part, "/docker/z /other"]));
    assert_eq!(limit(), 10);
    // Nor does a mount show a group beside this process's namespace.
    fixture.file("proc/self/cgroup", "0::/../docker/xy\n");
    fixture.file("proc/self/mountinfo", &mounts([all, part]));
    files(&fixture, "docker/xy", &[("memory.max", "2"), ("memory.current", "0")]);
    assert_eq!(memory(fixture.root()).unwrap(), None);
}

/// `memory.high` is a mark of its own, of version 2 alone, and the tightest ancestor's counts.
#[test]
fn memory_high_is_told_beside_the_limit() {
    let high = |fixture: &Fixture| memory_high(fixture.root()).unwrap();
    let fixture = v2();
    assert_eq!(high(&fixture), None);
    let stat = "active_file 100\ninactive_file 50";
    let group = [
        ("memory.high", "1000"),
        ("memory.max", "2000"),
        ("memory.current", "700"),
        ("memory.stat", stat),
    ];
    files(&fixture, "sys/fs/cgroup/a", &group);
    fixture.file("sys/fs/cgroup/a/b/memory.high", "max\n");
    let mark = high(&fixture).unwrap();
    assert_eq!((mark.limit_bytes, mark.available_bytes), (1000, 450));
    assert!(mark.file.ends_with("sys/fs/cgroup/a/memory.high"));
    assert_eq!(memory(fixture.root()).unwrap().unwrap().limit_bytes, 2000);
    files(&fixture, "sys/fs/cgroup/a/b", &[("memory.high", "300"), ("memory.current", "40")]);
    let mark = high(&fixture).unwrap();
    assert_eq!((mark.limit_bytes, mark.available_bytes), (300, 260));
    fixture.file("sys/fs/cgroup/a/b/memory.high", "much\n");
    let error = memory_high(fixture.root()).unwrap_err().to_string();
    assert!(error.contains("a/b/memory.high") && error.contains("much"), "{error}");

    let fixture = v1();
    let group = [("memory.high", "9"), ("memory.usage_in_bytes", "5")];
    files(&fixture, "sys/fs/cgroup/memory", &group);
    assert_eq!(high(&fixture), None);
}

#[test]
fn file_pages_of_a_group_do_not_wrap() {
    let fixture = v2();
    let most = u64::MAX;
    let stat = format!("active_file {most}\ninactive_file {most}\ninactive_file {most}");
    let group = [("memory.max", "1000"), ("memory.current", "700"), ("memory.stat", &stat[..])];
    files(&fixture, "sys/fs/cgroup/a", &group);
    assert_eq!(memory(fixture.root()).unwrap().unwrap().available_bytes, 1000);
}

/// Blanks, tabs, ends of lines and backslashes in a path stand in mountinfo as octal numbers, and
/// in the group of the process as they are.
#[test]
fn names_that_mountinfo_escapes() {
    let fixture = v2();
    let line = r"30 23 0:26 /my\040pod\134040 /mnt/a\040b\011c\134012 rw - cgroup2 cgroup2 rw";
    fixture.file("proc/self/mountinfo", &format!("{line}\n"));
    fixture.file("proc/self/cgroup", "0::/my pod\\040/x y\n");
    let group = [("memory.max", "70"), ("memory.current", "0")];
    files(&fixture, "mnt/a b\tc\\012/x y", &group);
    let limit = memory(fixture.root()).unwrap().unwrap();
    assert_eq!(limit.limit_bytes, 70);
    assert!(limit.file.ends_with("mnt/a b\tc\\012/x y/memory.max"), "{:?}", limit.file);
    assert_eq!(unescape(r"\134\012\134134"), Path::new("\\\n\\134"));
}
