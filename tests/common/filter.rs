//! A seccomp filter that ends the process when a thread asks the kernel for memory.
//!
//! jemalloc's counters see what goes through the heap; what asks the kernel by itself (a library in
//! C, a driver, the C library's own malloc) they do not see. This does.

use libc::{BPF_ABS, BPF_JEQ, BPF_JGE, BPF_JMP, BPF_K, BPF_LD, BPF_RET, BPF_W, sock_filter};

/// The calls that a thread of the data path makes no more, by name and number.
pub const MEMORY_CALLS: [(&str, libc::c_long); 5] = [
    ("mmap", libc::SYS_mmap),
    ("munmap", libc::SYS_munmap),
    ("mremap", libc::SYS_mremap),
    ("brk", libc::SYS_brk),
    ("madvise", libc::SYS_madvise),
];

/// Forbids the calling thread, for good, what is in [`MEMORY_CALLS`]: the process ends by SIGSYS.
/// The end of a thread is such a call (glibc gives its stack back by madvise), so a process with
/// filtered threads ends by `_exit`. Allocates nothing.
///
/// # Panics
/// If the kernel takes no filter.
pub fn forbid_memory_calls() {
    // Offsets into struct seccomp_data (seccomp(2)), and what they hold: numbers of calls are those
    // of one architecture, and those from X32 on are the same calls by another door.
    const NUMBER: u32 = 0;
    const ARCHITECTURE: u32 = 4;
    const X86_64: u32 = 0xc000_003e;
    const X32: u32 = 0x4000_0000;
    let end = MEMORY_CALLS.len() as u8;
    let step = |code: u32, k: u32, jt: u8, jf: u8| sock_filter { code: code as u16, jt, jf, k };
    let load = |offset| step(BPF_LD | BPF_W | BPF_ABS, offset, 0, 0);
    let result = |value| step(BPF_RET | BPF_K, value, 0, 0);
    let mut program = [result(libc::SECCOMP_RET_KILL_PROCESS); MEMORY_CALLS.len() + 6];
    // A jump counts the steps that it leaves out; the last step of all is the end of the process.
    program[0] = load(ARCHITECTURE);
    program[1] = step(BPF_JMP | BPF_JEQ | BPF_K, X86_64, 0, end + 3);
    program[2] = load(NUMBER);
    program[3] = step(BPF_JMP | BPF_JGE | BPF_K, X32, end + 1, 0);
    for (n, (_, call)) in MEMORY_CALLS.into_iter().enumerate() {
        program[4 + n] = step(BPF_JMP | BPF_JEQ | BPF_K, call as u32, end - n as u8, 0);
    }
    program[4 + MEMORY_CALLS.len()] = result(libc::SECCOMP_RET_ALLOW);
    let program = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: both set an attribute of this thread alone; the kernel copies the program.
    let (quiet, filtered) = unsafe {
        (
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
            libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program),
        )
    };
    assert_eq!((quiet, filtered), (0, 0), "{}", std::io::Error::last_os_error());
}
