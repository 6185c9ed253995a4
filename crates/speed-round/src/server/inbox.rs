//! The incoming messages of a round.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use speed_aggregation::protocol::RoundId;
use speed_core::{printable, read_regular};

use crate::error::{Refused, beginning};
use crate::files::{unreadable, visible_files};
use crate::refusal::{EARLIER, OVERSIZED, Refusal, UNREADABLE};
use crate::registry::RoundRegistry;

/// The receiver of a message, given its bytes and whether its proofs were checked before.
pub(super) type Take<'a> = dyn FnMut(&[u8], bool) -> Result<(), Refusal> + 'a;

/// The transport by which messages of a round reach the server: a directory, or a network.
pub(super) trait Inbox {
    /// Passes the bytes of every available message, none longer than `max`, to `take`, and returns the refusals of the
    /// transport and of `take`.
    ///
    /// # Errors
    /// If the transport itself fails.
    fn offer(&self, max: usize, take: &mut Take<'_>) -> Result<Vec<Refusal>, Refused>;
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
    pub(super) fn open(folder: &Path) -> Result<Self, Refused> {
        Ok(Self { files: visible_files(folder)? })
    }
}

impl Inbox for FolderInbox {
    fn offer(&self, max: usize, take: &mut Take<'_>) -> Result<Vec<Refusal>, Refused> {
        let refusals = self.files.iter().map(|path| {
            let read = read_regular(path, max as u64).map_err(|error| {
                let is_long = error.kind() == std::io::ErrorKind::FileTooLarge;
                Refusal::of_stranger(if is_long { OVERSIZED } else { UNREADABLE }, unreadable(&error))
            });
            read.and_then(|bytes| take(&bytes, false)).map_err(|refusal| refusal.with_file(name(path)))
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
    fn offer(&self, max: usize, take: &mut Take<'_>) -> Result<Vec<Refusal>, Refused> {
        let (mut refusals, mut received) = (Vec::new(), HashSet::new());
        let of_registry = |refusal: Refusal| refusal.with_file("registry");
        self.registry.for_each_received(self.round, &mut |teacher, bytes| {
            received.insert(teacher);
            refusals.extend(take(bytes, true).map_err(of_registry).err());
        })?;
        let refused = self.registry.refused(self.round)?;
        let earlier = refused.into_iter().filter(|(teacher, _)| !received.contains(teacher));
        refusals.extend(
            earlier.map(|(teacher, status)| of_registry(Refusal::of_status(teacher as usize, status, EARLIER))),
        );
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
    printable(&beginning(&name))
}
