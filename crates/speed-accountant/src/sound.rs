//! Maxima that a NaN cannot make smaller.

/// Returns the larger of two upper bounds, or infinity if one of them is NaN, which `f64::max` would ignore.
pub(crate) fn larger(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() { f64::INFINITY } else { a.max(b) }
}

/// Returns an upper bound of a quantity that is not negative, or infinity if the bound is NaN.
pub(crate) fn at_least_zero(bound: f64) -> f64 {
    larger(bound, 0.0)
}
