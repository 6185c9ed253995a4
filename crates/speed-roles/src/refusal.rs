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

/// The most characters of a name that are printed.
const MAX_NAME: usize = 100;

/// Returns a name without what could move a terminal's cursor, turn its writing or forge a line: such characters are escaped, and what is
/// too long is cut.
pub(crate) fn printable(name: &str) -> String {
    // Beside control characters those that change the direction of what follows (Unicode, UAX 9, "explicit directional formatting").
    let moves = |c: char| {
        c.is_control()
            || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let mut text = String::new();
    for (index, c) in name.chars().enumerate() {
        if index == MAX_NAME {
            text.push_str("..");
            break;
        }
        if moves(c) { text.extend(c.escape_unicode()) } else { text.push(c) }
    }
    text
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
