//! The transformations of minimal filtering algorithms F(results, kernel) in one dimension.
//!
//! A convolution is a product of polynomials, which is known from its values at enough points (Lavin and Gray, 2015,
//! section 4; Blahut, "Fast Algorithms for Signal Processing", 2010, chapter 5). Two algorithms here evaluate at five
//! points and at infinity: 0, ±5/8 and ±3/2. With the usual points 0, ±1 and ±2, rounding errors are up to ten times
//! those of windows; with these, whose powers are exact in `f32` and stay near 1, they are twice to three times.

use pulp::Simd;

/// An algorithm that computes `RESULTS` neighbouring results of a kernel of `KERNEL` values from
/// `TILE = RESULTS + KERNEL - 1` values: `A' ((G g) * (B' d))`.
pub(super) trait Filter<const KERNEL: usize, const RESULTS: usize, const TILE: usize> {
    /// Returns `B' d`.
    fn value<S: Simd>(simd: S, values: [S::f32s; TILE]) -> [S::f32s; TILE];
    /// Returns `B u`.
    fn value_gradient<S: Simd>(simd: S, gradient: [S::f32s; TILE]) -> [S::f32s; TILE];
    /// Returns `A' m`.
    fn result<S: Simd>(simd: S, products: [S::f32s; TILE]) -> [S::f32s; RESULTS];
    /// Returns `A y`.
    fn gradient<S: Simd>(simd: S, by_results: [S::f32s; RESULTS]) -> [S::f32s; TILE];
    /// Returns `G g`.
    fn kernel<S: Simd>(simd: S, kernel: [S::f32s; KERNEL]) -> [S::f32s; TILE];
    /// Returns `G' u`.
    fn kernel_gradient<S: Simd>(simd: S, gradient: [S::f32s; TILE]) -> [S::f32s; KERNEL];
}

/// F(2, 3) at the points 0, 1 and -1, and at infinity.
pub(super) struct OfThreePoints;

impl Filter<3, 2, 4> for OfThreePoints {
    #[inline(always)]
    fn value<S: Simd>(simd: S, [a, b, c, d]: [S::f32s; 4]) -> [S::f32s; 4] {
        [subtract(simd, a, c), add(simd, b, c), subtract(simd, c, b), subtract(simd, b, d)]
    }

    #[inline(always)]
    fn value_gradient<S: Simd>(simd: S, [a, b, c, d]: [S::f32s; 4]) -> [S::f32s; 4] {
        let minus_d = times(simd, -1.0, d);
        [a, subtract(simd, subtract(simd, b, c), minus_d), subtract(simd, add(simd, b, c), a), minus_d]
    }

    #[inline(always)]
    fn result<S: Simd>(simd: S, [a, b, c, d]: [S::f32s; 4]) -> [S::f32s; 2] {
        [add(simd, a, add(simd, b, c)), subtract(simd, b, add(simd, c, d))]
    }

    #[inline(always)]
    fn gradient<S: Simd>(simd: S, [a, b]: [S::f32s; 2]) -> [S::f32s; 4] {
        [a, add(simd, a, b), subtract(simd, a, b), times(simd, -1.0, b)]
    }

    #[inline(always)]
    fn kernel<S: Simd>(simd: S, [a, b, c]: [S::f32s; 3]) -> [S::f32s; 4] {
        let outer = add(simd, a, c);
        [a, times(simd, 0.5, add(simd, outer, b)), times(simd, 0.5, subtract(simd, outer, b)), c]
    }

    #[inline(always)]
    fn kernel_gradient<S: Simd>(simd: S, [a, b, c, d]: [S::f32s; 4]) -> [S::f32s; 3] {
        let sum = times(simd, 0.5, add(simd, b, c));
        [add(simd, a, sum), times(simd, 0.5, subtract(simd, b, c)), add(simd, sum, d)]
    }
}

/// F(4, 3) and F(2, 5) at the points 0, ±5/8 and ±3/2, and at infinity.
pub(super) struct OfFivePoints;

