//! Sums of numbers that are given by their logarithms.

/// Returns `ln(e^a + e^b)` with full relative accuracy, also if the result is close to zero (`a` close to zero, `b`
/// very negative).
pub(crate) fn log_sum(a: f64, b: f64) -> f64 {
    if a.abs() < 0.5 && b < 0.5 {
        return (a.exp_m1() + b.exp()).ln_1p();
    }
    let (large, small) = if a > b { (a, b) } else { (b, a) };
    large + (small - large).exp().ln_1p()
}
