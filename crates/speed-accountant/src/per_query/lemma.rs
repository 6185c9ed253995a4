//! The lemma behind Theorem 2: fix the noise of all classes but one.
//!
//! That class wins if its noise is at least some `t`, and a neighbour moves `t` by at most 2. So the pure epsilon of
//! the mechanism is at most the supremum over `t` of `ln P[noise >= t] / P[noise >= t + 2]`.

use std::collections::BinaryHeap;

use speed_mechanism::{DiscreteLaplace, GeneralisedLaplace, HonestRatio, InverseScale, LaplaceTable};

use super::search::golden_section;
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

/// Returns `max over integers t of ln P[X >= t] / P[X >= t + 2]`.
///
/// The maximum is at `t = 0` or `t = 1`. For `t <= -1`, decreasing `t` by 1 makes the ratio
/// `1 + (P_t + P_{t+1}) / P[X >= t + 2]` smaller, because the probabilities are symmetric and fall away from 0; at
/// `t = 0` the ratio is at least the ratio at `t = -1`. From `t = 1` on, `P[X >= t] / P[X >= t + 1]` does not rise,
/// because for `tau <= 1` the probabilities are log-convex there (sums of the log-convex negative binomial ones). The
/// result is rounded up and valid for shapes up to 1.
pub(super) fn integer(noise: &DiscreteLaplace) -> f64 {
    let tails = noise.log_survivals(3);
    let worst = (tails[0] - tails[2]).max(tails[1] - tails[3]);
    worst * (1.0 + MARGIN) + 4.0 * f64::EPSILON
}

/// Returns `max over integers t of ln P[X >= t] / P[X >= t + move]`, rounded up like [`integer`].
///
/// The maximum is at a `t` from `-move` to 1. For `t <= -move / 2`, decreasing `t` by 1 makes the ratio
/// `1 + (P_t + .. + P_{t + move - 1}) / P[X >= t + move]` smaller, because the sum loses a term and gains one further away
/// from 0. From `t = 1` on no ratio of tails at distance 1 rises.
pub(super) fn integer_of_move(noise: &DiscreteLaplace, by: usize) -> f64 {
    let tails = noise.log_survivals(by + 1);
    // P[X >= -t] is 1 - P[X >= t + 1].
    let below = |t: usize| (-tails[t + 1].exp()).ln_1p();
    let above = (0..=1).map(|t| tails[t] - tails.get(t + by).copied().unwrap_or(f64::NEG_INFINITY));
    let worst = (1..=by).map(|t| below(t) - tails[by - t]).chain(above).fold(0.0, larger);
    worst * (1.0 + MARGIN) + 4.0 * f64::EPSILON
}

/// Returns `max over integers t of ln P[X >= t] / P[X >= t + 1]`, the pure epsilon of a check, for which the same argument
/// holds: the ratio is `1 + P_t / P[X >= t + 1]`, so the maximum is at `t = 0` or `t = 1`.
pub(super) fn integer_of_check(noise: &DiscreteLaplace) -> f64 {
    let tails = noise.log_survivals(2);
    let worst = (tails[0] - tails[1]).max(tails[1] - tails[2]);
    worst * (1.0 + MARGIN) + 4.0 * f64::EPSILON
}

/// Returns the exact supremum over `t` of `ln P[noise >= t] / P[noise >= t + 2]` for a shape of at most 1. It is
/// attained in [-1, 0] (the paper's appendix A.2), where a grid and a golden section search for it.
pub fn log_sup_g(noise: &GeneralisedLaplace) -> f64 {
    let ratio = |t: f64| noise.log_survival(t) - noise.log_survival(t + 2.0);
    // Shapes up to 1/2 have a cusp at 0, which needs points close to it.
    let grid =
        [0.0, -1e-9, -1e-6, -1e-4, -1e-3, -0.01, -0.05, -0.1, -0.2, -0.3, -0.4, -0.5, -0.6, -0.7, -0.8, -0.9, -1.0];
    let best = (0..grid.len()).max_by(|&i, &j| ratio(grid[i]).total_cmp(&ratio(grid[j]))).unwrap_or(0);
    let (high, low) = (grid[best.saturating_sub(1)], grid[(best + 1).min(grid.len() - 1)]);
    golden_section(low, high, 1e-11, ratio).1.max(ratio(grid[best]))
}

/// Returns an upper bound of [`log_sup_g`] that is proved, not searched: `S` falls, so on `[a, b]` the ratio is at most
/// `S(a) / S(b + 2)`. The interval of the largest bound is halved until that bound is within a few parts in a million
/// of an attained ratio. Stopping earlier would also be valid.
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
    let mut open: BinaryHeap<Interval> = BinaryHeap::new();
    let mut add = |open: &mut BinaryHeap<Interval>, low: f64, high: f64| {
        found = f64::max(found, noise.log_survival(low) - noise.log_survival(low + 2.0));
        open.push(Interval { bound: bound(low, high), low, high });
        found
    };
    add(&mut open, -1.0, 0.0);
    for _ in 0..MAX_HALVINGS {
        let Some(Interval { bound, low, high }) = open.pop() else { break };
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
    open.pop().map_or(f64::INFINITY, |interval| interval.bound)
}

/// An interval of places, ordered by the bound of the ratio on it.
struct Interval {
    bound: f64,
    low: f64,
    high: f64,
}

impl PartialEq for Interval {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Interval {}

impl PartialOrd for Interval {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Interval {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.bound.total_cmp(&other.bound)
    }
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

    #[test]
    fn the_proved_bound_is_above_the_search_and_close() {
        for gamma in [0.01, 0.1, 1.0, 8.0, 60.0] {
            for tau in [0.05, 0.2, 0.3, 0.5, 0.7, 0.9, 0.99] {
                let scale = InverseScale::new(gamma).expect("valid");
                let noise = GeneralisedLaplace::of_class(scale, HonestRatio::new(tau).expect("valid"));
                let (search, bound) = (log_sup_g(&noise), log_sup_g_bound(&LaplaceTable::new(noise), gamma));
                let off = bound / search - 1.0;
                assert!((-1e-12..2e-4).contains(&off), "gamma {gamma}, tau {tau}: off by {off:e}");
            }
        }
    }

    #[test]
    fn full_noise_costs_exactly_two_gamma_and_the_limit_is_continuous() {
        for noise in [Mechanism::laplace as fn(InverseScale) -> Mechanism, Mechanism::discrete_laplace] {
            let gamma = InverseScale::new(0.1).expect("valid");
            assert_eq!(per_query_epsilon(&PrivacyEvent::new(noise(gamma), HonestRatio::ALL)), 0.2);
            let nearly = HonestRatio::new(1.0 - 1e-9).expect("valid");
            let found = per_query_epsilon(&PrivacyEvent::new(noise(gamma), nearly));
            assert!((found - 0.2).abs() < 1e-8, "{found}");
        }
    }

    #[test]
    fn less_noise_costs_more() {
        for noise in [Mechanism::laplace as fn(InverseScale) -> Mechanism, Mechanism::discrete_laplace] {
            let epsilons = [1.0, 0.9, 0.7, 0.5, 0.3, 0.1].map(|tau| {
                let (gamma, tau) = (InverseScale::new(0.1).expect("valid"), HonestRatio::new(tau).expect("valid"));
                per_query_epsilon(&PrivacyEvent::new(noise(gamma), tau))
            });
            assert!(epsilons.windows(2).all(|pair| pair[0] < pair[1]), "{epsilons:?}");
        }
    }
}
