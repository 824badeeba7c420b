//! A team of pinned threads that do one job together.
//!
//! Fork and join without allocation: the threads are made once, and a job is a borrowed closure
//! that each of them calls with its own number. Used wherever planned threads share one piece of
//! work (parameter reading, dev setup, the CPU lane). A round itself allocates nothing, so the
//! threads of a team may be closed to the heap; a panic in a job comes back from those, too.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;

use crate::error::{Error, Result};

/// Pins the calling thread to a CPU. Where the kernel refuses, the thread runs wherever the
/// scheduler puts it: slower, not wrong, so this is said, once for the whole program.
pub fn pin(cpu: usize) {
    static TOLD: AtomicBool = AtomicBool::new(false);
    if !numa::pin_current_thread(cpu) && !TOLD.swap(true, Ordering::Relaxed) {
        let thread = std::thread::current();
        let name = thread.name().unwrap_or("unnamed");
        log::warn!("thread {name} cannot be pinned to CPU {cpu}; the scheduler places it");
    }
}

/// The error of a thread that cannot be made, with what bounds threads. For all who make one.
pub fn thread_error(name: &str, error: &std::io::Error) -> Error {
    Error::Host(format!(
        "cannot make thread {name}: {error} (ulimit -u, TasksMax= of the unit, ulimit -v)"
    ))
}

type Job = *const (dyn Fn(usize) + Sync);

struct State {
    /// The job of the running round; it lives until `left` is zero.
    job: Option<Job>,
    round: u64,
    left: usize,
    panic: Option<Box<dyn std::any::Any + Send>>,
    stop: bool,
}

// SAFETY: the job pointer is only followed between the start of a round and the moment that
// `left` reaches zero, and `Team::run` keeps the closure alive for exactly that time.
unsafe impl Send for State {}

struct Shared {
    state: Mutex<State>,
    begin: Condvar,
    done: Condvar,
}

/// A fixed number of threads, each pinned to one CPU if one is given.
pub struct Team {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl Team {
    /// One thread per entry of `cpus`; `None` leaves a thread where the scheduler puts it.
    ///
    /// # Errors
    /// [`Error::Host`] when a thread cannot be made.
    pub fn new(name: &str, cpus: &[Option<usize>]) -> Result<Self> {
        assert!(!cpus.is_empty(), "a team has at least one thread");
        let shared = Arc::new(Shared {
            state: Mutex::new(State { job: None, round: 0, left: 0, panic: None, stop: false }),
            begin: Condvar::new(),
            done: Condvar::new(),
        });
        let mut team = Team { shared, threads: Vec::with_capacity(cpus.len()) };
        for (number, cpu) in cpus.iter().copied().enumerate() {
            let shared = Arc::clone(&team.shared);
            let thread = std::thread::Builder::new()
                .name(format!("{name}-{number}"))
                .spawn(move || {
                    if let Some(cpu) = cpu {
                        pin(cpu);
                    }
                    shared.work(number);
                })
                .map_err(|e| thread_error(&format!("{name}-{number}"), &e))?;
            team.threads.push(thread);
        }
        Ok(team)
    }

    /// Number of threads.
    #[allow(clippy::len_without_is_empty)] // a team is never empty
    pub fn len(&self) -> usize {
        self.threads.len()
    }

