//! Errors of votes and of their counts.

use crate::ShapeError;

/// Numbers that are not votes, not counts of votes, or not true labels for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VotesError {
    /// Sides that are not a valid shape.
    #[error("votes of {0}")]
    Shape(#[from] ShapeError),
    /// A length that is not the product of the sides.
    #[error("expected {expected} values, found {found}")]
    Length {
        /// Rows times columns.
        expected: usize,
        /// Values given.
        found: usize,
    },
    /// A vote for a class that does not exist.
    #[error("teacher {teacher} votes for class {found} on query {query}, but there are {classes} classes")]
    Label {
        /// The teacher.
        teacher: usize,
        /// The query.
        query: usize,
        /// The vote.
        found: u8,
        /// Number of classes.
        classes: usize,
    },
    /// A histogram that does not hold one vote for each teacher.
    #[error("query {query} has {found} votes, but there are {teachers} teachers")]
    RowSum {
        /// The query.
        query: usize,
        /// Sum of its row.
        found: u64,
        /// Number of teachers.
        teachers: usize,
    },
    /// True labels that do not belong to these queries.
    #[error("{found} labels for {expected} queries")]
    Labels {
        /// Queries.
        expected: usize,
        /// Labels given.
        found: usize,
    },
}
