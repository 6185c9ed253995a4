//! How private one query is, whatever the votes are.

use speed_mechanism::{DiscreteLaplace, GeneralisedLaplace};

use crate::{Noise, PrivacyEvent};

/// What the computed logarithms may be off by, generously, relative to a result that they add up to.
const MARGIN: f64 = 1e-12;

/// The `epsilon` for which one query is (epsilon, 0)-differentially private, for neighbours that differ in one
/// teacher's vote. It needs no votes, holds in both directions, and also when the other teachers' noise is known
/// (collusion).
///
/// - [`Noise::Laplace`]: Theorem 2, the smaller of its two expressions (the second needs `tau > 1/2`).
/// - [`Noise::DiscreteLaplace`]: the same lemma for integers, `max over t of ln P[X >= t] / P[X >= t + 2]`: fix the
///   noise of all classes but one; that class wins from some integer noise `t` on, whatever the rule for ties, and a
///   neighbour moves `t` by at most 2. Rounded up.
///
/// With the noise of all teachers (`tau = 1`) both are exactly `2 gamma`. (Erratum 4: both are sound but not tight.)
#[must_use]
pub fn per_query_epsilon(event: &PrivacyEvent) -> f64 {
    let gamma = event.gamma().get();
    if event.tau().get() == 1.0 {
        return 2.0 * gamma;
    }
    match event.noise() {
        Noise::Laplace => theorem_2(event),
        Noise::DiscreteLaplace => integer_lemma(event),
    }
}

/// Theorem 2, `epsilon'`, in terms of `S(x) = P[noise >= x / gamma]` and the density `f` per unit of `x`:
/// `ln(1 + 2 (1/2 - S(gamma)) / S(2 gamma))`, and for `tau > 1/2` also `ln(g(0) - g'(0))`, where
/// `g(0) = 1/(2 S(2 gamma))` and `g'(0) = gamma (f(2 gamma)/2 - S(2 gamma) f(0)) / S(2 gamma)^2`.
fn theorem_2(event: &PrivacyEvent) -> f64 {
    let noise = GeneralisedLaplace::of_class(event.gamma(), event.tau());
    // One and two votes are x = gamma and x = 2 gamma.
    let log_s2 = noise.log_survival(2.0);
    let first = ((1.0 - 2.0 * noise.survival(1.0)) + log_s2.exp()).ln() - log_s2;
    if event.tau().get() <= 0.5 {
        return first;
    }
    // Densities here are per vote: f(u) du = f(x) dx, so gamma f(x) is the density at u.
    let bracket = 0.5 + noise.density(0.0) - (noise.log_density(2.0) - log_s2).exp() / 2.0;
    let second = if bracket > 0.0 { bracket.ln() - log_s2 } else { f64::INFINITY };
    first.min(second)
}

/// `max over integers t of ln P[X >= t] / P[X >= t + 2]`.
///
/// The maximum is at `t = 0` or `t = 1`. For `t <= -1` going one down makes the ratio `1 + (P_t + P_{t+1}) / P[X >= t +
/// 2]` smaller, since the probabilities are symmetric and fall away from 0, and at `t = 0` it is at least that at `t =
/// -1`. From `t = 1` on, `P[X >= t] / P[X >= t + 1]` does not rise: for `tau <= 1` the probabilities are log-convex
/// there (sums of the log-convex negative binomial ones).
fn integer_lemma(event: &PrivacyEvent) -> f64 {
    let noise = DiscreteLaplace::of_class(event.gamma(), event.tau());
    let tails = noise.log_survivals(3);
    let worst = (tails[0] - tails[2]).max(tails[1] - tails[3]);
    worst * (1.0 + MARGIN) + 4.0 * f64::EPSILON
}

#[cfg(test)]
mod tests {
    use speed_mechanism::{HonestRatio, InverseScale};

    use super::*;

    #[test]
    fn the_integer_lemma_looks_where_the_maximum_is() {
        for gamma in [0.01, 0.1, 1.0, 3.3] {
            for tau in [0.004, 0.3, 0.5, 0.7, 0.9, 0.996] {
                let (gamma, tau) = (InverseScale::new(gamma).expect("valid"), HonestRatio::new(tau).expect("valid"));
                let event = PrivacyEvent::new(Noise::DiscreteLaplace, gamma, tau);
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
    fn full_noise_costs_exactly_two_gamma_and_the_limit_is_continuous() {
        for noise in [Noise::Laplace, Noise::DiscreteLaplace] {
            let gamma = InverseScale::new(0.1).expect("valid");
            assert_eq!(per_query_epsilon(&PrivacyEvent::new(noise, gamma, HonestRatio::ALL)), 0.2);
            let nearly = HonestRatio::new(1.0 - 1e-9).expect("valid");
            let found = per_query_epsilon(&PrivacyEvent::new(noise, gamma, nearly));
            assert!((found - 0.2).abs() < 1e-8, "{noise}: {found}");
        }
    }

    #[test]
    fn less_noise_costs_more() {
        for noise in [Noise::Laplace, Noise::DiscreteLaplace] {
            let epsilons = [1.0, 0.9, 0.7, 0.5, 0.3, 0.1].map(|tau| {
                let (gamma, tau) = (InverseScale::new(0.1).expect("valid"), HonestRatio::new(tau).expect("valid"));
                per_query_epsilon(&PrivacyEvent::new(noise, gamma, tau))
            });
            assert!(epsilons.windows(2).all(|pair| pair[0] < pair[1]), "{noise}: {epsilons:?}");
        }
    }
}
