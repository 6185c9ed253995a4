//! The range of noisy counts, and the encoding that a parameter set offers for it.

use crate::circuit::Circuit;
use crate::noise::{Guarantee, NoiseModel};
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
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum EncodingError {
    /// The counts can differ by more than the comparison can tell.
    #[error(transparent)]
    Range(#[from] RangeError),
    /// The number of outcomes is outside what an answer has room for.
    #[error("{found} outcomes: an answer has room for {min} to {max}")]
    Outcomes {
        /// The number of outcomes asked for.
        found: usize,
        /// The smallest number supported.
        min: usize,
        /// The largest number supported.
        max: usize,
    },
    /// The argmax would be wrong too often.
    #[error("the argmax of a query would fail with probability 2^{found_log2:.1}, allowed is 2^{allowed_log2}")]
    Failure {
        /// log2 of the failure probability.
        found_log2: f64,
        /// log2 of the probability that is allowed.
        allowed_log2: f64,
    },
}

/// Two counts can differ by more than the comparison can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "noisy counts can differ by {needed} votes, but the comparison is exact up to {supported}: fewer teachers, less noise, \
     or keys for a wider range"
)]
pub struct RangeError {
    /// The difference that has to be covered, in votes.
    pub needed: u64,
    /// The difference that the parameter set covers, in votes.
    pub supported: u64,
}

/// A scale at which a comparison reads a difference: sixteenths of a bucket for a vote, and the largest difference in
/// votes for which a comparison with this as its coarsest scale is right.
struct Scale {
    sixteenths: u64,
    reach: u64,
}

/// The scales, finest first. The finest sets half a vote 73 buckets from zero; each further one takes over where the one
/// before wraps around: see [`Encoding`] for the margins.
const SCALES: [Scale; 4] = [
    Scale { sixteenths: 146 * 16, reach: 13 },
    Scale { sixteenths: 10 * 16, reach: 190 },
    Scale { sixteenths: 12, reach: 2544 },
    Scale { sixteenths: 1, reach: 30_000 },
];

/// Half-width in buckets of the zone around zero in which all scales but the finest answer "don't know".
pub(crate) const DEAD_ZONE: usize = 70;

/// The largest difference that so many scales cover, in votes.
pub(crate) fn reach(scales: usize) -> u64 {
    SCALES[scales - 1].reach
}

/// log2 of the failure probability of a query that is allowed.
const ALLOWED_FAILURE_LOG2: f64 = -128.0;

/// Values of one digit of an outcome.
const RADIX: usize = 16;

/// How the counts and outcomes of a round lie on the torus, computed from the number of outcomes and the range of the
/// counts. It exists only if every argmax of the round is exact but for a probability of 2^-128.
///
/// # Counts
/// A count `v` is `v * 2^50` (with four scales `v * 2^48`), modulo 2^64. A comparison multiplies the difference of two
/// counts so that a vote becomes 146, 10, 3/4 and 1/16 buckets of 4096, and uses as many of these scales as the range
/// asks for: one up to 13 votes, two up to 190, three up to 2544, four up to 30,000.
///
/// Write `D = |d - 1/2|` for the difference `d` of the later minus the earlier count. In buckets:
/// - finest scale (sign): `D = 1/2` lies 73 from the wrong answer, and `D <= 13.5` at least 73 from the wrap-around at
///   2048;
/// - second scale (sign, but 0 within 70 of zero and of 2048): 75 or more from the wrong sign; from `D = 14.5` on, 75 from
///   "don't know";
/// - third scale (same table): 70 from the wrong sign; around `D = 190` it takes over from the second: for every `D` one of
///   the two is 72 or more from "don't know"; at `D = 2544.5` it is 69.6 from giving up;
/// - fourth scale (same table): it takes over around `D = 2520`, where both are 87 from "don't know"; at `D = 30000.5` it
///   is 102 from giving up;
/// - sum of the answers with weights 1, 2, 4, 8, each 64 buckets: 64 from the next value.
///
/// # Outcomes
/// The number of an outcome is one digit, or from 17 outcomes on two digits, to the base 16, each a ciphertext of its
/// own. A digit sits in the middle of its sixteenth of the torus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encoding {
    unit_log: u32,
    scales: usize,
    outcomes: usize,
}

impl Encoding {
    /// Most outcomes. (Two digits have room for more, but all pairs would fail too often.)
    pub const MAX_OUTCOMES: usize = 128;

    /// The encoding of `outcomes` noisy counts in `range`.
    ///
    /// # Errors
    /// If the counts can differ by more than [`Parameters::range`], if the outcomes are fewer than two or more than
    /// [`Self::MAX_OUTCOMES`], or if the argmax of a query would fail with a probability of more than 2^-128.
    pub fn new(parameters: &Parameters, outcomes: usize, range: VoteRange) -> Result<Self, EncodingError> {
        if !(2..=Self::MAX_OUTCOMES).contains(&outcomes) {
            return Err(EncodingError::Outcomes { found: outcomes, min: 2, max: Self::MAX_OUTCOMES });
        }
        let needed = range.difference();
        let scales = SCALES[..parameters.scales]
            .iter()
            .position(|scale| needed <= scale.reach)
            .ok_or(RangeError { needed, supported: parameters.range() })?
            + 1;
        let encoding = Self { unit_log: if scales < 4 { 50 } else { 48 }, scales, outcomes };
        let model = NoiseModel::new(parameters, encoding, range);
        for circuit in [Circuit::Tournament, Circuit::AllPairs] {
            let found_log2 = model.guarantee(circuit).query_log2;
            if found_log2 > ALLOWED_FAILURE_LOG2 {
                return Err(EncodingError::Failure { found_log2, allowed_log2: ALLOWED_FAILURE_LOG2 });
            }
        }
        Ok(encoding)
    }

