//! The rounds of questions of a run.

use crate::config::Config;

/// A round of questions: the queries of all rows, or the second questions that depend on a row's answers to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QuestionRound {
    /// The queries of the run.
    First,
    /// The second questions of each row.
    Again,
}

impl QuestionRound {
    /// Returns the name of a kind of stage in this round.
    pub(super) fn name(self, first: &'static str, again: &'static str) -> &'static str {
        match self {
            Self::First => first,
            Self::Again => again,
        }
    }

    /// Returns whether a config has this round.
    pub(super) fn is_in(self, config: &Config) -> bool {
        self == Self::First || config.queries.again.is_some()
    }

    /// Returns whether this is the last round of a config.
    pub(super) fn is_last_of(self, config: &Config) -> bool {
        (self == Self::Again) == config.queries.again.is_some()
    }
}
