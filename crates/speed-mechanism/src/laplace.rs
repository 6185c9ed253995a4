//! The paper's continuous noise: the generalised Laplace distribution, a difference of two Gamma variables.
//!
//! With `x = gamma u` and `nu = tau - 1/2`, the density is `gamma / (Gamma(tau) sqrt(pi)) (x/2)^nu K_nu(x)` (the
//! paper's appendix A.2). The density and its tail are not computed from Bessel and Struve functions here, because the
//! terms of these functions cancel. The variable is `sqrt(2 W) N`, where `W` is Gamma of shape `tau` and `N` is normal.
//! So density and tail are integrals of positive terms over `s = ln W`, and the plain trapezoid rule computes them to
//! full precision.

use std::f64::consts::{LN_2, PI};

use statrs::function::gamma::ln_gamma;

use crate::erfc::log_scaled_erfc;
use crate::parameters::checked_shape;
use crate::{HonestRatio, InverseScale, MechanismError};

/// Beyond this multiple of `1/gamma`, closed forms are accurate to all relevant digits.
const MAX_REACH: f64 = 1e9;
/// Terms smaller than e^-45 times the largest term do not change the sum in double precision.
const NEGLIGIBLE: f64 = 45.0;

/// The generalised Laplace distribution with inverse scale `gamma` and shape `tau`: the summed noise of a fraction
/// `tau` of the teachers. Shape 1 is the Laplace distribution, and shape `2 tau` the difference of two classes' noise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GeneralisedLaplace {
    pub(crate) gamma: f64,
    pub(crate) shape: f64,
}

impl GeneralisedLaplace {
    /// Checks and wraps the parameters.
    ///
    /// # Errors
    /// [`MechanismError::Shape`] if `shape` is not in (0, 2].
    pub fn new(gamma: InverseScale, shape: f64) -> Result<Self, MechanismError> {
        Ok(Self { gamma: gamma.get(), shape: checked_shape(shape)? })
    }

    /// Creates the noise of one class if a fraction `tau` of the teachers adds noise.
    pub fn of_class(gamma: InverseScale, tau: HonestRatio) -> Self {
        Self { gamma: gamma.get(), shape: tau.get() }
    }

    /// Creates the difference of two classes' noise if a fraction `tau` of the teachers adds noise: shape `2 tau`.
    pub fn of_difference(gamma: InverseScale, tau: HonestRatio) -> Self {
        Self { gamma: gamma.get(), shape: 2.0 * tau.get() }
    }

    /// Returns the density at `u` votes, per vote; infinite at 0 for a shape of at most 1/2.
    pub fn density(&self, u: f64) -> f64 {
        self.log_density(u).exp()
    }

    /// Returns the logarithm of the density at `u` votes.
    pub fn log_density(&self, u: f64) -> f64 {
        let x = (self.gamma * u).abs();
        let nu = self.shape - 0.5;
        let normaliser = self.gamma.ln() - ln_gamma(self.shape) - LN_2 - PI.ln() / 2.0;
        if x == 0.0 {
            return if nu > 0.0 { normaliser + ln_gamma(nu) } else { f64::INFINITY };
        }
        if x == f64::INFINITY {
            return f64::NEG_INFINITY;
        }
        if x > MAX_REACH {
            // The first term of the expansion for large x.
            return self.gamma.ln() - ln_gamma(self.shape) + (self.shape - 1.0) * (x / 2.0).ln() - LN_2 - x;
        }
        normaliser - x + log_trapezoid(x, |s, square, _| nu * s - square)
    }

    /// Returns the probability that the noise is at least `u` votes.
    pub fn survival(&self, u: f64) -> f64 {
        self.log_survival(u).exp()
    }

    /// Returns the logarithm of the probability that the noise is at least `u` votes. The probability is `S(x) = 1/(2
    /// Gamma(tau)) integral e^{tau s - e^s} erfc(x e^{-s/2} / 2) ds` with `x = gamma u`; `e^-x` is factored out so that
    /// nothing underflows.
    pub fn log_survival(&self, u: f64) -> f64 {
        let x = self.gamma * u;
        if x == 0.0 {
            return -LN_2;
        }
        if x < 0.0 {
            return (-self.survival(-u)).ln_1p();
        }
        if x == f64::INFINITY {
            return f64::NEG_INFINITY;
        }
        if x > MAX_REACH {
            // The tail of a shape of up to 2 is not larger than the tail of shape 2.
            return (0.5 + x / 4.0).ln() - x;
        }
        let integral = log_trapezoid(x, |s, square, z| self.shape * s - square + log_scaled_erfc(z));
        -x + integral - LN_2 - ln_gamma(self.shape)
    }
}

