//! Errors of MATLAB files.

use std::fmt::Display;

/// The fault of bytes that are not a MATLAB file of level 5 with images and labels.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum MatError {
    /// The file ends within a part.
    #[error("truncated: it ends within {part}")]
    Truncated {
        /// The part.
        part: String,
    },
    /// Any other fault, with the expected and the found.
    #[error("{0}")]
    Invalid(String),
}

impl MatError {
    pub(super) fn too_long(limit: u64) -> Self {
        Self::Invalid(format!("too long: expected at most {limit} unpacked bytes, found more"))
    }

    /// Returns an error about a part that is not as required.
    pub(super) fn wrong(part: impl Display, expected: impl Display, found: impl Display) -> Self {
        Self::Invalid(format!("{part}: expected {expected}, found {found}"))
    }
}
