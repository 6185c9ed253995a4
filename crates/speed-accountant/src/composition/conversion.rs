//! From a moment of the privacy loss to (epsilon, delta).

use crate::sound::at_least_zero;

/// Returns the paper's tail bound (Abadi et al. 2016, Theorem 2.2; erratum 1): `(alpha(l) - ln delta) / l`, or infinity
/// if that is NaN.
pub fn tail_bound_epsilon(alpha: f64, l: f64, delta: f64) -> f64 {
    let epsilon = (alpha - delta.ln()) / l;
    if epsilon.is_nan() { f64::INFINITY } else { epsilon }
}

/// Computes Proposition 12 of Canonne, Kamath and Steinke 2020: `alpha/l + ln(1 - 1/a) - (ln delta + ln a)/l` with
/// `a = l + 1`, and never negative. It is always less than the tail bound, and infinity if it is NaN.
pub fn improved_epsilon(alpha: f64, l: f64, delta: f64) -> f64 {
    // ln(1 - 1/a) = -ln(1 + 1/l).
    at_least_zero((alpha - delta.ln() - l.ln_1p()) / l - (1.0 / l).ln_1p())
}
