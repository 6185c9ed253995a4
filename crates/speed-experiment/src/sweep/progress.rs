//! The progress of one run of a sweep.

use crate::progress::{Part, Progress};

/// A receiver that forwards the progress of one run, with its number among all runs.
pub(super) struct SettingProgress<'a> {
    all: &'a dyn Progress,
    place: String,
}

impl<'a> SettingProgress<'a> {
    pub(super) fn new(all: &'a dyn Progress, setting: usize, settings: usize) -> Self {
        Self { all, place: format!("{setting}/{settings}") }
    }
}

impl Progress for SettingProgress<'_> {
    fn planned(&self, stages: &[String]) {
        self.all.planned(stages);
    }

    fn started(&self, stage: &str) {
        self.all.started(stage);
    }

    fn finished(&self, stage: &str, _found: bool) {
        // Most stages of most settings were already finished by the first setting, so reporting each of them would be
        // noise.
        self.all.finished(stage, false);
    }

    fn part(&self, part: &Part<'_>) {
        self.all.part(part);
    }

    fn found(&self, units: u64) {
        self.all.found(units);
    }

    fn begin(&self, stage: &str, unit: &str, units: u64, done: u64) {
        self.all.begin(&format!("{} {stage}", self.place), unit, units, done);
    }

    fn advance(&self, units: u64, note: &str) {
        self.all.advance(units, note);
    }

    fn end(&self, summary: &str) {
        self.all.end(&format!("{} {summary}", self.place));
    }

    fn note(&self, line: &str) {
        self.all.note(line);
    }

    fn warn(&self, line: &str) {
        self.all.warn(line);
    }
}
