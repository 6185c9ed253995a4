//! Composition of privacy losses by convolution.

use rustfft::FftPlanner;
use rustfft::num_complex::Complex;

use super::conversion::improved_epsilon;
use super::halved;
use super::profile::PrivacyLossDistribution;
use crate::epsilon_bound::CompositionMethod;
use crate::orders::{MAX_REAL_ORDER, best_real};

/// Longest transform: the bound of a longer one is not worth its time.
const MAX_LENGTH: usize = 1 << 20;
/// Standard deviations of the tilted sum that the transform covers.
const DEVIATIONS: f64 = 26.0;

/// The sum of independent privacy losses, as a distribution on the grid of its parts.
///
/// Masses are tilted by `e^{tilt loss}` before the transform (as in Chernoff's bound), so that rounding errors are
/// small relative to delta instead of 1. The best `tilt` is the moments accountant's best order. The probability beyond
/// the window is bounded by Chernoff's inequality and counted as an infinite loss. A bound on the error of the
/// transforms is added to each mass.
#[derive(Clone, Debug)]
pub struct Composition {
    step: f64,
    first: i64,
    /// For each place, the part of delta that comes from the losses at or above it.
    from: Vec<Suffix>,
    tilt: f64,
    /// Logarithm of the sum of all tilted masses; `slack` bounds its error.
    log_sum: f64,
    slack: f64,
    infinite: f64,
}

/// Sums over the losses at or above a place, relative to that place: tilted masses times `e^{place - loss}`, and times
/// `1 - e^{place - loss}`. Both are sums of positive terms between 0 and 1, however wide the window is.
#[derive(Clone, Copy, Debug, Default)]
struct Suffix {
    level: f64,
    above: f64,
}

impl Composition {
    /// Composes each part the number of times given with it. Returns `None` if the parts differ in their step, if
    /// `tilt` is not above 0 (Chernoff's inequality bounds large losses only with such tilts), if the window would be
    /// too large, or if anything in it is not finite.
    pub fn new(parts: &[(PrivacyLossDistribution, u32)], tilt: f64) -> Option<Self> {
        let step = parts.first()?.0.step;
        if parts.iter().any(|(part, _)| part.step.to_bits() != step.to_bits()) || tilt.is_nan() || tilt <= 0.0 {
            return None;
        }
        let cumulant =
            |tilt: f64| parts.iter().map(|(part, times)| f64::from(*times) * part.tilted(tilt).0).sum::<f64>();
        let moments: Vec<(f64, f64, f64)> = parts.iter().map(|(part, _)| part.tilted(tilt)).collect();
        let sum = |pick: fn(&(f64, f64, f64)) -> f64| -> f64 {
            moments.iter().zip(parts).map(|(moments, (_, times))| f64::from(*times) * pick(moments)).sum()
        };
        let (log_sum, mean, variance) = (sum(|m| m.0), sum(|m| m.1), sum(|m| m.2));
        let (lowest, highest) = parts.iter().fold((0, 0), |(low, high), (part, times)| {
            let last = part.first + part.masses.len() as i64 - 1;
            (low + i64::from(*times) * part.first, high + i64::from(*times) * last)
        });
        let wanted = DEVIATIONS * variance.sqrt() / step + 64.0;
        let whole = (highest - lowest + 1) as f64;
        let sound = step > 0.0 && [tilt, log_sum, mean, variance, wanted].into_iter().all(f64::is_finite);
        if !sound || wanted.min(whole) > MAX_LENGTH as f64 {
            return None;
        }
        let length = (wanted.min(whole).ceil() as usize).next_power_of_two();
        let first = if whole <= length as f64 { lowest } else { (mean / step).round() as i64 - length as i64 / 2 };
        let masses = convolve(parts, tilt, length, &moments);
        if !masses.iter().all(|mass| mass.is_finite()) {
            return None;
        }
        // Each factor is at most 1 in magnitude; powers, products and transforms each add an error of a few units.
        let times: f64 = parts.iter().map(|(_, times)| f64::from(*times)).sum();
        let off = 8.0 * f64::EPSILON * (times + parts.len() as f64 * (length as f64).log2());
        let end = first + length as i64 - 1;
        let beyond = if end >= highest {
            0.0
        } else {
            let log = |tilt: f64| cumulant(tilt) - tilt * (end + 1) as f64 * step;
            // A factor whose bound is NaN is ignored.
            [1.0, 1.5, 2.0, 3.0, 5.0].map(|factor| log(factor * tilt)).into_iter().fold(0.0f64, f64::min).exp()
        };
        let infinite: f64 = parts.iter().map(|(part, times)| f64::from(*times) * part.infinite).sum();
        let infinite = infinite + beyond;
        if !infinite.is_finite() {
            return None;
        }
        let furthest = parts.iter().map(|(part, _)| part.masses.len() as f64 * step * tilt.abs()).fold(1.0, f64::max);
        let slack = 16.0 * f64::EPSILON * times * furthest;
        let (tilted, fall, rise) = ((-tilt * step).exp(), (-step).exp(), -(-step).exp_m1());
        let mut from = vec![Suffix::default(); length + 1];
        for i in (0..length).rev() {
            let place = (first + i as i64).rem_euclid(length as i64) as usize;
            let Suffix { level, above } = from[i + 1];
            from[i] = Suffix {
                level: masses[place].max(0.0) + off + tilted * fall * level,
                above: tilted * (above + rise * level),
            };
        }
        Some(Self { step, first, from, tilt, log_sum, slack, infinite })
    }

