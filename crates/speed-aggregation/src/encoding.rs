//! The encoding of a round: a layout of its counts and outcomes in which every argmax is exact.

use speed_core::Circuit;

use crate::ciphertext_noise::CiphertextNoise;
pub use crate::ciphertext_noise::{Guarantee, JointGuarantee};
use crate::exact_circuit::{ExactCircuit, InexactCircuit};
use crate::getters::messages_of;
use crate::layout::Layout;
use crate::parameters::Parameters;
use crate::range::RangeError;
pub use crate::range::{ProofRange, VoteRange};
use crate::round::Round;

/// log2 of the largest allowed failure probability of a query.
const ALLOWED_FAILURE_LOG2: f64 = -128.0;

/// The reason why a round has no exact encoding: a range, a number of outcomes or a circuit, or a probability of failure.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct EncodingError(String);

impl EncodingError {
    fn outcomes(found: usize) -> Self {
        Self(format!("an answer encodes 2 to {} outcomes, found {found}", Encoding::MAX_OUTCOMES))
    }
}

messages_of!(EncodingError, EncodingError: RangeError, InexactCircuit);

/// The positions of the counts and outcomes of a round on the torus, computed from the number of outcomes and the range
/// of the counts. It exists only if every argmax of the round is exact except with probability 2^-128.
///
/// # Counts
/// A count `v` is `v * 2^50` (with four scales `v * 2^48`), modulo 2^64. A comparison multiplies the difference of two
/// counts so that a vote becomes 146, 10, 3/4 and 1/16 buckets of 4096. The range determines the number of scales: one
/// up to 13 votes, two up to 190, three up to 2544, four up to 30,000.
///
/// Let `D = |d - 1/2|` for the difference `d` of the later minus the earlier count. The finest scale returns the sign. The
/// others return the sign, or 0 (undecided) within 70 buckets of zero and of 2048. The margins are the distances, in buckets,
/// to the nearest wrong or undecided result:
/// - finest scale: 73 to the wrong sign at `D = 1/2`, and at least 73 to the wrap-around at 2048 for `D <= 13.5`;
/// - second scale: 75 or more to the wrong sign; from `D = 14.5` on, 75 to undecided;
/// - third scale: 70 to the wrong sign. It replaces the second scale around `D = 190`: for every `D` one of the two scales is
///   72 or more from undecided. At `D = 2544.5`, the end of its range, it is 69.6 from undecided;
/// - fourth scale: it replaces the third scale around `D = 2520`, where both are 87 from undecided. At `D = 30000.5`, the end
///   of its range, it is 102 from undecided;
/// - sum of the scales' results with weights 1, 2, 4, 8, each 64 buckets: 64 to the next value.
///
/// # Outcomes
/// An outcome is encoded by its index in base 16: one digit for up to 16 outcomes, two digits for more. Each digit is one
/// ciphertext, whose plaintext is the centre of one of 16 equal parts of the torus. Until the winner is known, the circuits
/// hold a number of two digits in one ciphertext, at the centre of one of 256 parts. In a check every class has the digit 0
/// and the threshold has the digit 1, so the winner's digit does not depend on its class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encoding {
    layout: Layout,
}

impl Encoding {
    /// The largest number of outcomes.
    pub const MAX_OUTCOMES: usize = Layout::MAX_OUTCOMES;

    /// Computes the encoding of `outcomes` noisy counts in `range`.
    ///
    /// # Errors
    /// If the counts can differ by more than [`Parameters::range`], if the outcomes are fewer than two or more than
    /// [`Self::MAX_OUTCOMES`], or if the argmax of a query would fail with a probability of more than 2^-128.
    pub fn new(parameters: &Parameters, outcomes: usize, range: VoteRange) -> Result<Self, EncodingError> {
        if !(2..=Self::MAX_OUTCOMES).contains(&outcomes) {
            return Err(EncodingError::outcomes(outcomes));
        }
        let layout = Layout::new(parameters, outcomes, range)?;
        let noise = CiphertextNoise::new(parameters, layout, range);
        for circuit in ExactCircuit::ALL {
            let found_log2 = noise.guarantee(circuit).query_log2;
            if found_log2 > ALLOWED_FAILURE_LOG2 {
                return Err(EncodingError(format!(
                    "an argmax would fail with probability 2^{found_log2:.1}, but at most 2^{ALLOWED_FAILURE_LOG2} is allowed"
                )));
            }
        }
        Ok(Self { layout })
    }

    /// Computes the encoding of a round.
    ///
    /// # Errors
    /// The errors of [`Self::new`].
    pub fn of_round(parameters: &Parameters, round: &Round) -> Result<Self, EncodingError> {
        let encoding = Self::new(parameters, round.candidates(), round.range())?;
        // The comparisons are the same, and an outcome has one digit.
        Ok(if round.is_check() { Self { layout: encoding.layout.of_check() } } else { encoding })
    }

