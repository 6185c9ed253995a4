//! Refused messages.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use speed_aggregation::protocol::TeacherStatus;
use speed_core::Digest;

/// The refused messages of each party: the latest by SHA-256, so that the same bytes are not checked again, and the
/// number of messages with invalid proofs, each of which costs the server a check.
#[derive(Default)]
pub(crate) struct Refused(Mutex<HashMap<[u8; 32], OfParty>>);

#[derive(Default)]
struct OfParty {
    last: VecDeque<Found>,
    unproven: usize,
}

/// A refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    message: Digest,
    pub(crate) reason: &'static str,
    pub(crate) words: String,
}

impl Refused {
    /// Number of refusals remembered per party, and of failed proof checks allowed per party.
    const MAX: usize = 8;

    /// Returns why a party's message was refused, if it was.
    pub(crate) fn find(&self, party: [u8; 32], message: Digest) -> Option<Found> {
        let of = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        of.get(&party)?.last.iter().find(|found| found.message == message).cloned()
    }

    /// Returns whether a party has used up its allowed number of failed proof checks.
    pub(crate) fn is_tiresome(&self, party: [u8; 32]) -> bool {
        let of = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        of.get(&party).is_some_and(|of| of.unproven >= Self::MAX)
    }

    /// Records that a party's message was refused.
    pub(crate) fn keep(&self, party: [u8; 32], message: Digest, reason: &'static str, words: String) {
        let mut of = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of = of.entry(party).or_default();
        of.unproven += usize::from(reason == TeacherStatus::Unproven.name());
        if of.last.len() == Self::MAX {
            of.last.pop_front();
        }
        of.last.push_back(Found { message, reason, words });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_ones_of_each_party_are_remembered() {
        let refused = Refused::default();
        let message = |index: usize| Digest::of([index as u8]);
        for index in 0..10 {
            refused.keep([1; 32], message(index), "unproven", index.to_string());
        }
        let remembered: Vec<_> = (0..10).map(|index| refused.find([1; 32], message(index)).is_some()).collect();
        assert_eq!(remembered, [[false; 2].as_slice(), &[true; 8]].concat());
        assert_eq!(refused.find([1; 32], message(9)).map(|found| found.words), Some("9".to_owned()));
        assert_eq!(refused.find([2; 32], message(9)), None);
        // Other refusals are not limited.
        (0..10).for_each(|index| refused.keep([2; 32], message(index), "duplicate", String::new()));
        assert_eq!([refused.is_tiresome([1; 32]), refused.is_tiresome([2; 32])], [true, false]);
    }
}
