//! The minimum pace of a body.

use std::time::{Duration, Instant};

/// The minimum pace of a body: `bytes` bytes in every interval of length `every`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Bytes per interval.
    pub bytes: usize,
    /// Length of the interval.
    pub every: Duration,
}

/// A check of the pace of one body.
pub(crate) struct Paced {
    slowest: Pace,
    since: Instant,
    bytes: usize,
}

impl Paced {
    pub(crate) fn new(slowest: Pace, now: Instant) -> Self {
        Self { slowest, since: now, bytes: 0 }
    }

    /// Counts bytes, and returns whether the body is fast enough.
    pub(crate) fn keeps(&mut self, bytes: usize, now: Instant) -> bool {
        self.bytes = self.bytes.saturating_add(bytes);
        if now.saturating_duration_since(self.since) < self.slowest.every {
            return true;
        }
        let keeps = self.bytes >= self.slowest.bytes;
        (self.since, self.bytes) = (now, 0);
        keeps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stretch_has_its_bytes() {
        let (start, second) = (Instant::now(), Duration::from_secs(1));
        let mut paced = Paced::new(Pace { bytes: 100, every: second }, start);
        assert!(paced.keeps(1000, start));
        assert!(paced.keeps(0, start + second), "a thousand in the first");
        assert!(paced.keeps(99, start + second * 3 / 2));
        assert!(!paced.keeps(0, start + 2 * second), "99 in the second, whatever was in the first");
    }
}
