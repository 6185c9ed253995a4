//! Errors of a client's requests.

use std::error::Error;
use std::io;
use std::time::Duration;

use rustls::{AlertDescription, CertificateError};

use crate::network::transport::tls::OtherServer;

/// The reason why a client's connection or request failed, without the server's address.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The name has no address, or none of its addresses answers.
    #[error("cannot connect: {source}")]
    Connect {
        /// The operating system's error for the last address tried.
        source: io::Error,
    },
    /// The server is not the one named by the roster. Nothing was sent to it.
    #[error("this is not the server of the roster: {reason}")]
    WrongServer {
        /// The expected and the found key.
        reason: String,
    },
    /// The server refused this client, because the client's key is not on its roster.
    #[error("the server's roster does not have this client's key")]
    NotOnRoster,
    /// The handshake failed: the other side does not support TLS 1.3 with raw public keys, or its bytes were changed in
    /// transit.
    #[error("expected TLS 1.3 with raw public keys: {source}")]
    Handshake {
        /// The TLS library's error.
        source: rustls::Error,
    },
    /// The request timed out. It may have been carried out nevertheless.
    #[error("no {awaited} within {after:?}")]
    Timeout {
        /// "connection" or "reply".
        awaited: &'static str,
        /// The time waited.
        after: Duration,
    },
    /// The reply is longer than the client accepts.
    #[error("expected a reply of at most {max} bytes, found a longer one")]
    ReplyTooLong {
        /// The maximum number of bytes of a body.
        max: usize,
    },
    /// The connection ended before the reply did: the server stopped, was busy, or had waited too long for a request.
    /// The request may have been carried out nevertheless.
    #[error("the connection broke off: {reason}")]
    BrokenOff {
        /// The causes, from the outermost to the innermost.
        reason: String,
    },
    /// The path or a header is invalid. Nothing was sent.
    #[error("expected a path from / and headers of HTTP, found {found:?}")]
    Request {
        /// The path or the header, truncated after 80 characters.
        found: String,
    },
}

impl ClientError {
    /// Classifies an error in a connection.
    pub(crate) fn of_connection(error: &(dyn Error + 'static)) -> Self {
        match tls_cause(error) {
            None => Self::BrokenOff { reason: causes(error) },
            Some(rustls::Error::AlertReceived(AlertDescription::AccessDenied)) => Self::NotOnRoster,
            Some(rustls::Error::InvalidCertificate(fault)) => {
                Self::WrongServer { reason: other_server(fault).unwrap_or_else(|| fault.to_string()) }
            }
            Some(source) => Self::Handshake { source: source.clone() },
        }
    }
}

/// Returns the expected and the found key of a server.
fn other_server(fault: &CertificateError) -> Option<String> {
    match fault {
        CertificateError::Other(other) => other.0.downcast_ref::<OtherServer>().map(ToString::to_string),
        _ => None,
    }
}

/// Returns the TLS error among an error's causes.
pub(crate) fn tls_cause<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e rustls::Error> {
    let mut next = Some(error);
    while let Some(error) = next {
        // `io::Error` does not list the error that it wraps among its causes.
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
