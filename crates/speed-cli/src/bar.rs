//! Lines on standard error, and signs of life in a terminal.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use indicatif::ProgressBar;

/// Shows in a terminal that work whose length nobody knows goes on, until it is dropped.
pub(crate) struct Waiting(ProgressBar);

impl Waiting {
    /// Says what is waited for.
    pub(crate) fn new(what: &'static str) -> Self {
        if !std::io::stderr().is_terminal() {
            return Self(ProgressBar::hidden());
        }
        let spinner = ProgressBar::new_spinner();
        spinner.set_message(what);
        spinner.enable_steady_tick(Duration::from_millis(250));
        Self(spinner)
    }

    /// The value of `work`, with a sign that it is being computed.
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
