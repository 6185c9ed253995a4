//! Errors of votes and of their counts.

use crate::ShapeError;

/// Numbers that are not votes, not counts of votes, or not true labels for them, with the expected and the found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct VotesError(pub(crate) String);

impl VotesError {
    pub(crate) fn length(expected: usize, found: usize) -> Self {
        Self(format!("expected {expected} values, found {found}"))
    }
}

impl From<ShapeError> for VotesError {
    fn from(error: ShapeError) -> Self {
        Self(format!("votes of {error}"))
    }
}
