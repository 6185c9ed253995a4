//! Limits of a server's connections, and counters.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Limits of a server's connections. Connections beyond those of peers are dropped at once, without a reply. A connection
/// beyond those of handshakes takes the place of a handshake from the IP address (for IPv6, the 64-bit network) that has the most: of two random
/// ones, that without a complete ClientHello.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// Maximum number of concurrent connections of all peers after the handshake: 512.
    pub connections: usize,
    /// Maximum number of concurrent connections of one peer after the handshake: 4.
    pub connections_per_peer: usize,
    /// Maximum number of concurrent handshakes, besides the connections of peers: 128.
    pub handshakes: usize,
    /// The address of a proxy, none by default. Each connection from it must begin with a header of the PROXY protocol, version 2, whose address
    /// counts as the client's. A program that can connect from this address can name any other, so only the proxy may.
    pub proxy: Option<IpAddr>,
    /// Maximum time of the handshake: 10 s.
    pub handshake_timeout: Duration,
    /// Maximum time until the head of a request is complete, counted from the handshake or the end of the previous
    /// answer: 10 s, at most 24 h. An idle connection also ends after this time.
    pub header_timeout: Duration,
    /// Maximum number of headers of a request: 64. A request with more is answered with status 431.
    pub headers: usize,
    /// Maximum bytes of a request's head, and of the read buffer: 16 KiB, at least 8 KiB. A longer head is answered
    /// with status 431.
    pub header_buffer: usize,
    /// The time after which a connection accepts no further request: 10 min. A running request then has `grace` to end.
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
            proxy: None,
            handshake_timeout: Duration::from_secs(10),
            header_timeout: Duration::from_secs(10),
            headers: 64,
            header_buffer: 16 << 10,
            age: Duration::from_secs(600),
            grace: Duration::from_secs(10),
        }
    }
}

impl ConnectionLimits {
    /// Returns whether an address is the proxy's.
    pub(crate) fn is_proxy(&self, address: IpAddr) -> bool {
        self.proxy.is_some_and(|proxy| proxy.to_canonical() == address.to_canonical())
    }
}

/// A number that can be read and changed concurrently.
#[derive(Debug, Default)]
pub struct Gauge(AtomicU64);

impl Gauge {
    pub(crate) fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    pub(crate) fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// Returns the number.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Counters of a server's connections.
#[derive(Debug, Default)]
pub struct Counters {
    /// Number of incoming connections, whether accepted or not.
    pub accepted: Gauge,
    /// Number of connections that were dropped because there were too many, or for a newer one.
    pub refused_busy: Gauge,
    /// Number of connections whose handshake failed (for example because the client is not on the roster) or took too long.
    pub refused_handshake: Gauge,
    /// Number of open connections, including those in their handshake.
    pub open: Gauge,
}
