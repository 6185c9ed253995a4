//! Limits on the resources that clients may use.

use std::time::Duration;

use crate::network::transport::ConnectionLimits;

use crate::network::minimum_rate::MinimumRate;

/// Limits on connections and requests. The defaults are those of docs/protocol.md.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Limits on connections.
    pub connections: ConnectionLimits,
    /// Maximum time without a byte of a body.
    pub idle: Duration,
    /// The minimum rate of a body.
    pub slowest: MinimumRate,
    /// Maximum time of a request including its body.
    pub request: Duration,
    /// Requests that a party may send in a burst.
    pub burst: f64,
    /// Sustained rate of a party's requests, per second.
    pub rate: f64,
    /// Maximum total bytes of unfinished uploads and of messages being checked; at least 16 messages.
    pub unfinished: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: ConnectionLimits::default(),
            idle: Duration::from_secs(10),
            slowest: MinimumRate { bytes: 80 << 10, every: Duration::from_secs(10) },
            request: Duration::from_secs(120),
            burst: 20.0,
            rate: 5.0,
            unfinished: 64 << 20,
        }
    }
}
