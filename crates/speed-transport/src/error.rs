//! Failures of a client's requests.

use std::error::Error;
use std::io;
use std::time::Duration;

use rustls::{AlertDescription, CertificateError};

use crate::verifier::OtherServer;

/// Failure of a client's connection or request.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The name has no address, or nobody answers at any of them.
    #[error("{address}: cannot connect: {source}")]
    Connect {
        /// The server's host and port.
        address: String,
        /// The operating system's word, on the last address that was tried.
        source: io::Error,
    },
    /// The server is not the one that the roster names. Nothing was sent to it.
    #[error("{address}: this is not the server of the roster: {reason}")]
    WrongServer {
        /// The server's host and port.
        address: String,
        /// Expected and found.
        reason: String,
    },
    /// The server refused this client: its roster does not have the client's key.
    #[error("{address}: the server's roster does not have this client's key")]
    NotOnRoster {
        /// The server's host and port.
        address: String,
    },
    /// No handshake: the other side does not speak TLS 1.3 with raw public keys, or its bytes were changed on the way.
    #[error("{address}: expected TLS 1.3 with raw public keys: {source}")]
    Handshake {
        /// The server's host and port.
        address: String,
        /// The TLS library's word.
        source: rustls::Error,
    },
    /// The time was over. A request may have been carried out all the same.
    #[error("{address}: no {awaited} within {after:?}")]
    Timeout {
        /// The server's host and port.
        address: String,
        /// "connection" or "reply".
        awaited: &'static str,
        /// The time that was waited.
        after: Duration,
    },
    /// The reply is longer than the client takes.
    #[error("{address}: expected a reply of at most {max} bytes, found a longer one")]
    ReplyTooLong {
        /// The server's host and port.
        address: String,
        /// The most bytes of a body.
        max: usize,
    },
    /// The connection ended before the reply did: the server stopped, was busy, or had waited too long for a request. A request may have
    /// been carried out all the same.
    #[error("{address}: the connection broke off: {reason}")]
    BrokenOff {
        /// The server's host and port.
        address: String,
        /// The causes, from the outermost to the innermost.
        reason: String,
    },
    /// Path or headers that make no request. Nothing was sent.
    #[error("{address}: expected a path from / and headers of HTTP, found {found:?}")]
    Request {
        /// The server's host and port.
        address: String,
        /// The path or the header, cut after 80 characters.
        found: String,
    },
}

impl ClientError {
    /// Returns what an error in the connection to `address` means.
    pub(crate) fn of_connection(address: &str, error: &(dyn Error + 'static)) -> Self {
        let address = address.to_owned();
        match tls_cause(error) {
            None => Self::BrokenOff { address, reason: causes(error) },
            Some(rustls::Error::AlertReceived(AlertDescription::AccessDenied)) => Self::NotOnRoster { address },
            Some(rustls::Error::InvalidCertificate(fault)) => {
                Self::WrongServer { address, reason: other_server(fault).unwrap_or_else(|| fault.to_string()) }
            }
            Some(source) => Self::Handshake { address, source: source.clone() },
        }
    }
}

/// Returns expected and found key of a server.
fn other_server(fault: &CertificateError) -> Option<String> {
    match fault {
        CertificateError::Other(other) => other.0.downcast_ref::<OtherServer>().map(ToString::to_string),
        _ => None,
    }
}

/// Returns the error of TLS among an error's causes.
pub(crate) fn tls_cause<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e rustls::Error> {
    let mut next = Some(error);
    while let Some(error) = next {
        // An `io::Error` leaves the error that it holds out of its causes.
        let held = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        let error: &(dyn Error + 'static) = match held {
            Some(held) => held,
            None => error,
        };
        if let Some(tls) = error.downcast_ref() {
            return Some(tls);
        }
        next = error.source();
    }
    None
}

/// Returns an error's message and those of its causes.
fn causes(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(error) = next {
        text = format!("{text}: {error}");
        next = error.source();
    }
    text
}
