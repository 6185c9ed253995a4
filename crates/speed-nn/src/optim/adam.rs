//! Adam in one pass over every parameter.
//!
//! Burn's Adam reads and writes every array about fifteen times per step, so for networks of this size a step is bound
//! by memory. Here each parameter and its moments are read and written once, in place.

use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, Dispatch, Flex, backend_extension};
use burn::optim::{AdamState, AdaptiveMomentumState, LearningRate, Optimizer};
use burn::tensor::{Device, Tensor};

use crate::flex::{contiguous, on_flex, values, values_mut};

/// Adam (Kingma and Ba, 2015), with its moments corrected for their start at zero.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Adam {
    /// Decay of the first moment per step.
    pub beta1: f32,
    /// Decay of the second moment per step.
    pub beta2: f32,
    /// The number that keeps the root of the second moment away from zero.
    pub epsilon: Epsilon,
}

/// The number that keeps the root of Adam's second moment away from zero, and its position in the formula.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Epsilon {
    /// `m / (sqrt(v) + epsilon)`, as published and in most libraries.
    Outside(f32),
    /// `m / sqrt(v + epsilon^2)`: `epsilon` is the least deviation that a gradient is divided by. The form of Salimans'
    /// code, which has 1e-8 inside the root, that is 1e-4 here.
    Inside(f32),
}

/// One step of [`Adam`] on one array: `p - rate m / (sqrt(v + inside) + outside)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct AdamStep {
    beta1: f32,
    beta2: f32,
    rate: f32,
    inside: f32,
    outside: f32,
}

/// The operation as Burn's backends see it. An optimiser's step has no gradient.
#[backend_extension(Flex)]
pub(crate) trait AdamOps: Backend {
    /// Computes parameters and both moments after a step.
    fn adam_step(
        parameters: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        first: FloatTensor<Self>,
        second: FloatTensor<Self>,
        step: AdamStep,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>);
}

impl Adam {
    /// Returns an optimiser with [`Epsilon::Inside`] and its factors rounded to `f32`.
    #[expect(clippy::cast_possible_truncation, reason = "networks compute in f32")]
    pub fn with_least_deviation([beta1, beta2]: [f64; 2], epsilon: f64) -> Self {
        Self { beta1: beta1 as f32, beta2: beta2 as f32, epsilon: Epsilon::Inside(epsilon as f32) }
    }

    /// Returns the factors of step `time`, from 1.
    #[expect(clippy::cast_possible_truncation, reason = "networks compute in f32")]
    fn step_at(&self, rate: LearningRate, time: usize) -> AdamStep {
        // beta^t underflows to 0 long before t reaches 2^31, so a saturated exponent gives the same bits.
        let t = i32::try_from(time).unwrap_or(i32::MAX);
        let [first, second] = [self.beta1, self.beta2].map(|beta| 1.0 - f64::from(beta).powi(t));
        // rate (m / c1) / (sqrt(v / c2) + e) = [rate sqrt(c2) / c1] m / (sqrt(v) + e sqrt(c2)), and similarly with e
        // inside.
        let (inside, outside) = match self.epsilon {
            Epsilon::Inside(epsilon) => (second * f64::from(epsilon).powi(2), 0.0),
            Epsilon::Outside(epsilon) => (0.0, second.sqrt() * f64::from(epsilon)),
        };
        AdamStep {
            beta1: self.beta1,
            beta2: self.beta2,
            rate: (rate * second.sqrt() / first) as f32,
            inside: inside as f32,
            outside: outside as f32,
        }
    }
}

impl Optimizer for Adam {
    // Burn's own type, because its `derive(RecordState)` compiles only inside burn-optim.
    type State<const D: usize> = AdamState<D>;

    fn step<const D: usize>(
        &self,
        rate: LearningRate,
        tensor: Tensor<D>,
        gradient: Tensor<D>,
        state: Option<AdamState<D>>,
    ) -> (Tensor<D>, Option<AdamState<D>>) {
        let zeros = || Tensor::zeros(tensor.dims(), &tensor.device());
        let state = state.map(|state| state.momentum);
        let AdaptiveMomentumState { time, moment_1: first, moment_2: second, .. } =
            state.unwrap_or_else(|| AdaptiveMomentumState::new(0, zeros(), zeros()));
        let time = time.saturating_add(1);
        let step = self.step_at(rate, time);
        let [tensor, first, second] = adam_step(tensor, gradient, [first, second], step);
        (tensor, Some(AdamState::new(AdaptiveMomentumState::new(time, first, second))))
    }

    fn to_device<const D: usize>(state: AdamState<D>, device: &Device) -> AdamState<D> {
        AdamState::new(state.momentum.to_device(device))
    }
}

