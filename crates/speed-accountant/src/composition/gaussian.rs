//! Gaussian differential privacy: the exact composition of Gaussian noise (Dong, Roth and Su 2019; Balle and Wang 2018).

use speed_mechanism::log_normal_survival;

/// The least delta of `mu`-Gaussian differential privacy at `epsilon`: `Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 -
/// epsilon/mu)`.
///
/// `k` queries of Gaussian noise with standard deviation `sigma` for a ratio `tau` of the teachers have `mu = sqrt(2 k /
/// tau) / sigma`: one teacher moves two counts by one vote.
#[must_use]
pub fn gaussian_delta(mu: f64, epsilon: f64) -> f64 {
    let first = log_normal_survival(epsilon / mu - mu / 2.0);
    let second = epsilon + log_normal_survival(epsilon / mu + mu / 2.0);
    // first is larger; their difference without cancellation of what they share.
    let difference = second - first;
    // Both tails may be too small for a logarithm, and then so is delta.
    if difference.is_nan() { first.exp() } else { first.exp() * -difference.min(0.0).exp_m1() }
}

/// The least epsilon of `mu`-Gaussian differential privacy at `delta`, rounded up.
#[must_use]
pub fn gaussian_epsilon(mu: f64, delta: f64) -> f64 {
    if gaussian_delta(mu, 0.0) <= delta {
        return 0.0;
    }
    let mut high = 1.0;
    while gaussian_delta(mu, high) > delta {
        high *= 2.0;
    }
    let mut low = 0.0;
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            break;
        }
        if gaussian_delta(mu, middle) > delta { low = middle } else { high = middle }
    }
    high
}
