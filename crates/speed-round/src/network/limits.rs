//! Limits on the resources that clients may use.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::network::transport::ConnectionLimits;

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

/// The minimum rate of a body: `bytes` bytes in every interval of length `every`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MinimumRate {
    /// Bytes per interval.
    pub bytes: usize,
    /// Length of the interval.
    pub every: Duration,
}

/// A check of the rate of one body.
pub(crate) struct RateCheck {
    slowest: MinimumRate,
    since: Instant,
    bytes: usize,
}

impl RateCheck {
    pub(crate) fn new(slowest: MinimumRate, now: Instant) -> Self {
        Self { slowest, since: now, bytes: 0 }
    }

    /// Counts bytes, and returns whether the body is fast enough.
    pub(crate) fn allows(&mut self, bytes: usize, now: Instant) -> bool {
        self.bytes = self.bytes.saturating_add(bytes);
        if now.saturating_duration_since(self.since) < self.slowest.every {
            return true;
        }
        let is_met = self.bytes >= self.slowest.bytes;
        (self.since, self.bytes) = (now, 0);
        is_met
    }
}

/// Token buckets that limit the requests of parties: one bucket per party; each request takes one token, and time adds
/// tokens.
pub(crate) struct Rates {
    burst: f64,
    rate: f64,
    buckets: Mutex<HashMap<[u8; 32], (f64, Instant)>>,
}

impl Rates {
    pub(crate) fn new(burst: f64, rate: f64) -> Self {
        Self { burst, rate, buckets: Mutex::default() }
    }

    /// Returns whether a party may make a request now. (There is at most one bucket per party of the roster, because
    /// other clients do not pass TLS.)
    pub(crate) fn allow(&self, party: [u8; 32], now: Instant) -> bool {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let (left, last) = buckets.entry(party).or_insert((self.burst, now));
        *left = (*left + self.rate * now.saturating_duration_since(*last).as_secs_f64()).min(self.burst);
        *last = now;
        let is_allowed = *left >= 1.0;
        *left -= if is_allowed { 1.0 } else { 0.0 };
        is_allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stretch_has_its_bytes() {
        let (start, second) = (Instant::now(), Duration::from_secs(1));
        let mut check = RateCheck::new(MinimumRate { bytes: 100, every: second }, start);
        assert!(check.allows(1000, start));
        assert!(check.allows(0, start + second), "a thousand in the first");
        assert!(check.allows(99, start + second * 3 / 2));
        assert!(!check.allows(0, start + 2 * second), "99 in the second, whatever was in the first");
    }

    #[test]
    fn a_bucket_fills_with_time_and_is_a_partys_own() {
        let (rates, start) = (Rates::new(3.0, 2.0), Instant::now());
        let allowed = |party, now| (0..10).filter(|_| rates.allow([party; 32], now)).count();
        assert_eq!((allowed(1, start), allowed(2, start)), (3, 3));
        assert_eq!(allowed(1, start + Duration::from_millis(1100)), 2);
        assert_eq!(allowed(1, start + Duration::from_secs(100)), 3);
    }
}
