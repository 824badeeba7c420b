//! A child process and what it cost: wall time, CPU time, peak resident memory.

use std::io::Read;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// What one run of a program cost.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    pub wall: Duration,
    /// User and system time of all threads.
    pub cpu: Duration,
    /// Peak resident set, in bytes (hugetlb pages are not part of it).
    pub peak_bytes: u64,
}

/// Runs a program to its end and gives its standard output and cost.
///
/// # Errors
/// When it cannot be started or does not end with exit code 0.
pub fn run(command: &mut Command) -> Result<(String, Cost), String> {
    let name = format!("{command:?}");
    let began = Instant::now();
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|e| format!("cannot start {name}: {e}"))?;
    let mut output = String::new();
    let mut told = String::new();
    let mut pipe = child.stdout.take().ok_or("a child without a standard output")?;
    let mut errors = child.stderr.take().ok_or("a child without a standard error")?;
    std::thread::scope(|scope| {
        // Both at once: a full pipe of either would stop the child.
        let reading = scope.spawn(|| errors.read_to_string(&mut told));
        let read = pipe.read_to_string(&mut output);
        read.and(reading.join().unwrap_or(Ok(0)))
    })
    .map_err(|e| format!("cannot read the output of {name}: {e}"))?;
    let (status, usage) = wait(child.id() as libc::pid_t)?;
    let wall = began.elapsed();
    if !libc::WIFEXITED(status) || libc::WEXITSTATUS(status) != 0 {
        return Err(format!("{name} ended with status {status:#x}:\n{told}"));
    }
    let cpu = time(usage.ru_utime) + time(usage.ru_stime);
    Ok((output, Cost { wall, cpu, peak_bytes: usage.ru_maxrss as u64 * 1024 }))
}

fn wait(pid: libc::pid_t) -> Result<(libc::c_int, libc::rusage), String> {
    let mut status = 0;
    // SAFETY: rusage is plain data for which all zeros is a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to live, writable values; pid is a child nobody else waits for.
    let got = unsafe { libc::wait4(pid, &mut status, 0, &mut usage) };
    if got != pid {
        return Err(format!("wait4: {}", std::io::Error::last_os_error()));
    }
    Ok((status, usage))
}

fn time(value: libc::timeval) -> Duration {
    Duration::new(value.tv_sec as u64, value.tv_usec as u32 * 1000)
}
