//! The largest summed noise of one class: the range that an aggregation must hold.

use crate::{DiscreteLaplace, HonestRatio, InverseScale, MechanismError, SkellamShare};

/// Generous bound on the error of the logarithms, because the results are upper bounds.
const MARGIN: f64 = 1e-9;

/// Returns the smallest bound that holds for all of `draws` sums (queries times classes), except with a probability of
/// at most `failure`, by the union bound.
///
/// The bound is for the sum. A single share is never larger than
/// [`NoiseShare::max_magnitude`](crate::NoiseShare::max_magnitude).
///
/// # Errors
/// [`MechanismError::Failure`] if `failure` is not in (0, 1).
pub fn sum_support_bound(
    gamma: InverseScale,
    tau: HonestRatio,
    draws: u64,
    failure: f64,
) -> Result<u64, MechanismError> {
    least_bound(|bound| log_tail_bound(gamma, tau, bound), draws, failure)
}

/// Returns the bound of [`sum_support_bound`] for the Skellam noise that the shares of all teachers add up to.
///
/// # Errors
/// [`MechanismError::Failure`] if `failure` is not in (0, 1).
pub fn skellam_support_bound(noise: &SkellamShare, draws: u64, failure: f64) -> Result<u64, MechanismError> {
    least_bound(|bound| log_skellam_tail_bound(noise.deviation(), bound), draws, failure)
}

/// Returns the smallest bound at which the logarithm of a tail, which falls as the bound grows, is small enough for all
/// draws.
fn least_bound(log_tail: impl Fn(u64) -> f64, draws: u64, failure: f64) -> Result<u64, MechanismError> {
    if !(failure > 0.0 && failure < 1.0) {
        return Err(MechanismError::Failure { found: failure });
    }
    let allowed = failure.ln() - (draws.max(1) as f64).ln();
    // Doubles the bound until it is enough, then halves the gap.
    let enough = |bound: u64| log_tail(bound) <= allowed;
    let mut high = 1;
    while !enough(high) {
        high *= 2;
    }
    let mut low = 0;
    while low < high {
        let middle = low + (high - low) / 2;
        if enough(middle) { high = middle } else { low = middle + 1 }
    }
    Ok(low)
}

/// Returns `ln P[|X| > bound]`, rounded up.
fn log_tail_bound(gamma: InverseScale, tau: HonestRatio, bound: u64) -> f64 {
    let from = bound.saturating_add(1);
    // For a shape of at most one P[X = k + 1] <= p P[X = k] (see `share_pmf`), so the tail falls at least by p a vote.
    // This bounds tails that are too far out to be worth computing.
    let computed = from.min((100.0 / gamma.get()).ceil() as u64);
    let log_survival = DiscreteLaplace::of_class(gamma, tau).log_survival(computed as i64);
    log_survival - gamma.get() * (from - computed) as f64 + std::f64::consts::LN_2 + MARGIN
}

/// Returns an upper bound of `ln P[|X| > bound]` for Skellam noise: Chernoff's bound at its best `s = asinh(t / v)`.
/// The moment generating function is `exp(v (cosh s - 1))` for variance `v`.
fn log_skellam_tail_bound(deviation: f64, bound: u64) -> f64 {
    // A deviation is a square root, so its square may be below the variance by a rounding.
    let variance = deviation * deviation * (1.0 + 1e-12);
    let from = bound.saturating_add(1) as f64;
    let ratio = from / variance;
    // v (sqrt(1 + r^2) - 1) without the loss of digits for small r.
    let excess = variance * ratio * ratio / ((1.0 + ratio * ratio).sqrt() + 1.0);
    excess - from * ratio.asinh() + std::f64::consts::LN_2 + MARGIN
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{NoiseDeviation, Skellam};

    fn gamma() -> InverseScale {
        InverseScale::new(0.1).expect("valid")
    }

    fn sum_tail(tau: HonestRatio, bound: u64) -> f64 {
        log_tail_bound(gamma(), tau, bound).exp()
    }

    #[test]
    fn full_noise_has_its_closed_form_near_and_far() {
        let p = (-0.1f64).exp();
        for bound in [0, 1, 7, 437, 999, 1_000, 5_000] {
            // P[|X| > b] = 2 p^(b + 1) / (1 + p).
            let exact = 2.0 * (-0.1 * (bound + 1) as f64).exp() / (1.0 + p);
            let found = sum_tail(HonestRatio::ALL, bound);
            assert!(found >= exact && found <= exact * (1.0 + 1e-8), "bound {bound}: {found:e} against {exact:e}");
        }
        assert_eq!(sum_tail(HonestRatio::ALL, u64::MAX), 0.0);
    }

    #[test]
    fn the_support_bound_is_the_smallest_that_holds() {
        for tau in [1.0, 0.7, 0.004] {
            let tau = HonestRatio::new(tau).expect("valid");
            let bound = sum_support_bound(gamma(), tau, 1_000, 2f64.powi(-64)).expect("valid");
            assert!(1_000.0 * sum_tail(tau, bound) <= 2f64.powi(-64) * (1.0 + 1e-12));
            assert!(1_000.0 * sum_tail(tau, bound - 1) > 2f64.powi(-64));
        }
    }

    #[test]
    fn skellam_noise_stays_within_its_bound() {
        for sigma in [0.3, 1.0, 40.0, 300.0] {
            let sigma = NoiseDeviation::new(sigma).expect("valid");
            let share = SkellamShare::new(sigma, 250).expect("valid");
            let bound = skellam_support_bound(&share, 1_000, 2f64.powi(-64)).expect("valid");
            let noise = Skellam::of_class(sigma, HonestRatio::ALL);
            let log_tail = |b: u64| std::f64::consts::LN_2 + noise.lattice(b as usize + 1).log_survival(b as i64 + 1);
            let allowed = -64.0 * std::f64::consts::LN_2 - 1_000f64.ln();
            assert!(log_tail(bound) <= allowed, "sigma {sigma:?}: {bound}");
            // Chernoff's bound is close: at most a tenth of the range is lost.
            assert!(log_tail((bound as f64 * 0.9) as u64) > allowed, "sigma {sigma:?}: {bound}");
        }
    }

    #[test]
    fn refuses_a_failure_outside_0_to_1() {
        for failure in [0.0, 1.0, -0.1, f64::NAN] {
            let result = sum_support_bound(gamma(), HonestRatio::ALL, 1, failure);
            assert!(matches!(result, Err(MechanismError::Failure { .. })), "{failure}");
        }
    }
}
