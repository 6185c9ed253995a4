//! The stages of a round at its server.

/// The stage of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Messages are taken.
    Open,
    /// The sum is closed, and the winners are computed.
    Closed,
    /// The result is there.
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
