//! The generalised Laplace distribution as a table, for integrals that need it at thousands of points.
//!
//! The table holds `ln S(x)` and `ln f(x)` at `x = gamma |u| = e^{i h / 2}`. Both are sums over `s = ln W` (see
//! [`GeneralisedLaplace`]), whose terms depend on `ln x - s / 2` and on `s` alone; on a grid of step `h/2` for `ln x`
//! and `h` for `s` the first factor is shared by all entries. In `ln x` both functions are analytic, so interpolation
//! of order eight between entries is accurate to about 1e-12. Above the grid, the tail is computed directly; below it,
//! the density is continued by its power law.

use std::f64::consts::{LN_2, PI};

use statrs::function::gamma::ln_gamma;

use crate::GeneralisedLaplace;
use crate::erfc::log_scaled_erfc;

/// Step in `s = ln W`.
const STEP: f64 = 1.0 / 16.0;
/// The grid covers `x = e^{i STEP / 2}` for `i` from `FIRST` to `LAST`: from 1e-15 to 96.
const FIRST: i32 = -1_105;
const LAST: i32 = 146;
/// The largest `i - j` that matters: z = 27, beyond which erfc is negligible.
const NEAREST: i32 = 127;
/// The largest `j` that matters: e^s = 115, also at the largest `x`.
const TOP: i32 = 76;
/// Points of an interpolation.
const POINTS: usize = 8;

/// A table of one shape; the scale is applied when it is read.
#[derive(Clone, Debug)]
pub struct LaplaceTable {
    noise: GeneralisedLaplace,
    log_survival: Vec<f64>,
    /// For `gamma = 1`.
    log_density: Vec<f64>,
}

impl LaplaceTable {
    /// Tabulates a distribution: about a million products.
    pub fn new(noise: GeneralisedLaplace) -> Self {
        let shape = noise.shape;
        let kernels: Vec<(f64, f64)> = (FIRST - TOP..=NEAREST).map(kernel).collect();
        let survival_scale = -LN_2 - ln_gamma(shape);
        let density_scale = survival_scale - PI.ln() / 2.0;
        // e^{tau s - e^s} for s = j STEP.
        let nodes: Vec<f64> = (FIRST - NEAREST..=TOP).map(|j| shape * f64::from(j) * STEP).collect();
        let tops: Vec<f64> = (FIRST - NEAREST..=TOP).map(|j| -(f64::from(j) * STEP).exp()).collect();
        let weights: Vec<f64> = nodes.iter().zip(&tops).map(|(a, b)| (a + b).exp()).collect();
        let halves: Vec<f64> = nodes
            .iter()
            .zip(&tops)
            .zip(FIRST - NEAREST..=TOP)
            .map(|((a, b), j)| (a + b - 0.5 * f64::from(j) * STEP).exp())
            .collect();
        let (mut log_survival, mut log_density) = (Vec::new(), Vec::new());
        for i in FIRST..=LAST {
            // z = x e^{-s/2} / 2 = e^{(i - j) STEP / 2} / 2.
            let from = i - NEAREST;
            let (mut survival, mut density) = (0.0, 0.0);
            for j in from..=TOP {
                let (tail, bell) = kernels[(i - j - (FIRST - TOP)) as usize];
                let node = (j - FIRST + NEAREST) as usize;
                survival += weights[node] * tail;
                density += halves[node] * bell;
            }
            log_survival.push(survival_scale + (STEP * survival).ln());
            log_density.push(density_scale + (STEP * density).ln());
        }
        Self { noise, log_survival, log_density }
    }

    /// Returns the logarithm of the probability that the noise is at least `u` votes.
    pub fn log_survival(&self, u: f64) -> f64 {
        let x = self.noise.gamma * u;
        if x < 0.0 {
            return (-self.log_survival(-u).exp()).ln_1p();
        }
        match grid_position(x) {
            GridPosition::Below => {
                // 1/2 - S follows the power law x^{2 shape}, or x if that is flatter.
                let power = (2.0 * self.noise.shape).min(1.0);
                let first = -(self.log_survival[0] + LN_2).exp_m1();
                (-first * (power * (x.ln() - f64::from(FIRST) * STEP / 2.0)).exp()).ln_1p() - LN_2
            }
            GridPosition::At(i, t) => interpolate(&self.log_survival[i..i + POINTS], t),
            GridPosition::Above => self.noise.log_survival(u),
        }
    }

