//! Composition of wide Skellam noise in closed form, without a table of the noise.
//!
//! Let `X` be Skellam noise of variance `v`. A count that gains a vote has the loss
//! `L(k) = ln P[X = k] / P[X = k - 1] = ln I_k(v) / I_{k-1}(v)`. A count that loses a vote has the same distribution of
//! losses.
//!
//! 1. **The loss is nearly linear.** Amos (1974, Math. Comp. 28, pp. 239-251) bounds the ratio of Bessel functions for
//!    `u >= 0`:
//!    `x / (u + 1/2 + sqrt(x^2 + (u + 3/2)^2)) <= I_{u+1}(x) / I_u(x) <= x / (u + 1/2 + sqrt(x^2 + (u + 1/2)^2))`. With
//!    `y = (k - 1/2) / v`, for `k >= 1` the right side gives `L <= -asinh y <= -y + y^3 / 6`. For `k = -m <= 0` the
//!    ratio is `I_m / I_{m+1}`, and the left side gives
//!    `L <= asinh((m + 1/2) / v) + (m + 1) / v^2 <= -(1 + 1/v) y + 1 / (2 v^2)`. So everywhere
//!    `L(k) <= -(1 + 1/v) y + w(y) + 1 / (2 v^2)` with `w(y) = y_+ / v + y_+^3 / 6`.
//! 2. **Sums.** `k` queries are `n = 2 k` counts. Sums of the first term are a Skellam variable `Z` of variance `n v`,
//!    times `(1 + 1/v) / v`, since it is symmetric. Sums of `w` exceed `C` with a probability of at most `2e-9 delta`,
//!    which is charged. To find `C`, let `e^-t = 1e-9 delta`. Except with that probability no count exceeds `Y v`
//!    (Chernoff), and then `w <= b = w(Y)`. So `C` is the smaller of `n b` and, by Bernstein's inequality,
//!    `n E + b t / 3 + sqrt((b t / 3)^2 + 2 t n S)`. Here `E = v^{-3/2} (1/2 + (3 + 1/v)^{3/4} / 12)` and
//!    `S = v^-3 (1 + (15 + 15/v + 1/v^2) / 36)` are bounds of the mean and the mean square of `w`, from the moments
//!    `v`, `3 v^2 + v` and `15 v^3 + 15 v^2 + v` of `X`. `delta(epsilon) = E[(1 - e^{epsilon - loss})_+]` does not fall
//!    with the loss, so the sum may replace the loss.
//! 3. **One integral.** `E[(1 - e^{epsilon - L})_+]` is `1 / (2 pi i)` times the integral of
//!    `E[e^{s (L - epsilon)}] / (s (s + 1))` over a line `Re s = a > 0` (inverse Laplace transform). For `L = c + b Z`
//!    the mean is `e^{s (c - epsilon) + n v (cosh b s - 1)}`. By Poisson's summation the trapezoidal sum of step `h` is
//!    the sum over all integers `m` of `e^{a m P} delta(epsilon + m P)`, `P = 2 pi / h`. **All terms are positive, so
//!    it is an upper bound for every step.** Omitted terms are bounded by `1 - cos x >= 2 x^2 / pi^2` about each full
//!    turn of the lattice and `|s (s + 1)| >= (Im s)^2`, and 1e-10 of all magnitudes is added for rounding.

use std::f64::consts::PI;

use speed_mechanism::{HonestRatio, NoiseDeviation, Skellam};

use super::gaussian::gaussian_epsilon;
use crate::renyi::is_wide;

/// The part of delta for sums of small terms that are larger than their bound; it is used twice.
const EXCEPTIONS: f64 = 1e-9;
/// Rounding error of the terms of the sum, relative to the terms.
const ROUNDING: f64 = 1e-10;
/// Deviations of the tilted sum that a period of the sum covers, and deviations that its transform covers.
const PERIOD: f64 = 16.0;
const FREQUENCIES: f64 = 14.0;