    /// Calls `job(n)` on thread n of the team, for every n, and returns when all are done.
    /// Calls from several threads take turns. A panic in a job is raised again here.
    pub fn run(&self, job: &(dyn Fn(usize) + Sync)) {
        // SAFETY: only the lifetime is erased; this function does not return before every thread
        // has finished its call (`left == 0`), so the closure outlives every use of the pointer.
        let job: Job =
            unsafe { std::mem::transmute::<*const (dyn Fn(usize) + Sync + '_), Job>(job) };
        let mut state = self.shared.lock();
        while state.job.is_some() {
            state = self.shared.done.wait(state).unwrap_or_else(|e| e.into_inner());
        }
        state.job = Some(job);
        state.round += 1;
        state.left = self.threads.len();
        let round = state.round;
        self.shared.begin.notify_all();
        while state.round == round && state.left > 0 {
            state = self.shared.done.wait(state).unwrap_or_else(|e| e.into_inner());
        }
        let panic = state.panic.take();
        state.job = None;
        drop(state);
        self.shared.done.notify_all();
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
    }

    /// Splits `0..total` into one contiguous range per thread and calls `job(thread, range)`.
    pub fn split(&self, total: usize, job: &(dyn Fn(usize, std::ops::Range<usize>) + Sync)) {
        let threads = self.len();
        self.run(&|n| job(n, total * n / threads..total * (n + 1) / threads));
    }
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn work(&self, number: usize) {
        let mut seen = 0;
        loop {
            let mut state = self.lock();
            while !state.stop && (state.round == seen || state.job.is_none()) {
                state = self.begin.wait(state).unwrap_or_else(|e| e.into_inner());
            }
            if state.stop {
                return;
            }
            seen = state.round;
            let job = state.job.expect("a round has a job");
            drop(state);
            // SAFETY: `run` holds the closure until this round's `left` is zero, below.
            let outcome = catch_unwind(AssertUnwindSafe(|| unsafe { (*job)(number) }));
            let mut state = self.lock();
            if let Err(panic) = outcome {
                state.panic = Some(panic);
            }
            state.left -= 1;
            if state.left == 0 {
                self.done.notify_all();
            }
        }
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        self.shared.lock().stop = true;
        self.shared.begin.notify_all();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::heap;
    use std::sync::atomic::AtomicUsize;

    #[test]
    fn every_thread_works_once_a_round() {
        let team = Team::new("test", &[None; 3]).unwrap();
        let calls = [const { AtomicUsize::new(0) }; 3];
        for _ in 0..100 {
            team.run(&|n| {
                calls[n].fetch_add(1, Ordering::Relaxed);
            });
        }
        assert!(calls.iter().all(|c| c.load(Ordering::Relaxed) == 100));
    }

    #[test]
    fn a_thread_that_cannot_be_made_is_told_with_what_bounds_threads() {
        let error = thread_error("lane0-3", &std::io::Error::from_raw_os_error(libc::EAGAIN));
        assert_eq!(error.exit_code(), 3);
        let told = error.to_string();
        for part in ["thread lane0-3: ", "os error 11", "ulimit -u", "TasksMax=", "ulimit -v"] {
            assert!(told.contains(part), "{part} in {told}");
        }
    }

    #[test]
    fn split_covers_the_range_without_overlap() {
        let team = Team::new("test", &[None; 3]).unwrap();
        for total in [0, 1, 2, 3, 7, 1000] {
            let sum = AtomicUsize::new(0);
            team.split(total, &|_, range| {
                sum.fetch_add(range.len(), Ordering::Relaxed);
            });
            assert_eq!(sum.into_inner(), total);
        }
    }

    #[test]
    fn a_panic_comes_back_and_the_team_lives() {
        let team = Team::new("test", &[None; 2]).unwrap();
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            team.run(&|n| assert!(n != 1, "thread 1 gives up"));
        }));
        assert!(outcome.is_err());
        let calls = AtomicUsize::new(0);
        team.run(&|_| {
            calls.fetch_add(1, Ordering::Relaxed);
        });
        assert_eq!(calls.into_inner(), 2);
    }

    #[test]
    fn a_round_allocates_and_frees_nothing_on_any_thread() {
        let team = Team::new("test", &[None; 3]).unwrap();
        let seen = [const { Mutex::new(None) }; 3];
        let look = |n: usize| *seen[n].lock().unwrap() = Some(heap::thread_bytes().unwrap());
        team.run(&look);
        let before = (heap::thread_bytes().unwrap(), seen.each_ref().map(|s| *s.lock().unwrap()));
        let sum = AtomicUsize::new(0);
        for _ in 0..100 {
            team.split(7, &|_, range| {
                sum.fetch_add(range.len(), Ordering::Relaxed);
            });
        }
        team.run(&look);
        let after = (heap::thread_bytes().unwrap(), seen.each_ref().map(|s| *s.lock().unwrap()));
        assert_eq!(sum.into_inner(), 700);
        assert_eq!(before, after);
        // A thread that does allocate is seen.
        team.run(&|n| {
            let bytes = std::hint::black_box(vec![1u8; 1 << 10]);
            look(n);
            drop(bytes);
        });
        assert_ne!(after.1, seen.each_ref().map(|s| *s.lock().unwrap()));
    }
}
