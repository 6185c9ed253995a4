//! The ranges of noisy counts and of one teacher's values.

/// The guaranteed range of a noisy count: at most `teachers` votes, plus noise of at most `noise_bound` in absolute
/// value. The caller determines, for its mechanism, the probability that the noise exceeds the bound; within the bound
/// the aggregation is exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VoteRange {
    teachers: u64,
    noise_bound: u64,
}

impl VoteRange {
    /// Returns the range for `teachers` one-hot votes and total noise of at most `noise_bound` in each class.
    #[must_use]
    pub fn new(teachers: usize, noise_bound: u64) -> Self {
        Self { teachers: teachers as u64, noise_bound }
    }

    /// Returns the number of teachers, each of which adds at most one vote to a class.
    #[must_use]
    pub fn teachers(&self) -> u64 {
        self.teachers
    }

    /// Returns the bound on the absolute value of the noise in one class, summed over teachers, in votes.
    #[must_use]
    pub fn noise_bound(&self) -> u64 {
        self.noise_bound
    }

    /// Returns the largest difference of two counts of a query, `teachers + 2 * noise_bound`, in votes (saturating).
    #[must_use]
    pub fn difference(&self) -> u64 {
        self.teachers.saturating_add(self.noise_bound.saturating_mul(2))
    }
}

/// The range of the values that a proof allows: `[-2^(b - 1), 2^(b - 1))` votes for `b` bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProofRange {
    bits: u32,
}

impl ProofRange {
    /// Returns the smallest range that contains `least`, which is not positive, and `most`, which is not negative.
    pub(crate) fn covering(least: i64, most: i64) -> Self {
        let side = least.unsigned_abs().max(most.unsigned_abs().saturating_add(1));
        // A side beyond 2^62 has no encoding, so the proof key of such a round is refused.
        Self { bits: side.min(1 << 62).next_power_of_two().ilog2() + 1 }
    }

    /// Returns the number of bits.
    #[must_use]
    pub fn bits(self) -> u32 {
        self.bits
    }

    /// Returns the smallest value, in votes.
    #[must_use]
    pub fn least(self) -> i64 {
        -(1 << (self.bits - 1))
    }

    /// Returns the largest value, in votes.
    #[must_use]
    pub fn most(self) -> i64 {
        (1 << (self.bits - 1)) - 1
    }
}

/// Two counts can differ by more than the comparison supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "noisy counts can differ by {needed} votes, but the comparison is exact up to {supported}: fewer teachers, less noise, \
     or keys for a wider range"
)]
pub struct RangeError {
    /// The largest difference possible, in votes.
    pub needed: u64,
    /// The largest difference that the parameter set supports, in votes.
    pub supported: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_range_is_the_smallest_that_covers_the_values() {
        for (least, most, bits) in
            [(0, 0, 1), (0, 1, 2), (-1, 1, 2), (-2, 1, 2), (-2, 2, 3), (-3, 3, 3), (-512, 513, 11)]
        {
            let range = ProofRange::covering(least, most);
            assert_eq!(range.bits(), bits, "{least} to {most}");
            assert!(range.least() <= least && most <= range.most());
            let half = ProofRange { bits: bits - 1 };
            assert!(bits == 1 || half.least() > least || half.most() < most, "{bits} bits are needed");
        }
        assert_eq!(ProofRange::covering(i64::MIN, i64::MAX).bits(), 63);
    }
}
