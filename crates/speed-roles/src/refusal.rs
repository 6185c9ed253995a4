//! Messages that are not counted.

use serde::Serialize;
use speed_aggregation::{DecodeError, ServerError, TeacherStatus};

use crate::fault::ReadFault;

/// A message that is not counted.
#[derive(Debug, Serialize)]
pub struct Refusal {
    /// The teacher, as the file's name says (`teacher-7...`), or else the message.
    pub teacher: Option<usize>,
    /// The file's name.
    pub file: String,
    /// The kind of fault: a [`TeacherStatus`], or `duplicate`, `late`, `unknown-teacher`.
    pub reason: &'static str,
    /// The fault.
    #[serde(rename = "message", serialize_with = "as_text")]
    pub fault: MessageFault,
    #[serde(skip)]
    pub(crate) status: Option<TeacherStatus>,
}

/// A fault of a message.
#[derive(Debug, thiserror::Error)]
pub enum MessageFault {
    /// A file that was not read.
    #[error(transparent)]
    Read(#[from] ReadFault),
    /// A file of another length than a message of the round.
    #[error("{found} bytes, a message of this round has {expected}")]
    Length {
        /// Bytes of a message of the round.
        expected: usize,
        /// Bytes of the file.
        found: u64,
    },
    /// Bytes that are no message.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// A message under another teacher's name.
    #[error("the message says that it comes from teacher {found}")]
    Sender {
        /// The teacher that the message names.
        found: usize,
    },
    /// A message that the sum does not take.
    #[error(transparent)]
    Server(Box<ServerError>),
}

fn as_text<S: serde::Serializer>(fault: &MessageFault, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(fault)
}

impl Refusal {
    /// Describes a message that the sum does not take.
    pub(crate) fn by_server(teacher: usize, file: String, error: ServerError) -> Self {
        let status = error.status();
        let reason = match error {
            ServerError::Duplicate { .. } => "duplicate",
            ServerError::Late { .. } => "late",
            ServerError::UnknownTeacher { .. } => "unknown-teacher",
            _ => status.map_or("refused", TeacherStatus::name),
        };
        Self { teacher: Some(teacher), file, reason, fault: MessageFault::Server(error.into()), status }
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.teacher {
            Some(teacher) => write!(f, "teacher {teacher}")?,
            None => write!(f, "unknown teacher")?,
        }
        write!(f, " refused as {}: {}: {}", self.reason, self.file, self.fault)
    }
}
