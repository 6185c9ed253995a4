//! Outcomes of a query.

use crate::codec::DecodeError;
use crate::layout::{Layout, digit_count};

/// The outcome of one query, as the student reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The winning class.
    Label(u8),
    /// The noisy maximum is below the round's threshold, so the query gets no label.
    NoAnswer,
}

impl Outcome {
    /// Returns the label, or `None` for no answer.
    #[must_use]
    pub fn label(self) -> Option<u8> {
        match self {
            Self::Label(label) => Some(label),
            Self::NoAnswer => None,
        }
    }
}

/// The possible outcomes of a round's queries: its classes, and, if the round has a threshold, "no answer".
///
/// The code of a class is its index, and that of "no answer" is the number of classes. A code travels as digits in base
/// 16, one ciphertext each, lowest first: one digit for up to 16 outcomes, two for more.
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

    /// Returns the number of classes.
    #[must_use]
    pub fn classes(self) -> usize {
        self.classes
    }

    /// Returns whether "no answer" is possible.
    #[must_use]
    pub fn no_answer(self) -> bool {
        self.no_answer
    }

    /// Returns the number of outcomes.
    #[must_use]
    pub fn count(self) -> usize {
        self.classes + usize::from(self.no_answer)
    }

    /// Returns the number of ciphertexts in an answer.
    #[must_use]
    pub fn digits(self) -> usize {
        digit_count(self.count())
    }

    /// Returns the outcome with this code, if it exists.
    #[must_use]
    pub fn from_code(self, code: usize) -> Option<Outcome> {
        match u8::try_from(code) {
            Ok(label) if code < self.classes => Some(Outcome::Label(label)),
            _ if self.no_answer && code == self.classes => Some(Outcome::NoAnswer),
            _ => None,
        }
    }

    /// Returns the code of an outcome.
    #[must_use]
    pub fn code(self, outcome: Outcome) -> usize {
        outcome.label().map_or(self.classes, usize::from)
    }

    /// Checks that there are not too many outcomes.
    pub(crate) fn checked(classes: usize, no_answer: bool) -> Result<Self, DecodeError> {
        let outcomes = Self { classes, no_answer };
        if outcomes.count() > Self::MAX {
            let (found, max) = (outcomes.count() as u64, Self::MAX as u64);
            return Err(DecodeError::Field { field: "outcomes", found, min: 2, max });
        }
        Ok(outcomes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_outcomes_are_one_to_one() {
        for (classes, no_answer, digits) in
            [(2, false, 1), (15, true, 1), (16, false, 1), (16, true, 2), (127, true, 2), (128, false, 2)]
        {
            let outcomes = Outcomes::checked(classes, no_answer).expect("valid");
            assert_eq!(outcomes.digits(), digits, "{classes} {no_answer}");
            for code in 0..outcomes.count() {
                let outcome = outcomes.from_code(code).expect("in range");
                assert_eq!(outcomes.code(outcome), code);
                assert_eq!(outcome.label().is_none(), code == classes);
            }
            assert_eq!(outcomes.from_code(outcomes.count()), None);
        }
        assert!(Outcomes::checked(128, true).is_err());
    }
}
