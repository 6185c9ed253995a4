//! Rate limits of parties.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

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
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_bucket_fills_with_time_and_is_a_partys_own() {
        let (rates, start) = (Rates::new(3.0, 2.0), Instant::now());
        let allowed = |party, now| (0..10).filter(|_| rates.allow([party; 32], now)).count();
        assert_eq!((allowed(1, start), allowed(2, start)), (3, 3));
        assert_eq!(allowed(1, start + Duration::from_millis(1100)), 2);
        assert_eq!(allowed(1, start + Duration::from_secs(100)), 3);
    }
}
