//! The paper's bound of the probability that one class beats the winner.

use std::f64::consts::LN_2;

use statrs::function::gamma::ln_gamma;

/// Proposition 4 for one pair of classes: `e^-x (1/2 + c x^power)` for `x = gamma gap`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Proposition4 {
    gamma: f64,
    log_scale: f64,
    power: f64,
}

impl Proposition4 {
    pub(crate) fn new(gamma: f64, tau: f64) -> Self {
        let common = -tau.ln() - 2.0 * ln_gamma(tau);
        let (log_scale, power) = if tau > 0.5 {
            (common - (4.0 * tau - 2.0) * LN_2, 2.0 * tau - 1.0)
        } else {
            let hoelder = 1.5 * tau * (1.5 * tau).ln() + (1.0 - 1.5 * tau) * (2.0 / tau - 3.0).ln();
            (common - (2.5 * tau - 1.0) * LN_2 + hoelder, tau / 2.0)
        };
        Self { gamma, log_scale, power }
    }

    /// Returns the logarithm of the bound; 0 for a class that is ahead.
    pub(crate) fn log_term(&self, gap: i64) -> f64 {
        if gap < 0 {
            return 0.0;
        }
        let x = self.gamma * gap as f64;
        (0.5 + (self.log_scale + self.power * x.ln()).exp()).ln() - x
    }
}
