//! Messages that are not counted.

use std::fmt::Display;

use serde::Serialize;
use speed_aggregation::error::ServerError;
use speed_aggregation::protocol::TeacherStatus;

/// The reason of a second message of a teacher.
const DUPLICATE: &str = "duplicate";
/// The reason of a file that is longer than any message.
pub(crate) const OVERSIZED: &str = "oversized";
/// The reason of a file that could not be read.
pub(crate) const UNREADABLE: &str = "unreadable";
/// The fault of a message that was refused before the sum.
pub(crate) const EARLIER: &str = "was refused when it came over the network";

/// A message that is not counted, and its source.
#[derive(Debug, Serialize)]
pub struct Refusal {
    /// The teacher whose signature it has. (The teacher that a message without a valid signature names is not
    /// evidence.)
    pub teacher: Option<usize>,
    /// The file's name; empty until it is known.
    pub file: String,
    /// The kind of fault: a [`TeacherStatus`], or `unreadable`, `oversized`, `not-a-message`, `truncated`, `damaged`,
    /// `unknown-teacher`, `forged`, `duplicate`, `late`.
    pub reason: &'static str,
    /// The fault in words.
    pub message: String,
    #[serde(skip)]
    pub(crate) status: Option<TeacherStatus>,
}

impl Refusal {
    /// Describes a message that the sum does not accept.
    pub(crate) fn by_server(teacher: usize, error: ServerError) -> Self {
        let status = error.status();
        let reason = match error {
            ServerError::Duplicate { .. } => DUPLICATE,
            ServerError::Late { .. } => "late",
            ServerError::UnknownTeacher { .. } => "unknown-teacher",
            _ => status.map_or("refused", TeacherStatus::name),
        };
        Self { teacher: Some(teacher), status, ..Self::of_stranger(reason, error) }
    }

    /// Describes a message that gives its teacher this status.
    pub(crate) fn of_status(teacher: usize, status: TeacherStatus, message: impl Display) -> Self {
        Self { teacher: Some(teacher), status: Some(status), ..Self::of_stranger(status.name(), message) }
    }

    /// Describes a message of unknown origin.
    pub(crate) fn of_stranger(reason: &'static str, message: impl Display) -> Self {
        Self { teacher: None, file: String::new(), reason, message: message.to_string(), status: None }
    }

    /// Returns the refusal of a message from `file`.
    pub(crate) fn with_file(self, file: impl Into<String>) -> Self {
        Self { file: file.into(), ..self }
    }

    /// Returns whether another message of the teacher is in the sum.
    pub(crate) fn is_duplicate(&self) -> bool {
        self.reason == DUPLICATE
    }

    /// Returns whether the file could not be read at all.
    pub(crate) fn is_unreadable(&self) -> bool {
        [OVERSIZED, UNREADABLE].contains(&self.reason)
    }

    /// Returns whether the refusal must be reported with these statuses. An earlier refusal is not reported if a valid
    /// message of the teacher came by another way.
    pub(crate) fn stands(&self, statuses: &[TeacherStatus]) -> bool {
        let status = self.teacher.and_then(|teacher| statuses.get(teacher));
        !(self.message == EARLIER && status == Some(&TeacherStatus::Counted))
    }
}

impl Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.teacher {
            Some(teacher) => write!(f, "teacher {teacher}")?,
            None => write!(f, "unknown sender")?,
        }
        write!(f, " refused as {}: {}: {}", self.reason, self.file, self.message)
    }
}
