//! The messages of a round, as they come in.

use std::path::{Path, PathBuf};

use speed_aggregation::{DecodeError, Message, Round, ServerError, TeacherStatus};

use crate::error::RolesError;
use crate::fault::{InputFault, ReadFault};
use crate::files::{read_start, read_up_to};
use crate::refusal::{MessageFault, Refusal, printable};

/// The transport by which messages of a round reach the server: a folder, or a network.
pub(super) trait Inbox {
    /// Reads every message that is there, offers it to `count`, and returns the refusals, by the transport or by `count`.
    fn offer(&self, round: &Round, count: &mut dyn FnMut(usize, &Message) -> Result<(), ServerError>) -> Vec<Refusal>;
}

/// The files of a folder, in the order of their names. At most one message is in memory at a time.
///
/// The checks of one file, in order: it is a regular file; no longer than a message of the round; readable; an envelope of
/// this version and kind; its checksum; the limits of its fields; the teacher of its name is the one of its header; then
/// those of [`Server::add`](speed_aggregation::Server::add).
pub(super) struct FolderInbox {
    files: Vec<PathBuf>,
}

impl FolderInbox {
    /// Lists the files of a folder, without hidden ones (such as unfinished temporary files).
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub(super) fn open(folder: &Path) -> Result<Self, RolesError> {
        let list = || -> std::io::Result<Vec<PathBuf>> {
            let mut files = Vec::new();
            for entry in std::fs::read_dir(folder)? {
                let entry = entry?;
                if !entry.file_name().as_encoded_bytes().starts_with(b".") {
                    files.push(entry.path());
                }
            }
            files.sort_unstable();
            Ok(files)
        };
        let files = list().map_err(InputFault::Folder).map_err(RolesError::input(folder))?;
        Ok(Self { files })
    }
}

impl Inbox for FolderInbox {
    fn offer(&self, round: &Round, count: &mut dyn FnMut(usize, &Message) -> Result<(), ServerError>) -> Vec<Refusal> {
        let size = Message::size(round.shape().queries(), round.shape().classes());
        let refusals = self.files.iter().map(|path| {
            let message = read(path, size)?;
            let teacher = message.teacher();
            count(teacher, &message).map_err(|error| Refusal::by_server(teacher, name(path), error))
        });
        refusals.filter_map(Result::err).collect()
    }
}

/// Reads one message and checks everything that can be checked without the server.
fn read(path: &Path, size: usize) -> Result<Message, Refusal> {
    let named = named_teacher(path);
    let refuse = |claimed: Option<usize>, status: TeacherStatus, fault: MessageFault| Refusal {
        teacher: named.or(claimed),
        file: name(path),
        reason: status.name(),
        fault,
        status: Some(status),
    };
    let bytes = read_up_to(path, size as u64).map_err(|fault| match fault {
        ReadFault::TooLong { found, .. } => {
            let claimed = read_start(path, 256).ok().and_then(|start| Message::claimed_teacher(&start));
            refuse(claimed, TeacherStatus::Oversized, MessageFault::Length { expected: size, found })
        }
        fault => refuse(None, TeacherStatus::Unreadable, fault.into()),
    })?;
    let message = Message::from_bytes(&bytes).map_err(|error| {
        let (status, fault) = classify(&bytes, size, error);
        refuse(Message::claimed_teacher(&bytes), status, fault)
    })?;
    match named {
        Some(named) if named != message.teacher() => {
            let fault = MessageFault::Sender { found: message.teacher() };
            Err(refuse(None, TeacherStatus::WrongTeacher, fault))
        }
        _ => Ok(message),
    }
}

/// Tells files that were cut or damaged on their way from those that never were messages.
fn classify(bytes: &[u8], size: usize, error: DecodeError) -> (TeacherStatus, MessageFault) {
    // Of a file that ends within the magic bytes, what there is must be theirs.
    if !Message::MAGIC.starts_with(&bytes[..bytes.len().min(Message::MAGIC.len())]) {
        return (TeacherStatus::NotAMessage, DecodeError::Magic.into());
    }
    match error {
        DecodeError::Magic | DecodeError::Version { .. } | DecodeError::Kind { .. } => {
            (TeacherStatus::NotAMessage, error.into())
        }
        // The end of a file that was cut is taken for its checksum.
        DecodeError::Length { .. } | DecodeError::Checksum if bytes.len() < size => {
            let fault = MessageFault::Length { expected: size, found: bytes.len() as u64 };
            (TeacherStatus::Truncated, fault)
        }
        error => (TeacherStatus::Damaged, error.into()),
    }
}

/// Returns a file's name as it may be printed: whoever may write to the folder chooses it.
fn name(path: &Path) -> String {
    printable(&path.file_name().unwrap_or(path.as_os_str()).to_string_lossy())
}

/// Returns the teacher in names like `teacher-7.msg` or `teacher-007`; other names say nothing.
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
