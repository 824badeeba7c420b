//! What the kernel has in memory for the mappings that no arena made: files, stacks, heap.

use std::fs::read_to_string;
use std::io::Result;

/// Resident memory outside the arenas, in bytes.
///
/// The kernel says of each mapping what kind it is. Arenas are not copied on a fork. The heap
/// reserves nothing (MAP_NORESERVE), and everything else is accounted for. A host that never
/// overcommits (vm.overcommit_memory=2) accounts for the heap, too: there stacks count as heap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Mappings {
    /// Pages of mapped files, with those that were written to and are no file's any more.
    pub files: usize,
    /// Stacks of all threads, their thread-local data, static data that begins as zero.
    pub stacks: usize,
    pub heap: usize,
    pub threads: usize,
}

impl Mappings {
    /// Reads the process's own files. The kernel walks the pages of every mapping for this: some
    /// milliseconds for each GiB of ordinary pages, nothing for hugetlb pages.
    pub fn read() -> Result<Self> {
        let overcommits = read_to_string("/proc/sys/vm/overcommit_memory")?.trim() != "2";
        let smaps = read_to_string("/proc/self/smaps")?;
        let threads = std::fs::read_dir("/proc/self/task")?.count();
        Ok(Self::of(&smaps, overcommits, threads))
    }

    fn of(smaps: &str, overcommits: bool, threads: usize) -> Self {
        let mut mappings = Mappings { threads, ..Mappings::default() };
        let (mut resident, mut file) = (0, false);
        for line in smaps.lines() {
            let mut words = line.split_whitespace();
            match words.next() {
                Some("Rss:") => {
                    let kilobytes = words.next().and_then(|number| number.parse().ok());
                    resident = kilobytes.unwrap_or(0) * 1024;
                }
                // The last line of each mapping.
                Some("VmFlags:") => {
                    let (accounted, no_fork) =
                        words.fold((false, false), |(accounted, no_fork), flag| {
                            (accounted || flag == "ac", no_fork || flag == "dc")
                        });
                    if file {
                        mappings.files += resident;
                    } else if overcommits && accounted && !no_fork {
                        mappings.stacks += resident;
                    } else if !no_fork {
                        mappings.heap += resident;
                    }
                }
                // The first: range, rights, offset, device, inode, and the path of a file.
                Some(word) if !word.ends_with(':') => {
                    file = words.nth(4).is_some_and(|path| path.starts_with('/'));
                }
                _ => {}
            }
        }
        mappings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mappings as the kernel lists them, with the lines that are read: program, its written
    /// pages, zero data, heap, arena, guard and stack of a thread, hugetlb arena.
    const SMAPS: &str = "\
5628c3792000-5628c3b1c000 r-xp 000f4000 fe:00 62 /usr/bin/berth
Size:               3624 kB
Rss:                3616 kB
Anonymous:             0 kB
VmFlags: rd ex mr mw me
5628c3b1c000-5628c3b36000 r--p 0047d000 fe:00 62 /usr/bin/berth
Rss:                 104 kB
VmFlags: rd mr mw me ac
5628c3b38000-5628c3d43000 rw-p 00000000 00:00 0
Rss:                  24 kB
VmFlags: rd wr mr mw me ac
7f91a6000000-7f91a7000000 rw-p 00000000 00:00 0
Rss:                9000 kB
VmFlags: rd wr mr mw me nr
7f91a7a00000-7f91ea200000 rw-p 00000000 00:00 0
Rss:              686080 kB
VmFlags: rd wr mr mw me ac dc hg
7f91a71ff000-7f91a7200000 ---p 00000000 00:00 0
Rss:                   0 kB
VmFlags: mr mw me nh
7f91a7200000-7f91a7400000 rw-p 00000000 00:00 0
Rss:                  12 kB
VmFlags: rd wr mr mw me ac nh
7f91a8000000-7f91a9000000 rw-p 00000000 00:0f 7 /anon_hugepage (deleted)
Rss:                   0 kB
Private_Hugetlb:   16384 kB
VmFlags: rd wr mr mw me dc de ht
7ffc38c83000-7ffc38ca4000 rw-p 00000000 00:00 0                          [stack]
Rss:                  36 kB
VmFlags: rd wr mr mw me gd ac
";

    #[test]
    fn stacks_are_told_from_heap_and_arenas() {
        let (files, stacks, heap) = ((3616 + 104) << 10, (24 + 12 + 36) << 10, 9000 << 10);
        let mappings = Mappings::of(SMAPS, true, 2);
        assert_eq!(mappings, Mappings { files, stacks, heap, threads: 2 });
        let mappings = Mappings::of(SMAPS, false, 2);
        assert_eq!(mappings, Mappings { files, stacks: 0, heap: heap + stacks, threads: 2 });
    }

    #[test]
    fn a_stack_and_a_heap_that_are_used_are_seen() {
        fn deep() -> Mappings {
            let mut room = [1u8; 1 << 20];
            std::hint::black_box(&mut room);
            Mappings::read().unwrap()
        }
        let kept = std::hint::black_box(vec![1u8; 32 << 20]);
        let mappings = std::thread::spawn(deep).join().unwrap();
        assert!(mappings.threads >= 2, "{mappings:?}");
        assert!(mappings.stacks > 1 << 20 && mappings.files > 1 << 20, "{mappings:?}");
        assert!(mappings.heap >= kept.len(), "{mappings:?}");
    }
}
