//! Lines on standard error, and a spinner in a terminal.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use indicatif::ProgressBar;

/// A spinner in a terminal for work of unknown length, shown until it is dropped.
pub(crate) struct Waiting(ProgressBar);

impl Waiting {
    /// Starts the spinner with the name of the work.
    pub(crate) fn new(what: &'static str) -> Self {
        if !std::io::stderr().is_terminal() {
            return Self(ProgressBar::hidden());
        }
        let spinner = ProgressBar::new_spinner();
        spinner.set_message(what);
        spinner.enable_steady_tick(Duration::from_millis(250));
        Self(spinner)
    }

    /// Returns the value of `work`, and shows a spinner while it is computed.
    pub(crate) fn during<T>(what: &'static str, work: impl FnOnce() -> T) -> T {
        let _waiting = Self::new(what);
        work()
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// Writes a line to standard error; nobody is left to tell if that fails.
pub(crate) fn line(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}
