//! Outcomes of a query.

use crate::codec::DecodeError;
use crate::layout::{Layout, digit_count};

/// The outcome of one query, as the student reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The winning class.
    Label(u8),
    /// The noisy maximum of a check reaches the threshold; its class is not known.
    Reached,
    /// The noisy maximum is below the round's threshold, so the query gets no label.
    NoAnswer,
}

impl Outcome {
    /// Returns the label, or `None` for no answer and for a check.
    pub fn label(self) -> Option<u8> {
        match self {
            Self::Label(label) => Some(label),
            Self::Reached | Self::NoAnswer => None,
        }
    }
}

/// The possible outcomes of a round's queries: its classes, and, if the round has a threshold, "no answer".
///
/// A check has two outcomes: reached, which takes the place of a single class, and "no answer".
///
/// The code of a class is its index, that of "reached" is 0, and that of "no answer" is the number of classes. A code
/// travels as digits in base 16, one ciphertext each, lowest first: one digit for up to 16 outcomes, two for more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcomes {
    classes: usize,
    no_answer: bool,
}

impl Outcomes {
    /// The largest number of outcomes.
    pub const MAX: usize = Layout::MAX_OUTCOMES;

    pub(crate) fn new(classes: usize, no_answer: bool) -> Self {
        Self { classes, no_answer }
    }

    pub(crate) fn of_check() -> Self {
        Self { classes: 1, no_answer: true }
    }

    pub(crate) fn is_check(self) -> bool {
        self.classes == 1
    }

    /// Returns the number of classes; 1 for a check.
    pub(crate) fn classes(self) -> usize {
        self.classes
    }

    /// Returns whether "no answer" is possible.
    pub fn no_answer(self) -> bool {
        self.no_answer
    }

    /// Returns the number of outcomes.
    pub fn count(self) -> usize {
        self.classes + usize::from(self.no_answer)
    }

    /// Returns the number of ciphertexts in an answer.
    pub fn digits(self) -> usize {
        digit_count(self.count())
    }

    /// Returns the outcome with this code, if it exists.
    pub fn from_code(self, code: usize) -> Option<Outcome> {
        match u8::try_from(code) {
            Ok(0) if self.is_check() => Some(Outcome::Reached),
            Ok(label) if code < self.classes => Some(Outcome::Label(label)),
            _ if self.no_answer && code == self.classes => Some(Outcome::NoAnswer),
            _ => None,
        }
    }

    #[cfg(test)]
    pub(crate) fn code(self, outcome: Outcome) -> usize {
        match outcome {
            Outcome::Label(label) => usize::from(label),
            Outcome::Reached => 0,
            Outcome::NoAnswer => self.classes,
        }
    }

    /// Checks that there are not too many outcomes, and at least two.
    pub(crate) fn checked(classes: usize, no_answer: bool) -> Result<Self, DecodeError> {
        let outcomes = Self { classes, no_answer };
        let (found, min, max) = (outcomes.count() as u64, 2, Self::MAX as u64);
        match (min..=max).contains(&found) {
            true => Ok(outcomes),
            false => Err(DecodeError::Field { field: "outcomes", found, min, max }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_outcomes_are_one_to_one() {
        for (classes, no_answer, digits) in
            [(1, true, 1), (2, false, 1), (15, true, 1), (16, false, 1), (16, true, 2), (127, true, 2), (128, false, 2)]
        {
            let outcomes = Outcomes::checked(classes, no_answer).expect("valid");
            assert_eq!(outcomes.digits(), digits, "{classes} {no_answer}");
            for code in 0..outcomes.count() {
                let outcome = outcomes.from_code(code).expect("in range");
                assert_eq!(outcomes.code(outcome), code);
                assert_eq!(outcome.label().is_none(), code == classes || outcomes.is_check());
                assert_eq!(outcome == Outcome::Reached, outcomes.is_check() && code == 0);
            }
            assert_eq!(outcomes.from_code(outcomes.count()), None);
        }
        assert!(Outcomes::checked(128, true).is_err() && Outcomes::checked(1, false).is_err());
    }
}
