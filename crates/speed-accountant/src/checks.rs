//! Checks before answers: only the queries whose largest noisy count reaches the threshold are answered.

use serde::{Deserialize, Serialize};
use speed_mechanism::Mechanism;

use crate::assumption::Bound;
use crate::composition::MAX_QUERIES;
use crate::error::AccountError;
use crate::event::PrivacyEvent;

/// Checks that come before answers: all queries are checked, and some of those that reach the threshold are answered.
/// Their noise is independent of the answers' noise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Checks {
    /// One check ([`PrivacyEvent::check`]).
    pub event: PrivacyEvent,
    /// Number of queries that are checked.
    pub queries: usize,
}

/// The checks of an account.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AccountedChecks {
    /// Noise of a check, of all teachers together.
    #[serde(flatten)]
    pub mechanism: Mechanism,
    /// The number of noisy votes that an answer needs.
    pub threshold: f64,
    /// Number of queries that were checked.
    pub queries: usize,
}

impl Checks {
    /// Checks that these checks can come before queries of `event`.
    pub(crate) fn precede(&self, event: &PrivacyEvent, bound: Bound) -> Result<(), AccountError> {
        let refused = |what, found: &dyn std::fmt::Display, expected: &dyn std::fmt::Display| {
            Err(AccountError::Checks { what, found: found.to_string().into(), expected: expected.to_string().into() })
        };
        if !self.event.is_check() {
            return refused("event of a check", &"a query with a class as its answer", &"a check");
        }
        if event.is_check() {
            return refused("query after a check", &"a check", &"a query with a class as its answer");
        }
        if let Some(found) = event.threshold() {
            return refused("threshold of the argmax after a check", &found, &"none: the check has it");
        }
        let (found, expected) = (self.event.tau().get(), event.tau().get());
        if found != expected {
            return refused("honest ratio of the check", &found, &expected);
        }
        if bound != Bound::Tight {
            return refused("formulas", &bound, &Bound::Tight);
        }
        if !(1..=MAX_QUERIES).contains(&self.queries) {
            return Err(AccountError::Queries { found: self.queries });
        }
        Ok(())
    }

    pub(crate) fn accounted(&self) -> AccountedChecks {
        AccountedChecks {
            mechanism: self.event.mechanism(),
            threshold: self.event.threshold().unwrap_or(0.0),
            queries: self.queries,
        }
    }
}
