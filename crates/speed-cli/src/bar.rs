//! Lines on standard error, and a spinner in a terminal.

use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// Whether the user asked for no progress and no notes.
static QUIET: AtomicBool = AtomicBool::new(false);

/// Sets whether progress and notes are reported, once for the process.
pub(crate) fn set_quiet(quiet: bool) {
    QUIET.store(quiet, Ordering::Relaxed);
}

/// Returns whether progress and notes are left out.
pub(crate) fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// Returns whether bars are drawn.
fn are_bars_drawn() -> bool {
    !is_quiet() && std::io::stderr().is_terminal()
}

/// A spinner in a terminal for work of unknown length, shown until it is dropped.
pub(crate) struct Waiting(ProgressBar);

impl Waiting {
    /// Starts the spinner with the name of the work.
    pub(crate) fn new(what: &'static str) -> Self {
        if !are_bars_drawn() {
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

/// A progress bar in a terminal for counted work, with the estimated remaining time, shown until it is dropped.
pub(crate) struct Counting(ProgressBar);

impl Counting {
    /// Starts the bar with the name of the work and its number of steps.
    pub(crate) fn new(what: &'static str, steps: u64) -> Self {
        if !are_bars_drawn() {
            return Self(ProgressBar::hidden());
        }
        let style = "{msg} {bar:28} {human_pos} of {human_len}, {eta} left";
        let style = ProgressStyle::with_template(style).unwrap_or_else(|_| ProgressStyle::default_bar());
        Self(ProgressBar::new(steps).with_style(style).with_message(what))
    }

    /// Counts a finished step.
    pub(crate) fn step(&self) {
        self.steps(1);
    }

    /// Counts several finished steps.
    pub(crate) fn steps(&self, steps: u64) {
        self.0.inc(steps);
    }
}

impl Drop for Counting {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// Writes a note, unless the user asked for none.
pub(crate) fn note(text: &str) {
    if !is_quiet() {
        line(text);
    }
}

/// Writes a warning.
pub(crate) fn warn(text: &str) {
    line(&format!("warning: {text}"));
}

/// Writes a line to standard error. A failure is ignored, because it cannot be reported anywhere.
pub(crate) fn line(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}
