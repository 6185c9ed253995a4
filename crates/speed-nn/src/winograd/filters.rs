//! The transformations of minimal filtering algorithms F(results, kernel) in one dimension.
//!
//! A convolution is a product of polynomials, which is known from its values at enough points (Lavin and Gray, 2015,
//! section 4; Blahut, "Fast Algorithms for Signal Processing", 2010, chapter 5). Of the points
//! tried, these have small rounding errors, and their powers are exact in `f32`.

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

/// F(4, 3) at the points 0, ±5/8 and ±3/2, and at infinity.
pub(super) struct OfFivePoints;

impl Points<6> for OfFivePoints {
    const POINTS: Constants<6> = Constants::of([0.625, 1.5]);
}

/// F(4, 5) at the points 0, ±1/2, ±1 and ±9/4, and at infinity.
pub(super) struct OfSevenPoints;

impl Points<8> for OfSevenPoints {
    const POINTS: Constants<8> = Constants::of([0.5, 1.0, 2.25]);
}

/// Zero, pairs of points of both signs, and infinity: `TILE` in all, in this order.
pub(super) trait Points<const TILE: usize> {
    const POINTS: Constants<TILE>;
}

/// The constants of `TILE / 2 - 1` pairs of points. The other elements of each array are zeros.
pub(super) struct Constants<const TILE: usize> {
    /// The positive points `p`.
    positive: [f32; TILE],
    /// The coefficients of the product of all `x - p^2`, from the lowest power on.
    all: [f32; TILE],
    /// For each pair, the same without its factor.
    others: [[f32; TILE]; TILE],
    /// For zero and each pair, one divided by the product of the differences from the other finite points.
    scales: [f32; TILE],
}

impl<const TILE: usize> Constants<TILE> {
    const PAIRS: usize = TILE / 2 - 1;

    const fn of<const PAIRS: usize>(points: [f32; PAIRS]) -> Self {
        assert!(PAIRS == Self::PAIRS, "pairs of points");
        let (mut positive, mut others, mut scales) = ([0.0; TILE], [[0.0; TILE]; TILE], [0.0; TILE]);
        let all = product_without(&points, PAIRS);
        scales[0] = 1.0 / all[0];
        let mut pair = 0;
        while pair < PAIRS {
            positive[pair] = points[pair];
            others[pair] = product_without(&points, pair);
            // With `-p`: `(p - 0) (p + p) = 2 p^2`, whose 2 is in the 0.5 below; with another pair: `(p - q) (p + q) = p^2 - q^2`.
            let (squared, mut differences, mut other) = (points[pair] * points[pair], 1.0, 0);
            while other < PAIRS {
                let from = if other == pair { 0.0 } else { points[other] };
                differences *= squared - from * from;
                other += 1;
            }
            scales[pair + 1] = 0.5 / differences;
            pair += 1;
        }
        Self { positive, all, others, scales }
    }
}

/// Returns the coefficients of the product of all `x - p^2` except that of the point `without`, if there is one.
const fn product_without<const TILE: usize>(points: &[f32], without: usize) -> [f32; TILE] {
    let (mut product, mut point) = ([0.0; TILE], 0);
    product[0] = 1.0;
    while point < points.len() {
        if point != without {
            let mut power = TILE - 1;
            while power > 0 {
                product[power] = product[power - 1] - points[point] * points[point] * product[power];
                power -= 1;
            }
            product[0] *= -points[point] * points[point];
        }
        point += 1;
    }
    product
}

