//! Progress on standard error: a bar in a terminal, one line a stage elsewhere.

use std::io::{IsTerminal, Write};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use speed_experiment::Progress;

/// Draws a run's progress.
pub(crate) struct Bar {
    terminal: bool,
    current: Mutex<Option<(ProgressBar, Instant)>>,
}

impl Bar {
    pub(crate) fn new() -> Self {
        Self { terminal: std::io::stderr().is_terminal(), current: Mutex::new(None) }
    }

    fn current(&self) -> std::sync::MutexGuard<'_, Option<(ProgressBar, Instant)>> {
        // A bar that another thread left is still a bar.
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

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

impl Progress for Bar {
    fn begin(&self, stage: &str, unit: &str, units: u64, done: u64) {
        if !self.terminal {
            line(&format!(
                "{stage}: {units} {unit}{}",
                if done > 0 { format!(", {done} done") } else { String::new() }
            ));
        }
        let bar = if self.terminal { ProgressBar::new(units) } else { ProgressBar::hidden() };
        let style = "{prefix:>15} {bar:28} {pos}/{len} {elapsed} left {eta} {wide_msg}";
        bar.set_style(ProgressStyle::with_template(style).unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.set_prefix(stage.to_owned());
        // Work of an earlier attempt must not count as fast work of this one.
        bar.set_position(done);
        bar.reset_eta();
        if self.terminal {
            bar.enable_steady_tick(Duration::from_millis(250));
        }
        *self.current() = Some((bar, Instant::now()));
    }

    fn advance(&self, units: u64, note: &str) {
        if let Some((bar, _)) = &*self.current() {
            bar.inc(units);
            if !note.is_empty() {
                bar.set_message(note.to_owned());
            }
        }
    }

    fn end(&self, summary: &str) {
        if let Some((bar, started)) = self.current().take() {
            bar.finish_and_clear();
            line(&format!("{summary} ({:.1} s)", started.elapsed().as_secs_f64()));
        }
    }

    fn note(&self, text: &str) {
        match &*self.current() {
            Some((bar, _)) if self.terminal => bar.println(text),
            _ => line(text),
        }
    }
}
