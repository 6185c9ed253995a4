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
    pub fn new(teachers: usize, noise_bound: u64) -> Self {
        Self { teachers: teachers as u64, noise_bound }
    }

    /// Returns the range for a check. All classes have the same noise, at most `noise_bound`, so two classes differ by at
    /// most `teachers` votes; a class and the threshold may differ by more. The noise bound of the result is half of the
    /// additional difference, rounded up.
    pub fn of_check(teachers: usize, noise_bound: u64, threshold: i64) -> Self {
        let (low, high) = (i128::from(noise_bound), i128::from(noise_bound) + teachers as i128);
        let difference = (high - i128::from(threshold)).max(low + i128::from(threshold));
        let beyond = (difference - teachers as i128).max(0).unsigned_abs().div_ceil(2);
        Self::new(teachers, u64::try_from(beyond).unwrap_or(u64::MAX))
    }

    /// Returns the number of teachers, each of which adds at most one vote to a class.
    pub(crate) fn teachers(&self) -> u64 {
        self.teachers
    }

    /// Returns the bound on the absolute value of the noise in one class, summed over teachers, in votes.
    pub fn noise_bound(&self) -> u64 {
        self.noise_bound
    }

    /// Returns the largest difference of two counts of a query, `teachers + 2 * noise_bound`, in votes (saturating).
    pub fn difference(&self) -> u64 {
        self.teachers.saturating_add(self.noise_bound.saturating_mul(2))
    }
}

/// The range of the values that a message's proofs allow, in votes. One proof covers `2^b` consecutive values. If the range
/// has fewer values, every list of a message has two proofs: one for the values from the range's least value on, and one for
/// the values up to its largest. Only the values of the range satisfy both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProofRange {
    least: i64,
    most: i64,
    /// Bits of the values of one proof, at least those that the range needs.
    bits: u32,
}

impl ProofRange {
    /// Returns exactly the range from `least` to `most`.
    pub(crate) fn exact(least: i64, most: i64) -> Self {
        Self { least, most, bits: bits(least, most) }
    }

    /// Returns the same range for proofs of more bits: those of the proof key that the largest party needs.
    pub(crate) fn with_bits(self, bits: u32) -> Self {
        Self { bits: self.bits.max(bits), ..self }
    }

    /// Returns the smallest range `[-2^(b - 1), 2^(b - 1))` that contains `least`, which is not positive, and `most`, which
    /// is not negative. One proof covers it.
    pub(crate) fn covering(least: i64, most: i64) -> Self {
        let side = least.unsigned_abs().max(most.unsigned_abs().saturating_add(1));
        // A side beyond 2^62 has no encoding, so the proof key of such a round is refused.
        let side = side.min(1 << 62).next_power_of_two().cast_signed();
        Self::exact(-side, side - 1)
    }

    /// Returns the number of bits of the values of one proof, for which the proof key is generated.
    pub fn bits(self) -> u32 {
        self.bits
    }

    /// Returns the smallest value, in votes.
    pub fn least(self) -> i64 {
        self.least
    }

    /// Returns the largest value, in votes.
    pub fn most(self) -> i64 {
        self.most
    }

    /// Returns the number of proofs of each list of values: 1 if the range has `2^b` values, else 2.
    pub fn proofs(self) -> usize {
        self.starts().len()
    }

    /// Returns the smallest value that each proof allows, in votes. A proof allows `2^b` values from there on.
    pub(crate) fn starts(self) -> impl ExactSizeIterator<Item = i64> + Clone {
        let last = self.most.saturating_sub(((1_u64 << self.bits) - 1).cast_signed());
        [self.least, last].into_iter().take(if last == self.least { 1 } else { 2 })
    }
}

/// Returns the number of bits of the values of a range.
fn bits(least: i64, most: i64) -> u32 {
    u64::BITS - most.abs_diff(least).max(1).leading_zeros()
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
    fn a_covering_range_is_the_smallest_of_one_proof() {
        for (least, most, bits) in
            [(0, 0, 1), (0, 1, 2), (-1, 1, 2), (-2, 1, 2), (-2, 2, 3), (-3, 3, 3), (-512, 513, 11)]
        {
            let range = ProofRange::covering(least, most);
            assert_eq!((range.bits(), range.proofs()), (bits, 1), "{least} to {most}");
            assert_eq!((range.least(), range.most()), (-(1 << (bits - 1)), (1 << (bits - 1)) - 1));
            assert!(range.least() <= least && most <= range.most());
            let half = 1 << bits >> 2;
            assert!(bits == 1 || -half > least || half - 1 < most, "{bits} bits are needed");
        }
        assert_eq!(ProofRange::covering(i64::MIN, i64::MAX).bits(), 63);
    }

    #[test]
    fn the_proofs_of_an_exact_range_have_only_its_values_in_common() {
        for (least, most, bits, proofs) in
            [(0, 0, 1, 2), (0, 1, 1, 1), (0, 2, 2, 2), (-1, 2, 2, 1), (-2, 3, 3, 2), (-2, 4, 3, 2), (-3, 4, 3, 1)]
        {
            let range = ProofRange::exact(least, most);
            assert_eq!((range.least(), range.most()), (least, most));
            assert_eq!((range.bits(), range.proofs()), (bits, proofs), "{least} to {most}");
            let allowed =
                (-20..20).filter(|value| range.starts().all(|start| (start..start + (1 << bits)).contains(value)));
            assert!(allowed.eq(least..=most), "{least} to {most}");
        }
        // A smaller party's range, with the proof key of a larger one.
        for (least, most, bits) in [(-2, 3, 4), (0, 1, 3), (-3, 4, 7)] {
            let range = ProofRange::exact(least, most).with_bits(bits);
            assert_eq!((range.bits(), range.proofs()), (bits, 2), "{least} to {most}");
            let allowed =
                (-300..300).filter(|value| range.starts().all(|start| (start..start + (1 << bits)).contains(value)));
            assert!(allowed.eq(least..=most), "{least} to {most}");
        }
        // The widest range of binomial noise: all coins that one teacher may toss.
        assert_eq!(ProofRange::exact(-32_768, 32_769).bits(), 17);
        assert_eq!(ProofRange::exact(-(1 << 40), 1 << 40).bits(), 42);
    }
}
