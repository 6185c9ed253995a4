//! Shares of what is limited: connections of an address or party, and requests of a party.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// Counts of what is held, by holder.
pub(crate) struct Shares<K: Eq + Hash + Copy>(Mutex<HashMap<K, usize>>);

impl<K: Eq + Hash + Copy> Default for Shares<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Eq + Hash + Copy> Shares<K> {
    /// Takes one, if its holder has fewer than `most`.
    pub(crate) fn take(shares: &Arc<Self>, holder: K, most: usize) -> Option<Share<K>> {
        let mut counts = shares.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(holder).or_default();
        if *count >= most {
            return None;
        }
        *count += 1;
        Some(Share { shares: shares.clone(), holder })
    }
}

/// One of a holder's, until it is dropped.
pub(crate) struct Share<K: Eq + Hash + Copy> {
    shares: Arc<Shares<K>>,
    holder: K,
}

impl<K: Eq + Hash + Copy> Drop for Share<K> {
    fn drop(&mut self) {
        let mut counts = self.shares.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(&self.holder) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.holder);
            }
        }
    }
}

/// Requests that parties may make: a bucket for each, which a request empties by one and time fills.
pub(crate) struct Rates {
    burst: f64,
    rate: f64,
    buckets: Mutex<HashMap<[u8; 32], (f64, Instant)>>,
}

impl Rates {
    pub(crate) fn new(burst: f64, rate: f64) -> Self {
        Self { burst, rate, buckets: Mutex::default() }
    }

    /// Returns whether a party may make a request now. (There are as many buckets as parties in the roster: nobody else gets so far.)
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
    fn a_share_is_held_until_it_is_dropped() {
        let shares = Arc::new(Shares::default());
        let held = [Shares::take(&shares, 1, 2), Shares::take(&shares, 1, 2)];
        assert!(held.iter().all(Option::is_some) && Shares::take(&shares, 1, 2).is_none());
        assert!(Shares::take(&shares, 2, 2).is_some());
        drop(held);
        assert!(Shares::take(&shares, 1, 2).is_some());
        assert!(shares.0.lock().expect("whole").is_empty(), "nobody is remembered");
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
