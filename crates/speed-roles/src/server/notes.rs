//! The refusals that the log of a round notes.

use std::collections::HashMap;

use speed_aggregation::{LogEntry, LogEvent, RoundLog};

/// The number of refusals of every teacher that a log has. What a teacher signed costs a line of the log, which everyone reads: after some, no more are
/// noted. Second messages have a number of their own, so that the first of them is noted whatever was refused before.
pub(super) struct Notes(HashMap<(usize, LogEvent), usize>);

impl Notes {
    /// The most refusals of a kind of a teacher's messages that the log notes: a teacher that sends more has been told.
    pub(super) const MAX: usize = 8;

    /// Counts the refusals in a log.
    pub(super) fn of(log: &[LogEntry]) -> Self {
        let mut notes = Self(HashMap::new());
        for entry in log {
            *notes.count(entry).unwrap_or(&mut 0) += 1;
        }
        notes
    }

    /// Returns whether a refusal is to be noted in a log of so many entries, and counts it if it is. Refusals fill half of a log at most.
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
