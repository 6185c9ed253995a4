//! Errors of rounds over a network.

use std::time::Duration;

use crate::RolesError;
use crate::network::transport::{ClientError, TlsError};
use speed_core::ExitCode;

/// The reason why a program stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NetworkError {
    /// A file, a round, or a step of the round.
    #[error(transparent)]
    Roles(#[from] RolesError),
    /// An address that cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: String,
        /// The operating system's error.
        source: std::io::Error,
    },
    /// An invalid address.
    #[error("cannot {purpose} {found:?}: expected host:port, for example aggregator.example:7878")]
    Address {
        /// Its purpose.
        purpose: &'static str,
        /// The address given.
        found: String,
    },
    /// A server that did not answer within the caller's time limit.
    #[error("{} (tried for {tried:.0?})", at(server, fault))]
    Unreachable {
        /// The server's address.
        server: String,
        /// The last fault.
        fault: Box<Fault>,
        /// The time limit.
        tried: Duration,
    },
    /// A server that gave another answer than expected.
    #[error("{}", at(server, fault))]
    Refused {
        /// The server's address.
        server: String,
        /// The fault.
        fault: Box<Fault>,
    },
    /// A keeper of messages that ended without an error.
    #[error("messages can no longer be stored")]
    Stopped,
    /// Tasks that cannot be started.
    #[error("cannot start the network: {0}")]
    Runtime(#[source] std::io::Error),
    /// A signing key that TLS cannot use.
    #[error("cannot use the keys for TLS: {0}")]
    Tls(#[from] TlsError),
}

/// Checks that an address is a host and a port.
pub(crate) fn expect_address(purpose: &'static str, address: &str) -> Result<(), NetworkError> {
    let port = address.rsplit_once(':').filter(|(host, _)| !host.is_empty()).map(|(_, port)| port);
    if port.is_some_and(|port| port.parse::<u16>().is_ok()) {
        return Ok(());
    }
    let found = speed_core::printable(&address.chars().take(200).collect::<String>());
    Err(NetworkError::Address { purpose, found })
}

/// Describes a fault together with the server where it happened.
fn at(server: &str, fault: &Fault) -> String {
    match fault {
        // The error already names the server.
        Fault::Connection(error) => error.to_string(),
        fault => format!("{server}: {fault}"),
    }
}

/// A fault of a request.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// A connection that fails or breaks, or a different server.
    #[error(transparent)]
    Connection(#[from] ClientError),
    /// Requests that the server answers, but does not bring to an end.
    #[error("did not finish in the time of --patience")]
    Late,
    /// A server that asks to retry later.
    #[error("is busy: {0}")]
    Busy(String),
    /// A refusal.
    #[error("answers {status}: {message}")]
    Status {
        /// The HTTP status.
        status: u16,
        /// The server's message.
        message: String,
    },
    /// An invalid answer.
    #[error("returns an invalid {expected}")]
    Answer {
        /// The expected kind of answer.
        expected: &'static str,
    },
    /// A server of another round.
    #[error("serves round {found}, expected {expected}")]
    OtherRound {
        /// The round requested.
        expected: String,
        /// The server's round.
        found: String,
    },
}

impl Fault {
    /// Returns whether the same request may succeed later.
    pub(crate) fn is_passing(&self) -> bool {
        match self {
            Self::Connection(error) => matches!(
                error,
                ClientError::Connect { .. }
                    | ClientError::Handshake { .. }
                    | ClientError::Timeout { .. }
                    | ClientError::BrokenOff { .. }
            ),
            Self::Busy(_) | Self::Late => true,
            Self::Status { .. } | Self::Answer { .. } | Self::OtherRound { .. } => false,
        }
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
            Self::Address { .. } => ExitCode::Usage,
            Self::Tls(_) | Self::Stopped => ExitCode::Computation,
        }
    }
}
