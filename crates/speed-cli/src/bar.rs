//! Progress on standard error: a bar in a terminal, one line a stage elsewhere.

use std::io::{IsTerminal, Write};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use speed_experiment::Progress;

/// The time between two lines about the same stage where no bar is drawn.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// Draws a run's progress.
pub(crate) struct Bar {
    terminal: bool,
    current: Mutex<Option<Stage>>,
}

/// The stage that is worked on.
struct Stage {
    bar: ProgressBar,
    name: String,
    unit: String,
    started: Instant,
    /// Units of an earlier attempt.
    before: u64,
    told: Instant,
}

impl Stage {
    /// Returns how far it is: units, their rate, and the time left, as far as units of this attempt tell.
    fn line(&self) -> String {
        let (done, all) = (self.bar.position(), self.bar.length().unwrap_or_default());
        let (new, seconds) = (done.saturating_sub(self.before), self.started.elapsed().as_secs_f64());
        let mut line = format!("{}: {done} of {all} {}", self.name, self.unit);
        if new > 0 && seconds > 0.0 {
            let rate = new as f64 / seconds;
            let left = Duration::from_secs_f64(all.saturating_sub(done) as f64 / rate);
            line.push_str(&format!(", {rate:.2} a second, {} left", HumanDuration(left)));
        }
        line
    }
}

impl Bar {
    pub(crate) fn new() -> Self {
        Self { terminal: std::io::stderr().is_terminal(), current: Mutex::new(None) }
    }

    fn current(&self) -> std::sync::MutexGuard<'_, Option<Stage>> {
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
        let bar = ProgressBar::with_draw_target(Some(units), ProgressDrawTarget::hidden());
        if self.terminal {
            bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        let style = ProgressStyle::with_template("{prefix:>15} {bar:28} {pos}/{len} {elapsed}{left} {wide_msg}");
        // Before a unit of this attempt is done nothing tells the time that is left.
        let left = move |state: &ProgressState, out: &mut dyn std::fmt::Write| {
            let _ = if state.pos() > done { write!(out, " left {:#}", HumanDuration(state.eta())) } else { Ok(()) };
        };
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).with_key("left", left));
        bar.set_prefix(stage.to_owned());
        // Work of an earlier attempt must not count as fast work of this one.
        bar.set_position(done);
        bar.reset_eta();
        if self.terminal {
            bar.enable_steady_tick(Duration::from_millis(250));
        }
        let now = Instant::now();
        let (name, unit) = (stage.to_owned(), unit.to_owned());
        *self.current() = Some(Stage { bar, name, unit, started: now, before: done, told: now });
    }

    fn advance(&self, units: u64, note: &str) {
        let mut current = self.current();
        let Some(stage) = current.as_mut() else { return };
        stage.bar.inc(units);
        if !note.is_empty() {
            stage.bar.set_message(note.to_owned());
        }
        if !self.terminal && stage.told.elapsed() >= LINE_EVERY {
            stage.told = Instant::now();
            line(&stage.line());
        }
    }

    fn end(&self, summary: &str) {
        if let Some(stage) = self.current().take() {
            stage.bar.finish_and_clear();
            line(&format!("{summary} ({:.1} s)", stage.started.elapsed().as_secs_f64()));
        }
    }

    fn note(&self, text: &str) {
        match &*self.current() {
            Some(stage) if self.terminal => stage.bar.println(text),
            _ => line(text),
        }
    }
}
