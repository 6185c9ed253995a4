//! The operations of circuits and their times.

use std::ops::AddAssign;
use std::time::{Duration, Instant};

/// The number of operations of one kind, and their time on their threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Operations {
    /// Ciphertexts processed.
    pub count: usize,
    /// Total time.
    pub time: Duration,
}

impl Operations {
    pub(super) fn record(&mut self, count: usize, start: Instant) {
        self.count += count;
        self.time += start.elapsed();
    }
}

impl AddAssign for Operations {
    fn add_assign(&mut self, other: Self) {
        self.count += other.count;
        self.time += other.time;
    }
}

/// The operations of circuits, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Key switches from the big key to the small one.
    pub key_switches: Operations,
    /// Bootstraps with the coarse key.
    pub coarse_bootstraps: Operations,
    /// Bootstraps with the fine key.
    pub fine_bootstraps: Operations,
    /// Packings into tables.
    pub packings: Operations,
}

impl AddAssign for Work {
    fn add_assign(&mut self, other: Self) {
        self.key_switches += other.key_switches;
        self.coarse_bootstraps += other.coarse_bootstraps;
        self.fine_bootstraps += other.fine_bootstraps;
        self.packings += other.packings;
    }
}
