//! The lemma behind Theorem 2: fix the noise of all classes but one.
//!
//! That class wins if its noise is at least some `t`, and a neighbour moves `t` by at most 2. So the pure epsilon of
//! the mechanism is at most the supremum over `t` of `ln P[noise >= t] / P[noise >= t + 2]`.

use std::collections::BinaryHeap;

use speed_mechanism::{DiscreteLaplace, GeneralisedLaplace, HonestRatio, InverseScale, LaplaceTable};

use crate::sound::larger;

/// Generous bound on the error of the computed logarithms, relative to the result that they add up to.
const MARGIN: f64 = 1e-12;

/// Computes Theorem 2, `epsilon'`, in terms of `S(x) = P[noise >= x / gamma]` and the density `f` per unit of `x`:
/// `ln(1 + 2 (1/2 - S(gamma)) / S(2 gamma))`, and for `tau > 1/2` also `ln(g(0) - g'(0))`, where
/// `g(0) = 1/(2 S(2 gamma))` and `g'(0) = gamma (f(2 gamma)/2 - S(2 gamma) f(0)) / S(2 gamma)^2`.
pub fn theorem_2(gamma: InverseScale, tau: HonestRatio) -> f64 {
    let noise = GeneralisedLaplace::of_class(gamma, tau);
    // One and two votes are x = gamma and x = 2 gamma.
    let log_s2 = noise.log_survival(2.0);
    let first = ((1.0 - 2.0 * noise.survival(1.0)) + log_s2.exp()).ln() - log_s2;
    if tau.get() <= 0.5 {
        return first;
    }
    // Densities here are per vote: f(u) du = f(x) dx, so gamma f(x) is the density at u.
    let bracket = 0.5 + noise.density(0.0) - (noise.log_density(2.0) - log_s2).exp() / 2.0;
    let second = if bracket > 0.0 { bracket.ln() - log_s2 } else { f64::INFINITY };
    first.min(second)
}

/// Returns `max over integers t of ln P[X >= t] / P[X >= t + move]`, rounded up, for a shape of at most 1: a move of 2 for a
/// query, of 1 for a check, where "no answer" has the same ratios, and of more for a party.
///
/// The maximum is at a `t` from `-move` to 1. For `t <= -move / 2`, decreasing `t` by 1 makes the ratio
/// `1 + (P_t + .. + P_{t + move - 1}) / P[X >= t + move]` smaller, because the sum loses a term and gains one further away
/// from 0. From `t = 1` on no ratio of tails at distance 1 rises, because for `tau <= 1` the probabilities are log-convex
/// there (sums of the log-convex negative binomial ones).
pub(super) fn integer(noise: &DiscreteLaplace, by: usize) -> f64 {
    let tails = noise.log_survivals(by + 1);
    // P[X >= -t] is 1 - P[X >= t + 1].
    let below = |t: usize| (-tails[t + 1].exp()).ln_1p();
    let above = (0..=1).map(|t| tails[t] - tails[t + by]);
    let worst = (1..=by).map(|t| below(t) - tails[by - t]).chain(above).fold(0.0, larger);
    worst * (1.0 + MARGIN) + 4.0 * f64::EPSILON
}

/// Returns an upper bound of the supremum over `t` of `ln P[noise >= t] / P[noise >= t + 2]`, for a shape of at most 1. The
/// supremum is attained in [-1, 0] (the paper's appendix A.2). `S` falls, so on `[a, b]` the ratio is at most `S(a) / S(b + 2)`.
/// The interval of the largest bound is halved until that bound is within a few parts in a million of an attained ratio.
/// Stopping earlier would also be valid.
pub(super) fn log_sup_g_bound(noise: &LaplaceTable, gamma: f64) -> f64 {
    /// Largest number of halvings; the bound after the last one is also valid.
    const MAX_HALVINGS: usize = 2_000;
    const CLOSE: f64 = 3e-6;
    let bound = |low: f64, high: f64| {
        let (above, below) = (noise.log_survival(low), noise.log_survival(high + 2.0));
        // The table is accurate to two parts in 10^12.
        above - below + 4e-12 * (above.abs() + below.abs())
    };
    let mut found = f64::NEG_INFINITY;
    // Bits of positive numbers have the order of the numbers.
    let mut open: BinaryHeap<(u64, [u64; 2])> = BinaryHeap::new();
    let mut add = |open: &mut BinaryHeap<_>, low: f64, high: f64| {
        found = f64::max(found, noise.log_survival(low) - noise.log_survival(low + 2.0));
        open.push((bound(low, high).to_bits(), [low, high].map(f64::to_bits)));
        found
    };
    add(&mut open, -1.0, 0.0);
    for _ in 0..MAX_HALVINGS {
        let Some((bound, ends)) = open.pop() else { break };
        let (bound, [low, high]) = (f64::from_bits(bound), ends.map(f64::from_bits));
        let middle = 0.5 * (low + high);
        // Closer to the cusp at 0, the table is not accurate.
        let narrow = high - low < 1e-12 / gamma || middle <= low || middle >= high;
        if narrow {
            return bound;
        }
        add(&mut open, low, middle);
        if add(&mut open, middle, high) * (1.0 + CLOSE) >= bound {
            return bound;
        }
    }
    open.pop().map_or(f64::INFINITY, |(bound, _)| f64::from_bits(bound))
}

#[cfg(test)]
mod tests {
    use speed_mechanism::Mechanism;

    use super::*;
    use crate::event::PrivacyEvent;
    use crate::per_query::per_query_epsilon;

    #[test]
    fn the_integer_lemma_looks_where_the_maximum_is() {
        for gamma in [0.01, 0.1, 1.0, 3.3] {
            for tau in [0.004, 0.3, 0.5, 0.7, 0.9, 0.996] {
                let (gamma, tau) = (InverseScale::new(gamma).expect("valid"), HonestRatio::new(tau).expect("valid"));
                let event = PrivacyEvent::new(Mechanism::discrete_laplace(gamma), tau);
                let noise = DiscreteLaplace::of_class(gamma, tau);
                let worst = (-40..400)
                    .map(|t| noise.log_survival(t) - noise.log_survival(t + 2))
                    .fold(f64::NEG_INFINITY, f64::max);
                let found = per_query_epsilon(&event);
                assert!(found >= worst && found <= worst * (1.0 + 1e-11), "{gamma:?} {tau:?}: {found} against {worst}");
            }
        }
    }
}
