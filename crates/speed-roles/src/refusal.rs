//! Messages that are not counted.

use serde::Serialize;
use speed_aggregation::{DecodeError, ProofError, ServerError, TeacherStatus};

use crate::fault::ReadFault;

/// A message that is not counted, where it came from.
#[derive(Debug, Serialize)]
pub struct Refusal {
    /// The teacher whose signature it has. (Whom a message without a good signature names says nothing.)
    pub teacher: Option<usize>,
    /// The file's name.
    pub file: String,
    /// The kind of fault: a [`TeacherStatus`], or `unreadable`, `oversized`, `not-a-message`, `truncated`, `damaged`, `unknown-teacher`,
    /// `forged`, `duplicate`, `late`.
    pub reason: &'static str,
    /// The fault.
    #[serde(rename = "message", serialize_with = "as_text")]
    pub fault: MessageFault,
    #[serde(skip)]
    pub(crate) status: Option<TeacherStatus>,
}

/// A refusal before it is known where the message came from.
pub(crate) struct Rejection {
    pub(crate) teacher: Option<usize>,
    pub(crate) reason: &'static str,
    pub(crate) fault: MessageFault,
    /// The status that it gives its teacher.
    pub(crate) status: Option<TeacherStatus>,
}

/// A fault of a message.
#[derive(Debug, thiserror::Error)]
pub enum MessageFault {
    /// A file that was not read.
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
    /// Bytes that are no message.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// A message without the signature of the teacher that it names.
    #[error("says that it comes from teacher {teacher}, {name:?}, and does not have that party's signature")]
    Signature {
        /// The teacher that the message names.
        teacher: usize,
        /// Its name.
        name: String,
    },
    /// A message without a proof that holds.
    #[error(transparent)]
    Proof(Box<ProofError>),
    /// A message that the sum does not take.
    #[error(transparent)]
    Server(Box<ServerError>),
}

/// The most characters of a name that are printed.
const MAX_NAME: usize = 100;

/// Returns whether a character could move a terminal's cursor, turn its writing or forge a line. Beside control characters those that
/// change the direction of what follows (Unicode, UAX 9, "explicit directional formatting").
pub(crate) fn moves_the_cursor(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Returns a name as it may be printed: what moves the cursor is escaped, and what is too long is cut.
pub(crate) fn printable(name: &str) -> String {
    let mut text = String::new();
    for (index, c) in name.chars().enumerate() {
        if index == MAX_NAME {
            text.push_str("..");
            break;
        }
        if moves_the_cursor(c) { text.extend(c.escape_unicode()) } else { text.push(c) }
    }
    text
}

fn as_text<S: serde::Serializer>(fault: &MessageFault, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(fault)
}

impl Rejection {
    /// Describes a message that the sum does not take.
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

    /// Says where the message came from.
    pub(crate) fn of(self, file: String) -> Refusal {
        let Self { teacher, reason, fault, status } = self;
        Refusal { teacher, file, reason, fault, status }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_move_the_cursor() {
        let forged = "teacher-1\u{1b}[2J\nteacher 0 refused as forged\u{202e}";
        assert_eq!(printable(forged), "teacher-1\\u{1b}[2J\\u{a}teacher 0 refused as forged\\u{202e}");
        assert_eq!(printable("hôpital-7.msg"), "hôpital-7.msg");
        assert_eq!(printable(&"x".repeat(300)), format!("{}..", "x".repeat(100)));
    }
}
