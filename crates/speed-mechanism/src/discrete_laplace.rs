//! The integer noise: the difference of two negative binomial variables.
//!
//! `X = A - B`, where `A` and `B` are negative binomial of shape `tau`, and `p = e^-gamma`. Shape 1 is the discrete
//! Laplace distribution, `P[X = k] = (1 - p)/(1 + p) p^|k|`. Probabilities come from the three-term recurrence of their
//! generating function, run downwards, the stable direction (the other solution grows like `p^-k` upwards): with
//! `P_k / P_{k-1} = p c_k`,
//!
//! `c_k = (k - 1 + tau) / ((1 + p^2) k - p^2 (k + 1 - tau) c_{k+1})`,
//!
//! and the tails from `R_k = P[X >= k] / P_k = 1 + p c_{k+1} R_{k+1}`; `P_0 = 1 / (2 R_0 - 1)` by symmetry. Logarithms
//! are kept throughout, so nothing underflows.

use crate::parameters::checked_shape;
use crate::{HonestRatio, InverseScale, Lattice, MechanismError};

/// Distribution of the summed integer noise of a ratio `tau` of the teachers (shape `tau`), or of the difference of two
/// such sums (shape `2 tau`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DiscreteLaplace {
    gamma: f64,
    shape: f64,
}

impl DiscreteLaplace {
    /// Checks and wraps the parameters.
    ///
    /// # Errors
    /// [`MechanismError::Shape`] if `shape` is not in (0, 2].
    pub fn new(gamma: InverseScale, shape: f64) -> Result<Self, MechanismError> {
        Ok(Self { gamma: gamma.get(), shape: checked_shape(shape)? })
    }

    /// Creates the noise of one class if a ratio `tau` of the teachers adds noise.
    pub fn of_class(gamma: InverseScale, tau: HonestRatio) -> Self {
        Self { gamma: gamma.get(), shape: tau.get() }
    }

    /// Creates the difference of two classes' noise if a ratio `tau` of the teachers adds noise: shape `2 tau`.
    pub fn of_difference(gamma: InverseScale, tau: HonestRatio) -> Self {
        Self { gamma: gamma.get(), shape: 2.0 * tau.get() }
    }

    /// Returns the probability that the noise is at least `t` votes.
    pub fn survival(&self, t: i64) -> f64 {
        self.log_survival(t).exp()
    }

    /// Returns the logarithm of the probability that the noise is at least `t` votes. It takes time proportional to
    /// `|t| + 1/gamma`; for many `t`, see [`Self::log_survivals`].
    pub fn log_survival(&self, t: i64) -> f64 {
        if t > 0 {
            self.log_tail(t.unsigned_abs())
        } else {
            // P[X >= -m] = 1 - P[X >= m + 1], also for m = 0, because it is close to 1 if there is hardly any noise.
            (-self.log_tail(t.unsigned_abs() + 1).exp()).ln_1p()
        }
    }

    /// Returns the logarithms of the probabilities that the noise is at least `t` votes, for `t = 0, 1, ..., reach`.
    pub fn log_survivals(&self, reach: usize) -> Vec<f64> {
        self.lattice(reach).log_survival
    }

    /// Computes the probabilities and tails up to `reach` votes, in time proportional to `reach + 1/gamma`.
    pub fn lattice(&self, reach: usize) -> Lattice {
        let mut entries = vec![(0.0, 1.0); reach + 1];
        self.descend(reach as u64, |k, c, r| {
            if let Some(entry) = usize::try_from(k).ok().and_then(|k| entries.get_mut(k)) {
                *entry = (c.ln() - self.gamma, r);
            }
        });
        Lattice::from_ratios(entries)
    }

    /// Returns the logarithm of `P[X >= k]`.
    fn log_tail(&self, k: u64) -> f64 {
        let (mut log_weight, mut at_k, mut first) = (-self.gamma * k as f64, 1.0, 1.0);
        self.descend(k, |i, c, r| {
            if i < k {
                log_weight += c.ln();
            } else if i == k {
                at_k = r;
            }
            first = r;
        });
        log_weight - (2.0 * first - 1.0).ln() + at_k.ln()
    }

    /// Runs the recurrences down to zero from far enough above `reach` and visits `k, c_{k+1}, R_k` on the way.
    fn descend(&self, reach: u64, mut visit: impl FnMut(u64, f64, f64)) {
        let p = (-self.gamma).exp();
        // The start has an error of a factor of order one, which shrinks by p^2 (c) and p (R) a step.
        let start = reach.saturating_add(1 + (40.0 / self.gamma).ceil() as u64);
        let mut c = 1.0;
        let mut r = -1.0 / (-self.gamma).exp_m1();
        for k in (0..start).rev() {
            let next = (k + 1) as f64;
            c = (next - 1.0 + self.shape) / ((1.0 + p * p) * next - p * p * (next + 1.0 - self.shape) * c);
            r = 1.0 + p * c * r;
            visit(k, c, r);
        }
    }
}
