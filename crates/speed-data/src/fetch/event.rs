//! The events of a download.

use std::path::PathBuf;

/// An event of one file during [`fetch`](super::fetch).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FetchProgress {
    /// The file's name without `.gz`.
    pub file: &'static str,
    /// The event.
    pub event: FetchEvent,
}

/// An event of a download.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FetchEvent {
    /// A valid file exists already and is kept.
    Existing {
        /// Its path.
        path: PathBuf,
    },
    /// A request is sent.
    Request {
        /// The address.
        url: String,
        /// Bytes that exist already, from an earlier attempt.
        from: u64,
    },
    /// Bytes arrived; this event is frequent.
    Received {
        /// Bytes that exist now, including earlier attempts.
        bytes: u64,
        /// Bytes of the complete compressed file, if the server reports them.
        total: Option<u64>,
    },
    /// A mirror failed; the next one is tried.
    Failed {
        /// The address.
        url: String,
        /// The cause.
        reason: String,
    },
    /// The file passed every check and is in place.
    Done {
        /// Its path.
        path: PathBuf,
    },
}
