//! The incoming messages of a round.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use speed_aggregation::protocol::RoundId;
use speed_core::printable;

use crate::error::RolesError;
use crate::fault::ReadFault;
use crate::files::{read_up_to, visible_files};
use crate::refusal::{MessageFault, Refusal, Rejection};
use crate::registry::RoundRegistry;

/// The receiver of a message, given its bytes and whether its proofs were checked before.
pub(super) type Take<'a> = dyn FnMut(&[u8], bool) -> Result<(), Rejection> + 'a;

/// The transport by which messages of a round reach the server: a directory, or a network.
pub(super) trait Inbox {
    /// Passes the bytes of every available message, none longer than `max`, to `take`, and returns the refusals of the
    /// transport and of `take`.
    ///
    /// # Errors
    /// If the transport itself fails.
    fn offer(&self, max: usize, take: &mut Take<'_>) -> Result<Vec<Refusal>, RolesError>;
}

/// The files of a directory, in the order of their names, which are otherwise arbitrary. At most one message is in
/// memory at a time.
pub(super) struct FolderInbox {
    files: Vec<PathBuf>,
}

impl FolderInbox {
    /// Lists the files of a directory, without hidden ones (such as unfinished temporary files).
    ///
    /// # Errors
    /// If the directory cannot be read.
    pub(super) fn open(folder: &Path) -> Result<Self, RolesError> {
        Ok(Self { files: visible_files(folder)? })
    }
}

impl Inbox for FolderInbox {
    fn offer(&self, max: usize, take: &mut Take<'_>) -> Result<Vec<Refusal>, RolesError> {
        let refusals = self.files.iter().map(|path| {
            let read = read_up_to(path, max as u64).map_err(|fault| Rejection {
                teacher: None,
                reason: if matches!(fault, ReadFault::TooLong { .. }) { "oversized" } else { "unreadable" },
                fault: fault.into(),
                status: None,
            });
            read.and_then(|bytes| take(&bytes, false)).map_err(|rejection| rejection.into_refusal(name(path)))
        });
        Ok(refusals.filter_map(Result::err).collect())
    }
}

/// The messages that came over a network. They come first, because receipts were given for them. Other network messages
/// were refused on arrival; the refusal is repeated for teachers without an accepted message.
pub(super) struct RegistryInbox<'a> {
    pub(super) registry: &'a RoundRegistry,
    pub(super) round: RoundId,
    /// Files that came by another way.
    pub(super) then: Option<&'a FolderInbox>,
}

impl Inbox for RegistryInbox<'_> {
    fn offer(&self, max: usize, take: &mut Take<'_>) -> Result<Vec<Refusal>, RolesError> {
        let (mut refusals, mut received) = (Vec::new(), HashSet::new());
        let of_registry = |rejection: Rejection| rejection.into_refusal("registry".to_owned());
        self.registry.for_each_received(self.round, &mut |teacher, bytes| {
            received.insert(teacher);
            refusals.extend(take(bytes, true).map_err(of_registry).err());
        })?;
        let refused = self.registry.refused(self.round)?;
        refusals.extend(refused.into_iter().filter(|(teacher, _)| !received.contains(teacher)).map(
            |(teacher, status)| {
                let (teacher, reason, status) = (Some(teacher as usize), status.name(), Some(status));
                of_registry(Rejection { teacher, reason, fault: MessageFault::Earlier, status })
            },
        ));
        if let Some(folder) = self.then {
            refusals.extend(folder.offer(max, take)?);
        }
        Ok(refusals)
    }
}

/// Returns at most 100 characters of a file's name, escaped for printing, because anyone who may write to the directory
/// chooses it.
fn name(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
    printable(&name.chars().take(100).collect::<String>())
}