    /// Returns an upper bound of delta at `epsilon`: `E[(1 - e^{epsilon - loss})_+]`. It is 1 if no better bound is
    /// known, so also if `epsilon` is NaN.
    pub fn delta(&self, epsilon: f64) -> f64 {
        let above = epsilon / self.step - self.first as f64;
        // Losses below the window were not tracked.
        if above.is_nan() || above < 0.0 {
            return 1.0;
        }
        let i = (above.floor() as usize).saturating_add(1).min(self.from.len() - 1);
        let place = (self.first + i as i64) as f64 * self.step;
        let Suffix { level, above } = self.from[i];
        // 1 - e^{epsilon - loss} = (1 - e^{place - loss}) + (1 - e^{epsilon - place}) e^{place - loss}.
        let excess = above - (epsilon - place).min(0.0).exp_m1() * level;
        let margin = self.slack + 4.0 * f64::EPSILON * (self.tilt * place).abs();
        let finite = if excess > 0.0 { (excess.ln() + self.log_sum - self.tilt * place + margin).exp() } else { 0.0 };
        let delta = finite + self.infinite;
        if delta.is_nan() { 1.0 } else { delta.min(1.0) }
    }

    /// Returns the least epsilon at which [`Self::delta`] is at most `delta`, rounded up, or infinity if there is none.
    pub fn epsilon(&self, delta: f64) -> f64 {
        let end = (self.first + self.from.len() as i64) as f64 * self.step;
        let (low, high) = (0.0f64, end.max(0.0));
        let enough = |epsilon: f64| self.delta(epsilon) <= delta;
        if !enough(high) {
            return f64::INFINITY;
        }
        if enough(low) {
            return low;
        }
        halved([low, high], 100, enough)
    }
}

/// Returns the tilt for which moments give the least epsilon of these parts at `delta`.
pub(crate) fn best_tilt(parts: &[(PrivacyLossDistribution, u32)], delta: f64) -> f64 {
    let alpha = |l: f64| parts.iter().map(|(part, times)| f64::from(*times) * part.tilted(l).0).sum::<f64>();
    best_real(MAX_REAL_ORDER, |l| improved_epsilon(alpha(l), l, delta)).map_or(1.0, |best| best.order)
}

/// Composes these parts with the best tilt: returns the least epsilon at `delta`, its method and the tilt.
pub(crate) fn composed(parts: &[(PrivacyLossDistribution, u32)], delta: f64) -> Option<(f64, CompositionMethod, f64)> {
    let tilt = best_tilt(parts, delta);
    Some((Composition::new(parts, tilt)?.epsilon(delta), CompositionMethod::LossDistributions, tilt))
}