/// Computes a data-independent upper bound of the least epsilon of `queries` queries of wide noise at `delta`, and the
/// tilt of its sum. Returns `None` if the noise is not wide.
pub(crate) fn wide_skellam_epsilon(
    sigma: NoiseDeviation,
    tau: HonestRatio,
    queries: usize,
    delta: f64,
) -> Option<(f64, f64)> {
    let variance = Skellam::of_class(sigma, tau).variance();
    if !is_wide(variance) {
        return None;
    }
    let loss = LinearLoss::new(variance, queries as f64, EXCEPTIONS * delta);
    let allowed = delta * (1.0 - 2.0 * EXCEPTIONS);
    let first = gaussian_epsilon(loss.deviation, delta);
    let (mut low, mut high) = (0.0f64, first.max(1e-3 * loss.deviation));
    if loss.delta(0.0).0 <= allowed {
        return Some((0.0, loss.tilt(0.0)));
    }
    while loss.delta(high).0 > allowed {
        low = high;
        high *= 1.01;
        if !high.is_finite() {
            return None;
        }
    }
    // Beyond ten digits the bound itself is not accurate.
    while high - low > 1e-10 * high {
        let middle = 0.5 * (low + high);
        if loss.delta(middle).0 <= allowed { high = middle } else { low = middle }
    }
    Some((high, loss.tilt(high)))
}

/// A loss that is at least the loss of all queries, except with a small probability: a constant plus a multiple of a
/// Skellam variable.
struct LinearLoss {
    /// Variance of the Skellam variable, and its factor.
    variance: f64,
    factor: f64,
    mean: f64,
    deviation: f64,
    /// Upper bound of the logarithm of the probability of an exception.
    log_exceptions: f64,
}

impl LinearLoss {
    /// Creates the loss of `queries` queries of noise of variance `v`; it is valid except with a probability of
    /// `2 exceptions`.
    fn new(v: f64, queries: f64, exceptions: f64) -> Self {
        let counts = 2.0 * queries;
        let factor = (1.0 + 1.0 / v) / v;
        let log_exceptions = exceptions.ln();
        // No count's noise is larger than `reach`, by Chernoff's inequality and a union bound over counts.
        let log_each = log_exceptions - counts.ln();
        let chernoff = |x: f64| {
            let ratio = x / v;
            v * ratio * ratio / ((1.0 + ratio * ratio).sqrt() + 1.0) - x * ratio.asinh()
        };
        let mut reach = (-2.0 * log_each * v).sqrt();
        while chernoff(reach) > log_each {
            reach *= 1.001;
        }
        // `y_+ / v + y_+^3 / 6` of one count: its largest value, and bounds of its mean and of its mean square.
        let y = reach / v;
        let largest = y / v + y.powi(3) / 6.0;
        let unit = v.powf(-1.5);
        let mean = unit * (0.5 + (3.0 + 1.0 / v).powf(0.75) / 12.0);
        let square = unit * unit * (1.0 + (15.0 + 15.0 / v + 1.0 / (v * v)) / 36.0);
        // Bernstein's inequality.
        let linear = -log_exceptions * largest / 3.0;
        let above = linear + (linear * linear - 2.0 * log_exceptions * counts * square).sqrt();
        let small = (counts * largest).min(counts * mean + above) + counts / (2.0 * v * v);
        let variance = counts * v;
        Self {
            variance,
            factor,
            mean: (0.5 * counts * factor + small) * (1.0 + 1e-12),
            deviation: factor * variance.sqrt(),
            log_exceptions,
        }
    }

    /// Returns the logarithm of `E[e^{s (loss - epsilon)}]`.
    fn log_moment(&self, s: f64, epsilon: f64) -> f64 {
        let half = (0.5 * self.factor * s).sinh();
        s * (self.mean - epsilon) + 2.0 * self.variance * half * half
    }

