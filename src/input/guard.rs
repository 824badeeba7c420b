//! Third-party code at the border: its panics become errors, its work is spread over threads.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::Builder;

use crate::error::{Error, Result};

/// Threads that check one request; more would take cores from proofs that are under way.
const THREADS_MAX: usize = 4;
/// How the error of a contained panic begins.
pub(crate) const GAVE_UP: &str = "the library gave up";

/// Calls `job`; a panic in it is an input error, for it is always the input that provoked it.
pub(crate) fn contain<T>(job: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(job)).unwrap_or_else(|panic| {
        let text = match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
            (Some(text), _) => text,
            (_, Some(text)) => text.as_str(),
            _ => "no message",
        };
        Err(Error::input("vanilla check", format!("{GAVE_UP}: {text}")))
    })
}

/// Calls `job(0)` to `job(count - 1)` on a few threads; of several errors the first by number is
/// returned.
pub(crate) fn spread(count: usize, job: &(dyn Fn(usize) -> Result<()> + Sync)) -> Result<()> {
    let next = AtomicUsize::new(0);
    let first: Mutex<Option<(usize, Error)>> = Mutex::new(None);
    let work = || loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= count {
            return;
        }
        if let Err(error) = contain(|| job(number)) {
            // Numbers are taken in order, so all lower ones are taken: the rest may be left.
            next.store(count, Ordering::Relaxed);
            let mut first = first.lock().unwrap_or_else(|e| e.into_inner());
            if first.as_ref().is_none_or(|(other, _)| number < *other) {
                *first = Some((number, error));
            }
        }
    };
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    std::thread::scope(|scope| {
        for _ in 1..cores.min(THREADS_MAX).min(count) {
            // Without the thread the work is done here, only slower.
            let _ = Builder::new().name("berth-check".into()).spawn_scoped(scope, work);
        }
        work();
    });
    match first.into_inner().unwrap_or_else(|e| e.into_inner()) {
        Some((_, error)) => Err(error),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_called_once() {
        for count in [0, 1, 2, 5, 100] {
            let calls: Vec<AtomicUsize> = (0..count).map(|_| AtomicUsize::new(0)).collect();
            spread(count, &|i| {
                calls[i].fetch_add(1, Ordering::Relaxed);
                Ok(())
            })
            .unwrap();
            assert!(calls.iter().all(|calls| calls.load(Ordering::Relaxed) == 1));
        }
    }

    #[test]
    fn the_first_error_wins_and_panics_are_errors() {
        let outcome = spread(100, &|i| match i {
            17 => Err(Error::input("17", "wrong")),
            30 => panic!("thirty"),
            _ => Ok(()),
        });
        assert!(matches!(outcome, Err(Error::Input { at, .. }) if at == "17"));
        let outcome = spread(3, &|i| if i == 2 { panic!("number {i}") } else { Ok(()) });
        assert!(outcome.unwrap_err().to_string().contains("number 2"));
    }
}