/// Returns the cyclic convolution of all tilted and normalised masses.
fn convolve(
    parts: &[(PrivacyLossDistribution, u32)],
    tilt: f64,
    length: usize,
    moments: &[(f64, f64, f64)],
) -> Vec<f64> {
    let mut planner = FftPlanner::new();
    let (forward, backward) = (planner.plan_fft_forward(length), planner.plan_fft_inverse(length));
    let mut scratch =
        vec![Complex::default(); forward.get_inplace_scratch_len().max(backward.get_inplace_scratch_len())];
    let mut product = vec![Complex::new(1.0 / length as f64, 0.0); length];
    let mut line = vec![Complex::default(); length];
    for ((part, times), &(log_sum, _, _)) in parts.iter().zip(moments) {
        line.fill(Complex::default());
        for (mass, place) in part.masses.iter().zip(part.first..) {
            let tilted = mass * (tilt * place as f64 * part.step - log_sum).exp();
            line[place.rem_euclid(length as i64) as usize] += tilted;
        }
        forward.process_with_scratch(&mut line, &mut scratch);
        // The transform of real numbers is symmetric, so half of it is enough.
        for (product, value) in product[..=length / 2].iter_mut().zip(&line) {
            *product *= value.powu(*times);
        }
    }
    for i in length / 2 + 1..length {
        product[i] = product[length - i].conj();
    }
    backward.process_with_scratch(&mut product, &mut scratch);
    product.into_iter().map(|value| value.re).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::composition::{
        PrivacyProfile, gaussian_delta, gaussian_epsilon, optimal_delta, optimal_epsilon, pure_excess,
    };

    /// Returns the losses of randomised response.
    fn pure(epsilon: f64, half: usize) -> PrivacyLossDistribution {
        PrivacyProfile::new(epsilon / half as f64, half, |at| pure_excess(epsilon, at)).connect()
    }

    #[test]
    fn randomised_response_composes_as_kairouz_oh_and_viswanath_say() {
        // Losses are at the two ends of the grid, so nothing is rounded and the bound is the optimum.
        for (epsilon, queries, delta) in [(0.2, 100u32, 1e-5), (0.05, 500, 1e-5), (0.2, 100, 1e-12), (1.0, 7, 1e-3)] {
            let part = pure(epsilon, 8);
            let optimum = optimal_epsilon(epsilon, queries as usize, delta);
            let found = Composition::new(&[(part, queries)], 2.0 * (1.0 / delta).ln() / optimum).expect("a window");
            let off = found.epsilon(delta) / optimum - 1.0;
            assert!((-1e-10..1e-7).contains(&off), "{epsilon} {queries} {delta}: off by {off:e}");
            for total in [0.3 * optimum, 0.9 * optimum, 1.1 * optimum] {
                assert!(found.delta(total) >= optimal_delta(epsilon, queries as usize, total) * (1.0 - 1e-9));
            }
        }
    }

    #[test]
    fn a_window_beyond_the_range_of_exp_does_not_lower_the_claim() {
        // Losses of up to 20 000: e to that power overflows a double. The optimum is computed in logarithms.
        for (epsilon, queries, delta) in [(2.0f64, 10_000u32, 1e-5), (40.0, 300, 1e-9), (1.0, 5_000, 1e-60)] {
            let optimum = optimal_epsilon(epsilon, queries as usize, delta);
            let parts = [(pure(epsilon, 64), queries)];
            let found = Composition::new(&parts, best_tilt(&parts, delta)).expect("a window");
            let off = found.epsilon(delta) / optimum - 1.0;
            assert!((-1e-9..1e-6).contains(&off), "{epsilon} {queries} {delta}: off by {off:e}");
            assert_eq!(found.delta(f64::NAN), 1.0);
        }
    }

    #[test]
    fn a_tilt_without_a_chernoff_bound_is_not_composed() {
        let part = |epsilon: f64| pure(epsilon, 8);
        for tilt in [0.0, -6.0, f64::NAN, f64::INFINITY] {
            assert!(Composition::new(&[(part(0.2), 1_000)], tilt).is_none(), "{tilt}");
        }
        assert!(Composition::new(&[(part(0.01), 10), (part(1.0), 20)], 1.0).is_none(), "two grids");
    }

    #[test]
    fn different_randomised_responses_are_above_the_exact_composition() {
        // Brute force over the 2^12 outcomes of 6 + 6 responses.
        let parts = [(0.3, 6u32), (0.3 * 0.7, 6)];
        let distributions: Vec<(PrivacyLossDistribution, u32)> = parts
            .iter()
            .map(|&(epsilon, times)| {
                (PrivacyProfile::new(0.3 / 20.0, 20, |at| pure_excess(epsilon, at)).connect(), times)
            })
            .collect();
        let found = Composition::new(&distributions, 8.0).expect("a window");
        for total in [0.2f64, 0.7, 1.3] {
            let mut delta = 0.0;
            for outcome in 0u32..1 << 12 {
                let (mut log, mut loss) = (0.0f64, 0.0);
                for bit in 0..12 {
                    let epsilon = parts[usize::from(bit >= 6)].0;
                    let sign = if outcome >> bit & 1 == 1 { 1.0 } else { -1.0 };
                    log -= (-sign * epsilon).exp().ln_1p();
                    loss += sign * epsilon;
                }
                delta += log.exp() * (1.0 - (total - loss).exp()).max(0.0);
            }
            let bound = found.delta(total);
            assert!(bound >= delta * (1.0 - 1e-9) && bound < delta * 1.0001 + 1e-9, "{total}: {bound} against {delta}");
        }
    }

    #[test]
    fn gaussian_noise_composes_as_gaussian_differential_privacy_says() {
        for (mu, queries, delta) in [(0.1f64, 100u32, 1e-5), (0.035, 1000, 1e-5), (0.5, 10, 1e-9), (0.1, 100, 1e-15)] {
            let excess = |at: f64| {
                // Below 1 by symmetry: delta(alpha) = 1 - alpha + alpha delta(1 / alpha).
                if at >= 0.0 { gaussian_delta(mu, at) } else { at.exp() * gaussian_delta(mu, -at) }
            };
            let half = 400;
            let part = PrivacyProfile::new(10.0 * mu / half as f64, half, excess).connect();
            let exact = gaussian_epsilon(mu * f64::from(queries).sqrt(), delta);
            let tilt = exact / (mu * mu * f64::from(queries)) - 0.5;
            let found = Composition::new(&[(part, queries)], tilt).expect("a window").epsilon(delta);
            let off = found / exact - 1.0;
            assert!((0.0..1e-3).contains(&off), "{mu} {queries} {delta}: off by {off:e}");
        }
    }

    #[test]
    fn a_connected_profile_is_above_its_dots_and_sums_to_one() {
        let excess = |at: f64| 0.3 * pure_excess(0.4, at);
        for half in [4, 33] {
            let profile = PrivacyProfile::new(0.4 / half as f64, half, excess);
            let found = profile.connect();
            let sum: f64 = found.masses.iter().sum::<f64>() + found.infinite;
            assert!((sum - 1.0).abs() < 1e-12, "{sum}");
            for i in -50..=50 {
                let at = 0.4 * f64::from(i) / 50.0;
                let delta = excess(at) + (1.0 - at.exp()).max(0.0);
                assert!(found.delta(at) >= delta - 1e-14, "{half} {at}: {} below {delta}", found.delta(at));
            }
        }
        // Dots that are too high are pulled down by the others.
        let mut values: Vec<f64> = (-4..=4).map(|j| excess(f64::from(j) / 10.0)).collect();
        values[6] = 1.0;
        let pulled = PrivacyProfile::of_values(0.1, values).connect();
        assert!(pulled.delta(0.2) < 0.1, "{}", pulled.delta(0.2));
    }
}