    /// Returns the real part of the line of integration: roughly the point where the integrand is smallest, computed
    /// from the Gaussian of the same deviation. Any positive number is sound.
    fn tilt(&self, epsilon: f64) -> f64 {
        let square = self.deviation * self.deviation;
        let slope = |s: f64| self.mean - epsilon + square * s - 1.0 / s - 1.0 / (s + 1.0);
        let (mut low, mut high) = (0.0, 1.0);
        while slope(high) < 0.0 && high < 1e300 {
            (low, high) = (high, 2.0 * high);
        }
        for _ in 0..60 {
            let middle = 0.5 * (low + high);
            if slope(middle) < 0.0 { low = middle } else { high = middle }
        }
        high
    }

    /// Bounds `E[(1 - e^{epsilon - loss})_+]` from above, and returns the bound with the number of terms summed.
    ///
    /// The expectation is `1 / (2 pi i)` times the integral of `e^{log_moment(s)} / (s (s + 1))` along any line of real
    /// part above 0. The trapezoidal sum with step `h` is the sum over all integers `m` of `e^{m s P}` times the
    /// expectation at `epsilon + m P`, with `P = 2 pi / h`. All terms are positive, and the term of `m = 0` is the
    /// wanted expectation.
    fn delta(&self, epsilon: f64) -> (f64, usize) {
        let s = self.tilt(epsilon);
        let period = PERIOD * self.deviation + (30.0 - self.log_exceptions) / s;
        let step = 2.0 * PI / period;
        let terms = (FREQUENCIES / (self.deviation * step)).ceil();
        let (fall, turn) = (self.variance * (self.factor * s).cosh(), self.variance * (self.factor * s).sinh());
        // All terms are divided by `e^{log_moment(s)}`. The term at -t is the conjugate of the term at t.
        let (mut sum, mut sizes) = (0.0, 0.0);
        let mut j = 0.0;
        while j <= terms {
            let t = j * step;
            let half = (0.5 * self.factor * t).sin();
            let size = (-2.0 * fall * half * half).exp();
            let angle = turn * (self.factor * t).sin() + t * (self.mean - epsilon);
            // 1 / ((s + i t) (s + 1 + i t)).
            let (real, imaginary) = (s * (s + 1.0) - t * t, t * (2.0 * s + 1.0));
            let norm = real * real + imaginary * imaginary;
            let times = if j == 0.0 { 1.0 } else { 2.0 };
            sum += times * size * (angle.cos() * real + angle.sin() * imaginary) / norm;
            sizes += times * size / norm.sqrt();
            j += 1.0;
        }
        // Bound of all other terms: up to half a turn of the lattice 1 - cos x >= 2 x^2 / pi^2, and 1 / |s (s + 1)| <=
        // 1 / t^2; around each full turn the same holds, with t at least an odd number of half turns.
        let end = terms * step;
        let fallen = (-2.0 / (PI * PI) * (self.deviation * end).powi(2)).exp();
        let turns = self.factor * self.factor / 4.0 * (step + PI.powf(1.5) / (2.0f64.sqrt() * self.deviation));
        let beyond = 2.0 * fallen / end + turns;
        let delta = (step * (sum + ROUNDING * sizes) + beyond) / (2.0 * PI);
        let delta = if delta > 0.0 { (delta.ln() + self.log_moment(s, epsilon)).exp() } else { f64::INFINITY };
        (if delta.is_nan() { f64::INFINITY } else { delta * (1.0 + 1e-9) }, terms as usize + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sigma(value: f64) -> NoiseDeviation {
        NoiseDeviation::new(value).expect("valid")
    }

    #[test]
    fn the_loss_of_a_count_is_below_its_bound() {
        // The bound of the logarithm of a ratio of Bessel functions holds at every position, also for noise that is not
        // wide.
        for deviation in [1.0, 3.0, 10.0, 100.0, 1_000.0] {
            let noise = Skellam::of_class(sigma(deviation), HonestRatio::ALL);
            let v = noise.variance();
            let reach = (20.0 * deviation) as i64 + 20;
            let lattice = noise.lattice(reach as usize + 2);
            for k in -reach..=reach {
                let loss = lattice.log_pmf(k) - lattice.log_pmf(k - 1);
                let y = (k as f64 - 0.5) / v;
                let above = y.max(0.0);
                let bound = -(1.0 + 1.0 / v) * y + above / v + above.powi(3) / 6.0 + 0.5 / (v * v);
                assert!(loss <= bound + 1e-13, "sigma {deviation}, {k} votes: {loss} above {bound}");
            }
        }
    }

    #[test]
    fn a_loss_that_is_summed_directly_is_bounded_closely() {
        // The Skellam variable of the sum is computed from its own table.
        for (queries, deltas) in [(1.0, [0.3e-3, 1e-5, 1e-12]), (40.0, [1e-2, 1e-5, 1e-60])] {
            let v = 1e6;
            for delta in deltas {
                let loss = LinearLoss::new(v, queries, 1e-9 * delta);
                let noise = Skellam::of_class(sigma(loss.variance.sqrt()), HonestRatio::ALL);
                let reach = 20 * loss.variance.sqrt() as i64;
                let lattice = noise.lattice(reach as usize + 1);
                for share in [0.0, 0.3, 1.0, 1.2] {
                    let epsilon = share * gaussian_epsilon(loss.deviation, delta);
                    let direct: f64 = (-reach..=reach)
                        .map(|k| (lattice.log_pmf(k), loss.mean + loss.factor * k as f64 - epsilon))
                        .filter(|(_, excess)| *excess > 0.0)
                        .map(|(log, excess)| log.exp() * -(-excess).exp_m1())
                        .sum();
                    let (found, terms) = loss.delta(epsilon);
                    assert!(found >= direct * (1.0 - 1e-9) && found <= direct * (1.0 + 1e-4), "{found:e} {direct:e}");
                    assert!(terms < 2_000, "{terms} terms");
                }
            }
        }
    }

    #[test]
    fn it_is_just_above_the_gaussian_up_to_the_widest_noise_and_the_most_queries() {
        for (deviation, queries, delta, above) in [
            (1_000.0, 1, 1e-5, 2e-3),
            (1_000.0, 100, 1e-5, 1e-3),
            (1_000.0, 1_000_000, 1e-280, 1e-2),
            (20_000.0, 1_000, 1e-9, 1e-4),
            (1e6, 1, 1e-7, 1e-4),
            (1e6, 1_000_000, 1e-5, 1e-6),
            (1e6, 1_000_000, 1e-280, 1e-6),
        ] {
            let (found, _) = wide_skellam_epsilon(sigma(deviation), HonestRatio::ALL, queries, delta).expect("wide");
            // Wide Skellam noise tends to Gaussian noise of the same deviation. It is not proved that the Gaussian
            // costs less, but the difference is far below this tolerance.
            let limit = gaussian_epsilon((2.0 * queries as f64).sqrt() / deviation, delta);
            let off = found / limit - 1.0;
            assert!((-1e-9..above).contains(&off), "sigma {deviation}, {queries} queries, {delta:e}: off by {off:e}");
        }
        assert_eq!(wide_skellam_epsilon(sigma(999.0), HonestRatio::ALL, 1, 1e-5), None);
    }

    #[test]
    fn it_covers_the_table_where_both_exist() {
        for (queries, delta) in [(10, 1e-5), (1_000, 1e-9)] {
            let noise = sigma(1_000.0);
            let (wide, tilt) = wide_skellam_epsilon(noise, HonestRatio::ALL, queries, delta).expect("wide");
            let table =
                super::super::skellam_epsilon(noise, HonestRatio::ALL, 1, queries, delta, tilt).expect("a grid");
            // The grid of the table is rough.
            assert!(wide <= table * 1.002 && wide > table * 0.97, "{wide} against {table}");
        }
    }
}
