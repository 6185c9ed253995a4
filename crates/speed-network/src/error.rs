//! Failures of rounds over a network.

use std::time::Duration;

use speed_core::ExitCode;
use speed_roles::RolesError;

/// A program that stopped.
#[derive(Debug, thiserror::Error)]
pub enum NetworkError {
    /// A file, a round, or a step of the round.
    #[error(transparent)]
    Roles(#[from] RolesError),
    /// An address that nothing can listen on.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: String,
        /// The operating system's word.
        source: std::io::Error,
    },
    /// A server that did not answer within the time that the caller gave.
    #[error("{address}: {fault} (tried for {tried:.0?})")]
    Unreachable {
        /// The server's address.
        address: String,
        /// The last fault.
        fault: Fault,
        /// The time.
        tried: Duration,
    },
    /// A server that answered with something else.
    #[error("{address}: {fault}")]
    Refused {
        /// The server's address.
        address: String,
        /// The fault.
        fault: Fault,
    },
    /// A keeper of messages that ended without an error.
    #[error("messages are not kept any more")]
    Stopped,
    /// Tasks that cannot be started.
    #[error("cannot start the network: {0}")]
    Runtime(#[source] std::io::Error),
    /// A signing key that TLS cannot use.
    #[error("cannot use the signing key for TLS: {0}")]
    Tls(#[from] tokio_rustls::rustls::Error),
}

/// A fault of a request.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// No connection.
    #[error("cannot connect: {0}")]
    Connect(#[source] std::io::Error),
    /// A server with another key than the round's.
    #[error("is not the server of the round's roster: it shows another key")]
    OtherServer,
    /// A server that does not know this party.
    #[error("does not let this party in: its key is not in the roster of the server's round")]
    NotOnRoster,
    /// A failed handshake.
    #[error("TLS failed: {0}")]
    Handshake(#[source] std::io::Error),
    /// No answer in time.
    #[error("no answer within {0:.0?}")]
    TooSlow(Duration),
    /// A connection that broke.
    #[error("the connection broke: {0}")]
    Broken(#[from] hyper::Error),
    /// A longer answer than there can be.
    #[error("answers with more than {most} bytes")]
    TooLong {
        /// The most bytes.
        most: usize,
    },
    /// A server that asks to come later.
    #[error("busy: {0}")]
    Busy(String),
    /// A refusal.
    #[error("answers {status}: {message}")]
    Status {
        /// The HTTP status.
        status: u16,
        /// The server's words.
        message: String,
    },
    /// An answer that is none.
    #[error("answers with what is no {expected}")]
    Answer {
        /// The expected.
        expected: &'static str,
    },
    /// A server of another round.
    #[error("serves round {found}, expected {expected}")]
    OtherRound {
        /// The round asked for.
        expected: String,
        /// The server's.
        found: String,
    },
}

impl Fault {
    /// Returns whether the same request may succeed later.
    pub(crate) fn is_passing(&self) -> bool {
        matches!(self, Self::Connect(_) | Self::Handshake(_) | Self::TooSlow(_) | Self::Broken(_) | Self::Busy(_))
    }
}

impl NetworkError {
    /// Returns the documented exit code.
    #[must_use]
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Roles(error) => error.exit_code(),
            Self::Listen { .. } | Self::Unreachable { .. } | Self::Runtime(_) => ExitCode::InputOutput,
            Self::Refused { .. } => ExitCode::Input,
            Self::Tls(_) | Self::Stopped => ExitCode::Computation,
        }
    }
}
