//! The range of noisy counts.

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
