//! The progress of long-running work, as reported to the caller.

mod recorder;
mod view;

use std::fmt;

use serde::{Deserialize, Serialize};

pub(crate) use recorder::Recorder;
pub use view::{CurrentWork, RunView, StageStatus, StageView};

/// An event of long-running work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// The names of a run's stages in order, before the first stage starts.
    Planned(&'a [String]),
    /// The next stage, before it is looked up, prepared and processed.
    Started(&'a str),
    /// A finished stage, and whether it was finished before.
    Finished(&'a str, bool),
    /// The start of work with `units` equal parts called `unit`; `done` parts exist from an earlier attempt.
    #[expect(missing_docs, reason = "the variant's documentation names them")]
    Begin { work: &'a str, unit: &'a str, units: u64, done: u64 },
    /// The state of one of several concurrent parts of the work.
    Part(&'a Part),
    /// The number of additional units from an earlier attempt.
    Found(u64),
    /// The number of newly finished units, and a description of the last one.
    Advance(u64, &'a str),
    /// The end of the work, with a summary.
    End(&'a str),
    /// A line that is shown even if no progress bar is drawn.
    Note(&'a str),
    /// A warning about the user's data, without the word. It is shown with `--quiet` too.
    Warning(&'a str),
}

/// One of several concurrent parts of the work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Its kind, such as "student".
    pub name: String,
    /// Its number, from 1.
    pub number: usize,
    /// The number of parts.
    pub of: usize,
    /// The name of its units, such as "epoch".
    pub unit: String,
    /// Finished units.
    pub done: u64,
    /// Total units.
    pub total: u64,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, number, of, unit, done, total } = self;
        write!(f, "{name} {number} of {of}, {unit} {done} of {total}")
    }
}

/// Receives the progress of a run.
#[expect(missing_docs, reason = "the methods report the events of their names")]
pub trait Progress: Sync {
    /// Receives an event, perhaps from several threads.
    fn on(&self, event: Event<'_>);

    fn planned(&self, stages: &[String]) {
        self.on(Event::Planned(stages));
    }
    fn started(&self, stage: &str) {
        self.on(Event::Started(stage));
    }
    fn finished(&self, stage: &str, found: bool) {
        self.on(Event::Finished(stage, found));
    }
    fn begin(&self, work: &str, unit: &str, units: u64, done: u64) {
        self.on(Event::Begin { work, unit, units, done });
    }
    fn part(&self, part: &Part) {
        self.on(Event::Part(part));
    }
    fn found(&self, units: u64) {
        self.on(Event::Found(units));
    }
    fn advance(&self, units: u64, note: &str) {
        self.on(Event::Advance(units, note));
    }
    fn end(&self, summary: &str) {
        self.on(Event::End(summary));
    }
    fn note(&self, line: &str) {
        self.on(Event::Note(line));
    }
    fn warn(&self, line: &str) {
        self.on(Event::Warning(line));
    }
}

/// A receiver that discards all progress.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {
    fn on(&self, _: Event<'_>) {}
}
