//! Composition of Skellam noise by privacy loss distributions: in every query, two counts move by one vote each.

use speed_mechanism::{HonestRatio, NoiseDeviation, Skellam};

use super::convolution::Composition;
use super::profile::PrivacyLossDistribution;
use crate::sound::at_least_zero;

/// Steps of the grid in one standard deviation of the loss of one count.
const RESOLUTION: f64 = 12.0;
/// Largest number of losses on each side of 0 in a grid.
const MAX_STEPS: usize = 4_000;
/// If the profile at the end of the grid is below this part of delta, losses beyond the grid count as infinite.
const NEGLIGIBLE: f64 = 1e-9;

/// Computes a data-independent upper bound of the least epsilon of `queries` queries at `delta`. `tilt` is a good order
/// of moments. Returns `None` if the noise is too narrow or the queries are too many for a grid.
pub(crate) fn skellam_epsilon(
    sigma: NoiseDeviation,
    tau: HonestRatio,
    queries: usize,
    delta: f64,
    tilt: f64,
) -> Option<f64> {
    let noise = Skellam::of_class(sigma, tau);
    let times = u32::try_from(queries.checked_mul(2)?).ok()?;
    let deviation = noise.variance().sqrt();
    let reach = (40.0 * deviation + 200.0).ceil() as i64;
    let lattice = noise.lattice(reach as usize + 2);
    // The count gains a vote: the loss at k is ln p(k) / p(k - 1), which falls as k grows. Survival probabilities are
    // sums of positive terms, so differences of tails keep their digits.
    let loss = |k: i64| lattice.log_pmf(k) - lattice.log_pmf(k - 1);
    let excess = |at: f64| {
        // The loss is above `at` for all k up to a last one, `low`.
        let (mut low, mut high) = (-reach, reach);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if loss(middle) > at { low = middle } else { high = middle }
        }
        // P[X <= low] - alpha P[X <= low - 1], or computed from the other tail if that is close to 1 - alpha.
        if at >= 0.0 {
            at_least_zero(lattice.log_survival(-low).exp() - (at + lattice.log_survival(1 - low)).exp())
        } else {
            at_least_zero((at + lattice.log_survival(low)).exp() - lattice.log_survival(low + 1).exp())
        }
    };
    let step = 1.0 / (deviation * RESOLUTION);
    let allowed = NEGLIGIBLE * delta / f64::from(times);
    let half = (1..=MAX_STEPS / 8).map(|i| 8 * i).find(|&half| excess(half as f64 * step) < allowed)?;
    // The tables are accurate to eleven digits.
    let part = PrivacyLossDistribution::of_profile(step, half, |at| excess(at) * (1.0 + 1e-10) + 1e-9 * allowed);
    Some(Composition::new(&[(part, times)], tilt)?.epsilon(delta)).filter(|epsilon| epsilon.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::composition::{gaussian_epsilon, improved_epsilon};
    use crate::renyi::skellam_rdp;

    #[test]
    fn it_is_between_the_gaussian_and_its_own_moments() {
        for (sigma, queries, delta) in [(40.0, 100, 1e-5), (150.0, 1000, 1e-7), (8.0, 5, 1e-5)] {
            let deviation = NoiseDeviation::new(sigma).expect("valid");
            let moments = (1..400)
                .map(|i| 0.1 * f64::from(i))
                .map(|l| {
                    let alpha = queries as f64 * l * skellam_rdp(deviation, HonestRatio::ALL, l + 1.0);
                    (improved_epsilon(alpha, l, delta), l)
                })
                .min_by(|a, b| a.0.total_cmp(&b.0))
                .expect("orders");
            let found = skellam_epsilon(deviation, HonestRatio::ALL, queries, delta, moments.1).expect("a grid");
            let gaussian = gaussian_epsilon((2.0 * queries as f64).sqrt() / sigma, delta);
            assert!(found < moments.0, "{sigma}: {found} against {} of moments", moments.0);
            assert!((found / gaussian - 1.0).abs() < 0.02, "{sigma}: {found} against {gaussian}");
        }
    }

    #[test]
    fn one_query_is_above_a_direct_sum() {
        let deviation = NoiseDeviation::new(3.0).expect("valid");
        let lattice = Skellam::of_class(deviation, HonestRatio::ALL).lattice(80);
        let p = |k: i64| lattice.log_pmf(k).exp();
        for epsilon in [0.1f64, 0.5, 1.2] {
            let mut delta = 0.0;
            for a in -60..=60 {
                for b in -60..=60 {
                    delta += (p(a) * p(b) - epsilon.exp() * p(a - 1) * p(b + 1)).max(0.0);
                }
            }
            let found = skellam_epsilon(deviation, HonestRatio::ALL, 1, delta, 6.0).expect("a grid");
            assert!(found >= epsilon && found < epsilon * 1.01 + 0.002, "{found} against {epsilon}");
        }
    }
}
