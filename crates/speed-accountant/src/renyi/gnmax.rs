//! PATE 2018 (Papernot et al., "Scalable private learning with PATE"): Rényi divergence of the noisy argmax given the
//! probability of another outcome.

use speed_mechanism::{HonestRatio, NoiseDeviation};

use super::gaussian::gaussian_rdp;
use crate::logarithms::log_sum;
use crate::sound::at_least_zero;

/// Computes Theorem 6 with the orders of Proposition 10 and the conditions of Propositions 7 to 9, for Gaussian noise:
/// the Rényi divergence of order `order` from votes at which another outcome than the given one has a probability of at
/// most `e^log_q`, to a neighbour's. It is never more than [`gaussian_rdp`].
pub fn gnmax_rdp(log_q: f64, sigma: NoiseDeviation, tau: HonestRatio, order: f64) -> f64 {
    theorem_6(log_q, sigma.get() * sigma.get() * tau.get(), order, |order| gaussian_rdp(sigma, tau, order))
}

/// Computes Theorem 6 for any noise with the Rényi curve `rdp`; `variance` is used only to choose the two higher
/// orders.
pub(crate) fn theorem_6(log_q: f64, variance: f64, order: f64, rdp: impl Fn(f64) -> f64) -> f64 {
    if log_q >= 0.0 {
        return rdp(order);
    }
    // Proposition 10.
    theorem_6_at(log_q, (variance * -log_q).sqrt(), order, rdp)
}

/// Computes Theorem 6 with the two higher orders `second` and `second + 1`. For given orders the result does not
/// decrease as `q` grows: where it would, the bound without votes is returned.
pub(crate) fn theorem_6_at(log_q: f64, second: f64, order: f64, rdp: impl Fn(f64) -> f64) -> f64 {
    let without_votes = rdp(order);
    let first = second + 1.0;
    if log_q >= 0.0 || !second.is_finite() || second <= 1.0 || first <= order {
        return without_votes;
    }
    let (rdp_first, rdp_second) = (rdp(first), rdp(second));
    // The condition that the bound grows with q, so that an upper bound of q may be used.
    let grows = log_q
        <= (second - 1.0) * rdp_second - second * ((1.0 / (first - 1.0)).ln_1p() + (1.0 / (second - 1.0)).ln_1p());
    if !grows || -log_q <= rdp_second {
        return without_votes;
    }
    let log_stays = log_one_minus_exp(log_q);
    let a = (order - 1.0) * (log_stays - log_one_minus_exp((log_q + rdp_second) * (1.0 - 1.0 / second)));
    let b = (order - 1.0) * (rdp_first - log_q / (first - 1.0));
    let with_votes = log_sum(log_stays + a, log_q + b) / (order - 1.0);
    without_votes.min(at_least_zero(with_votes))
}

/// Returns `ln(1 - e^x)` for `x < 0`.
fn log_one_minus_exp(x: f64) -> f64 {
    if x > -std::f64::consts::LN_2 { (-x.exp_m1()).ln() } else { (-x.exp()).ln_1p() }
}
