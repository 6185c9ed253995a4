//! Rényi divergence of Gaussian noise.

use speed_mechanism::{HonestRatio, NoiseDeviation};

/// Returns the data-independent Rényi divergence of order `order` of one query with Gaussian noise:
/// `order / (tau sigma^2)`, because one teacher moves two counts by one vote each (Mironov 2017, Corollary 3, with a
/// squared sensitivity of 2).
pub fn gaussian_rdp(sigma: NoiseDeviation, tau: HonestRatio, order: f64) -> f64 {
    order / (tau.get() * sigma.get() * sigma.get())
}
