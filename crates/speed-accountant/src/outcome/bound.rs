//! The probability of another outcome for the rows of one run.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use speed_mechanism::{Mechanism, Skellam};

use super::exact::ClassNoise;
use super::gaps::Gaps;
use super::pairs::Pairs;
use crate::assumption::Bound;
use crate::event::PrivacyEvent;
use crate::quadrature::Precision;
use crate::renyi::is_wide;
use crate::sound::larger;

/// Logarithms of union bounds below this are not worth an integral: it would change the sum of moments only in a digit
/// that is not shown.
const WORTH_INTEGRATING: f64 = -4.0;
/// Error of a coarse integral, relative to it.
pub(super) const COARSE: f64 = 1e-5;

/// `ln q` for rows of one run; values that do not depend on the row are computed once.
pub(crate) struct OutcomeBound {
    pairs: Pairs,
    exact: Option<ClassNoise>,
    threshold: Option<f64>,
    /// Values computed so far, because rows often repeat and share neighbours.
    known: Mutex<HashMap<Gaps, f64>>,
}

/// Returns whether integrals would be sums over very long tables: votes hardly show beside such noise.
fn is_wide_skellam(event: &PrivacyEvent) -> bool {
    match event.mechanism() {
        Mechanism::Skellam { sigma } => is_wide(Skellam::of_class(sigma, event.tau()).variance()),
        _ => false,
    }
}

impl OutcomeBound {
    /// Prepares for these rows and their neighbours.
    pub(crate) fn new(event: &PrivacyEvent, bound: Bound, integrals: bool, rows: &[Gaps]) -> Self {
        let largest = rows.iter().filter_map(|gaps| gaps.gaps.last()).max().copied().unwrap_or(0);
        let (pairs, exact) = match bound {
            Bound::Paper => (Pairs::paper(event, rows), None),
            Bound::Outcome | Bound::Tight => {
                let integrals = integrals && ClassNoise::is_integrable(event) && !is_wide_skellam(event);
                (Pairs::exact(event, rows), integrals.then(|| ClassNoise::new(event, largest)))
            }
        };
        Self { pairs, exact, threshold: event.threshold(), known: Mutex::default() }
    }

    /// Returns `ln q` for the better of the outcomes "the winner" and "no answer".
    pub(crate) fn log_q(&self, gaps: &Gaps) -> f64 {
        let winner = self.log_winner(gaps);
        let log_q = if self.threshold.is_some() { winner.min(self.pairs.log_any_answer(gaps)) } else { winner };
        // NaN becomes the bound that always holds.
        if log_q.is_nan() { 0.0 } else { log_q }
    }

    /// Returns `ln q` at the worst neighbour, for the same outcome as at `gaps`; `has_empty_vote` is about these votes.
    pub(crate) fn log_q_of_neighbours(&self, gaps: &Gaps, has_empty_vote: bool) -> f64 {
        let winner = self.log_winner(gaps);
        let silent = self.threshold.is_some() && self.pairs.log_any_answer(gaps) < winner;
        if silent {
            return self.pairs.log_any_answer_of_neighbours(gaps, has_empty_vote);
        }
        // In order of decreasing union bound: once it is at most the worst value found, no remaining neighbour is
        // worse.
        let mut neighbours: Vec<(f64, Gaps)> =
            gaps.worst_neighbours().map(|gaps| (self.pairs.log_union(&gaps), gaps)).collect();
        neighbours.sort_by(|a, b| b.0.total_cmp(&a.0));
        let mut worst = f64::NEG_INFINITY;
        for (union, gaps) in neighbours {
            if union <= worst {
                break;
            }
            worst = larger(worst, self.log_winner(&gaps));
        }
        worst
    }

    /// Returns `ln q` for the outcome "the winner".
    pub(crate) fn log_winner(&self, gaps: &Gaps) -> f64 {
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(&log_q) = known().get(gaps) {
            return log_q;
        }
        let union = self.pairs.log_union(gaps);
        let log_q = match &self.exact {
            Some(exact) if union > WORTH_INTEGRATING => {
                union.min(exact.log_q(gaps, self.threshold, Precision::Coarse) + COARSE)
            }
            _ => union,
        };
        known().insert(gaps.clone(), log_q);
        log_q
    }
}
