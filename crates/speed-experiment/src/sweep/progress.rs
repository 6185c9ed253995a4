//! The progress of one run of a sweep.

use crate::progress::{Event, Progress};

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
    fn on(&self, event: Event<'_>) {
        match event {
            // Most stages of most settings were already finished by the first setting, so reporting each of them would be
            // noise.
            Event::Finished(stage, _) => self.all.finished(stage, false),
            Event::Begin { work, unit, units, done } => {
                self.all.begin(&format!("{} {work}", self.place), unit, units, done);
            }
            Event::End(summary) => self.all.end(&format!("{} {summary}", self.place)),
            event => self.all.on(event),
        }
    }
}
