//! Sums of numbers that are given by their logarithms.

use crate::sound::larger;

/// Returns `ln(e^a + e^b)` with full relative accuracy, also if the result is close to zero (`a` close to zero, `b`
/// very negative).
pub(crate) fn log_sum(a: f64, b: f64) -> f64 {
    if a.abs() < 0.5 && b < 0.5 {
        return (a.exp_m1() + b.exp()).ln_1p();
    }
    let (large, small) = if a > b { (a, b) } else { (b, a) };
    large + (small - large).exp().ln_1p()
}

/// Returns `ln sum e^term`; infinity if a term is infinite or not a number.
pub(crate) fn log_sum_exp(terms: impl Iterator<Item = f64>) -> f64 {
    let terms: Vec<f64> = terms.collect();
    let largest = terms.iter().copied().fold(f64::NEG_INFINITY, larger);
    if !largest.is_finite() {
        return largest;
    }
    largest + terms.iter().map(|term| (term - largest).exp()).sum::<f64>().ln()
}
