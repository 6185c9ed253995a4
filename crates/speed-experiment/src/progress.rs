//! The progress of long work, as its caller hears of it.

mod recorder;
mod view;

pub(crate) use recorder::Recorder;
pub use view::{PartView, RunView, StageStatus, StageView, Work};

/// Receives the progress of a run. All methods may be called from several threads.
pub trait Progress: Sync {
    /// Hears the stages of a run in their order, before the first of them.
    fn planned(&self, _stages: &[String]) {}
    /// Hears that a stage is next: it is looked for, prepared and worked on.
    fn started(&self, _stage: &str) {}
    /// Hears that a stage is done; `found` where it was done already.
    fn finished(&self, _stage: &str, _found: bool) {}
    /// Hears that work of `units` equal parts begins; `done` of them are there from an earlier attempt.
    fn begin(&self, work: &str, unit: &str, units: u64, done: u64);
    /// Hears of one of the things that are worked on side by side.
    fn part(&self, _part: &Part<'_>) {}
    /// Hears that further units are there from an earlier attempt.
    fn found(&self, units: u64) {
        self.advance(units, "");
    }
    /// Hears that units are finished; `note` says something about the last one.
    fn advance(&self, units: u64, note: &str);
    /// Hears that the work ends.
    fn end(&self, summary: &str);
    /// Hears a line that is worth reading even where no bar is drawn.
    fn note(&self, line: &str);
}

/// One of several things that are worked on side by side, students for example.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part<'a> {
    /// The word for one of them.
    pub name: &'a str,
    /// Its number among them, from 1.
    pub number: usize,
    /// How many they are.
    pub of: usize,
    /// The word for a unit of its work.
    pub unit: &'a str,
    /// Units that are done.
    pub done: u64,
    /// Units in all.
    pub total: u64,
}

/// A receiver that drops everything.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {
    fn begin(&self, _: &str, _: &str, _: u64, _: u64) {}
    fn advance(&self, _: u64, _: &str) {}
    fn end(&self, _: &str) {}
    fn note(&self, _: &str) {}
}
