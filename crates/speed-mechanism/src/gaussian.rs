//! Gaussian noise: the paper's further work, and the noise of PATE 2018 (GNMax).

use std::f64::consts::PI;

use crate::erfc::log_normal_survival;
use crate::{HonestRatio, NoiseDeviation};

/// Centred normal noise. Each of `n` teachers adds a share of variance `sigma^2 / n`; a ratio `tau` of them adds up to
/// a variance of `tau sigma^2`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gaussian {
    deviation: f64,
}

impl Gaussian {
    /// Creates the noise of one class if a ratio `tau` of the teachers adds noise.
    pub fn of_class(sigma: NoiseDeviation, tau: HonestRatio) -> Self {
        Self { deviation: sigma.get() * tau.get().sqrt() }
    }

    /// Creates the difference of two classes' noise if a ratio `tau` of the teachers adds noise.
    pub fn of_difference(sigma: NoiseDeviation, tau: HonestRatio) -> Self {
        Self { deviation: sigma.get() * (2.0 * tau.get()).sqrt() }
    }

    /// Returns the standard deviation, in votes.
    pub fn deviation(&self) -> f64 {
        self.deviation
    }

    /// Returns the logarithm of the density at `u` votes.
    pub fn log_density(&self, u: f64) -> f64 {
        -0.5 * (u / self.deviation).powi(2) - self.deviation.ln() - 0.5 * (2.0 * PI).ln()
    }

    /// Returns the logarithm of the probability that the noise is at least `u` votes.
    pub fn log_survival(&self, u: f64) -> f64 {
        log_normal_survival(u / self.deviation)
    }
}
