//! Transparent hugepages, for the arenas that are planned on them alone.
//!
//! Where the kernel gives them unasked (`always`, as on Debian), the first touch of a region of the
//! heap makes 2 MiB present, for each thread anew: memory that no plan has counted, and that comes
//! and goes. jemalloc's `thp:never` does not reach its own books, which are most of it. So the
//! process does without, but for the time in which such an arena is populated.

use std::sync::{Mutex, MutexGuard};

use libc::{PR_GET_THP_DISABLE, PR_SET_THP_DISABLE, c_ulong, prctl};

/// Keeps this process out of transparent hugepages from now on; those that it has stay. Said where
/// the program begins, and again before anything is planned, for programs that use the library.
/// Nothing happens on a kernel that does not know the call.
pub fn do_without() {
    set(true);
}

/// Does something with transparent hugepages for those mappings that ask for them; one at a time,
/// since the switch is one for the process.
pub(super) fn with<T>(work: impl FnOnce() -> T) -> T {
    static TURN: Mutex<()> = Mutex::new(());
    struct Back<'a>(bool, #[allow(unused)] MutexGuard<'a, ()>);
    impl Drop for Back<'_> {
        fn drop(&mut self) {
            set(self.0);
        }
    }
    let turn = TURN.lock().unwrap_or_else(|e| e.into_inner());
    let _back = Back(without(), turn);
    set(false);
    work()
}

/// Does this process do without?
fn without() -> bool {
    let zero: c_ulong = 0;
    // SAFETY: the call takes no pointers; it wants zeros behind its name.
    unsafe { prctl(PR_GET_THP_DISABLE, zero, zero, zero, zero) == 1 }
}

fn set(without: bool) {
    let zero: c_ulong = 0;
    // SAFETY: as above; it changes what later page faults give, nothing that is there.
    unsafe { prctl(PR_SET_THP_DISABLE, c_ulong::from(without), zero, zero, zero) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Mode;
    use crate::host::Host;
    use crate::memory::Arena;
    use crate::plan::{ArenaPlan, Pages, Purpose};

    #[test]
    fn an_arena_gets_them_in_a_process_that_does_without() {
        let Some(page_bytes) = Host::read().unwrap().transparent_bytes else {
            println!("not run: transparent hugepages are off here");
            return;
        };
        do_without();
        let plan = ArenaPlan {
            bytes: 2 * page_bytes,
            pages: Pages::Transparent,
            page_bytes,
            lock: Mode::Off,
            ..ArenaPlan::unplaced(Purpose::Lane, 2 * page_bytes)
        };
        let (arena, _) = Arena::map(&plan).unwrap();
        assert!(without(), "the switch is put back");
        let smaps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let head = format!("{:x}-", arena.address() as usize);
        let mut lines = smaps.lines().skip_while(|line| !line.starts_with(&head));
        let huge = lines.find(|line| line.starts_with("AnonHugePages:")).unwrap();
        let kilobytes = 2 * page_bytes / 1024;
        assert_eq!(huge.split_whitespace().nth(1), Some(&*kilobytes.to_string()), "{huge}");
    }
}
