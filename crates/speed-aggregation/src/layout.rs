//! The positions of counts and outcomes on the torus.

use crate::parameters::Parameters;
use crate::range::{RangeError, VoteRange};
use crate::scales::SCALES;

/// The number of values of one digit of an outcome.
const RADIX: usize = 16;

/// The positions of a round's counts and outcomes on the torus. [`crate::Encoding`], a layout that was found exact,
/// explains the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    unit_log: u32,
    scales: usize,
    candidates: usize,
    /// All candidates but the last, the threshold, have the same outcome.
    is_check: bool,
}

impl Layout {
    /// The largest number of outcomes. (Two digits could hold more, but all pairs would fail too often.)
    pub(crate) const MAX_OUTCOMES: usize = 128;

    /// Lays out `candidates` noisy counts, each an outcome of its own, in `range`, on the fewest scales that cover it.
    pub(crate) fn new(parameters: &Parameters, candidates: usize, range: VoteRange) -> Result<Self, RangeError> {
        let needed = range.difference();
        let scales = SCALES[..parameters.scales]
            .iter()
            .position(|scale| needed <= scale.reach)
            .ok_or(RangeError { needed, supported: parameters.range() })?
            + 1;
        Ok(Self { unit_log: if scales < 4 { 50 } else { 48 }, scales, candidates, is_check: false })
    }

    pub(crate) fn of_check(self) -> Self {
        Self { is_check: true, ..self }
    }

    /// Returns the number of counts that are compared.
    pub(crate) fn candidates(self) -> usize {
        self.candidates
    }

    /// Returns the number of digits of an outcome.
    pub(crate) fn digit_count(self) -> usize {
        digit_count(if self.is_check { 2 } else { self.candidates })
    }

    /// Returns the largest absolute value that one teacher may send for one class: half of `2^(64 - unit_log)`, the modulus
    /// of the server's sum. A single share may exceed the bound on the sum, because the sum is exact modulo this modulus.
    pub(crate) fn max_share(self) -> u64 {
        1 << (u64::BITS - self.unit_log - 1)
    }

    /// Returns one vote in torus units.
    pub(crate) fn unit(self) -> u64 {
        1 << self.unit_log
    }

    /// Returns a value (in votes) in torus units.
    pub(crate) fn value(self, value: i64) -> u64 {
        value.cast_unsigned().wrapping_mul(self.unit())
    }

    /// Returns the multipliers of the scales in use, finest first.
    pub(crate) fn scales(self) -> impl ExactSizeIterator<Item = u64> + Clone {
        // A sixteenth of a bucket is 2^48.
        SCALES[..self.scales].iter().map(move |scale| scale.sixteenths << 48 >> self.unit_log)
    }

    /// Returns the torus value of the number of the outcome if a candidate wins: its digit, or with two digits the centre
    /// of one of 256 equal parts.
    pub(crate) fn number(self, candidate: usize) -> u64 {
        let outcome = self.outcome(candidate);
        if self.digit_count() == 1 { digit_code(outcome) } else { (2 * outcome as u64 + 1) << 55 }
    }

    /// Returns the torus values of the digits of the outcome if a candidate wins, least significant first.
    #[cfg(test)]
    pub(crate) fn digits(self, candidate: usize) -> impl Iterator<Item = u64> {
        let outcome = self.outcome(candidate);
        (0..self.digit_count()).map(move |place| digit_code(outcome / RADIX.pow(place as u32) % RADIX))
    }

    fn outcome(self, candidate: usize) -> usize {
        if self.is_check { usize::from(candidate + 1 == self.candidates) } else { candidate }
    }
}

/// Returns the number of digits that distinguish `outcomes` outcomes.
pub(crate) fn digit_count(outcomes: usize) -> usize {
    if outcomes <= RADIX { 1 } else { 2 }
}

/// Returns the centre of the part of the torus that encodes a digit, one of 16 equal parts.
pub(crate) fn digit_code(digit: usize) -> u64 {
    (2 * digit as u64 + 1) << 59
}

/// Returns the outcome whose digits are nearest to decrypted phases, least significant first.
#[cfg(any(test, feature = "student"))]
pub(crate) fn outcome_of_phases(phases: impl DoubleEndedIterator<Item = u64>) -> usize {
    phases.rev().fold(0, |outcome, phase| outcome * RADIX + (phase >> (u64::BITS - 4)) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    const P: Parameters = Parameters::TOURNAMENT_128;

    #[test]
    fn digits_are_read_back_up_to_half_a_slot() {
        let reach = (1_u64 << 59) - 1;
        for outcomes in [16, Layout::MAX_OUTCOMES] {
            let layout = Layout::new(&P, outcomes, VoteRange::new(1, 0)).expect("in range");
            for outcome in 0..outcomes {
                for error in [0, reach, reach.wrapping_neg()] {
                    let phases: Vec<u64> = layout.digits(outcome).map(|code| code.wrapping_add(error)).collect();
                    assert_eq!(outcome_of_phases(phases.into_iter()), outcome);
                }
            }
        }
    }

    #[test]
    fn all_classes_of_a_check_have_one_digit() {
        for candidates in [3, 16, 17, 128] {
            let layout = Layout::new(&P, candidates, VoteRange::new(1, 0)).expect("in range").of_check();
            let outcomes = (0..candidates).map(|candidate| {
                let digits: Vec<u64> = layout.digits(candidate).collect();
                assert_eq!((digits.len(), layout.digit_count()), (1, 1));
                outcome_of_phases(digits.into_iter())
            });
            assert!(
                outcomes.enumerate().all(|(candidate, outcome)| outcome == usize::from(candidate + 1 == candidates))
            );
        }
    }

    #[test]
    fn the_scales_give_the_documented_buckets() {
        for (p, range, expected) in
            [(P, 2544, vec![146.0, 10.0, 0.75]), (Parameters::WIDE_128, 30_000, vec![146.0, 10.0, 0.75, 0.0625])]
        {
            let layout = Layout::new(&p, 16, VoteRange::new(range, 0)).expect("in range");
            let buckets: Vec<f64> =
                layout.scales().map(|scale| layout.value(1).wrapping_mul(scale) as f64 / p.bucket() as f64).collect();
            assert_eq!(buckets, expected);
        }
    }
}
