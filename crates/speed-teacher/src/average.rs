//! The exponential average of parameters that the paper's published code evaluates its teachers with.

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param, ParamId};
use burn::tensor::Tensor;
use std::collections::HashMap;

/// `a += warmed_up(rate, t) (p - a)` after step t = 1, 2, ..., from the initial parameters on.
pub(crate) struct ParameterAverage<M> {
    model: M,
    rate: f64,
    updates: usize,
}

impl<M: Module> ParameterAverage<M> {
    /// Starts at the parameters of `model`, a model on an autodiff device.
    pub(crate) fn new(model: &M, rate: f64) -> Self {
        Self { model: model.valid(), rate, updates: 0 }
    }

    /// Takes in the parameters of `model` after one more step.
    pub(crate) fn update(self, model: &M) -> Self {
        let updates = self.updates + 1;
        let mut current = Current { values: HashMap::new() };
        model.visit(&mut current);
        let rate = warmed_up(self.rate, updates);
        let model = self.model.map(&mut Step { rate, current });
        Self { model, updates, ..self }
    }

    /// Returns the model with the averaged parameters, without autodiff.
    pub(crate) fn into_model(self) -> M {
        self.model
    }
}

/// Returns the rate `max(rate, 9 / (10 + t))` at which an average of parameters takes in those after step t = 1, 2, ...
///
/// This is TensorFlow's `ExponentialMovingAverage(1 - rate, num_updates = t)`. The second term is its warm-up: without
/// it an average of decay 0.9999 would still hold 60 % of the initial weights after 5000 steps.
#[must_use]
pub fn warmed_up(rate: f64, t: usize) -> f64 {
    rate.max(9.0 / (10.0 + t as f64))
}

/// Values by parameter, flattened so that one map holds every rank.
struct Current {
    values: HashMap<ParamId, Tensor<1>>,
}

impl ModuleVisitor for Current {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let value = param.val().inner();
        let size = value.shape().num_elements();
        self.values.insert(param.id, value.reshape([size]));
    }
}

struct Step {
    rate: f64,
    current: Current,
}

impl ModuleMapper for Step {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let Some(current) = self.current.values.remove(&param.id) else { return param };
        let rate = self.rate;
        param.map(|average| {
            let current = current.reshape(average.dims());
            average.clone() + (current - average) * rate
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::Device;
    use speed_nn::dense::Dense;
    use speed_nn::init::constant;

    /// Returns a layer whose every parameter is `value`, with the identifiers of `like` if given.
    fn layer(value: f32) -> Dense {
        let device = Device::flex().autodiff();
        let layer = Dense::new(constant([2, 3], value, &device), constant([3], value, &device));
        speed_nn::params::number_parameters(layer)
    }

    #[test]
    fn follows_tensorflows_recursion() {
        let mut average = ParameterAverage::new(&layer(1.0), 0.5);
        let mut expected = 1.0;
        for t in 1..=20 {
            let value = (t * t) as f32;
            average = average.update(&layer(value));
            // decay = min(0.5, (1 + t) / (10 + t)): the warm-up holds until t = 8.
            let decay = (1.0 + t as f64) / (10.0 + t as f64);
            let decay = decay.min(0.5);
            expected = decay * expected + (1.0 - decay) * f64::from(value);
        }
        let rows = constant([1, 2], 1.0, &Device::flex());
        let found: Vec<f32> = average.into_model().forward(rows).into_data().try_to_vec().expect("f32");
        // Two weights and a bias of the same value.
        assert!(found.iter().all(|&f| (f64::from(f) / (3.0 * expected) - 1.0).abs() < 1e-5), "{found:?}, {expected}");
    }
}
