//! The exact Rényi divergence between Skellam noise and the same noise shifted by one.

use std::sync::Arc;

use speed_mechanism::{HonestRatio, Lattice, NoiseDeviation, Skellam};

use crate::logarithms::log_sum_exp;
use crate::memo::Memo;
use crate::sound::at_least_zero;

/// From this deviation on, in votes, the loss of Skellam noise is so close to linear that a table adds nothing to a
/// formula.
const WIDE: f64 = 1_000.0;
/// From this variance on, a table for orders beyond [`TABLE`], up to a tenth of the variance, hardly improves the bound.
const ROUGHLY_WIDE: f64 = 1e4;
/// The largest order that the first table serves.
const TABLE: f64 = 256.0;

/// Returns whether noise of this variance is wide: its deviation is at least [`WIDE`].
pub(crate) fn is_wide(variance: f64) -> bool {
    variance >= WIDE * WIDE
}

/// The data-independent Rényi divergence of one query as a function of the order above 1. It is the exact divergence of two
/// counts that move by one vote each, as a sum over integers. From a deviation of 1000 votes on, it is an upper bound in closed
/// form that is at most a few thousandths above the exact value.
pub(crate) enum SkellamCurve {
    Exact(Arc<SkellamSum>),
    Wide(WideSkellam),
}

impl SkellamCurve {
    pub(crate) fn new(sigma: NoiseDeviation, tau: HonestRatio) -> Self {
        let noise = Skellam::of_class(sigma, tau);
        if is_wide(noise.variance()) {
            return Self::Wide(WideSkellam { variance: noise.variance() });
        }
        Self::Exact(SkellamSum::up_to(noise, TABLE))
    }

    pub(crate) fn rdp(&self, order: f64) -> f64 {
        match self {
            Self::Exact(sum) if order <= TABLE => sum.rdp(order),
            Self::Exact(sum) if sum.noise.variance() >= ROUGHLY_WIDE.max(10.0 * order) => {
                WideSkellam { variance: sum.noise.variance() }.rdp(order)
            }
            // Tables of a few lengths serve all orders.
            Self::Exact(sum) => SkellamSum::up_to(sum.noise, order.log2().ceil().exp2()).rdp(order),
            Self::Wide(wide) => wide.rdp(order),
        }
    }
}

/// The exact divergence, as a sum over a table of the noise.
pub(crate) struct SkellamSum {
    noise: Skellam,
    lattice: Lattice,
}

impl SkellamSum {
    fn up_to(noise: Skellam, largest: f64) -> Arc<Self> {
        static KNOWN: Memo<2, Arc<SkellamSum>> = Memo::new();
        KNOWN.get_or([noise.variance(), largest], || {
            // Tilting by the order moves the mean by about the order, in votes, and widens the tails of narrow noise.
            let reach = largest + (120.0 * (noise.variance() + largest)).sqrt() + 60.0;
            Arc::new(Self { noise, lattice: noise.lattice(reach.ceil() as usize) })
        })
    }

    /// Returns `2 / (order - 1) ln sum_k p(k)^order p(k - 1)^{1 - order}`: two counts move by one vote each.
    fn rdp(&self, order: f64) -> f64 {
        let reach = self.lattice.reach() as i64;
        let terms = (1 - reach..reach).map(|k| {
            let here = self.lattice.log_pmf(k);
            here + (order - 1.0) * (here - self.lattice.log_pmf(k - 1))
        });
        at_least_zero(2.0 / (order - 1.0) * log_sum_exp(terms))
    }
}

/// An upper bound of the divergence of wide noise, computed from its loss, which is nearly linear
/// (`composition/wide_skellam.rs`, item 1).
///
/// The moment of order `l` is the moment of the linear part, `e^{l b/2 + v (cosh l b - 1) + l / (2 v^2)}` with
/// `b = (1 + 1/v) / v`, times a factor. The factor is `1 + E'[e^{l w} - 1]` under the tilted distribution, with
/// `e^{l w} - 1 <= l w (e^{l w(Y)} - 1) / (l w(Y))` and `E' w` from the tilted distribution's second and fourth moments.
/// Alternatively the factor is 1 plus the inverse of the moment, since above 0 the loss is negative.
pub(crate) struct WideSkellam {
    variance: f64,
}

