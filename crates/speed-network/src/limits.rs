//! Limits on what clients may take of a server.

use std::time::Duration;

use speed_transport::ConnectionLimits;

use crate::pace::Pace;

/// Limits on connections and requests. The defaults are those of docs/protocol.md.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Of connections.
    pub connections: ConnectionLimits,
    /// Time without any byte of a body.
    pub idle: Duration,
    /// The slowest pace of a body.
    pub slowest: Pace,
    /// Time for a request with its whole body.
    pub request: Duration,
    /// Requests of a party that may come at once.
    pub burst: f64,
    /// Requests a second of a party that may come all the time.
    pub rate: f64,
    /// Bytes of unfinished uploads and of messages that are being checked, all in all; at least 16 messages.
    pub unfinished: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: ConnectionLimits::default(),
            idle: Duration::from_secs(10),
            slowest: Pace { bytes: 80 << 10, every: Duration::from_secs(10) },
            request: Duration::from_secs(120),
            burst: 20.0,
            rate: 5.0,
            unfinished: 64 << 20,
        }
    }
}
