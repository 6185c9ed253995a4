//! Privacy profiles on a grid, and the privacy loss distributions that dominate them.

/// Excess of a privacy profile over the profile of a mechanism that reveals nothing: values of
/// `delta(e^epsilon) - (1 - e^epsilon)_+` at `epsilon = j step`, `j = -half, ..., half`.
///
/// `delta(alpha) = sup (P(E) - alpha Q(E))` over events is convex in `alpha`. A value may be larger than the true one,
/// but not smaller.
#[derive(Clone, Debug, PartialEq)]
pub struct PrivacyProfile {
    step: f64,
    excess: Vec<f64>,
}

/// The distribution under `P` of a privacy loss `ln(P/Q)`, on a grid. Such distributions compose by convolution.
#[derive(Clone, Debug, PartialEq)]
pub struct PrivacyLossDistribution {
    pub(super) step: f64,
    /// Place on the grid of the first mass.
    pub(super) first: i64,
    pub(super) masses: Vec<f64>,
    pub(super) infinite: f64,
}

impl PrivacyProfile {
    /// Creates a profile from a function of `epsilon` that is at least `delta(e^epsilon) - (1 - e^epsilon)_+`. The grid
    /// has `half` steps of `step` on each side of 0. Beyond the grid, the profile is bounded by its ends.
    pub fn new(step: f64, half: usize, excess: impl Fn(f64) -> f64) -> Self {
        Self::of_values(step, Self::places(step, half).map(excess).collect())
    }

    pub(crate) fn of_values(step: f64, values: Vec<f64>) -> Self {
        // No excess is more than 1, so NaN becomes 1.
        let sound = |value: f64| if value.is_nan() { 1.0 } else { value.clamp(0.0, 1.0) };
        Self { step, excess: values.into_iter().map(sound).collect() }
    }

    pub(crate) fn places(step: f64, half: usize) -> impl Iterator<Item = f64> {
        let half = half as i64;
        (-half..=half).map(move |j| j as f64 * step)
    }

    /// Returns the smaller of two upper bounds of one profile if both are on the same grid, else the first.
    #[must_use]
    pub(crate) fn min(mut self, other: &Self) -> Self {
        if self.step.to_bits() == other.step.to_bits() && self.excess.len() == other.excess.len() {
            self.excess.iter_mut().zip(&other.excess).for_each(|(value, other)| *value = value.min(*other));
        }
        self
    }

    /// Returns the distribution whose profile connects these dots (Doroshenko, Ghazi, Kamath, Kumar and Manurangsi
    /// 2022): the true profile is convex, so it lies below the connected dots and also below their lower convex hull.
    /// The pair of distributions behind this profile dominates the mechanism, and compositions of such pairs dominate
    /// compositions of the mechanisms (Zhu, Dong and Wang 2022, Theorem 10).
    pub fn connect(&self) -> PrivacyLossDistribution {
        let half = (self.excess.len() / 2) as i64;
        let alpha: Vec<f64> = (-half..=half).map(|j| (j as f64 * self.step).exp()).collect();
        // The hull, with (1 - alpha)_+ added to the excess; 0 is a place of the grid, so its kink is at a dot.
        let hinge = |i: usize| (1.0 - alpha[i]).max(0.0);
        let mut hull: Vec<usize> = Vec::new();
        for k in 0..alpha.len() {
            while let [.., i, j] = hull[..] {
                let share = (alpha[j] - alpha[i]) / (alpha[k] - alpha[i]);
                let spans = (i as i64) < half && (k as i64) > half;
                let bend = if spans { hinge(i) * (1.0 - share) - hinge(j) } else { 0.0 };
                let chord = self.excess[i] + share * (self.excess[k] - self.excess[i]) + bend;
                if self.excess[j] < chord {
                    break;
                }
                hull.pop();
            }
            hull.push(k);
        }
        // Bends of the excess: from (0, 0) to the first dot, between dots, and flat from the last.
        let mut bends = vec![0.0; alpha.len()];
        let mut slope = self.excess[0] / alpha[0];
        let mut rounding = 0.0;
        for (n, &i) in hull.iter().enumerate() {
            let next = hull.get(n + 1).map_or(0.0, |&k| {
                let width = alpha[k] - alpha[i];
                rounding += (self.excess[k] + self.excess[i]) * alpha[k] / width;
                (self.excess[k] - self.excess[i]) / width
            });
            bends[i] = next - slope;
            slope = next;
        }
        // The bend of (1 - alpha)_+ is 1 at 0, or shared by the ends of the chord that passes over it.
        let zero = half as usize;
        let after = hull.partition_point(|&i| i < zero);
        match hull.get(after) {
            Some(&k) if k > zero => {
                let i = hull[after - 1];
                let share = (1.0 - alpha[i]) / (alpha[k] - alpha[i]);
                bends[i] += 1.0 - share;
                bends[k] += share;
            }
            _ => bends[zero] += 1.0,
        }
        let mut masses: Vec<f64> = bends.iter().zip(&alpha).map(|(bend, alpha)| (alpha * bend).max(0.0)).collect();
        // Mass that rounding may have removed from a place is added to the last place, where it counts for more.
        masses[alpha.len() - 1] += 8.0 * f64::EPSILON * rounding;
        PrivacyLossDistribution { step: self.step, first: -half, masses, infinite: self.excess[alpha.len() - 1] }
    }
}

