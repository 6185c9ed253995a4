//! The progress of long-running work, as reported to the caller.

mod recorder;
mod view;

pub(crate) use recorder::Recorder;
pub use view::{CurrentWork, PartView, RunView, StageStatus, StageView};

/// Receives the progress of a run. All methods may be called from several threads.
pub trait Progress: Sync {
    /// Receives the names of a run's stages in order, before the first stage starts.
    fn planned(&self, _stages: &[String]) {}
    /// Receives the next stage, before it is looked up, prepared and processed.
    fn started(&self, _stage: &str) {}
    /// Receives a finished stage; `found` is true if it was finished before.
    fn finished(&self, _stage: &str, _found: bool) {}
    /// Receives the start of work with `units` equal parts; `done` parts exist from an earlier attempt.
    fn begin(&self, work: &str, unit: &str, units: u64, done: u64);
    /// Receives the state of one of several concurrent parts of the work.
    fn part(&self, _part: &Part<'_>) {}
    /// Receives the number of additional units from an earlier attempt.
    fn found(&self, units: u64) {
        self.advance(units, "");
    }
    /// Receives the number of newly finished units; `note` describes the last one.
    fn advance(&self, units: u64, note: &str);
    /// Receives the end of the work.
    fn end(&self, summary: &str);
    /// Receives a line that is shown even if no progress bar is drawn.
    fn note(&self, line: &str);
    /// Receives a warning about the user's data, without the word. It is shown with `--quiet` too.
    fn warn(&self, line: &str) {
        self.note(&format!("warning: {line}"));
    }
}

/// One of several concurrent parts of the work, for example a student.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part<'a> {
    /// Its kind, such as "student".
    pub name: &'a str,
    /// Its number, from 1.
    pub number: usize,
    /// The number of parts.
    pub of: usize,
    /// The name of its units, such as "epoch".
    pub unit: &'a str,
    /// Finished units.
    pub done: u64,
    /// Total units.
    pub total: u64,
}

/// A receiver that discards all progress.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {
    fn begin(&self, _: &str, _: &str, _: u64, _: u64) {}
    fn advance(&self, _: u64, _: &str) {}
    fn end(&self, _: &str) {}
    fn note(&self, _: &str) {}
}
