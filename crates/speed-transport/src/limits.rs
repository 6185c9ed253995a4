//! Limits of a server's connections, and counts of them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Limits of a server's connections. Connections beyond a number are dropped at once, without a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// The most connections at a time, with those in their handshake: 512.
    pub connections: usize,
    /// The most connections of one peer at a time, after the handshake: 4.
    pub connections_per_peer: usize,
    /// The most connections at a time that are in their handshake, so that strangers cannot hold all of them: 128.
    pub handshakes: usize,
    /// The most connections at a time that are in their handshake and from one IP address (of IPv6 one network of 64 bits): 32. Behind a
    /// proxy all clients have one address: then as many as `handshakes`.
    pub handshakes_per_address: usize,
    /// The longest time for the handshake: 10 s.
    pub handshake_timeout: Duration,
    /// The longest time until the head of a request is there, from the handshake or the end of the answer before: 10 s, at most 24 h. A
    /// connection without requests ends after this time as well.
    pub header_timeout: Duration,
    /// The most headers of a request: 64. With more it is answered with status 431.
    pub headers: usize,
    /// The bytes that a request's head may have, and that are read ahead: 16 KiB, at least 8 KiB. A longer head is answered with status
    /// 431.
    pub header_buffer: usize,
    /// The time after which a connection takes no further request: 10 min. One that is running has `grace` to end.
    pub age: Duration,
    /// The time that running requests have to end when the server stops or their connection is too old: 10 s.
    pub grace: Duration,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self {
            connections: 512,
            connections_per_peer: 4,
            handshakes: 128,
            handshakes_per_address: 32,
            handshake_timeout: Duration::from_secs(10),
            header_timeout: Duration::from_secs(10),
            headers: 64,
            header_buffer: 16 << 10,
            age: Duration::from_secs(600),
            grace: Duration::from_secs(10),
        }
    }
}

/// Counts of a server's connections.
#[derive(Debug, Default)]
pub struct Counters {
    accepted: AtomicU64,
    refused_busy: AtomicU64,
    refused_handshake: AtomicU64,
    open: AtomicU64,
}

impl Counters {
    /// Returns the number of connections that came in, whatever became of them.
    #[must_use]
    pub fn accepted(&self) -> u64 {
        self.accepted.load(Ordering::Relaxed)
    }

    /// Returns the number of connections that were dropped because there were too many.
    #[must_use]
    pub fn refused_busy(&self) -> u64 {
        self.refused_busy.load(Ordering::Relaxed)
    }

    /// Returns the number of connections whose handshake failed, as that of a client that is not on the roster, or took too long.
    #[must_use]
    pub fn refused_handshake(&self) -> u64 {
        self.refused_handshake.load(Ordering::Relaxed)
    }

    /// Returns the number of connections that are open now, with those in their handshake.
    #[must_use]
    pub fn open(&self) -> u64 {
        self.open.load(Ordering::Relaxed)
    }

    pub(crate) fn count_accepted(&self) {
        self.accepted.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_refused_busy(&self) {
        self.refused_busy.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_refused_handshake(&self) {
        self.refused_handshake.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn set_open(&self, connections: usize) {
        self.open.store(connections as u64, Ordering::Relaxed);
    }
}
