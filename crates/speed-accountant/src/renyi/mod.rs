//! Rényi differential privacy of the noisy argmax with Gaussian noise and its integer twin.

mod gnmax;
mod skellam;

pub use gnmax::gnmax_rdp;
pub(crate) use gnmax::{theorem_6, theorem_6_at};
pub(crate) use skellam::SkellamCurve;

use speed_mechanism::{HonestRatio, NoiseDeviation};

/// Rényi divergence of order `order` of one query with Gaussian noise, whatever the votes: `order / (tau sigma^2)`, since
/// one teacher moves two counts by one vote each (Mironov 2017, Corollary 3, with a squared sensitivity of 2).
#[must_use]
pub fn gaussian_rdp(sigma: NoiseDeviation, tau: HonestRatio, order: f64) -> f64 {
    order / (tau.get() * sigma.get() * sigma.get())
}

/// Rényi divergence of order `order > 1` of one query with Skellam noise, whatever the votes: the exact divergence of two
/// counts that move by one vote each, as a sum over integers.
#[must_use]
pub fn skellam_rdp(sigma: NoiseDeviation, tau: HonestRatio, order: f64) -> f64 {
    SkellamCurve::new(sigma, tau).rdp(order)
}
