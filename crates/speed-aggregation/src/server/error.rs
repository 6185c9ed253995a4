//! Errors of the server.

use speed_core::EntropyError;

use crate::codec::DecodeError;
use crate::encoding::EncodingError;
use crate::exact_circuit::InexactCircuit;
use crate::getters::messages_of;
use crate::ids::{KeyId, RoundId};
use crate::status::TeacherStatus;
use crate::threads::ThreadsError;

/// The reason why the server refuses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
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
    /// Privacy noise of the server that does not belong in the sum, a state of another round or none, a round without an
    /// exact circuit, or a failure of the system.
    #[error("{0}")]
    Other(String),
}

messages_of!(
    ServerError, ServerError::Other: DecodeError = "state of a server: ", InexactCircuit, EncodingError, EntropyError,
    ThreadsError
);

impl ServerError {
    /// Returns the status that this refusal gives the teacher; `None` if the teacher's earlier message stays in the
    /// sum, or if the refusal is not about a message.
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
