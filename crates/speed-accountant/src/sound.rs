//! Maxima that a NaN cannot make smaller.

/// Returns the larger of two upper bounds; infinite if one of them is no number, which `f64::max` would ignore.
pub(crate) fn larger(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() { f64::INFINITY } else { a.max(b) }
}

/// Returns an upper bound of something that is not negative; infinite if it is no number.
pub(crate) fn at_least_zero(bound: f64) -> f64 {
    larger(bound, 0.0)
}
