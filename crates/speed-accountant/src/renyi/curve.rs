//! Rényi curves of noise without a pure epsilon.

use speed_mechanism::{HonestRatio, Mechanism, NoiseDeviation};

use super::gaussian::gaussian_rdp;
use super::skellam::SkellamCurve;
use crate::event::PrivacyEvent;

/// Data-independent Rényi divergence of one query, as a function of the order.
pub(crate) enum RenyiCurve {
    Gaussian { sigma: NoiseDeviation, tau: HonestRatio },
    Skellam(Box<SkellamCurve>),
}

impl RenyiCurve {
    /// Creates the curve of Gaussian or Skellam noise, together with the variance of one class's noise.
    pub(crate) fn new(event: &PrivacyEvent) -> Option<(Self, f64)> {
        let tau = event.tau();
        let (curve, sigma) = match event.mechanism() {
            Mechanism::Laplace { .. } | Mechanism::DiscreteLaplace { .. } | Mechanism::Binomial { .. } => return None,
            Mechanism::Gaussian { sigma } => (Self::Gaussian { sigma, tau }, sigma),
            Mechanism::Skellam { sigma } => (Self::Skellam(Box::new(SkellamCurve::new(sigma, tau))), sigma),
        };
        Some((curve, sigma.get() * sigma.get() * tau.get()))
    }

    pub(crate) fn rdp(&self, order: f64) -> f64 {
        match self {
            Self::Gaussian { sigma, tau } => gaussian_rdp(*sigma, *tau, order),
            Self::Skellam(curve) => curve.rdp(order),
        }
    }
}
