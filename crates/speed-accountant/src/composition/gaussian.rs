//! Gaussian differential privacy: the exact composition of Gaussian noise (Dong, Roth and Su 2019; Balle and Wang
//! 2018).

use speed_mechanism::log_normal_survival;

use super::halved;

/// Returns the least delta of `mu`-Gaussian differential privacy at `epsilon`:
/// `Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu)`.
///
/// `k` queries of Gaussian noise with standard deviation `sigma` for a ratio `tau` of the teachers have
/// `mu = sqrt(2 k / tau) / sigma`: one teacher moves two counts by one vote.
pub fn gaussian_delta(mu: f64, epsilon: f64) -> f64 {
    let first = log_normal_survival(epsilon / mu - mu / 2.0);
    let second = epsilon + log_normal_survival(epsilon / mu + mu / 2.0);
    // first is larger; the difference is taken without cancellation of their common part.
    let difference = second - first;
    // If both tails are too small for a logarithm, so is delta.
    if difference.is_nan() { first.exp() } else { first.exp() * -difference.min(0.0).exp_m1() }
}

/// Returns the least epsilon of `mu`-Gaussian differential privacy at `delta`, rounded up. It is infinity if no epsilon
/// was found to be enough, so also for a `mu` or `delta` that is not a positive number.
pub fn gaussian_epsilon(mu: f64, delta: f64) -> f64 {
    // NaN is not enough.
    let enough = |epsilon: f64| gaussian_delta(mu, epsilon) <= delta;
    if !(mu > 0.0 && mu.is_finite() && delta > 0.0) {
        return f64::INFINITY;
    }
    if enough(0.0) {
        return 0.0;
    }
    let mut high = 1.0;
    while !enough(high) {
        if high == f64::INFINITY {
            return high;
        }
        high *= 2.0;
    }
    halved([0.0, high], 200, enough)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_parameters_give_an_infinite_epsilon() {
        for mu in [f64::INFINITY, f64::NAN, -1.0, 1e200] {
            assert_eq!(gaussian_epsilon(mu, 1e-5), f64::INFINITY, "{mu}");
        }
        for delta in [f64::NAN, 0.0, -1e-5] {
            assert_eq!(gaussian_epsilon(1.0, delta), f64::INFINITY, "{delta}");
        }
        // Nearly mu^2 / 2.
        let found = gaussian_epsilon(1e100, 1e-5);
        assert!((4.99e199..5.1e199).contains(&found), "{found}");
    }
}