/// Returns `ln integral e^{h(s)} ds` over the real line. `h` gets `s`, `(e^{s/2} - z)^2` and `z = x e^{-s/2} / 2`; the
/// exponent `e^s + z^2` equals `x + (e^{s/2} - z)^2`.
fn log_trapezoid(x: f64, h: impl Fn(f64, f64, f64) -> f64) -> f64 {
    // The integrand is widest in s at small x; at large x it is a peak of width 1/sqrt(x) around e^s = x/2.
    let step = if x > 100.0 { 0.6 / x.sqrt() } else { 1.0 / 16.0 };
    let centre = (x / 2.0).ln();
    let at = |i: i32| {
        let s = centre + f64::from(i) * step;
        let z = x / 2.0 * (-s / 2.0).exp();
        h(s, ((s / 2.0).exp() - z).powi(2), z)
    };
    let mut values = vec![at(0)];
    let mut largest = values[0];
    for direction in [1, -1] {
        // `h` rises to a single peak and then falls.
        for i in 1.. {
            let value = at(direction * i);
            largest = largest.max(value);
            values.push(value);
            if value.is_nan() || value < largest - NEGLIGIBLE {
                break;
            }
        }
    }
    largest + (step * values.into_iter().map(|value| (value - largest).exp()).sum::<f64>()).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn laplace(gamma: f64, shape: f64) -> GeneralisedLaplace {
        GeneralisedLaplace::new(InverseScale::new(gamma).expect("valid"), shape).expect("valid")
    }

    #[test]
    fn shapes_one_and_two_have_their_closed_forms_far_into_the_tail() {
        for x in [1e-3, 0.4, 2.0, 30.0, 99.0, 101.0, 2500.0, 1e6] {
            let one = laplace(1.0, 1.0).log_survival(x);
            assert!((one - (-x - LN_2)).abs() <= 1e-12 * x.max(1.0), "shape 1 at {x}: {one}");
            let two = laplace(1.0, 2.0).log_survival(x);
            let exact = ((2.0 + x) / 4.0).ln() - x;
            assert!((two - exact).abs() <= 1e-12 * x.max(1.0), "shape 2 at {x}: {two} against {exact}");
        }
    }

    #[test]
    fn evaluations_far_out_in_the_tail_terminate() {
        let noise = laplace(2e4, 0.5);
        for place in [1e5, 1e15, 1e300, f64::INFINITY] {
            let tail = noise.log_survival(place);
            assert!(tail <= -1e9, "{tail}");
            assert!(noise.log_density(place) <= -1e9);
            assert_eq!(noise.log_survival(-place), 0.0);
        }
        assert!(noise.log_survival(f64::NAN).is_nan());
        let closed = laplace(1.0, 0.7);
        assert!((closed.log_density(1.1e9) - closed.log_density(0.9e9) + 0.2e9).abs() < 1.0);
    }

    #[test]
    fn the_distribution_is_symmetric_and_scales() {
        let wide = laplace(0.1, 0.7);
        assert_eq!(wide.survival(0.0), 0.5);
        assert!((wide.survival(-13.0) + wide.survival(13.0) - 1.0).abs() < 1e-14);
        assert!((wide.density(-13.0) - wide.density(13.0)).abs() < 1e-16);
        assert!((wide.survival(20.0) - laplace(1.0, 0.7).survival(2.0)).abs() < 1e-15);
        assert!((wide.density(20.0) - 0.1 * laplace(1.0, 0.7).density(2.0)).abs() < 1e-15);
    }

    #[test]
    fn the_density_at_zero_is_the_limit_or_infinite() {
        assert!((laplace(1.0, 1.0).density(0.0) - 0.5).abs() < 1e-14);
        let at_zero = laplace(1.0, 0.9).density(0.0);
        assert!((at_zero - laplace(1.0, 0.9).density(1e-14)).abs() < 1e-6);
        assert_eq!(laplace(1.0, 0.5).density(0.0), f64::INFINITY);
        assert_eq!(laplace(1.0, 0.3).density(0.0), f64::INFINITY);
    }
}