impl<F: Points<TILE>, const KERNEL: usize, const RESULTS: usize, const TILE: usize> Filter<KERNEL, RESULTS, TILE>
    for F
{
    #[inline(always)]
    fn value<S: Simd>(simd: S, values: [S::f32s; TILE]) -> [S::f32s; TILE] {
        let (points, pairs) = (const { &F::POINTS }, Constants::<TILE>::PAIRS);
        let mut out = values;
        out[0] = weighted(simd, points.all, pairs, values, 0);
        out[TILE - 1] = weighted(simd, points.all, pairs, values, 1);
        for pair in 0..pairs {
            let even = weighted(simd, points.others[pair], pairs - 1, values, 2);
            let odd = weighted(simd, points.others[pair], pairs - 1, values, 1);
            out[1 + 2 * pair] = plus(simd, even, points.positive[pair], odd);
            out[2 + 2 * pair] = plus(simd, even, -points.positive[pair], odd);
        }
        out
    }

    #[inline(always)]
    fn value_gradient<S: Simd>(simd: S, gradient: [S::f32s; TILE]) -> [S::f32s; TILE] {
        let (points, pairs) = (const { &F::POINTS }, Constants::<TILE>::PAIRS);
        let mut out = [simd.splat_f32s(0.0); TILE];
        for power in 0..=pairs {
            out[2 * power] = plus(simd, out[2 * power], points.all[power], gradient[0]);
            out[2 * power + 1] = plus(simd, out[2 * power + 1], points.all[power], gradient[TILE - 1]);
        }
        for pair in 0..pairs {
            let [even, odd] = even_and_odd_of(simd, points.positive[pair], [1, 2].map(|at| gradient[2 * pair + at]));
            for power in 0..pairs {
                let factor = points.others[pair][power];
                out[2 * power + 2] = plus(simd, out[2 * power + 2], factor, even);
                out[2 * power + 1] = plus(simd, out[2 * power + 1], factor, odd);
            }
        }
        out
    }

    #[inline(always)]
    fn result<S: Simd>(simd: S, products: [S::f32s; TILE]) -> [S::f32s; RESULTS] {
        sums_at_points::<S, F, TILE, RESULTS>(simd, products)
    }

    #[inline(always)]
    fn gradient<S: Simd>(simd: S, by_results: [S::f32s; RESULTS]) -> [S::f32s; TILE] {
        at_points::<S, F, TILE, RESULTS>(simd, by_results)
    }

    #[inline(always)]
    fn kernel<S: Simd>(simd: S, kernel: [S::f32s; KERNEL]) -> [S::f32s; TILE] {
        scaled::<S, F, TILE>(simd, at_points::<S, F, TILE, KERNEL>(simd, kernel))
    }

    #[inline(always)]
    fn kernel_gradient<S: Simd>(simd: S, gradient: [S::f32s; TILE]) -> [S::f32s; KERNEL] {
        sums_at_points::<S, F, TILE, KERNEL>(simd, scaled::<S, F, TILE>(simd, gradient))
    }
}

/// Returns the sum of every second value from `first` on, each times its coefficient. The coefficient of the last power,
/// `highest`, is 1.
#[inline(always)]
fn weighted<S: Simd, const N: usize>(
    simd: S,
    coefficients: [f32; N],
    highest: usize,
    values: [S::f32s; N],
    first: usize,
) -> S::f32s {
    let mut sum = values[first + 2 * highest];
    for power in (0..highest).rev() {
        sum = plus(simd, sum, coefficients[power], values[first + 2 * power]);
    }
    sum
}

/// Returns the sum of the values at a positive and at the negative point, and their difference times the point.
#[inline(always)]
fn even_and_odd_of<S: Simd>(simd: S, point: f32, [positive, negative]: [S::f32s; 2]) -> [S::f32s; 2] {
    [add(simd, positive, negative), times(simd, point, subtract(simd, positive, negative))]
}

/// Evaluates a polynomial, given by its coefficients, at every point; at infinity it is the highest coefficient.
#[inline(always)]
fn at_points<S: Simd, F: Points<T>, const T: usize, const N: usize>(
    simd: S,
    coefficients: [S::f32s; N],
) -> [S::f32s; T] {
    let mut out = [coefficients[0]; T];
    for pair in 0..Constants::<T>::PAIRS {
        let point = const { &F::POINTS }.positive[pair];
        // The even powers, and the odd ones divided by the point, by Horner's rule.
        let mut sums = [simd.splat_f32s(0.0); 2];
        sums[(N - 1) % 2] = coefficients[N - 1];
        sums[N % 2] = coefficients[N - 2];
        for power in (0..N - 2).rev() {
            sums[power % 2] = plus(simd, coefficients[power], point * point, sums[power % 2]);
        }
        out[1 + 2 * pair] = plus(simd, sums[0], point, sums[1]);
        out[2 + 2 * pair] = plus(simd, sums[0], -point, sums[1]);
    }
    out[T - 1] = coefficients[N - 1];
    out
}

/// Returns the transpose of [`at_points`]: for each power, the sum over all points of the value times the point's power.
#[inline(always)]
fn sums_at_points<S: Simd, F: Points<T>, const T: usize, const N: usize>(
    simd: S,
    values: [S::f32s; T],
) -> [S::f32s; N] {
    let mut sums = [simd.splat_f32s(0.0); N];
    for pair in 0..Constants::<T>::PAIRS {
        let point = const { &F::POINTS }.positive[pair];
        let parts = even_and_odd_of(simd, point, [1, 2].map(|at| values[2 * pair + at]));
        let mut power_of_square = 1.0;
        for (power, sum) in sums.iter_mut().enumerate() {
            *sum = plus(simd, *sum, power_of_square, parts[power % 2]);
            power_of_square *= if power % 2 == 1 { point * point } else { 1.0 };
        }
    }
    sums[0] = add(simd, sums[0], values[0]);
    sums[N - 1] = add(simd, sums[N - 1], values[T - 1]);
    sums
}

#[inline(always)]
fn scaled<S: Simd, F: Points<T>, const T: usize>(simd: S, mut values: [S::f32s; T]) -> [S::f32s; T] {
    for (at, value) in values.iter_mut().enumerate().take(T - 1) {
        *value = times(simd, const { &F::POINTS }.scales[at.div_ceil(2)], *value);
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
