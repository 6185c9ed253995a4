//! The progress of long work, as its caller hears of it.

/// Receives the progress of a run. All methods may be called from several threads.
pub trait Progress: Sync {
    /// Hears that a stage of `units` equal parts begins; `done` of them are there from an earlier attempt.
    fn begin(&self, stage: &str, unit: &str, units: u64, done: u64);
    /// Hears that units are finished; `note` says something about the last one.
    fn advance(&self, units: u64, note: &str);
    /// Hears that the stage ends.
    fn end(&self, summary: &str);
    /// Hears a line that is worth reading even where no bar is drawn.
    fn note(&self, line: &str);
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
