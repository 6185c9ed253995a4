//! The folder of messages: which are counted, which are refused and why.

use std::path::{Path, PathBuf};

use serde::Serialize;
use speed_aggregation::{DecodeError, Message, Round, ServerError, TeacherStatus};

use crate::RolesError;
use crate::files::{ReadFault, read_start, read_up_to};

/// A file that is not counted.
#[derive(Clone, Debug, Serialize)]
pub struct Refusal {
    /// The teacher, as the file's name says (`teacher-7...`), or else the message.
    pub teacher: Option<usize>,
    /// The file's name.
    pub file: String,
    /// The kind of fault: a [`TeacherStatus`], or `duplicate`, `late`, `unknown-teacher`.
    pub reason: &'static str,
    /// Expected and found.
    pub message: String,
    #[serde(skip)]
    pub(super) status: Option<TeacherStatus>,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.teacher {
            Some(teacher) => write!(f, "teacher {teacher}")?,
            None => write!(f, "unknown teacher")?,
        }
        write!(f, " refused as {}: {}: {}", self.reason, self.file, self.message)
    }
}

/// The files of a folder in the order of their names, without hidden ones (such as unfinished temporary files).
pub(super) fn list(folder: &Path) -> Result<Vec<PathBuf>, RolesError> {
    let fail = |error: std::io::Error| RolesError::Input {
        path: folder.to_path_buf(),
        message: format!("cannot read the folder of answers: {error}"),
    };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        if !entry.file_name().as_encoded_bytes().starts_with(b".") {
            files.push(entry.path());
        }
    }
    files.sort_unstable();
    Ok(files)
}

/// Reads every message and offers it to `count`; returns the refusals. At most one message is in memory at a time.
///
/// The checks of one file, in order: it is a regular file; no longer than a message of the round; readable; an envelope of
/// this version and kind; its checksum; the limits of its fields; the teacher of its name is the one of its header; then
/// those of [`Server::add`](speed_aggregation::Server::add).
pub(super) fn offer(
    files: &[PathBuf],
    round: &Round,
    mut count: impl FnMut(usize, &Message) -> Result<(), ServerError>,
) -> Vec<Refusal> {
    let size = Message::size(round.queries(), round.classes());
    let refusals = files.iter().map(|path| {
        let named = named_teacher(path);
        read(path, size, named).and_then(|message| {
            let teacher = message.teacher();
            count(teacher, &message).map_err(|error| {
                let reason = match error {
                    ServerError::Duplicate { .. } => "duplicate",
                    ServerError::Late { .. } => "late",
                    ServerError::UnknownTeacher { .. } => "unknown-teacher",
                    _ => error.status().map_or("refused", TeacherStatus::name),
                };
                let status = error.status();
                Refusal { teacher: Some(teacher), file: name(path), reason, message: error.to_string(), status }
            })
        })
    });
    refusals.filter_map(Result::err).collect()
}

/// Reads one message and checks everything that can be checked without the server.
fn read(path: &Path, size: usize, named: Option<usize>) -> Result<Message, Refusal> {
    let refuse = |claimed: Option<usize>, status: TeacherStatus, message: String| Refusal {
        teacher: named.or(claimed),
        file: name(path),
        reason: status.name(),
        message,
        status: Some(status),
    };
    let bytes = read_up_to(path, size as u64).map_err(|fault| match fault {
        ReadFault::TooLong(found) => {
            let claimed = read_start(path, 256).ok().and_then(|start| Message::claimed_teacher(&start));
            refuse(claimed, TeacherStatus::Oversized, format!("{found} bytes, a message of this round has {size}"))
        }
        ReadFault::Unreadable(message) => refuse(None, TeacherStatus::Unreadable, message),
    })?;
    let message = Message::from_bytes(&bytes).map_err(|error| {
        let short = bytes.len() < size;
        // Of a file that ends within the magic bytes, what there is must be theirs.
        let foreign = !Message::MAGIC.starts_with(&bytes[..bytes.len().min(Message::MAGIC.len())]);
        let status = match error {
            _ if foreign => TeacherStatus::NotAMessage,
            DecodeError::Magic | DecodeError::Version { .. } | DecodeError::Kind { .. } => TeacherStatus::NotAMessage,
            // The end of a file that was cut is taken for its checksum.
            DecodeError::Length { .. } | DecodeError::Checksum if short => TeacherStatus::Truncated,
            _ => TeacherStatus::Damaged,
        };
        let text = match status {
            TeacherStatus::Truncated => format!("{} bytes, a message of this round has {size}", bytes.len()),
            _ if foreign => DecodeError::Magic.to_string(),
            _ => error.to_string(),
        };
        refuse(Message::claimed_teacher(&bytes), status, text)
    })?;
    match named.filter(|&named| named != message.teacher()) {
        None => Ok(message),
        Some(_) => {
            let text = format!("the message says that it comes from teacher {}", message.teacher());
            Err(refuse(None, TeacherStatus::WrongTeacher, text))
        }
    }
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// The teacher in names like `teacher-7.msg` or `teacher-007`; other names say nothing.
fn named_teacher(path: &Path) -> Option<usize> {
    let name = path.file_name()?.to_str()?;
    let rest = name.strip_prefix("teacher-")?;
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest[..digits].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_teachers() {
        for (name, teacher) in [
            ("teacher-7.msg", Some(7)),
            ("teacher-007", Some(7)),
            ("teacher-12-again.msg", Some(12)),
            ("teacher-.msg", None),
            ("teacher-99999999999999999999999", None),
            ("hospital.msg", None),
        ] {
            assert_eq!(named_teacher(&Path::new("folder").join(name)), teacher, "{name}");
        }
    }
}
