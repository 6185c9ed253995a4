//! Errors of the server.

use speed_core::EntropyError;

use crate::codec::DecodeError;
use crate::encoding::EncodingError;
use crate::exact_circuit::InexactCircuit;
use crate::ids::{KeyId, RoundId};
use crate::status::TeacherStatus;
use crate::threads::ThreadsError;

/// The reason why the server refuses.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages describe the fields")]
#[non_exhaustive]
pub enum ServerError {
    /// The teacher is not one of the round's.
    #[error("teacher {teacher} in a round of {teachers} teachers (counted from 0)")]
    UnknownTeacher { teacher: usize, teachers: usize },
    /// The teacher has answered already.
    #[error("teacher {teacher} answered twice")]
    Duplicate { teacher: usize },
    /// The message is encrypted under another key.
    #[error("teacher {teacher} encrypted under key {found}, this round's key is {expected}")]
    WrongKey { teacher: usize, expected: KeyId, found: KeyId },
    /// The round requires proofs, and the message has none.
    #[error("teacher {teacher} gave no proof that its message is well formed, and the round asks for one")]
    Unproven { teacher: usize },
    /// The message came after the sum was closed.
    #[error("the message of teacher {teacher} came too late: the sum was closed without it")]
    Late { teacher: usize },
    /// The message is for another round or another run.
    #[error("teacher {teacher} answered round {found}, this is round {expected}")]
    WrongRound { teacher: usize, expected: RoundId, found: RoundId },
    /// The message has another number of queries or classes.
    #[error(
        "teacher {teacher} answered {} queries of {} classes, expected {} of {}", found.0, found.1, expected.0, expected.1
    )]
    Shape { teacher: usize, expected: (usize, usize), found: (usize, usize) },
    /// Too few teachers have answered.
    #[error(
        "{} of {teachers} teachers have not answered, the first of them teacher {}; at least {minimum} must", missing.len(),
        missing[0]
    )]
    Missing { missing: Vec<usize>, teachers: usize, minimum: usize },
    /// The server's privacy noise is not required, was already added, or is missing.
    #[error(transparent)]
    Noise(#[from] NoiseFault),
    /// The bytes are not the state of a server.
    #[error("state of a server: {0}")]
    State(#[from] DecodeError),
    /// The circuit is not exact.
    #[error(transparent)]
    Circuit(#[from] InexactCircuit),
    /// The state belongs to another round.
    #[error("state of round {found}, this is round {expected}")]
    StateOfRound { expected: RoundId, found: RoundId },
    /// The round has no exact encoding.
    #[error(transparent)]
    Encoding(#[from] EncodingError),
    /// The operating system gave no randomness.
    #[error(transparent)]
    Entropy(#[from] EntropyError),
    /// The threads could not be started.
    #[error(transparent)]
    Threads(#[from] ThreadsError),
}

/// A fault of the privacy noise that the server adds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages describe the fields")]
#[non_exhaustive]
pub enum NoiseFault {
    /// The teachers add the noise.
    #[error("the teachers add the noise of this round, the server adds none")]
    NotAsked,
    /// The noise was already added.
    #[error("the server's noise is in the sum already")]
    Repeated,
    /// The noise has another number of values.
    #[error("the server's noise has {found} values, expected {expected}: one for each class of each query")]
    Shape { expected: usize, found: usize },
    /// The noise was not added.
    #[error("the server's noise, which this round requires, is missing")]
    Missing,
}

impl ServerError {
    /// Returns the status that this refusal gives the teacher; `None` if the teacher's earlier message stays in the
    /// sum, or if the refusal is not about a message.
    #[must_use]
    pub fn status(&self) -> Option<TeacherStatus> {
        match self {
            Self::WrongKey { .. } => Some(TeacherStatus::WrongKey),
            Self::WrongRound { .. } => Some(TeacherStatus::WrongRound),
            Self::Shape { .. } => Some(TeacherStatus::WrongShape),
            Self::Unproven { .. } => Some(TeacherStatus::Unproven),
            _ => None,
        }
    }
}
