//! Kinds of files: the largest size of each, and the first bytes that identify it, so that an error can name an
//! exchanged file.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use speed_aggregation::Round;
use speed_aggregation::log::{Receipt, RoundLog};
use speed_aggregation::proofs::ProofKey;
use speed_aggregation::protocol::{RevealedSeed, SignedResult, Verification, file_kind};

/// Number of bytes at the beginning of a file that identify its kind.
const HEAD: u64 = 4096;

/// A kind of file that a program expects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileKind {
    /// Its name in messages, as [`found`] returns it.
    pub(crate) name: &'static str,
    /// The largest file that is read, in bytes. Real sizes are in docs/protocol.md.
    pub(crate) max: u64,
}

impl FileKind {
    pub(crate) const SIGNING_KEY: Self = Self { name: "a signing key (PEM)", max: 64 << 10 };
    #[cfg(feature = "student")]
    pub(crate) const SECRET_KEY: Self = Self { name: "a secret key (secret.key)", max: 64 << 10 };
    pub(crate) const PUBLIC_KEY: Self = Self { name: "a public key (public.key)", max: 64 << 10 };
    pub(crate) const EVALUATION_KEY: Self = Self { name: "an evaluation key (evaluation.key)", max: 512 << 20 };
    pub(crate) const PROOF_KEY: Self = Self { name: "a proof key (proof.key)", max: ProofKey::MAX_BYTES as u64 };
    pub(crate) const LOG: Self = Self { name: "a round's log", max: RoundLog::MAX_BYTES as u64 };
    pub(crate) const REVEALED_SEED: Self = Self { name: "a revealed seed", max: RevealedSeed::BYTES as u64 };
    #[cfg(feature = "student")]
    pub(crate) const STUDENT_SHARE: Self =
        Self { name: "a student's share of a secret key (student.share)", max: 64 << 10 };
    pub(crate) const OPENER_SHARE: Self =
        Self { name: "an opener's share of a secret key (opener.share)", max: 64 << 10 };
    #[cfg(feature = "student")]
    pub(crate) const OPENING_PART: Self =
        Self { name: "an opener's part of a result", max: speed_aggregation::protocol::OpeningPart::MAX_BYTES as u64 };
    pub(crate) const VERIFICATION: Self = Self { name: "a verification of a result", max: Verification::BYTES as u64 };
    pub(crate) const RECEIPT: Self = Self { name: "a receipt", max: Receipt::BYTES as u64 };
    pub(crate) const ROUND: Self = Self { name: "a round's file", max: 4 << 20 };
    pub(crate) const ROSTER: Self = Self { name: "a roster or a card of one", max: 4 << 20 };
    pub(crate) const VOTES: Self = Self { name: "votes", max: 16 << 20 };
    pub(crate) const QUERY_LIST: Self = Self { name: "a list of queries", max: speed_core::vote_files::MAX_QUERY_LIST };
    #[cfg(feature = "student")]
    pub(crate) const KNOWN: Self = Self { name: "known answers", max: 16 << 20 };
    #[cfg(feature = "student")]
    pub(crate) const KEY_USE: Self = Self { name: "a list of a key's rounds", max: 4 << 20 };

    /// Returns whether only its owner may read such a file.
    pub(crate) fn is_secret(self) -> bool {
        #[cfg(feature = "student")]
        if self == Self::SECRET_KEY || self == Self::STUDENT_SHARE {
            return true;
        }
        self == Self::SIGNING_KEY || self == Self::OPENER_SHARE
    }

    pub(crate) fn result(round: &Round) -> Self {
        Self { name: "a round's result", max: SignedResult::size(round) as u64 }
    }

    /// A teacher's message of at most `max` bytes.
    pub(crate) const fn message(max: u64) -> Self {
        Self { name: "a teacher's message", max }
    }

    /// Returns the kind of the file at `path` if it differs from this one.
    pub(crate) fn other(self, path: &Path) -> Option<&'static str> {
        found(path).filter(|found| *found != self.name)
    }
}

/// Returns the kind of a file by its first bytes; `None` if they do not identify it.
fn found(path: &Path) -> Option<&'static str> {
    // Opening a pipe or a device could block forever.
    if !std::fs::metadata(path).ok()?.is_file() {
        return None;
    }
    let mut head = Vec::new();
    File::open(path).ok()?.take(HEAD).read_to_end(&mut head).ok()?;
    file_kind(&head).or_else(|| kind_of_text(&String::from_utf8_lossy(&head)))
}

fn kind_of_text(head: &str) -> Option<&'static str> {
    let mut lines = head.trim_start_matches('\u{feff}').lines().map(str::trim);
    let first = lines.find(|line| !line.is_empty() && !line.starts_with('#'))?;
    if first.starts_with("-----BEGIN PRIVATE KEY") {
        return Some(FileKind::SIGNING_KEY.name);
    }
    if ["[student]", "[server]", "[[teacher]]"].contains(&first) {
        return Some(FileKind::ROSTER.name);
    }
    (first.starts_with("format =") && lines.any(|line| line.starts_with("id ="))).then_some(FileKind::ROUND.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_known_by_their_first_lines() {
        assert_eq!(kind_of_text("-----BEGIN PRIVATE KEY-----\nMC4"), Some(FileKind::SIGNING_KEY.name));
        assert_eq!(kind_of_text("\u{feff}\r\n[[teacher]]\r\nname"), Some(FileKind::ROSTER.name));
        assert_eq!(kind_of_text("# A round\nformat = 3\nid = \"ab\"\n"), Some(FileKind::ROUND.name));
        assert_eq!(["", "1\n2\n", "query,label\n0,1\n", "format = 3"].map(kind_of_text), [None; 4]);
    }
}
