//! The range of noisy counts, and the encoding that a parameter set offers for it.

use crate::parameters::Parameters;

/// The guaranteed range of a noisy count: `teachers` votes at most, plus noise of at most `noise_bound` in absolute
/// value. The caller states for its mechanism how likely the bound is exceeded; the aggregation is exact below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VoteRange {
    teachers: u64,
    noise_bound: u64,
}

impl VoteRange {
    /// The range for `teachers` one-hot votes and total noise of at most `noise_bound` in each class.
    #[must_use]
    pub fn new(teachers: usize, noise_bound: u64) -> Self {
        Self { teachers: teachers as u64, noise_bound }
    }

    /// Number of teachers, each of which adds at most one vote to a class.
    #[must_use]
    pub fn teachers(&self) -> u64 {
        self.teachers
    }

    /// Bound on the absolute value of the noise in one class, summed over teachers, in votes.
    #[must_use]
    pub fn noise_bound(&self) -> u64 {
        self.noise_bound
    }

    /// Largest difference of two counts of a query, `teachers + 2 * noise_bound`, in votes (saturating).
    #[must_use]
    pub fn difference(&self) -> u64 {
        self.teachers.saturating_add(self.noise_bound.saturating_mul(2))
    }
}

/// Why no exact encoding exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodingError {
    /// The counts can differ by more than the comparison can tell.
    #[error(transparent)]
    Range(#[from] RangeError),
    /// The number of classes is outside what the index has room for.
    #[error("{found} classes: the parameter set supports 2 to {max}")]
    Classes {
        /// The number of classes asked for.
        found: usize,
        /// The largest number of classes supported.
        max: usize,
    },
}

/// Two counts can differ by more than the comparison can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "noisy counts can differ by {needed} votes, but the comparison is exact up to {supported}: fewer teachers or less noise"
)]
pub struct RangeError {
    /// The difference that has to be covered, in votes.
    pub needed: u64,
    /// The difference that the parameter set covers, in votes.
    pub supported: u64,
}

/// How counts and class indices lie on the torus. It exists only if every comparison of the round is exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encoding {
    unit_log: u32,
    index_log: u32,
    classes: usize,
}

impl Encoding {
    /// The encoding of `classes` noisy counts in `range`.
    ///
    /// # Errors
    /// If the counts can differ by more than [`Parameters::range`], or if the classes are fewer than two or more than
    /// [`Parameters::max_classes`].
    pub fn new(parameters: &Parameters, classes: usize, range: VoteRange) -> Result<Self, EncodingError> {
        if !(2..=parameters.max_classes()).contains(&classes) {
            return Err(EncodingError::Classes { found: classes, max: parameters.max_classes() });
        }
        if range.difference() > parameters.range {
            return Err(RangeError { needed: range.difference(), supported: parameters.range }.into());
        }
        Ok(Self { unit_log: parameters.unit_log, index_log: parameters.index_log, classes })
    }

    /// Number of classes.
    #[must_use]
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// Largest absolute value that one teacher may send for one class: half of the modulus `2^(64 - unit_log)` in
    /// which the server sums. A single share may exceed the bound on the sum; it wraps around and back.
    #[must_use]
    pub fn max_share(&self) -> u64 {
        1 << (u64::BITS - self.unit_log - 1)
    }

    /// One vote on the torus.
    pub(crate) fn unit(self) -> u64 {
        1 << self.unit_log
    }

    /// A teacher's value on the torus.
    pub(crate) fn value(self, value: i64) -> u64 {
        value.cast_unsigned().wrapping_mul(self.unit())
    }

    /// The position of a class index on the torus.
    pub(crate) fn index(self, class: usize) -> u64 {
        (class as u64) << self.index_log
    }

    /// Half an index step, which puts an encoded value (of either sign) in the middle of its slot.
    pub(crate) fn half_slot(self) -> u64 {
        1 << (self.index_log - 1)
    }

    /// The torus value that stands for a class in an answer. The first half of the slots map to odd multiples of
    /// `1/32` going up, the second half to their negatives: a look-up table of a bootstrap is negacyclic, and so one
    /// bootstrap can write all of these codes.
    pub(crate) fn answer_code(self, class: usize) -> u64 {
        let slots = 1_u64 << (u64::BITS - self.index_log);
        let step = self.half_slot();
        let class = class as u64;
        if class < slots / 2 { (2 * class + 1) * step } else { ((2 * (class - slots / 2) + 1) * step).wrapping_neg() }
    }

    /// The slot whose [`Self::answer_code`] is nearest to a decrypted phase.
    pub(crate) fn answer_class(parameters: &Parameters, phase: u64) -> usize {
        let slots = parameters.max_classes();
        let slot = (phase >> parameters.index_log) as usize;
        if slot < slots / 2 { slot } else { slots - 1 - slot + slots / 2 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const P: Parameters = Parameters::TOURNAMENT_128;

    #[test]
    fn a_range_at_the_edge_is_accepted_and_one_more_is_refused_with_both_figures() {
        assert!(Encoding::new(&P, 10, VoteRange::new(250, 1147)).is_ok());
        assert_eq!(
            Encoding::new(&P, 10, VoteRange::new(251, 1147)),
            Err(EncodingError::Range(RangeError { needed: 2545, supported: 2544 }))
        );
        assert!(matches!(
            Encoding::new(&P, 10, VoteRange::new(250, u64::MAX)),
            Err(EncodingError::Range(RangeError { needed: u64::MAX, .. }))
        ));
    }

    #[test]
    fn too_few_and_too_many_classes_are_refused() {
        for found in [0, 1, 17, usize::MAX] {
            assert_eq!(Encoding::new(&P, found, VoteRange::new(3, 0)), Err(EncodingError::Classes { found, max: 16 }));
        }
    }

    #[test]
    fn answer_codes_are_read_back_up_to_half_a_slot() {
        let encoding = Encoding::new(&P, 16, VoteRange::new(1, 0)).expect("valid");
        let reach = (1_u64 << 59) - 1;
        for class in 0..16 {
            let code = encoding.answer_code(class);
            for phase in [code, code.wrapping_add(reach), code.wrapping_sub(reach)] {
                assert_eq!(Encoding::answer_class(&P, phase), class);
            }
        }
    }

    #[test]
    fn the_scales_remove_the_index_and_leave_the_documented_buckets() {
        let encoding = Encoding::new(&P, 16, VoteRange::new(1, 0)).expect("valid");
        for scale in P.scales {
            assert_eq!(encoding.index(1).wrapping_mul(scale), 0);
        }
        let buckets = P.scales.map(|scale| encoding.value(1).wrapping_mul(scale) as f64 / 2_f64.powi(52));
        assert_eq!(buckets, [146.0, 10.0, 0.75]);
    }
}
