//! Faults of requests to a server.

use speed_core::ExitCode;

use crate::Refused;
use crate::network::transport::ClientError;

/// Checks that an address is a host and a port.
pub(crate) fn expect_address(purpose: &'static str, address: &str) -> Result<(), Refused> {
    let port = address.rsplit_once(':').filter(|(host, _)| !host.is_empty()).map(|(_, port)| port);
    if port.is_some_and(|port| port.parse::<u16>().is_ok()) {
        return Ok(());
    }
    let found = speed_core::printable(&address.chars().take(200).collect::<String>());
    Err(Refused::usage(format!("cannot {purpose} {found:?}: expected host:port, for example aggregator.example:7878")))
}

/// Returns the error of tasks that cannot be started.
pub(crate) fn no_runtime(error: std::io::Error) -> Refused {
    Refused::new(ExitCode::InputOutput, format!("cannot start the network: {error}"))
}

/// A fault of a request.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    /// A connection that fails or breaks, or a different server.
    #[error(transparent)]
    Connection(#[from] ClientError),
    /// Requests that the server answers, but does not bring to an end.
    #[error("did not finish in the time of --patience")]
    Late,
    /// A server that asks to retry later.
    #[error("is busy: {0}")]
    Busy(String),
    /// A refusal, or an invalid answer.
    #[error("{0}")]
    Answer(String),
}

impl Fault {
    /// Returns the fault of an answer that is not of the expected kind.
    pub(crate) fn invalid(expected: &str) -> Self {
        Self::Answer(format!("returns an invalid {expected}"))
    }

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
            Self::Answer(_) => false,
        }
    }
}
