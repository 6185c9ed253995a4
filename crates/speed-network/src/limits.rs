//! Limits on what clients may take of a server.

use std::time::Duration;

/// Limits on connections and requests. The defaults are those of docs/protocol.md.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections at a time.
    pub connections: usize,
    /// Connections at a time that have not shown a key yet.
    pub handshakes: usize,
    /// Connections from one address at a time that have not shown a key yet.
    pub handshakes_per_address: usize,
    /// Connections of one party at a time.
    pub per_party: usize,
    /// Time for the handshake.
    pub handshake: Duration,
    /// Time for the header of a request, also while a connection idles.
    pub header: Duration,
    /// Time without any byte of a body.
    pub idle: Duration,
    /// Time for a request, and for a whole body.
    pub request: Duration,
    /// Requests of a party that may come at once.
    pub burst: f64,
    /// Requests a second of a party that may come all the time.
    pub rate: f64,
    /// Bytes of unfinished uploads, all in all.
    pub unfinished: usize,
    /// Time that running requests have when the server stops.
    pub grace: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 1024,
            handshakes: 256,
            handshakes_per_address: 128,
            per_party: 4,
            handshake: Duration::from_secs(10),
            header: Duration::from_secs(15),
            idle: Duration::from_secs(10),
            request: Duration::from_secs(120),
            burst: 20.0,
            rate: 5.0,
            unfinished: 64 << 20,
            grace: Duration::from_secs(10),
        }
    }
}
