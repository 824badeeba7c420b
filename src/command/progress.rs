//! Progress of long work: a bar on a terminal, nothing in a pipe.

use std::io::IsTerminal;
use std::sync::{Mutex, MutexGuard};

use indicatif::{ProgressBar, ProgressStyle};

type Bar = (String, ProgressBar);

/// One bar at a time on standard error.
pub struct Progress {
    bar: Mutex<Option<Bar>>,
    terminal: bool,
}

impl Progress {
    pub fn new() -> Self {
        Progress { bar: Mutex::new(None), terminal: std::io::stderr().is_terminal() }
    }

    /// `done` of `total` of a stage; a new stage takes the place of the one before.
    pub fn show(&self, stage: &str, done: u64, total: u64) {
        if !self.terminal {
            return;
        }
        let mut current = self.lock();
        if current.as_ref().is_none_or(|(name, _)| name != stage) {
            Self::clear(&mut current);
            let style =
                ProgressStyle::with_template("{msg:<24} [{bar:40}] {percent:>3} %, {eta} left")
                    .expect("the template is a constant that a test draws")
                    .progress_chars("=> ");
            let bar = ProgressBar::new(total).with_style(style).with_message(stage.to_string());
            *current = Some((stage.to_string(), bar));
        }
        if let Some((_, bar)) = current.as_ref() {
            bar.set_length(total);
            bar.set_position(done);
        }
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        Self::clear(&mut self.lock());
    }

    fn lock(&self) -> MutexGuard<'_, Option<Bar>> {
        self.bar.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn clear(current: &mut Option<Bar>) {
        if let Some((_, bar)) = current.take() {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_drawn_and_taken_away() {
        let progress = Progress { bar: Mutex::new(None), terminal: true };
        progress.show("one", 1, 3);
        progress.show("one", 3, 3);
        progress.show("two", 0, 1);
        assert_eq!(progress.lock().as_ref().unwrap().0, "two");
        progress.finish();
        assert!(progress.lock().is_none());
    }
}
