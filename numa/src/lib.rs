//! Topology, placement and pinning of a Linux host.

/// Pins the calling thread to one CPU; false if the kernel refuses.
pub fn pin_current_thread(cpu: usize) -> bool {
    let words = cpu / 64 + 1;
    let mut mask = vec![0u64; words];
    mask[cpu / 64] = 1 << (cpu % 64);
    // SAFETY: the mask holds `words * 8` readable bytes; pid 0 is the calling thread.
    let result =
        unsafe { libc::sched_setaffinity(0, words * 8, mask.as_ptr().cast::<libc::cpu_set_t>()) };
    result == 0
}
