//! Skellam noise, the integer counterpart of Gaussian noise: a difference of two Poisson variables.
//!
//! With both rates `v/2` the variance is `v` and `P[X = k] = e^-v I_k(v)` (Skellam 1946). Like the Gaussian it is
//! infinitely divisible, so each of `n` teachers can add a share of variance `v / n`. The ratio of neighbours follows
//! from the recurrence of Bessel functions run downwards, the stable direction:
//! `rho_k = I_k / I_{k-1} = 1 / (2 k / v + rho_{k+1})`, and the tails from
//! `R_k = P[X >= k] / P_k = 1 + rho_{k+1} R_{k+1}`.

use crate::{HonestRatio, Lattice, NoiseDeviation};

/// Centred Skellam noise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Skellam {
    variance: f64,
}

impl Skellam {
    /// Creates the noise of one class if a ratio `tau` of the teachers adds noise of total variance `sigma^2`.
    pub fn of_class(sigma: NoiseDeviation, tau: HonestRatio) -> Self {
        Self { variance: sigma.get() * sigma.get() * tau.get() }
    }

    /// Creates the difference of two classes' noise if a ratio `tau` of the teachers adds noise.
    pub fn of_difference(sigma: NoiseDeviation, tau: HonestRatio) -> Self {
        Self { variance: 2.0 * sigma.get() * sigma.get() * tau.get() }
    }

    /// Returns the variance, in square votes.
    pub fn variance(&self) -> f64 {
        self.variance
    }

    /// Computes the probabilities and tails up to `reach` votes, in time proportional to `reach + 10 sigma`.
    pub fn lattice(&self, reach: usize) -> Lattice {
        // From `start` down to `reach` the error of the first ratio shrinks by a product of squares of ratios, which is
        // about e^{-(start^2 - reach^2) / variance}; the part that the tail leaves out shrinks with it.
        let squares = (reach as f64).powi(2) + 90.0 * (self.variance + reach as f64) + 10_000.0;
        let start = squares.sqrt().ceil() as usize;
        let (mut ratio, mut tail) = (0.0, 1.0);
        let mut entries = vec![(0.0, 1.0); reach + 1];
        for k in (0..start).rev() {
            // I_{k+1} / I_k.
            ratio = 1.0 / (2.0 * (k + 1) as f64 / self.variance + ratio);
            tail = 1.0 + ratio * tail;
            if let Some(entry) = entries.get_mut(k) {
                *entry = (ratio.ln(), tail);
            }
        }
        Lattice::from_ratios(entries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_are_those_of_the_bessel_function() {
        // ln e^-v I_k(v) at 40 digits (mpmath).
        for (sigma, k, reference) in [
            (1.0, 0, -0.764_085_641_492_821_4),
            (1.0, 3, -4.809_086_303_239_422),
            (20.0, 0, -3.914_357_915_112_423),
            (20.0, 50, -7.039_194_298_269_938),
            (100.0, 350, -11.648_777_283_512_157),
        ] {
            let noise = Skellam::of_class(NoiseDeviation::new(sigma).expect("valid"), HonestRatio::ALL);
            let found = noise.lattice(400).log_pmf(k);
            assert!((found - reference).abs() < 1e-11, "sigma {sigma}, k {k}: {found:.15} against {reference}");
        }
    }

    #[test]
    fn it_has_its_variance_and_sums_to_one() {
        for sigma in [0.3, 1.0, 12.0, 150.0] {
            let noise = Skellam::of_class(NoiseDeviation::new(sigma).expect("valid"), HonestRatio::ALL);
            let reach = (40.0 * (sigma + 1.0)) as i64;
            let lattice = noise.lattice(reach as usize);
            let (mut mass, mut variance) = (0.0, 0.0);
            for k in -reach..=reach {
                let p = lattice.log_pmf(k).exp();
                mass += p;
                variance += p * (k * k) as f64;
            }
            assert!((mass - 1.0).abs() < 1e-12, "sigma {sigma}: {mass}");
            assert!((variance / (sigma * sigma) - 1.0).abs() < 1e-10, "sigma {sigma}: {variance}");
            let half = lattice.log_survival(0).exp() - lattice.log_pmf(0).exp() / 2.0;
            assert!((half - 0.5).abs() < 1e-12);
        }
    }
}