    /// Returns the fastest parameter set that has an encoding of `outcomes` noisy counts in `range`.
    ///
    /// # Errors
    /// If there is none, the errors of [`Self::new`] for the widest set.
    pub fn choose_parameters(outcomes: usize, range: VoteRange) -> Result<Parameters, EncodingError> {
        let mut last = Err(EncodingError::outcomes(outcomes));
        for parameters in Parameters::ALL {
            last = Self::new(&parameters, outcomes, range).map(|_| parameters);
            if last.is_ok() {
                break;
            }
        }
        last
    }

    /// Bounds the failure probability and the leakage of a query of `outcomes` noisy counts in `range`.
    ///
    /// # Errors
    /// The errors of [`Self::new`], and an error for the paper's circuit.
    pub fn guarantee(
        parameters: &Parameters,
        circuit: Circuit,
        outcomes: usize,
        range: VoteRange,
    ) -> Result<Guarantee, EncodingError> {
        let circuit = ExactCircuit::try_from(circuit)?;
        let Self { layout } = Self::new(parameters, outcomes, range)?;
        Ok(CiphertextNoise::new(parameters, layout, range).guarantee(circuit))
    }

    /// Bounds the failure probability and the leakage of a query like [`Self::guarantee`], if an opener takes part in the
    /// opening.
    ///
    /// # Errors
    /// The errors of [`Self::guarantee`].
    pub fn joint_guarantee(
        parameters: &Parameters,
        circuit: Circuit,
        outcomes: usize,
        range: VoteRange,
    ) -> Result<JointGuarantee, EncodingError> {
        let circuit = ExactCircuit::try_from(circuit)?;
        let encoding = Self::new(parameters, outcomes, range)?;
        Ok(CiphertextNoise::new(parameters, encoding.layout, range).joint_guarantee(circuit))
    }

    /// Returns the layout, which [`Self::new`] checked to be exact.
    pub(crate) fn layout(self) -> Layout {
        self.layout
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const P: Parameters = Parameters::TOURNAMENT_128;

    #[test]
    fn the_widest_range_is_accepted_and_one_more_is_refused_with_both_numbers() {
        assert!(Encoding::new(&P, 10, VoteRange::new(250, 1147)).is_ok());
        assert_eq!(
            Encoding::new(&P, 10, VoteRange::new(251, 1147)),
            Err(RangeError { needed: 2545, supported: 2544 }.into())
        );
        assert_eq!(
            Encoding::new(&P, 10, VoteRange::new(250, u64::MAX)),
            Err(RangeError { needed: u64::MAX, supported: 2544 }.into())
        );
    }

    #[test]
    fn too_few_and_too_many_outcomes_are_refused() {
        for found in [0, 1, 129, usize::MAX] {
            let expected = format!("an answer encodes 2 to 128 outcomes, found {found}");
            let range = VoteRange::new(3, 0);
            for error in [Encoding::new(&P, found, range).err(), Encoding::choose_parameters(found, range).err()] {
                assert_eq!(error.expect("refused").to_string(), expected);
            }
        }
    }

    #[test]
    fn a_check_fails_no_more_often_than_labels_between_the_same_candidates() {
        for (candidates, circuit) in
            [(11, ExactCircuit::Tournament), (18, ExactCircuit::Tournament), (128, ExactCircuit::AllPairs)]
        {
            let range = VoteRange::new(250, 500);
            let labels = Encoding::new(&P, candidates, range).expect("exact").layout();
            let [check, labels] =
                [labels.of_check(), labels].map(|layout| CiphertextNoise::new(&P, layout, range).guarantee(circuit));
            assert!(check.query_log2 <= labels.query_log2 && check.query_log2 <= ALLOWED_FAILURE_LOG2, "{check:?}");
            assert!(check.comparison_log2 == labels.comparison_log2 && check.distance_log2 <= labels.distance_log2);
        }
        // The threshold's range: the same noise for all classes.
        assert_eq!(VoteRange::of_check(250, 1400, 200).difference(), 1600);
        assert_eq!(VoteRange::of_check(250, 1400, 0).difference(), 1650);
    }

    #[test]
    fn the_range_decides_on_scales_and_keys() {
        let scales = |difference| {
            let range = VoteRange::new(difference, 0);
            let parameters = Encoding::choose_parameters(10, range).expect("in range");
            (parameters.name(), Encoding::new(&parameters, 10, range).expect("in range").layout().scales().len())
        };
        assert_eq!(scales(13), ("TOURNAMENT_128", 1));
        assert_eq!(scales(14), ("TOURNAMENT_128", 2));
        assert_eq!(scales(191), ("TOURNAMENT_128", 3));
        assert_eq!(scales(2544), ("TOURNAMENT_128", 3));
        assert_eq!(scales(2545), ("WIDE_128", 4));
        assert!(Encoding::choose_parameters(100, VoteRange::new(5000, 12_500)).is_ok());
        assert!(Encoding::choose_parameters(10, VoteRange::new(5000, 12_501)).is_err());
    }
}
