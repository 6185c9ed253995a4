//! The form of a round's log: the entries that an honest server writes, and their order.

use std::collections::{BTreeMap, HashSet};

use speed_aggregation::Round;
use speed_aggregation::log::{LogEntry, LogEvent};
use speed_core::Digest;

use crate::error::Refused;

/// A log of this form: entries about received, refused and second messages; then, written in one step when the sum is
/// closed, entries about the counted, refused and second messages and the one about the closed sum; then the result. Every
/// prefix that an honest server signs ends before the closing, with it, or with the result.
#[derive(Clone, Debug, Default)]
pub(crate) struct LogForm {
    /// SHA-256 of the counted message of each party.
    pub(crate) counted: BTreeMap<usize, Digest>,
    /// SHA-256 of the closed sum.
    pub(crate) sum: Option<Digest>,
    /// SHA-256 of the result.
    pub(crate) result: Option<Digest>,
}

impl LogForm {
    /// Reads the log of a round.
    pub(crate) fn read(entries: &[LogEntry], round: &Round) -> Result<Self, Refused> {
        let (mut form, mut received, mut digests) = (Self::default(), HashSet::new(), HashSet::new());
        for (index, entry) in entries.iter().enumerate() {
            let unless = |holds: bool, is: &str| if holds { Ok(()) } else { Err(no_form(index, is)) };
            unless(form.result.is_none(), "follows the result, which is the last entry")?;
            let (digest, event) = (entry.digest(), entry.event());
            if matches!(event, LogEvent::Closed | LogEvent::Result) {
                unless(entry.teacher().is_none(), "is about the round, but names a teacher")?;
            }
            match event {
                LogEvent::Closed => {
                    unless(form.sum.is_none(), "closes the sum a second time")?;
                    let counted: usize = form.counted.keys().map(|&party| round.teachers_of(party)).sum();
                    let enough = counted >= round.min_teachers().max(1);
                    unless(enough, "closes a sum of fewer teachers than the round's minimum")?;
                    // The message that came over the network, or another one of the same teacher.
                    let all = received.iter().all(|party| form.counted.contains_key(party));
                    unless(all, "closes the sum without a message of a teacher from whom one was received")?;
                    form.sum = Some(digest);
                }
                LogEvent::Result => {
                    unless(form.sum.is_some(), "names a result before the sum is closed")?;
                    form.result = Some(digest);
                }
                LogEvent::Received | LogEvent::Refused | LogEvent::Duplicate | LogEvent::Counted => {
                    unless(form.sum.is_none(), "is about a message, but the sum is closed")?;
                    let party = entry.teacher().filter(|&teacher| teacher < round.parties());
                    let Some(party) = party else {
                        return Err(no_form(index, "is about a message of no teacher of the round"));
                    };
                    if event == LogEvent::Received {
                        unless(form.counted.is_empty(), "receives a message after others were counted")?;
                        unless(received.insert(party), "receives a second message of its teacher")?;
                    }
                    if event == LogEvent::Counted {
                        unless(digests.insert(digest), "counts a message that is counted for another teacher")?;
                        unless(form.counted.insert(party, digest).is_none(), "counts a second message of its teacher")?;
                    }
                }
            }
        }
        if form.sum.is_none() && !form.counted.is_empty() {
            let is = "is the last one, but messages are counted and the sum is not closed";
            return Err(no_form(entries.len() - 1, is));
        }
        Ok(form)
    }
}

/// Returns the refusal of an entry.
fn no_form(entry: usize, is: &str) -> Refused {
    Refused::fault(format!(
        "entry {entry} {is}: no honest server writes such a log, and the server signed it. Keep it, because it proves this"
    ))
}