/// The positive points.
const NEAR: f32 = 0.625;
const FAR: f32 = 1.5;
const NEAR_SQUARED: f32 = NEAR * NEAR;
const FAR_SQUARED: f32 = FAR * FAR;
const PRODUCT: f32 = NEAR_SQUARED * FAR_SQUARED;
const SUM: f32 = NEAR_SQUARED + FAR_SQUARED;
/// For each point, one divided by the product of its differences from the other finite points.
const SCALES: [f32; 6] = {
    let near = 0.5 / (NEAR_SQUARED * (NEAR_SQUARED - FAR_SQUARED));
    let far = 0.5 / (FAR_SQUARED * (FAR_SQUARED - NEAR_SQUARED));
    [1.0 / PRODUCT, near, near, far, far, 1.0]
};

impl<const KERNEL: usize, const RESULTS: usize> Filter<KERNEL, RESULTS, 6> for OfFivePoints {
    #[inline(always)]
    fn value<S: Simd>(simd: S, [a, b, c, d, e, f]: [S::f32s; 6]) -> [S::f32s; 6] {
        let near = [plus(simd, e, -FAR_SQUARED, c), times(simd, NEAR, plus(simd, d, -FAR_SQUARED, b))];
        let far = [plus(simd, e, -NEAR_SQUARED, c), times(simd, FAR, plus(simd, d, -NEAR_SQUARED, b))];
        [
            plus(simd, plus(simd, e, -SUM, c), PRODUCT, a),
            add(simd, near[0], near[1]),
            subtract(simd, near[0], near[1]),
            add(simd, far[0], far[1]),
            subtract(simd, far[0], far[1]),
            plus(simd, plus(simd, f, -SUM, d), PRODUCT, b),
        ]
    }

    #[inline(always)]
    fn value_gradient<S: Simd>(
        simd: S,
        [zero, near, minus_near, far, minus_far, infinity]: [S::f32s; 6],
    ) -> [S::f32s; 6] {
        let sums = [add(simd, near, minus_near), add(simd, far, minus_far)];
        let near = times(simd, NEAR, subtract(simd, near, minus_near));
        let far = times(simd, FAR, subtract(simd, far, minus_far));
        let b = plus(simd, times(simd, PRODUCT, infinity), -FAR_SQUARED, near);
        let c = plus(simd, times(simd, -SUM, zero), -FAR_SQUARED, sums[0]);
        [
            times(simd, PRODUCT, zero),
            plus(simd, b, -NEAR_SQUARED, far),
            plus(simd, c, -NEAR_SQUARED, sums[1]),
            plus(simd, add(simd, near, far), -SUM, infinity),
            add(simd, zero, add(simd, sums[0], sums[1])),
            infinity,
        ]
    }

    #[inline(always)]
    fn result<S: Simd>(simd: S, products: [S::f32s; 6]) -> [S::f32s; RESULTS] {
        sums_at_points(simd, products)
    }

    #[inline(always)]
    fn gradient<S: Simd>(simd: S, by_results: [S::f32s; RESULTS]) -> [S::f32s; 6] {
        at_points(simd, by_results)
    }

    #[inline(always)]
    fn kernel<S: Simd>(simd: S, kernel: [S::f32s; KERNEL]) -> [S::f32s; 6] {
        scaled(simd, at_points(simd, kernel))
    }

    #[inline(always)]
    fn kernel_gradient<S: Simd>(simd: S, gradient: [S::f32s; 6]) -> [S::f32s; KERNEL] {
        sums_at_points(simd, scaled(simd, gradient))
    }
}

/// Evaluates a polynomial, given by its coefficients, at every point; at infinity it is the highest coefficient.
#[inline(always)]
fn at_points<S: Simd, const N: usize>(simd: S, coefficients: [S::f32s; N]) -> [S::f32s; 6] {
    let ([even_near, odd_near], [even_far, odd_far]) =
        (even_and_odd(simd, NEAR_SQUARED, coefficients), even_and_odd(simd, FAR_SQUARED, coefficients));
    [
        coefficients[0],
        plus(simd, even_near, NEAR, odd_near),
        plus(simd, even_near, -NEAR, odd_near),
        plus(simd, even_far, FAR, odd_far),
        plus(simd, even_far, -FAR, odd_far),
        coefficients[N - 1],
    ]
}

/// Evaluates the even powers of a polynomial, and its odd powers divided by the point, by Horner's rule.
#[inline(always)]
fn even_and_odd<S: Simd, const N: usize>(simd: S, squared: f32, coefficients: [S::f32s; N]) -> [S::f32s; 2] {
    let mut sums = [simd.splat_f32s(0.0); 2];
    sums[(N - 1) % 2] = coefficients[N - 1];
    sums[N % 2] = coefficients[N - 2];
    for power in (0..N - 2).rev() {
        sums[power % 2] = plus(simd, coefficients[power], squared, sums[power % 2]);
    }
    sums
}

