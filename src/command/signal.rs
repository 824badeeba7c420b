//! SIGUSR1: the ledger on standard error, whenever somebody asks for it.
//!
//! A thread of its own waits for the signal with sigwait, and every other thread has it blocked:
//! no handler interrupts anything, and nothing is done where little is allowed.

use std::sync::{Arc, Mutex, MutexGuard};

use crate::error::{Error, Result};
use crate::plan::Plan;
use crate::prover::Books;
use crate::tell;

/// What is told while there is nothing to tell of.
const NO_PROVER: &str = "ledger      no prover yet: parameters are being read, or it has ended";

/// What the waiting thread tells of.
#[derive(Clone, Default)]
pub struct Usr1 {
    of: Arc<Mutex<Option<Told>>>,
}

struct Told {
    books: Books,
    planned_bytes: u64,
    housekeeping_cpus: Vec<usize>,
}

impl Usr1 {
    /// Blocks the signal on this thread, and so on every thread that comes from it, and starts the
    /// one that waits for it. To be called before there are others, for the signal would end the
    /// process on a thread that does not block it.
    ///
    /// # Errors
    /// [`Error::Host`] when a thread cannot be made.
    pub fn listen() -> Result<Self> {
        let usr1 = Usr1::default();
        let set = block()?;
        let told = usr1.clone();
        std::thread::Builder::new()
            .name("signals".into())
            .spawn(move || {
                while wait(&set) {
                    tell!("{}", told.text().trim_end());
                }
            })
            .map_err(|e| crate::team::thread_error("signals", &e))?;
        Ok(usr1)
    }

    /// From now on the ledger of this prover is told, beside the total of its plan and on the
    /// plan's CPUs for housekeeping.
    pub fn tell_of(&self, books: Books, plan: &Plan) {
        *self.lock() = Some(Told {
            books,
            planned_bytes: plan.total_bytes as u64,
            housekeeping_cpus: plan.housekeeping_cpus.clone(),
        });
    }

    fn text(&self) -> String {
        let ledger = self.lock().as_ref().and_then(|told| {
            // The thread began before there was a plan; elsewhere it is as right, if not as quiet.
            numa::bind_current_thread(&told.housekeeping_cpus);
            let planned_bytes = Some(told.planned_bytes);
            Some(told.books.ledger()?.map(|mut ledger| {
                ledger.planned_bytes = planned_bytes;
                ledger
            }))
        });
        match ledger {
            None => NO_PROVER.into(),
            Some(Ok(ledger)) => format!("ledger\n{ledger}"),
            Some(Err(error)) => format!("ledger      {error}"),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Told>> {
        self.of.lock().unwrap_or_else(|e| e.into_inner())
    }
}

/// Blocks SIGUSR1 on this thread; the set that holds it alone.
fn block() -> Result<libc::sigset_t> {
    // SAFETY: a signal set is plain data, which sigemptyset makes valid before anything reads it.
    let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: the set is this thread's own variable, and no old mask is asked for.
    let errno = unsafe {
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, libc::SIGUSR1);
        libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut())
    };
    match errno {
        0 => Ok(set),
        errno => {
            let error = std::io::Error::from_raw_os_error(errno);
            Err(Error::Host(format!("cannot block SIGUSR1: {error}")))
        }
    }
}

/// Waits for a signal of the set; false if that is not possible.
fn wait(set: &libc::sigset_t) -> bool {
    let mut signal = 0;
    // SAFETY: both are variables of this process; the set was made by `block`.
    unsafe { libc::sigwait(set, &mut signal) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_prover_it_says_so() {
        assert_eq!(Usr1::default().text(), NO_PROVER);
    }
}