impl WideSkellam {
    fn rdp(&self, order: f64) -> f64 {
        /// Logarithm of the probability of noise beyond the reach, on one side.
        const BEYOND: f64 = -100.0;
        let (v, l) = (self.variance, order - 1.0);
        // The moment of the linear part.
        let tilt = l * (1.0 + 1.0 / v) / v;
        let half = (0.5 * tilt).sinh();
        let linear = 0.5 * tilt + l / (2.0 * v * v) + 2.0 * v * half * half;
        // The contribution of the rest of the loss, which is at most `largest`: its mean under the tilted law, times a
        // chord of the exponential.
        let y = (-2.1 * BEYOND / v).sqrt();
        let largest = l * (y / v + y.powi(3) / 6.0);
        let spread = v * tilt.cosh();
        let mean = l * (spread.sqrt() / (v * v) + (3.0 * spread * spread + spread).powf(0.75) / (6.0 * v.powi(3)));
        let rest = (mean * largest.exp_m1() / largest + BEYOND.exp()).ln_1p();
        // Alternative bound: where the noise is above 0 the loss is below.
        let split = l / (2.0 * v * v) + (-linear).exp().ln_1p();
        at_least_zero(2.0 / l * (linear + rest.min(split)) * (1.0 + 1e-12))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_noise_is_bounded_from_above_and_closely() {
        for (sigma, orders) in [
            (100.0f64, vec![257.0, 600.0, 1_000.0]),
            (1_000.0, vec![1.1, 2.0, 17.3, 200.0, 3_000.0, 20_000.0]),
            (3_000.0, vec![1.1, 2.0, 17.3, 200.0, 3_000.0, 20_000.0]),
        ] {
            let noise = Skellam::of_class(NoiseDeviation::new(sigma).expect("valid"), HonestRatio::ALL);
            let (exact, wide) = (SkellamSum::up_to(noise, 65_536.0), WideSkellam { variance: noise.variance() });
            for order in orders {
                let (exact, wide) = (exact.rdp(order), wide.rdp(order));
                // The sum keeps few digits of its excess over 1.
                assert!(wide >= exact * (1.0 - 1e-9) - 1e-14, "sigma {sigma}, order {order}: {wide:e} below {exact:e}");
                // For orders beyond the variance the loss is no longer linear.
                let close = 1.003 + order / (2.0 * sigma * sigma);
                assert!(wide <= exact * close + 1e-13, "sigma {sigma}, order {order}: {wide:e} against {exact:e}");
            }
        }
        // At the limit of the range, without a table, the divergence is close to that of the Gaussian.
        let curve = SkellamCurve::new(NoiseDeviation::new(NoiseDeviation::MAX).expect("valid"), HonestRatio::ALL);
        assert!(matches!(curve, SkellamCurve::Wide(_)));
        for order in [1.02, 2.0, 1e3, 1e6] {
            let ratio = curve.rdp(order) * NoiseDeviation::MAX * NoiseDeviation::MAX / order;
            assert!((1.0 - 1e-12..1.0 + 1e-3).contains(&ratio), "order {order}: {ratio}");
        }
    }

    #[test]
    fn it_is_below_the_published_bound() {
        // Agarwal, Kairouz and Liu 2021, Theorem 3.5, with squared l2 sensitivity 2 and l1 sensitivity 2:
        // a D2 / (2 v) + min((2 a - 1) D2 + 6 D1) / (4 v^2), 3 D1 / (2 v)).
        for sigma in [3.0f64, 10.0, 40.0] {
            let curve = SkellamCurve::new(NoiseDeviation::new(sigma).expect("valid"), HonestRatio::ALL);
            let v = sigma * sigma;
            for order in [2.0f64, 3.0, 8.0, 20.0] {
                let second = (((2.0 * order - 1.0) * 2.0 + 12.0) / (4.0 * v * v)).min(3.0 / v);
                let published = order / v + second;
                let found = curve.rdp(order);
                assert!(found <= published, "sigma {sigma}, order {order}: {found} against {published}");
            }
        }
    }
}
