//! The events of a download.

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
#[expect(missing_docs, reason = "the names describe the fields")]
pub enum FetchEvent {
    Request {
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
    Failed { url: String, reason: String },
}
