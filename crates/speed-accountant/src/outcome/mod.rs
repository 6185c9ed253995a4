//! How likely a query answers something else than one given outcome.

mod exact;
mod gaps;
mod pairs;
mod proposition4;

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

pub(crate) use exact::{ClassNoise, reach_of_variance};
pub(crate) use gaps::Gaps;
pub(crate) use pairs::Pairs;

use crate::quadrature::Quality;
use crate::sound::larger;
use crate::{AccountError, Bound, PrivacyEvent};

/// Union bounds below this are not worth an integral: it would change the sum of moments in a digit that does not show.
const WORTH_INTEGRATING: f64 = -4.0;
/// What a coarse integral may be off by, relative to it.
const COARSE: f64 = 1e-5;

/// Upper bound `q` of the probability that the query's answer is not the class with most votes (one of them, in a tie),
/// from its vote counts: that of the paper for [`Noise::Laplace`](crate::Noise::Laplace), exact pairs otherwise.
///
/// - Continuous Laplace: Proposition 4, capped at `1 - 1/K`: with continuous noise of the same law on every class, the
///   class with most votes is at least as likely as any other.
/// - Other noise: the union bound over exact pairs, `sum over k of P[Y_k - Y_winner >= gap_k]`; for integers `>=`
///   because a tie of noisy counts may go against the winner. Capped at 1 only for integers: with a fixed rule for ties
///   the class with most votes can lose every tie, and then be less likely than `1/K`.
///
/// With a threshold, the probability that the winner does not reach it is added.
///
/// # Errors
/// [`AccountError::TooFewClasses`] for fewer than two counts, [`AccountError::NoVotes`] if all are zero.
pub fn q(counts: &[u32], event: &PrivacyEvent) -> Result<f64, AccountError> {
    let gaps = Gaps::of(0, counts)?;
    Ok(OutcomeBound::new(event, Bound::Paper, false, std::slice::from_ref(&gaps)).log_winner(&gaps).exp())
}

/// The union bound over exact pairs of classes, for every noise: `sum over k of S_{2 tau}(gamma gap_k)` in the
/// continuous case, in place of Proposition 4 (erratum 5).
///
/// # Errors
/// Those of [`q`].
pub fn q_pairs(counts: &[u32], event: &PrivacyEvent) -> Result<f64, AccountError> {
    let gaps = Gaps::of(0, counts)?;
    Ok(Pairs::exact(event, std::slice::from_ref(&gaps)).log_union(&gaps).exp())
}

/// The probability itself, by integration over the winner's noise: `1 - integral f(r) prod_k F(r + gap_k) dr`, to about ten
/// digits. For integers it is the case in which ties go against the winner.
///
/// # Errors
/// Those of [`q`], and [`AccountError::Unreachable`] for continuous Laplace noise with a ratio `tau` below 0.1: nodes do not come
/// close enough to the cusp of its density.
pub fn q_exact(counts: &[u32], event: &PrivacyEvent) -> Result<f64, AccountError> {
    let gaps = Gaps::of(0, counts)?;
    if !ClassNoise::is_integrable(event) {
        let why = format!("tau is {}, expected at least 0.1 with continuous Laplace noise", event.tau().get());
        return Err(AccountError::Unreachable { what: "q by integration".into(), why });
    }
    let noise = ClassNoise::new(event, gaps.gaps.last().copied().unwrap_or(0));
    Ok(noise.log_q(&gaps, event.threshold(), Quality::Fine).exp())
}

/// `ln q` for rows of one run; what does not depend on the row is computed once.
pub(crate) struct OutcomeBound {
    pairs: Pairs,
    exact: Option<ClassNoise>,
    threshold: Option<f64>,
    /// What was computed; rows are often the same, and neighbours of several.
    known: Mutex<HashMap<Gaps, f64>>,
}

impl OutcomeBound {
    /// Prepares for these rows and their neighbours.
    pub(crate) fn new(event: &PrivacyEvent, bound: Bound, integrals: bool, rows: &[Gaps]) -> Self {
        let largest = rows.iter().filter_map(|gaps| gaps.gaps.last()).max().copied().unwrap_or(0);
        let (pairs, exact) = match bound {
            Bound::Paper => (Pairs::paper(event, rows), None),
            Bound::Outcome | Bound::Tight => {
                let integrals = integrals && ClassNoise::is_integrable(event);
                (Pairs::exact(event, rows), integrals.then(|| ClassNoise::new(event, largest)))
            }
        };
        Self { pairs, exact, threshold: event.threshold(), known: Mutex::default() }
    }

    /// `ln q` for the better of the outcomes "the winner" and "no answer".
    pub(crate) fn log_q(&self, gaps: &Gaps) -> f64 {
        let winner = self.log_winner(gaps);
        let log_q = if self.threshold.is_some() { winner.min(self.pairs.log_any_answer(gaps)) } else { winner };
        // What is no number says nothing.
        if log_q.is_nan() { 0.0 } else { log_q }
    }

    /// `ln q` at the worst neighbour, for the same outcome as at `gaps`.
    pub(crate) fn log_q_of_neighbours(&self, gaps: &Gaps) -> f64 {
        let winner = self.log_winner(gaps);
        let silent = self.threshold.is_some() && self.pairs.log_any_answer(gaps) < winner;
        if silent {
            return self.pairs.log_any_answer_of_neighbours(gaps);
        }
        // By falling union bound: once that is below what was found, no neighbour that is left is worse.
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

    /// `ln q` for the outcome "the winner".
    pub(crate) fn log_winner(&self, gaps: &Gaps) -> f64 {
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(&log_q) = known().get(gaps) {
            return log_q;
        }
        let union = self.pairs.log_union(gaps);
        let log_q = match &self.exact {
            Some(exact) if union > WORTH_INTEGRATING => {
                union.min(exact.log_q(gaps, self.threshold, Quality::Coarse) + COARSE)
            }
            _ => union,
        };
        known().insert(gaps.clone(), log_q);
        log_q
    }
}
