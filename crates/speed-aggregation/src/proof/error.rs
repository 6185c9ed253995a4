//! Errors of proofs.

use std::fmt::Display;

use speed_core::{Digest, EntropyError};

use crate::encoding::EncodingError;
use crate::getters::messages_of;
use crate::server::ServerError;
use crate::teacher::TeacherError;

/// The reason why a proof cannot be made or is not valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages describe the fields")]
#[non_exhaustive]
pub enum ProofError {
    /// The proof is not valid for this message, teacher and round.
    #[error("the proof of teacher {teacher} is not valid for its message")]
    Invalid { teacher: usize },
    /// A proof key of another round or none, bytes that are not a proof, a refusal of teacher or server, or a failure of the
    /// system.
    #[error("{0}")]
    Other(String),
}

messages_of!(ProofError, ProofError::Other: TeacherError, ServerError, EncodingError, EntropyError);

impl ProofError {
    /// Returns an error about a proof key that differs from the one that the round names.
    pub fn other_key(expected: Digest, found: Digest) -> Self {
        Self::Other(format!("proof key {found}, expected the round's key {expected}"))
    }

    pub(super) fn generate(error: impl Display) -> Self {
        Self::Other(format!("cannot generate a proof key: {error}"))
    }
}

/// Describes bytes that are not a proof or a proof key.
pub(super) fn decode(error: impl Display) -> ProofError {
    ProofError::Other(format!("not a proof: {error}"))
}