/// Returns parameters and both moments after a step.
fn adam_step<const D: usize>(
    parameters: Tensor<D>,
    gradient: Tensor<D>,
    moments: [Tensor<D>; 2],
    step: AdamStep,
) -> [Tensor<D>; 3] {
    if !on_flex(&parameters) {
        return adam_step_in_burn(parameters, gradient, moments, step);
    }
    let [first, second] = moments.map(Tensor::into_dispatch);
    let (parameters, gradient) = (parameters.into_dispatch(), gradient.into_dispatch());
    let (parameters, first, second) = Dispatch::adam_step(parameters, gradient, first, second, step);
    [parameters, first, second].map(Tensor::from_dispatch)
}

fn adam_step_in_burn<const D: usize>(
    parameters: Tensor<D>,
    gradient: Tensor<D>,
    [first, second]: [Tensor<D>; 2],
    AdamStep { beta1, beta2, rate, inside, outside }: AdamStep,
) -> [Tensor<D>; 3] {
    let first = first * beta1 + gradient.clone() * (1.0 - beta1);
    let second = second * beta2 + gradient.square() * (1.0 - beta2);
    [parameters - first.clone() * rate / ((second.clone() + inside).sqrt() + outside), first, second]
}

impl AdamOps for Flex {
    fn adam_step(
        mut parameters: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        mut first: FloatTensor<Self>,
        mut second: FloatTensor<Self>,
        step: AdamStep,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        // A shared array (a clone of the module, a copy without gradients) is copied first.
        let gradient = contiguous(gradient);
        let moments = values_mut(&mut first).iter_mut().zip(values_mut(&mut second));
        let AdamStep { beta1, beta2, rate, inside, outside } = step;
        // All values are read before the first is written. Large arrays begin at the same offset in a page, and a
        // processor that compares only the last 12 bits of addresses at first delays a read until the preceding write
        // is done. In another order, a pass over arrays in distant memory takes twice as long.
        for ((p, &g), (m, v)) in values_mut(&mut parameters).iter_mut().zip(values(&gradient)).zip(moments) {
            let (old_p, old_m, old_v) = (*p, *m, *v);
            let new_m = beta1.mul_add(old_m - g, g);
            let new_v = beta2.mul_add(old_v - g * g, g * g);
            (*m, *v) = (new_m, new_v);
            *p = old_p - rate * new_m / ((new_v + inside).sqrt() + outside);
        }
        (parameters, first, second)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::{assert_close, random, values};

    /// Computes Adam as published, in f64.
    fn reference(start: f64, gradients: &[f64], divisor: impl Fn(f64) -> f64) -> f64 {
        let (mut p, mut m, mut v) = (start, 0.0, 0.0);
        for (t, &g) in (1..).zip(gradients) {
            m = 0.5 * m + 0.5 * g;
            v = 0.999 * v + 0.001 * g * g;
            let (m_hat, v_hat) = (m / (1.0 - 0.5_f64.powi(t)), v / (1.0 - 0.999_f64.powi(t)));
            p -= 0.01 * m_hat / divisor(v_hat);
        }
        p
    }

    #[test]
    fn steps_follow_the_published_formula() {
        let gradients: [f64; 6] = [0.3, -0.2, 1e-4, 1e-5, 0.0, 2.0];
        let run = |epsilon| {
            let adam = Adam { beta1: 0.5, beta2: 0.999, epsilon };
            let (mut p, mut state) = (Tensor::<1>::from_data([0.5, 0.25], &Device::flex()), None);
            for g in gradients {
                let g = Tensor::from_data([g as f32, (g * 1e-3) as f32], &Device::flex());
                (p, state) = adam.step(0.01, p, g, state);
            }
            values(p)
        };
        let expect = |found: Vec<f32>, divisor: &dyn Fn(f64) -> f64| {
            for (found, (start, scale)) in found.into_iter().zip([(0.5, 1.0), (0.25, 1e-3)]) {
                let expected = reference(start, &gradients.map(|g| g * scale), divisor);
                assert!((f64::from(found) - expected).abs() < 1e-6, "{found} is not {expected}");
            }
        };
        expect(run(Epsilon::Inside(1e-4)), &|v| (v + 1e-8).sqrt());
        expect(run(Epsilon::Outside(1e-4)), &|v| v.sqrt() + 1e-4);
    }

    #[test]
    fn a_step_agrees_with_its_body_and_leaves_what_others_hold() {
        let [p, g, m, v] = [1, 2, 3, 4].map(|index| random([7, 5], index).inner());
        let v = v.square();
        for epsilon in [Epsilon::Inside(1e-4), Epsilon::Outside(1e-8)] {
            let step = Adam { beta1: 0.9, beta2: 0.999, epsilon }.step_at(0.01, 3);
            let before = values(p.clone());
            let found = adam_step(p.clone(), g.clone(), [m.clone(), v.clone()], step);
            let expected = adam_step_in_burn(p.clone(), g.clone(), [m.clone(), v.clone()], step);
            for (found, expected) in found.into_iter().zip(expected) {
                assert_close(&values(found), &values(expected));
            }
            assert_eq!(values(p.clone()), before);
        }
    }
}
