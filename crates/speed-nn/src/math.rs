//! Element-wise functions in a form that the compiler vectorises.
//!
//! The standard library's `exp` and `ln_1p` are calls that handle one value each; these are branch-free and cost a
//! tenth. Their error is about 2e-7 relative to the larger of the result and 1e-7, which is the precision of `f32`.

/// Returns `e^x`: 0 below -87.3, about 1.7e38 above 88 (never infinite).
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    let x = x.clamp(-87.3, 88.0);
    // x = k ln 2 + r with |r| <= ln 2 / 2; ln 2 in two parts, the first exact in few bits (Cody and Waite). Adding 1.5
    // * 2^23 rounds to an integer and leaves k in the low bits.
    const ROUND: f32 = 12_582_912.0;
    let shifted = x.mul_add(std::f32::consts::LOG2_E, ROUND);
    let k = shifted - ROUND;
    let r = k.mul_add(-0.693_359_4, x);
    let r = k.mul_add(2.121_944_4e-4, r);
    // Taylor series to r^7: the remainder is below 0.35^8 / 8! = 6e-9.
    let mut p = 1.0 / 5040.0;
    for c in [1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0] {
        p = r.mul_add(p, c);
    }
    // 2^k through the exponent bits; k is within -126..=127 after the clamp.
    p * f32::from_bits(shifted.to_bits().wrapping_add(127) << 23)
}

/// Returns `ln(1 + u)` for `0 <= u <= 1`.
#[inline(always)]
fn ln_1p_unit(u: f32) -> f32 {
    // 2 artanh(s) with s = u / (2 + u) <= 1/3; the first omitted term is 2 s^15 / 15 < 1e-8.
    let s = u / (2.0 + u);
    let s2 = s * s;
    let mut p = 1.0 / 13.0;
    for c in [1.0 / 11.0, 1.0 / 9.0, 1.0 / 7.0, 1.0 / 5.0, 1.0 / 3.0, 1.0] {
        p = s2.mul_add(p, c);
    }
    2.0 * s * p
}

/// Returns the logistic function `1 / (1 + e^-x)`.
#[inline(always)]
pub fn sigmoid(x: f32) -> f32 {
    let e = exp(-x.abs());
    let small = e / (1.0 + e);
    if x < 0.0 { small } else { 1.0 - small }
}

/// Returns `ln(1 + e^x)`.
#[inline(always)]
pub fn softplus(x: f32) -> f32 {
    x.max(0.0) + ln_1p_unit(exp(-x.abs()))
}

const LANES: usize = 16;

/// Returns the sum of `values` as sixteen interleaved partial sums. A plain loop may not be vectorised, because that
/// changes the order of the additions.
pub fn sum(values: &[f32]) -> f32 {
    let mut lanes = [0.0_f32; LANES];
    let (blocks, rest) = values.as_chunks::<LANES>();
    for block in blocks {
        lanes.iter_mut().zip(block).for_each(|(sum, value)| *sum += value);
    }
    lanes.iter().sum::<f32>() + rest.iter().sum::<f32>()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns -87, -86.99, ..., 88.
    fn grid() -> impl Iterator<Item = f32> {
        (-8700..=8800).map(|i| i as f32 * 0.01)
    }

    #[track_caller]
    fn close(found: f32, expected: f64, x: f32) {
        let error = (f64::from(found) - expected).abs();
        assert!(error <= 4e-7 * expected.abs().max(1e-7), "at {x}: {found} is not {expected}");
    }

    #[test]
    fn functions_agree_with_double_precision() {
        for x in grid() {
            let wide = f64::from(x);
            close(exp(x), wide.exp(), x);
            close(sigmoid(x), 1.0 / (1.0 + (-wide).exp()), x);
            close(softplus(x), wide.max(0.0) + (-wide.abs()).exp().ln_1p(), x);
        }
    }

    #[test]
    fn far_arguments_stay_finite_and_nan_stays_nan() {
        for x in [-1e30, f32::NEG_INFINITY] {
            assert!(exp(x) < 1e-37 && sigmoid(x) < 1e-37 && softplus(x) < 1e-37);
        }
        assert!(exp(1e30).is_finite());
        assert_eq!((sigmoid(1e30), softplus(1e30)), (1.0, 1e30));
        assert!(exp(f32::NAN).is_nan() && sigmoid(f32::NAN).is_nan() && softplus(f32::NAN).is_nan());
    }

    #[test]
    fn sums_take_every_value_once() {
        for length in [0, 1, 15, 16, 17, 100] {
            let values: Vec<f32> = (0..length).map(|i| i as f32).collect();
            let expected = (0..length).sum::<usize>() as f32;
            assert_eq!(sum(&values), expected);
        }
    }
}
