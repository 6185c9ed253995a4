//! Faults of files.

use speed_aggregation::{DecodeError, KeyId, OpenError, RoundId, ServerError};

use crate::labels::LabelsError;

/// A file that was not read.
#[derive(Debug, thiserror::Error)]
pub enum ReadFault {
    /// A file that is longer than allowed; nothing of it was read.
    #[error("{found} bytes, expected at most {max}")]
    TooLong {
        /// Bytes of the file.
        found: u64,
        /// Bytes allowed.
        max: u64,
    },
    /// A folder, pipe or device.
    #[error("not a regular file")]
    NotRegular,
    /// A failure of reading.
    #[error("cannot read: {0}")]
    Io(#[from] std::io::Error),
}

/// A fault of a key, of votes, of a folder of messages, of a kept sum or of a result.
#[derive(Debug, thiserror::Error)]
pub enum InputFault {
    /// A file that was not read.
    #[error(transparent)]
    Read(#[from] ReadFault),
    /// Bytes that are not the kind of file expected.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// Bytes that are no votes for the round.
    #[error(transparent)]
    Labels(#[from] LabelsError),
    /// A kept sum that is damaged or another round's.
    #[error(transparent)]
    Sum(Box<ServerError>),
    /// A key that is not the round's.
    #[error("is key {found}, the round is for key {expected}")]
    Key {
        /// The round's key.
        expected: KeyId,
        /// The file's key.
        found: KeyId,
    },
    /// A folder that cannot be listed.
    #[error("cannot read the folder of answers: {0}")]
    Folder(#[source] std::io::Error),
    /// A result of another round.
    #[error("is of round {found}, expected round {expected}")]
    OtherRound {
        /// The round.
        expected: RoundId,
        /// The round of the result.
        found: RoundId,
    },
    /// A result that contradicts its round.
    #[error("says other things of the round than the round's file")]
    Contradiction,
    /// An answer that cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
}

/// A fault of a file or folder of results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResultsFault {
    /// A file that would be overwritten.
    #[error("is there already, and nothing is overwritten: move it away, or give another name")]
    Exists,
    /// A result of another round in the result's place.
    #[error("is there already and is not the result of this round: move it away, or give another --out")]
    Other,
    /// A folder that another program works in.
    #[error("another `speed server aggregate` works on this round")]
    InUse,
}
