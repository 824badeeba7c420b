//! Instructions that a piece of work takes, counted one by one: a child does it, step by step. It
//! needs no counter of the processor, which virtual machines seldom show.

use std::io;

/// Instructions of `work` in user space; it must neither allocate nor ask the kernel for much.
///
/// # Errors
/// A kernel that lets no child be stepped through, a child that ends on its own.
pub fn instructions(work: &mut dyn FnMut()) -> Result<u64, String> {
    let nothing = steps(&mut || ())?;
    Ok(steps(work)?.saturating_sub(nothing))
}

/// The steps of a child from one stop to the other.
fn steps(work: &mut dyn FnMut()) -> Result<u64, String> {
    // SAFETY: the child stays on its one thread: it asks to be traced, does work that does not
    // allocate, and ends without running anything of the parent's.
    let child = unsafe { libc::fork() };
    match child {
        -1 => Err(format!("fork: {}", io::Error::last_os_error())),
        // SAFETY: as above.
        0 => unsafe {
            libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0);
            libc::raise(libc::SIGSTOP);
            work();
            libc::raise(libc::SIGSTOP);
            libc::_exit(0)
        },
        child => {
            let counted = count(child);
            let mut status = 0;
            // SAFETY: a child of ours that nobody has waited for to its end.
            unsafe {
                libc::kill(child, libc::SIGKILL);
                libc::waitpid(child, &raw mut status, 0);
            }
            counted
        }
    }
}

fn count(child: libc::pid_t) -> Result<u64, String> {
    let stop = || {
        let mut status = 0;
        // SAFETY: `status` is a valid place for the result.
        if unsafe { libc::waitpid(child, &raw mut status, 0) } != child {
            return Err(format!("waitpid: {}", io::Error::last_os_error()));
        }
        if libc::WIFSTOPPED(status) {
            Ok(libc::WSTOPSIG(status))
        } else {
            Err(format!("the child that is stepped through ended: {status:#x}"))
        }
    };
    let first = stop()?;
    if first != libc::SIGSTOP {
        return Err(format!("the child that is stepped through got signal {first}"));
    }
    let mut steps = 0;
    loop {
        // SAFETY: the child is ours, traced and stopped; no memory of ours is handed over.
        if unsafe { libc::ptrace(libc::PTRACE_SINGLESTEP, child, 0, 0) } != 0 {
            return Err(format!("ptrace: {}", io::Error::last_os_error()));
        }
        match stop()? {
            libc::SIGTRAP => steps += 1,
            libc::SIGSTOP => return Ok(steps),
            other => return Err(format!("the child that is stepped through got signal {other}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hint::black_box;

    #[test]
    fn steps_grow_with_the_work() {
        let add = |count: u64| {
            move || {
                let mut sum = 0u64;
                for i in 0..count {
                    sum = black_box(sum + i);
                }
            }
        };
        let few = instructions(&mut add(10)).unwrap();
        let many = instructions(&mut add(110)).unwrap();
        let each = (many - few) as f64 / 100.0;
        assert!((2.0..20.0).contains(&each), "{few} and {many}");
    }
}
