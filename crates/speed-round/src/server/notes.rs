//! The refusals that the log of a round records.

use std::collections::HashMap;

use speed_aggregation::log::{LogEntry, LogEvent, RoundLog};

/// The number of refusals of every teacher in a log. A refused message that a teacher signed costs a line of the log,
/// which everyone reads, so the number of recorded refusals is limited. Second messages are counted separately, so that
/// the first of them is recorded regardless of earlier refusals.
pub(super) struct Notes(HashMap<(usize, LogEvent), usize>);

impl Notes {
    /// The largest number of refusals of one kind that the log records for a teacher, which has then been told.
    pub(super) const MAX: usize = 8;

    /// Counts the refusals in a log.
    pub(super) fn from_log(log: &[LogEntry]) -> Self {
        let mut notes = Self(HashMap::new());
        for entry in log {
            *notes.count(entry).unwrap_or(&mut 0) += 1;
        }
        notes
    }

    /// Returns whether a refusal is recorded in a log with `entries` entries, and counts it if so. Refusals fill at
    /// most half of a log.
    pub(super) fn take(&mut self, entry: &LogEntry, entries: usize) -> bool {
        match self.count(entry) {
            Some(count) if *count < Self::MAX && entries < RoundLog::MAX_ENTRIES / 2 => {
                *count += 1;
                true
            }
            _ => false,
        }
    }

    fn count(&mut self, entry: &LogEntry) -> Option<&mut usize> {
        match (entry.event(), entry.teacher()) {
            (event @ (LogEvent::Refused | LogEvent::Duplicate), Some(teacher)) => {
                Some(self.0.entry((teacher, event)).or_default())
            }
            _ => None,
        }
    }
}