/// Computes the profile of randomised response, the worst of any `epsilon`-private mechanism (Kairouz, Oh and Viswanath
/// 2015), at one place: `(e^epsilon - alpha)_+ / (1 + e^epsilon)` for `alpha` of at least 1, and by symmetry below 1.
pub(crate) fn pure_excess(epsilon: f64, at: f64) -> f64 {
    // Divided by e^epsilon, so that nothing overflows.
    let share =
        if at >= 0.0 { -(at - epsilon).min(0.0).exp_m1() } else { at.exp() * -(-at - epsilon).min(0.0).exp_m1() };
    share / (1.0 + (-epsilon).exp())
}

/// Computes the same for one count with continuous Laplace noise of inverse scale `gamma` that changes by 1:
/// `1 - e^{(epsilon - gamma) / 2}` for `epsilon` from 0 to `gamma`, and by symmetry below 0.
pub(crate) fn laplace_excess(gamma: f64, at: f64) -> f64 {
    let share = -(0.5 * (at.abs() - gamma)).min(0.0).exp_m1();
    if at >= 0.0 { share } else { at.exp() * share }
}

impl PrivacyLossDistribution {
    /// Returns its own profile at `epsilon`, which is at least the profile of any mechanism that it dominates.
    pub fn delta(&self, epsilon: f64) -> f64 {
        let places = (self.first..).map(|place| place as f64 * self.step - epsilon);
        let above = self.masses.iter().zip(places).filter(|(_, excess)| *excess > 0.0);
        self.infinite + above.map(|(mass, excess)| mass * -(-excess).exp_m1()).sum::<f64>()
    }

    /// Returns the moment of order `l`, infinite if a loss may be.
    pub(crate) fn moment(&self, l: f64) -> f64 {
        if self.infinite > 0.0 { f64::INFINITY } else { self.tilted(l).0 }
    }

    /// Returns the logarithm of the sum of the masses tilted by `e^{tilt loss}`, and the mean and variance of the loss
    /// under them.
    pub(super) fn tilted(&self, tilt: f64) -> (f64, f64, f64) {
        let terms = || {
            let losses = (self.first..).map(|place| place as f64 * self.step);
            self.masses
                .iter()
                .zip(losses)
                .filter(|(mass, _)| **mass > 0.0)
                .map(|(mass, loss)| (mass.ln() + tilt * loss, loss))
        };
        let largest = terms().map(|term| term.0).fold(f64::NEG_INFINITY, f64::max);
        let (mut sum, mut mean, mut square) = (0.0, 0.0, 0.0);
        for (log, loss) in terms() {
            let weight = (log - largest).exp();
            sum += weight;
            mean += weight * loss;
            square += weight * loss * loss;
        }
        (largest + sum.ln(), mean / sum, (square / sum - (mean / sum).powi(2)).max(0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_profile_of_a_laplace_count_is_the_integral_of_its_densities() {
        for gamma in [0.05f64, 0.7, 4.0] {
            let density = |x: f64| 0.5 * gamma * (-gamma * x.abs()).exp();
            for at in [-1.3, -0.6, 0.0, 0.2, 0.9, 1.1].map(|part| part * gamma) {
                let steps = 400_000;
                let width = 80.0 / gamma / f64::from(steps);
                let places = (-steps / 2..steps / 2).map(|i| (f64::from(i) + 0.5) * width);
                let delta: f64 = places.map(|x| (density(x) - at.exp() * density(x - 1.0)).max(0.0) * width).sum();
                let found = laplace_excess(gamma, at) + (1.0 - at.exp()).max(0.0);
                assert!((found - delta).abs() < 1e-4 * (1.0 + gamma), "{gamma} {at}: {found} against {delta}");
            }
        }
    }
}
