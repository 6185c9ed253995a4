//! Limits of settings.

use std::ops::RangeInclusive;

/// Largest number of units or images in one place. A larger number is a mistake that would only fail later, for lack of
/// memory.
pub(crate) const MAX_SIZE: usize = 1 << 16;
/// Deviations by which Adam may divide at least. Below 1e-18 the square is not a normal f32, and a parameter without gradient
/// would be divided by zero.
pub(crate) const LEAST_DEVIATION: RangeInclusive<f64> = 1e-18..=1.0;
