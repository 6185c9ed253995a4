//! The stages of a round at its server.

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
