//! The minimum rate of a body.

use std::time::{Duration, Instant};

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
}