    /// The fastest parameter set that has an encoding of `outcomes` noisy counts in `range`.
    ///
    /// # Errors
    /// Those of [`Self::new`] for the widest set, if none has.
    pub fn choose_parameters(outcomes: usize, range: VoteRange) -> Result<Parameters, EncodingError> {
        let mut last = Err(EncodingError::Outcomes { found: outcomes, min: 2, max: Self::MAX_OUTCOMES });
        for parameters in Parameters::ALL {
            last = Self::new(&parameters, outcomes, range).map(|_| parameters);
            if last.is_ok() {
                break;
            }
        }
        last
    }

    /// What is guaranteed of a query of `outcomes` noisy counts in `range`: failure and leakage.
    ///
    /// # Errors
    /// Those of [`Self::new`].
    pub fn guarantee(
        parameters: &Parameters,
        circuit: Circuit,
        outcomes: usize,
        range: VoteRange,
    ) -> Result<Guarantee, EncodingError> {
        let encoding = Self::new(parameters, outcomes, range)?;
        Ok(NoiseModel::new(parameters, encoding, range).guarantee(circuit))
    }

    /// Number of outcomes.
    #[must_use]
    pub fn outcomes(&self) -> usize {
        self.outcomes
    }

    /// Number of ciphertexts of an answer, each with a digit of the outcome: 1, or 2 from 17 outcomes on.
    #[must_use]
    pub fn digit_count(&self) -> usize {
        digit_count(self.outcomes)
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

    /// A value in votes on the torus.
    pub(crate) fn value(self, value: i64) -> u64 {
        value.cast_unsigned().wrapping_mul(self.unit())
    }

    /// The multipliers of the scales in use, finest first.
    pub(crate) fn scales(self) -> impl ExactSizeIterator<Item = u64> + Clone {
        // A sixteenth of a bucket is 2^48.
        SCALES[..self.scales].iter().map(move |scale| scale.sixteenths << 48 >> self.unit_log)
    }

    /// The torus values of an outcome's digits, least significant first.
    pub(crate) fn digits(self, outcome: usize) -> impl Iterator<Item = u64> {
        (0..self.digit_count()).map(move |place| digit_code(outcome / RADIX.pow(place as u32) % RADIX))
    }

    /// The outcome whose digits are nearest to decrypted phases, least significant first.
    #[cfg(any(test, feature = "student"))]
    pub(crate) fn outcome(phases: impl DoubleEndedIterator<Item = u64>) -> usize {
        phases.rev().fold(0, |outcome, phase| outcome * RADIX + (phase >> (u64::BITS - 4)) as usize)
    }
}

/// Digits that tell so many outcomes apart.
pub(crate) fn digit_count(outcomes: usize) -> usize {
    if outcomes <= RADIX { 1 } else { 2 }
}

/// The middle of the sixteenth of the torus that stands for a digit.
pub(crate) fn digit_code(digit: usize) -> u64 {
    (2 * digit as u64 + 1) << 59
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
    fn too_few_and_too_many_outcomes_are_refused() {
        for found in [0, 1, 129, usize::MAX] {
            let error = EncodingError::Outcomes { found, min: 2, max: 128 };
            assert_eq!(Encoding::new(&P, found, VoteRange::new(3, 0)), Err(error));
            assert_eq!(Encoding::choose_parameters(found, VoteRange::new(3, 0)), Err(error));
        }
    }

    #[test]
    fn the_range_decides_on_scales_and_keys() {
        let scales = |difference| {
            let range = VoteRange::new(difference, 0);
            let parameters = Encoding::choose_parameters(10, range).expect("in range");
            (parameters.name(), Encoding::new(&parameters, 10, range).expect("in range").scales().len())
        };
        assert_eq!(scales(13), ("TOURNAMENT_128", 1));
        assert_eq!(scales(14), ("TOURNAMENT_128", 2));
        assert_eq!(scales(191), ("TOURNAMENT_128", 3));
        assert_eq!(scales(2544), ("TOURNAMENT_128", 3));
        assert_eq!(scales(2545), ("WIDE_128", 4));
        assert!(Encoding::choose_parameters(100, VoteRange::new(5000, 12_500)).is_ok());
        assert!(Encoding::choose_parameters(10, VoteRange::new(5000, 12_501)).is_err());
    }

    #[test]
    fn digits_are_read_back_up_to_half_a_slot() {
        let reach = (1_u64 << 59) - 1;
        for outcomes in [16, Encoding::MAX_OUTCOMES] {
            let encoding = Encoding::new(&P, outcomes, VoteRange::new(1, 0)).expect("valid");
            for outcome in 0..outcomes {
                for error in [0, reach, reach.wrapping_neg()] {
                    let phases: Vec<u64> = encoding.digits(outcome).map(|code| code.wrapping_add(error)).collect();
                    assert_eq!(Encoding::outcome(phases.into_iter()), outcome);
                }
            }
        }
    }

    #[test]
    fn the_scales_give_the_documented_buckets() {
        for (p, range, expected) in
            [(P, 2544, vec![146.0, 10.0, 0.75]), (Parameters::WIDE_128, 30_000, vec![146.0, 10.0, 0.75, 0.0625])]
        {
            let encoding = Encoding::new(&p, 16, VoteRange::new(range, 0)).expect("valid");
            let buckets: Vec<f64> = encoding
                .scales()
                .map(|scale| encoding.value(1).wrapping_mul(scale) as f64 / p.bucket() as f64)
                .collect();
            assert_eq!(buckets, expected);
        }
    }
}
