//! Adam in one pass over the parameters.
//!
//! Burn's Adam reads and writes every array about fifteen times a step; for networks this size a step is then bound
//! by memory. Here each parameter and its moments are read and written once.

use serde::{Deserialize, Serialize};

/// Settings of [`Adam`] (Kingma and Ba, 2015).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AdamConfig {
    /// Step size.
    pub learning_rate: f32,
    /// Decay of the first moment a step.
    pub beta1: f32,
    /// Decay of the second moment a step.
    pub beta2: f32,
    /// Smallest deviation that a gradient is divided by: a step is `rate * m / sqrt(v + epsilon^2)`, with the
    /// moments corrected for their start at zero. That is the form of Salimans' code, which has 1e-8 *inside* the
    /// root and so a floor of 1e-4; most libraries add epsilon outside.
    pub epsilon: f32,
}

/// First and second moment of the gradient of one array of parameters.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Moments {
    first: Vec<f32>,
    second: Vec<f32>,
}

impl Moments {
    /// Moments of `parameters` values, zero before the first step.
    #[must_use]
    pub fn zeros(parameters: usize) -> Self {
        Self { first: vec![0.0; parameters], second: vec![0.0; parameters] }
    }

    /// Returns both arrays, for a checkpoint.
    #[must_use]
    pub fn arrays(&self) -> [&[f32]; 2] {
        [&self.first, &self.second]
    }

    /// Returns both arrays, to restore from a checkpoint.
    pub fn arrays_mut(&mut self) -> [&mut [f32]; 2] {
        [&mut self.first, &mut self.second]
    }
}

/// The optimiser: its settings and how many steps it has done.
#[derive(Clone, Debug, PartialEq)]
pub struct Adam {
    config: AdamConfig,
    steps: u64,
}

impl Adam {
    /// Returns an optimiser that has done `steps` steps, 0 for a new one.
    #[must_use]
    pub fn new(config: AdamConfig, steps: u64) -> Self {
        Self { config, steps }
    }

    /// Steps begun.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Begins a step: every array of parameters is then updated once through what this returns.
    pub fn begin_step(&mut self) -> AdamStep {
        self.steps += 1;
        let AdamConfig { learning_rate, beta1, beta2, epsilon } = self.config;
        // beta^t underflows to 0 long before t reaches 2^31, so a saturated exponent gives the same bits.
        let t = i32::try_from(self.steps).unwrap_or(i32::MAX);
        let first = 1.0 - f64::from(beta1).powi(t);
        let second = 1.0 - f64::from(beta2).powi(t);
        // rate * (m / c1) / sqrt(v / c2 + e^2) = [rate * sqrt(c2) / c1] * m / sqrt(v + c2 e^2)
        #[expect(clippy::cast_possible_truncation, reason = "two factors of the update are wanted in f32")]
        let (rate, floor) =
            ((f64::from(learning_rate) * second.sqrt() / first) as f32, (second * f64::from(epsilon).powi(2)) as f32);
        AdamStep { beta1, beta2, rate, floor }
    }
}

/// One step of [`Adam`], for all arrays of parameters.
#[derive(Clone, Copy, Debug)]
pub struct AdamStep {
    /// Decay of the first moment.
    pub beta1: f32,
    /// Decay of the second moment.
    pub beta2: f32,
    /// The factor of `m / sqrt(v + floor)`, the moments' start at zero taken into account.
    pub rate: f32,
    /// The number added to the second moment below the root.
    pub floor: f32,
}

impl AdamStep {
    /// Updates `parameters` by their `gradient`.
    ///
    /// # Panics
    /// When the three do not have one length.
    pub fn update(self, parameters: &mut [f32], gradient: &[f32], moments: &mut Moments) {
        self.update_part(parameters, gradient, 0.0, moments, 0);
    }

    /// Updates a part of an array, whose moments start at `start`, by `gradient + pull * parameters`.
    ///
    /// The second term is how a weight norm enters the gradient of the weights below it; here it costs no pass.
    ///
    /// # Panics
    /// When `parameters` and `gradient` differ in length or the moments end before them.
    pub fn update_part(self, parameters: &mut [f32], gradient: &[f32], pull: f32, moments: &mut Moments, start: usize) {
        assert_eq!(parameters.len(), gradient.len(), "parameters and gradient");
        let Self { beta1, beta2, rate, floor } = self;
        let part = start..start + parameters.len();
        let (first, second) = (&mut moments.first[part.clone()], &mut moments.second[part]);
        // All values are read before the first is written. Large arrays begin at the same place of a page, and a
        // processor that tells addresses apart by their last 12 bits first lets a read wait for the write before it:
        // in another order a pass over arrays in distant memory takes twice as long.
        for (((p, &g), m), v) in parameters.iter_mut().zip(gradient).zip(first).zip(second) {
            let (old_p, old_m, old_v) = (*p, *m, *v);
            let g = pull.mul_add(old_p, g);
            let new_m = beta1.mul_add(old_m - g, g);
            let new_v = beta2.mul_add(old_v - g * g, g * g);
            (*m, *v) = (new_m, new_v);
            *p = old_p - rate * new_m / (new_v + floor).sqrt();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: AdamConfig = AdamConfig { learning_rate: 0.01, beta1: 0.5, beta2: 0.999, epsilon: 1e-4 };

    /// Adam as published, in f64.
    fn reference(start: f64, gradients: &[f64]) -> f64 {
        let (mut p, mut m, mut v) = (start, 0.0, 0.0);
        for (t, &g) in (1..).zip(gradients) {
            m = 0.5 * m + 0.5 * g;
            v = 0.999 * v + 0.001 * g * g;
            let (m_hat, v_hat) = (m / (1.0 - 0.5_f64.powi(t)), v / (1.0 - 0.999_f64.powi(t)));
            p -= 0.01 * m_hat / (v_hat + 1e-8).sqrt();
        }
        p
    }

    #[test]
    fn steps_follow_the_published_formula() {
        let gradients = [0.3, -0.2, 1e-4, 1e-5, 0.0, 2.0];
        let mut adam = Adam::new(CONFIG, 0);
        let (mut p, mut moments) = (vec![0.5_f32, 0.25], Moments::zeros(2));
        for g in gradients {
            adam.begin_step().update(&mut p, &[g, g * 1e-3], &mut moments);
        }
        let wide = gradients.map(f64::from);
        assert!((f64::from(p[0]) - reference(0.5, &wide)).abs() < 1e-6);
        assert!((f64::from(p[1]) - reference(0.25, &wide.map(|g| g * 1e-3))).abs() < 1e-6);
        assert_eq!(adam.steps(), 6);
    }

    #[test]
    fn parts_and_pull_are_the_same_update() {
        let (mut whole, mut parts) = (vec![1.0_f32, -2.0, 3.0, 4.0], vec![1.0_f32, -2.0, 3.0, 4.0]);
        let (mut m_whole, mut m_parts) = (Moments::zeros(4), Moments::zeros(4));
        let step = Adam::new(CONFIG, 3).begin_step();
        step.update(&mut whole, &[1.5, 0.0, 0.3, 0.4], &mut m_whole);
        step.update_part(&mut parts[..2], &[1.0, 1.0], 0.5, &mut m_parts, 0);
        step.update_part(&mut parts[2..], &[0.3, 0.4], 0.0, &mut m_parts, 2);
        assert_eq!((whole, m_whole), (parts, m_parts));
    }
}
