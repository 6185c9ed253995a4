//! The incoming messages of a round.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use speed_aggregation::protocol::RoundId;
use speed_core::{printable, read_regular};

use crate::error::{Refused, beginning};
use crate::files::unreadable;
use crate::refusal::{EARLIER, OVERSIZED, Refusal, UNREADABLE};
use crate::registry::RoundRegistry;

/// The receiver of a message, given its bytes and whether its proofs were checked before.
pub(super) type Take<'a> = dyn FnMut(&[u8], bool) -> Result<(), Refusal> + 'a;

/// The messages of a round that reached a server. At most one message is in memory at a time.
pub(super) struct Inbox<'a> {
    /// The messages that came over a network. They come first, because receipts were given for them. Other network messages
    /// were refused on arrival; the refusal is repeated for teachers without an accepted message.
    pub(super) network: Option<(&'a RoundRegistry, RoundId)>,
    /// Files, in any order, after the messages of the network.
    pub(super) files: &'a [PathBuf],
}

impl Inbox<'_> {
    /// Passes the bytes of every available message, none longer than `max`, to `take`, and returns the refusals of the
    /// transport and of `take`.
    pub(super) fn offer(&self, max: usize, take: &mut Take<'_>) -> Result<Vec<Refusal>, Refused> {
        let mut refusals = Vec::new();
        if let Some((registry, round)) = self.network {
            let mut received = HashSet::new();
            let of_registry = |refusal: Refusal| refusal.with_file("registry");
            registry.for_each_received(round, &mut |teacher, bytes| {
                received.insert(teacher);
                refusals.extend(take(bytes, true).map_err(of_registry).err());
            })?;
            let refused = registry.refused(round)?;
            let earlier = refused.into_iter().filter(|(teacher, _)| !received.contains(teacher));
            refusals.extend(
                earlier.map(|(teacher, status)| of_registry(Refusal::of_status(teacher as usize, status, EARLIER))),
            );
        }
        let of_files = self.files.iter().map(|path| {
            let read = read_regular(path, max as u64).map_err(|error| {
                let is_long = error.kind() == std::io::ErrorKind::FileTooLarge;
                Refusal::of_stranger(if is_long { OVERSIZED } else { UNREADABLE }, unreadable(&error))
            });
            read.and_then(|bytes| take(&bytes, false)).map_err(|refusal| refusal.with_file(name(path)))
        });
        refusals.extend(of_files.filter_map(Result::err));
        Ok(refusals)
    }
}

/// Returns at most 100 characters of a file's name, escaped for printing, because anyone who may write to the directory
/// chooses it.
fn name(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
    printable(&beginning(&name))
}