/// Returns the transpose of [`at_points`]: for each power, the sum over all points of the value times the point's power.
#[inline(always)]
fn sums_at_points<S: Simd, const N: usize>(
    simd: S,
    [zero, near, minus_near, far, minus_far, infinity]: [S::f32s; 6],
) -> [S::f32s; N] {
    let mut near = [add(simd, near, minus_near), times(simd, NEAR, subtract(simd, near, minus_near))];
    let mut far = [add(simd, far, minus_far), times(simd, FAR, subtract(simd, far, minus_far))];
    let mut sums = [simd.splat_f32s(0.0); N];
    for (power, sum) in sums.iter_mut().enumerate() {
        let parity = power % 2;
        *sum = add(simd, near[parity], far[parity]);
        near[parity] = times(simd, NEAR_SQUARED, near[parity]);
        far[parity] = times(simd, FAR_SQUARED, far[parity]);
    }
    sums[0] = add(simd, sums[0], zero);
    sums[N - 1] = add(simd, sums[N - 1], infinity);
    sums
}

#[inline(always)]
fn scaled<S: Simd>(simd: S, mut values: [S::f32s; 6]) -> [S::f32s; 6] {
    for (values, scale) in values.iter_mut().zip(SCALES) {
        *values = times(simd, scale, *values);
    }
    values
}

#[inline(always)]
fn add<S: Simd>(simd: S, left: S::f32s, right: S::f32s) -> S::f32s {
    simd.add_f32s(left, right)
}

#[inline(always)]
fn subtract<S: Simd>(simd: S, left: S::f32s, right: S::f32s) -> S::f32s {
    simd.sub_f32s(left, right)
}

#[inline(always)]
fn times<S: Simd>(simd: S, factor: f32, values: S::f32s) -> S::f32s {
    simd.mul_f32s(simd.splat_f32s(factor), values)
}

/// Returns `left + factor * right`, rounded once.
#[inline(always)]
fn plus<S: Simd>(simd: S, left: S::f32s, factor: f32, right: S::f32s) -> S::f32s {
    simd.mul_add_f32s(simd.splat_f32s(factor), right, left)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares with the definition of a convolution, in one dimension.
    fn check<F: Filter<KERNEL, RESULTS, TILE>, const KERNEL: usize, const RESULTS: usize, const TILE: usize>() {
        let simd = pulp::Scalar::new();
        let values: [f32; TILE] = std::array::from_fn(|i| (i * i % 7) as f32 - 2.5);
        let kernel: [f32; KERNEL] = std::array::from_fn(|i| 1.0 - (i * i) as f32 * 0.3);
        let by_results: [f32; RESULTS] = std::array::from_fn(|i| i as f32 * 0.7 - 1.0);
        let close = |found: f32, expected: f32| assert!((found - expected).abs() < 1e-5, "{found} and {expected}");
        let products = |left: [f32; TILE], right: [f32; TILE]| std::array::from_fn(|i| left[i] * right[i]);
        let results = F::result(simd, products(F::value(simd, values), F::kernel(simd, kernel)));
        for (i, result) in results.into_iter().enumerate() {
            close(result, (0..KERNEL).map(|j| values[i + j] * kernel[j]).sum());
        }
        let by_values = F::value_gradient(simd, products(F::gradient(simd, by_results), F::kernel(simd, kernel)));
        for (at, gradient) in by_values.into_iter().enumerate() {
            let pairs = (0..KERNEL).flat_map(|j| (0..RESULTS).map(move |i| (i, j))).filter(|(i, j)| i + j == at);
            close(gradient, pairs.map(|(i, j)| by_results[i] * kernel[j]).sum());
        }
        let gradient = F::kernel_gradient(simd, products(F::value(simd, values), F::gradient(simd, by_results)));
        for (j, gradient) in gradient.into_iter().enumerate() {
            close(gradient, (0..RESULTS).map(|i| values[i + j] * by_results[i]).sum());
        }
    }

    #[test]
    fn filters_are_convolutions() {
        check::<OfThreePoints, 3, 2, 4>();
        check::<OfFivePoints, 3, 4, 6>();
        check::<OfFivePoints, 5, 2, 6>();
    }
}