    /// Returns the logarithm of the density at `u` votes, per vote.
    pub fn log_density(&self, u: f64) -> f64 {
        let x = (self.noise.gamma * u).abs();
        match grid_position(x) {
            GridPosition::Below if x == 0.0 => self.noise.log_density(0.0),
            GridPosition::Below => {
                // The power law x^{2 shape - 1} below shape 1/2; flat above.
                let slope = (2.0 * self.noise.shape - 1.0).min(0.0);
                self.log_density[0] + slope * (x.ln() - f64::from(FIRST) * STEP / 2.0) + self.noise.gamma.ln()
            }
            GridPosition::At(i, t) => interpolate(&self.log_density[i..i + POINTS], t) + self.noise.gamma.ln(),
            GridPosition::Above => self.noise.log_density(u),
        }
    }
}

/// Returns `erfc(z)` and `e^{-z^2}` at `z = e^{k STEP / 2} / 2`.
fn kernel(k: i32) -> (f64, f64) {
    let z = (f64::from(k) * STEP / 2.0).exp() / 2.0;
    ((log_scaled_erfc(z) - z * z).exp(), (-z * z).exp())
}

enum GridPosition {
    Below,
    /// The first of the entries to interpolate between, and the position after it in units of steps.
    At(usize, f64),
    Above,
}

fn grid_position(x: f64) -> GridPosition {
    let position = x.ln() * 2.0 / STEP - f64::from(FIRST);
    let last = (LAST - FIRST) as usize;
    if position < 0.0 {
        GridPosition::Below
    } else if position > last as f64 {
        GridPosition::Above
    } else {
        let first = (position.floor() as usize).saturating_sub(POINTS / 2 - 1).min(last + 1 - POINTS);
        GridPosition::At(first, position - first as f64)
    }
}

/// Interpolates (Lagrange) at equal steps, barycentric form.
fn interpolate(values: &[f64], t: f64) -> f64 {
    const WEIGHTS: [f64; POINTS] = [-1.0, 7.0, -21.0, 35.0, -35.0, 21.0, -7.0, 1.0];
    let (mut above, mut below) = (0.0, 0.0);
    for (i, (value, weight)) in values.iter().zip(WEIGHTS).enumerate() {
        let distance = t - i as f64;
        if distance == 0.0 {
            return *value;
        }
        above += weight / distance * value;
        below += weight / distance;
    }
    above / below
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::InverseScale;

    #[test]
    fn the_table_agrees_with_direct_evaluation() {
        for shape in [0.05, 0.3, 0.5, 0.7, 0.9, 1.0, 1.4, 1.8, 2.0] {
            let noise = GeneralisedLaplace::new(InverseScale::new(0.1).expect("valid"), shape).expect("valid");
            let table = LaplaceTable::new(noise);
            for u in [1e-22, 1e-17, 1e-13, 1e-11, 3.3e-7, 0.001, 0.37, 1.0, 7.7, 60.0, 333.0, 900.0, 2_000.0, 30_000.0]
            {
                // Below the grid, where next to nothing is left, the power laws are inaccurate (at shape 1/2 there is a
                // logarithm).
                let tolerance = if u < 1e-14 { 0.5 } else { 2e-12 };
                for (found, exact) in [
                    (table.log_survival(u), noise.log_survival(u)),
                    (table.log_survival(-u), noise.log_survival(-u)),
                    (table.log_density(u), noise.log_density(u)),
                ] {
                    let off = (found - exact).abs() / exact.abs().max(1.0);
                    assert!(off <= tolerance, "{shape} {u}: {found} against {exact}");
                }
            }
            assert!((table.log_survival(0.0) + LN_2).abs() < 1e-15);
        }
    }
}
