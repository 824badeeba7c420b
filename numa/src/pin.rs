//! Pinning of threads.

/// No kernel counts its CPUs beyond this (`CONFIG_NR_CPUS` ends at 8,192 on x86-64).
const CPUS_MAX: usize = 1 << 16;

/// A set of CPUs as the kernel takes it, wide enough for any host. The kernel ignores what is
/// beyond its own width, and refuses to fill in a mask that is narrower. On the stack, so that a
/// thread can be pinned where no memory may be allocated.
struct Mask([u64; CPUS_MAX / 64]);

impl Mask {
    const BYTES: usize = CPUS_MAX / 8;

    /// `None` if a CPU is beyond what any kernel counts.
    fn new(cpus: &[usize]) -> Option<Self> {
        let mut mask = Mask([0; CPUS_MAX / 64]);
        for cpu in cpus {
            *mask.0.get_mut(cpu / 64)? |= 1 << (cpu % 64);
        }
        Some(mask)
    }

    /// The mask of the calling thread; `None` if the kernel does not tell.
    fn current() -> Option<Self> {
        let mut mask = Mask([0; CPUS_MAX / 64]);
        // SAFETY: the mask holds `BYTES` writable bytes; pid 0 is the calling thread.
        let result = unsafe { libc::sched_getaffinity(0, Self::BYTES, mask.0.as_mut_ptr().cast()) };
        (result == 0).then_some(mask)
    }

    /// Makes this the mask of the calling thread; false if the kernel refuses. What it allows is
    /// what both this mask and the cpuset hold.
    fn apply(&self) -> bool {
        // SAFETY: the mask holds `BYTES` readable bytes; pid 0 is the calling thread.
        unsafe { libc::sched_setaffinity(0, Self::BYTES, self.0.as_ptr().cast()) == 0 }
    }
}

/// Pins the calling thread to one CPU and sees that it runs there; false if the kernel refuses,
/// the CPU is offline, or there is no such CPU. Any CPU number will do.
pub fn pin_current_thread(cpu: usize) -> bool {
    // The kernel moves the thread before it returns from the first call, and nothing but another
    // call to it can move the thread again.
    // SAFETY: the second call has no arguments and no effect.
    bind_current_thread(&[cpu]) && usize::try_from(unsafe { libc::sched_getcpu() }) == Ok(cpu)
}

/// Lets the calling thread, and threads that it starts from now on, run on any of `cpus` and on no
/// others. False, with the thread where it was, if the kernel refuses: no CPU, or one that there is
/// not or that this process may not use. Any CPU numbers will do.
pub fn bind_current_thread(cpus: &[usize]) -> bool {
    let (Some(wanted), Some(before)) = (Mask::new(cpus), Mask::current()) else { return false };
    if wanted.apply() && Mask::current().is_some_and(|now| now.0 == wanted.0) {
        return true;
    }
    // The kernel leaves out what is not allowed without an error as long as something remains; a
    // thread on half of its CPUs is not what was asked for.
    before.apply();
    false
}

/// CPUs on which the calling thread may run, ascending; `None` if the kernel does not tell.
pub fn current_cpus() -> Option<Vec<usize>> {
    let mask = Mask::current()?;
    Some((0..CPUS_MAX).filter(|cpu| mask.0[cpu / 64] >> (cpu % 64) & 1 == 1).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Limits;
    use std::path::Path;

    /// In a thread of its own, so that the test's thread keeps its mask.
    fn in_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
        std::thread::spawn(work).join().unwrap()
    }

    fn allowed() -> Vec<usize> {
        let told = Limits::read(Path::new("/")).unwrap().cpus;
        told.unwrap_or_else(|| current_cpus().unwrap())
    }

    #[test]
    fn pins_to_every_allowed_cpu() {
        for cpu in allowed() {
            let pinned = in_thread(move || (pin_current_thread(cpu), current_cpus()));
            assert_eq!(pinned, (true, Some(vec![cpu])));
        }
    }

    #[test]
    fn refuses_a_cpu_that_is_not_there() {
        for cpu in [5_000, CPUS_MAX - 1, CPUS_MAX, usize::MAX] {
            assert!(!in_thread(move || pin_current_thread(cpu)), "{cpu}");
        }
    }

    #[test]
    fn binds_to_a_set_that_new_threads_inherit() {
        let all = allowed();
        for set in [all.clone(), all[1..].to_vec(), all[..all.len().div_ceil(2)].to_vec()] {
            let wanted = set.clone();
            let (bound, now, inherited) = in_thread(move || {
                let bound = bind_current_thread(&wanted);
                (bound, current_cpus(), in_thread(current_cpus))
            });
            let bindable = !set.is_empty();
            let expected = Some(if bindable { set } else { all.clone() });
            assert_eq!((bound, &now, &inherited), (bindable, &expected, &expected));
        }
    }

    #[test]
    fn a_set_that_is_not_all_allowed_changes_nothing() {
        let all = allowed();
        for stranger in [5_000, CPUS_MAX - 1, CPUS_MAX, usize::MAX] {
            let wanted = vec![all[0], stranger];
            let result = in_thread(move || (bind_current_thread(&wanted), current_cpus()));
            assert_eq!(result, (false, Some(all.clone())), "{stranger}");
        }
    }

    /// The bits of a mask are those of its CPUs, up to the last that any kernel counts.
    #[test]
    fn masks_hold_cpus_beyond_1024() {
        let cpus = [0, 63, 64, 1023, 1024, 2303, 8191, CPUS_MAX - 1];
        let mask = Mask::new(&cpus).unwrap();
        let bits: u32 = mask.0.iter().map(|word| word.count_ones()).sum();
        assert_eq!(bits as usize, cpus.len());
        assert_eq!(mask.0[1024 / 64], 1);
        assert_eq!(mask.0[8191 / 64], 1 << 63);
        assert!(Mask::new(&[0, CPUS_MAX]).is_none());
    }
}
