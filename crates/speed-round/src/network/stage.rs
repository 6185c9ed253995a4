//! The stage and the public state of a round at its server.

use serde::{Deserialize, Serialize};

/// The stage of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The server accepts messages.
    Open,
    /// The sum is closed, and the winners are being computed.
    Closed,
    /// The result is available.
    Done,
}

impl Stage {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Closed => "closed",
            Self::Done => "done",
        }
    }
}

/// The public state of a round, visible to its parties.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RoundState {
    pub(crate) round: String,
    pub(crate) stage: String,
    pub(crate) received: usize,
    pub(crate) teachers: usize,
    pub(crate) minimum: usize,
}
