//! Pinning of threads.

/// No kernel counts its CPUs beyond this (`CONFIG_NR_CPUS` ends at 8,192 on x86-64).
const CPUS_MAX: usize = 1 << 16;

/// Pins the calling thread to one CPU and sees that it runs there; false if the kernel refuses,
/// the CPU is offline, or there is no such CPU. Any CPU number will do: the mask grows with it.
pub fn pin_current_thread(cpu: usize) -> bool {
    if cpu >= CPUS_MAX {
        return false;
    }
    let words = cpu / 64 + 1;
    let mut mask = vec![0u64; words];
    mask[cpu / 64] = 1 << (cpu % 64);
    // SAFETY: the mask holds `words * 8` readable bytes; pid 0 is the calling thread.
    let result =
        unsafe { libc::sched_setaffinity(0, words * 8, mask.as_ptr().cast::<libc::cpu_set_t>()) };
    // The kernel moves the thread before it returns from the call above, and nothing but another
    // call to it can move the thread again.
    // SAFETY: the call has no arguments and no effect.
    result == 0 && usize::try_from(unsafe { libc::sched_getcpu() }) == Ok(cpu)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Limits;
    use std::path::Path;

    /// In a thread of its own, so that the test's thread keeps its mask.
    fn pins(cpu: usize) -> bool {
        std::thread::spawn(move || pin_current_thread(cpu)).join().unwrap()
    }

    #[test]
    fn pins_to_every_allowed_cpu() {
        for cpu in Limits::read(Path::new("/")).unwrap().cpus.unwrap_or_default() {
            assert!(pins(cpu), "CPU {cpu} is allowed");
        }
    }

    #[test]
    fn refuses_a_cpu_that_is_not_there() {
        assert!(!pins(5_000));
        assert!(!pins(CPUS_MAX - 1));
        assert!(!pins(usize::MAX));
    }
}
