//! Lines on standard error, and a spinner in a terminal.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

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

/// Shows in a terminal how much of counted work is done and about how long the rest takes, until it is dropped.
pub(crate) struct Counting(ProgressBar);

impl Counting {
    /// Says how many steps of what there are.
    pub(crate) fn new(what: &'static str, steps: u64) -> Self {
        if !std::io::stderr().is_terminal() {
            return Self(ProgressBar::hidden());
        }
        let style = "{msg} {bar:28} {human_pos} of {human_len}, {eta} left";
        let style = ProgressStyle::with_template(style).unwrap_or_else(|_| ProgressStyle::default_bar());
        Self(ProgressBar::new(steps).with_style(style).with_message(what))
    }

    /// Counts a step that is done.
    pub(crate) fn step(&self) {
        self.0.inc(1);
    }
}

impl Drop for Counting {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// Writes a line to standard error; nobody is left to tell if that fails.
pub(crate) fn line(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}
