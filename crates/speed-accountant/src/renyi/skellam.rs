//! The exact Rényi divergence between Skellam noise and itself moved by one.

use speed_mechanism::{HonestRatio, Lattice, NoiseDeviation, Skellam};

use crate::sound::at_least_zero;

/// Returns the Rényi divergence of order `order > 1` of one query with Skellam noise, whatever the votes: the exact
/// divergence of two counts that move by one vote each, as a sum over integers.
#[must_use]
pub fn skellam_rdp(sigma: NoiseDeviation, tau: HonestRatio, order: f64) -> f64 {
    SkellamCurve::new(sigma, tau).rdp(order)
}

/// The divergence as a function of the order.
pub(crate) struct SkellamCurve {
    noise: Skellam,
    lattice: Lattice,
    /// Orders up to this are covered by the table.
    largest: f64,
}

impl SkellamCurve {
    pub(crate) fn new(sigma: NoiseDeviation, tau: HonestRatio) -> Self {
        let noise = Skellam::of_class(sigma, tau);
        Self::up_to(noise, 256.0)
    }

    fn up_to(noise: Skellam, largest: f64) -> Self {
        // Tilting by the order moves the mean by about as many votes, and widens the tails of narrow noise.
        let reach = largest + (120.0 * (noise.variance() + largest)).sqrt() + 60.0;
        Self { noise, lattice: noise.lattice(reach.ceil() as usize), largest }
    }

    /// Returns `2 / (order - 1) ln sum_k p(k)^order p(k - 1)^{1 - order}`: two counts move by one vote.
    pub(crate) fn rdp(&self, order: f64) -> f64 {
        if order > self.largest {
            return Self::up_to(self.noise, 2.0 * order).rdp(order);
        }
        let reach = self.lattice.reach() as i64;
        let terms: Vec<f64> = (1 - reach..reach)
            .map(|k| {
                let here = self.lattice.log_pmf(k);
                here + (order - 1.0) * (here - self.lattice.log_pmf(k - 1))
            })
            .collect();
        let largest = terms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let log_sum = largest + terms.iter().map(|term| (term - largest).exp()).sum::<f64>().ln();
        at_least_zero(2.0 / (order - 1.0) * log_sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_approaches_the_gaussian() {
        for (sigma, tolerance) in [(5.0, 0.1), (20.0, 0.01), (100.0, 0.001)] {
            let deviation = NoiseDeviation::new(sigma).expect("valid");
            let curve = SkellamCurve::new(deviation, HonestRatio::ALL);
            for order in [1.5, 2.0, 8.0, 32.0] {
                let ratio = curve.rdp(order) / (order / (sigma * sigma));
                assert!((ratio - 1.0).abs() < tolerance * order, "sigma {sigma}, order {order}: {ratio}");
            }
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
