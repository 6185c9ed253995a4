//! Messages that are not counted.

use serde::Serialize;
use speed_aggregation::error::{DecodeError, ProofError, ServerError};
use speed_aggregation::protocol::TeacherStatus;

use crate::fault::ReadFault;
use crate::party_key::PartyKey;

/// A message that is not counted, and its source.
#[derive(Debug, Serialize)]
pub struct Refusal {
    /// The teacher whose signature it has. (The teacher that a message without a valid signature names is not
    /// evidence.)
    pub teacher: Option<usize>,
    /// The file's name.
    pub file: String,
    /// The kind of fault: a [`TeacherStatus`], or `unreadable`, `oversized`, `not-a-message`, `truncated`, `damaged`,
    /// `unknown-teacher`, `forged`, `duplicate`, `late`.
    pub reason: &'static str,
    /// The fault.
    #[serde(rename = "message", serialize_with = "as_text")]
    pub fault: MessageFault,
    #[serde(skip)]
    pub(crate) status: Option<TeacherStatus>,
}

/// A refusal before the source of the message is known.
pub(crate) struct Rejection {
    pub(crate) teacher: Option<usize>,
    pub(crate) reason: &'static str,
    pub(crate) fault: MessageFault,
    /// The status that the refusal gives its teacher.
    pub(crate) status: Option<TeacherStatus>,
}

/// A fault of a message.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MessageFault {
    /// A file that could not be read.
    #[error(transparent)]
    Read(#[from] ReadFault),
    /// A file that is shorter than any message of the round.
    #[error("{found} bytes, a message of this round has at least {min}")]
    Length {
        /// Bytes of the shortest message of the round.
        min: usize,
        /// Bytes of the file.
        found: u64,
    },
    /// Bytes that are not a message.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// A message without the signature of the teacher that it names.
    #[error("claims to come from teacher {teacher}, {name:?}, but does not have that party's signature")]
    Signature {
        /// The teacher that the message names.
        teacher: usize,
        /// Its name.
        name: String,
    },
    /// A message that was brought by a party other than the teacher that signed it.
    #[error("is signed by teacher {teacher}, but was brought by {from}")]
    Courier {
        /// The teacher.
        teacher: usize,
        /// The party that brought it.
        from: Box<PartyKey>,
    },
    /// A message without a valid proof.
    #[error(transparent)]
    Proof(Box<ProofError>),
    /// A message that was refused when it came over a network.
    #[error("was refused when it came over the network")]
    Earlier,
    /// A message that the sum does not accept.
    #[error(transparent)]
    Server(Box<ServerError>),
}

fn as_text<S: serde::Serializer>(fault: &MessageFault, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(fault)
}

impl Rejection {
    /// Describes a message that the sum does not accept.
    pub(crate) fn by_server(teacher: usize, error: ServerError) -> Self {
        let status = error.status();
        let reason = match error {
            ServerError::Duplicate { .. } => "duplicate",
            ServerError::Late { .. } => "late",
            ServerError::UnknownTeacher { .. } => "unknown-teacher",
            _ => status.map_or("refused", TeacherStatus::name),
        };
        Self { teacher: Some(teacher), reason, fault: MessageFault::Server(error.into()), status }
    }

    /// Returns the refusal of a message from `file`.
    pub(crate) fn into_refusal(self, file: String) -> Refusal {
        let Self { teacher, reason, fault, status } = self;
        Refusal { teacher, file, reason, fault, status }
    }
}

impl MessageFault {
    /// Returns whether another message of the teacher is in the sum.
    pub(crate) fn is_duplicate(&self) -> bool {
        matches!(self, Self::Server(error) if matches!(**error, ServerError::Duplicate { .. }))
    }
}

impl Refusal {
    /// Returns whether the file could not be read at all.
    pub(crate) fn is_unreadable(&self) -> bool {
        matches!(self.fault, MessageFault::Read(_))
    }

    /// Returns whether the refusal must be reported with these statuses. An earlier refusal is not reported if a valid
    /// message of the teacher came by another way.
    pub(crate) fn stands(&self, statuses: &[TeacherStatus]) -> bool {
        let status = self.teacher.and_then(|teacher| statuses.get(teacher));
        !(matches!(self.fault, MessageFault::Earlier) && status == Some(&TeacherStatus::Counted))
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.teacher {
            Some(teacher) => write!(f, "teacher {teacher}")?,
            None => write!(f, "unknown sender")?,
        }
        write!(f, " refused as {}: {}: {}", self.reason, self.file, self.fault)
    }
}
