//! Lines on standard error, and bars in a terminal.

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

/// A spinner or a progress bar in a terminal, shown until it is dropped.
pub(crate) struct Bar(ProgressBar);

impl Bar {
    fn new(bar: impl FnOnce() -> ProgressBar) -> Self {
        let is_drawn = !is_quiet() && std::io::stderr().is_terminal();
        Self(if is_drawn { bar() } else { ProgressBar::hidden() })
    }

    /// Starts a spinner for work of unknown length, with the name of the work.
    pub(crate) fn waiting(what: &'static str) -> Self {
        Self::new(|| {
            let spinner = ProgressBar::new_spinner().with_message(what);
            spinner.enable_steady_tick(Duration::from_millis(250));
            spinner
        })
    }

    /// Returns the value of `work`, and shows a spinner while it is computed.
    pub(crate) fn during<T>(what: &'static str, work: impl FnOnce() -> T) -> T {
        let _waiting = Self::waiting(what);
        work()
    }

    /// Starts a bar for counted work with the estimated remaining time: the name of the work and its number of steps.
    pub(crate) fn counting(what: &'static str, steps: u64) -> Self {
        Self::new(|| {
            let style = "{msg} {bar:28} {human_pos} of {human_len}, {eta} left";
            let style = ProgressStyle::with_template(style).unwrap_or_else(|_| ProgressStyle::default_bar());
            ProgressBar::new(steps).with_style(style).with_message(what)
        })
    }

    /// Counts finished steps.
    pub(crate) fn steps(&self, steps: u64) {
        self.0.inc(steps);
    }
}

impl Drop for Bar {
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

pub(crate) fn warn(text: &str) {
    line(&format!("warning: {text}"));
}

/// Writes a line to standard error. A failure is ignored, because it cannot be reported anywhere.
pub(crate) fn line(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}
