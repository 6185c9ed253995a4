//! The discrete Gaussian: integer noise with the concentrated differential privacy of the continuous one.

use rand::CryptoRng;

use crate::exact::{Variance, bernoulli_exp, discrete_laplace};
use crate::{NoiseDeviation, log_normal_survival};

/// The distribution on the integers with `P[X = k]` proportional to `e^{-k^2 / (2 sigma^2)}` (Canonne, Kamath and
/// Steinke 2020): between neighbours that move it by `d`, its Rényi divergence of order `a` is `a d^2 / (2 sigma^2)`,
/// the same as for the Gaussian (Proposition 5). Its tails are below the tails of the Gaussian one place nearer
/// (Proposition 25).
///
/// It is not infinitely divisible, so it has no shares: one party draws all of it. `sigma^2` is rounded up to a
/// multiple of 2^-20 (2^-10 from 1000 votes on), and [`Self::variance_parameter`] returns the result. The sampler is
/// exact and uses only integers; its time depends on the value drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiscreteGaussian {
    variance: Variance,
    /// `floor(sigma) + 1`.
    scale: u128,
}

impl DiscreteGaussian {
    /// Creates noise of deviation `sigma`, in votes.
    pub fn new(sigma: NoiseDeviation) -> Self {
        let variance = Variance::from_deviation(sigma);
        Self { variance, scale: (variance.numerator / variance.denominator).isqrt() + 1 }
    }

    /// Returns `sigma^2` of the formula, a little more than the variance of the distribution.
    pub fn variance_parameter(&self) -> f64 {
        self.variance.get()
    }

    /// Draws one value: discrete Laplace noise, accepted with probability `e^{-(|k| - sigma^2 / t)^2 / (2 sigma^2)}`
    /// (Algorithm 3).
    pub fn sample(&self, rng: &mut impl CryptoRng) -> i64 {
        let Variance { numerator: p, denominator: q } = self.variance;
        let t = self.scale;
        loop {
            let drawn = discrete_laplace(t, rng);
            let off = (drawn.unsigned_abs() * t * q).abs_diff(p);
            // Beyond this the exponent is more than 2^13, so acceptance never occurs in practice.
            let Some(square) = off.checked_mul(off) else { continue };
            if bernoulli_exp(square, 2 * p * q * t * t, rng) {
                return drawn as i64;
            }
        }
    }

    /// Returns the logarithms of the probabilities of `0, 1, ..., reach`.
    pub fn log_pmf(&self, reach: usize) -> Vec<f64> {
        let v = self.variance.get();
        let log = |k: f64| -k * k / (2.0 * v);
        let last = (40.0 * v.sqrt()).ceil() as usize + 40;
        let sum: f64 = 1.0 + 2.0 * (1..=last).map(|k| log(k as f64).exp()).sum::<f64>();
        (0..=reach).map(|k| log(k as f64) - sum.ln()).collect()
    }

    /// Returns an upper bound of `ln P[X >= m]` for `m` of at least 1: `P[N(0, sigma^2) >= m - 1]` (Proposition 25).
    pub fn log_survival_bound(&self, m: u64) -> f64 {
        log_normal_survival(m.saturating_sub(1) as f64 / self.variance.get().sqrt())
    }
}
