//! The probability that the winner does not win, for one row of votes.

use super::bound::OutcomeBound;
use super::exact::{ClassNoise, MIN_RATIO};
use super::gaps::Gaps;
use super::pairs::Pairs;
use crate::assumption::Bound;
use crate::error::AccountError;
use crate::event::PrivacyEvent;
use crate::quadrature::Precision;

fn gaps_of(counts: &[u32]) -> Result<Gaps, AccountError> {
    let gaps = Gaps::from_counts(0, counts)?;
    if gaps.winner == 0 { Err(AccountError::no_votes(0)) } else { Ok(gaps) }
}

/// Computes the upper bound `q` of the probability that the query's answer is not the class with most votes (one of
/// them, in a tie), from its vote counts: the paper's bound for
/// [`Mechanism::Laplace`](speed_mechanism::Mechanism::Laplace), exact pairs otherwise.
///
/// - Continuous Laplace: Proposition 4, capped at `1 - 1/K`: with continuous noise of the same law on every class, the
///   class with most votes is at least as likely as any other.
/// - Other noise: the union bound over exact pairs, `sum over k of P[Y_k - Y_winner >= gap_k]`; for integers with `>=`,
///   because a tie of noisy counts may go against the winner. For integers the cap is only 1: with a fixed rule for
///   ties, the class with most votes can lose every tie, and then be less likely than `1/K`.
///
/// With a threshold, the probability that the winner does not reach it is added.
///
/// # Errors
/// [`AccountError::TooFewClasses`] for fewer than two counts, [`AccountError::Invalid`] if all are zero.
pub fn q(counts: &[u32], event: &PrivacyEvent) -> Result<f64, AccountError> {
    let gaps = gaps_of(counts)?;
    Ok(OutcomeBound::new(event, Bound::Paper, false, std::slice::from_ref(&gaps)).log_winner(&gaps).exp())
}

/// Computes the union bound over exact pairs of classes, for every noise: `sum over k of S_{2 tau}(gamma gap_k)` in the
/// continuous case, in place of Proposition 4 (erratum 5).
///
/// # Errors
/// The errors of [`q`].
pub fn q_pairs(counts: &[u32], event: &PrivacyEvent) -> Result<f64, AccountError> {
    let gaps = gaps_of(counts)?;
    Ok(Pairs::exact(event, std::slice::from_ref(&gaps)).log_union(&gaps).exp())
}

/// Computes the probability itself, by integration over the winner's noise: `1 - integral f(r) prod_k F(r + gap_k) dr`,
/// to about ten digits. For integers, ties go against the winner.
///
/// # Errors
/// The errors of [`q`], and [`AccountError::Invalid`] for continuous Laplace noise with a ratio `tau` below
/// 0.1, because no node is close enough to the cusp of its density.
pub fn q_exact(counts: &[u32], event: &PrivacyEvent) -> Result<f64, AccountError> {
    let gaps = gaps_of(counts)?;
    if !ClassNoise::is_integrable(event) {
        return Err(AccountError::integration_ratio(event.tau().get(), MIN_RATIO));
    }
    let noise = ClassNoise::new(event, gaps.gaps.last().copied().unwrap_or(0));
    Ok(noise.log_q(&gaps, event.threshold(), Precision::Fine).exp())
}
