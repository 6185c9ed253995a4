//! Exponential averages of a network's parameters, returned as networks.

use std::collections::HashMap;

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param, ParamId};
use burn::tensor::Tensor;

use crate::ops::add_scaled::add_scaled;
use crate::params::{ParameterError, to_record, with_record};

/// The average `a += rate * (p - a)` of a network's trained parameters, from `a = 0`.
///
/// It may be updated once for several steps: [`update`](Self::update) then takes the parameters of the last step with
/// the compounded rate `1 - (1 - rate)^steps`. With ten steps per update this is a tenth of the work for nearly the
/// same average.
#[derive(Clone, Debug)]
pub struct Average<M> {
    rate: f64,
    steps: u64,
    /// Without gradients. Untrained parameters are the network's own.
    model: M,
}

impl<M: Module> Average<M> {
    /// Returns an average with rate `rate` per step and no updates.
    pub fn new(rate: f64, model: &M) -> Self {
        Self {
            rate,
            steps: 0,
            model: towards(model.valid().map(&mut Scale { factor: 0.0, trained: None }), model, 0.0),
        }
    }

    /// Updates the average with the parameters of `model`, a network on a device with gradients, `steps` steps after
    /// the last update.
    pub fn update(&mut self, steps: u32, model: &M) {
        self.steps = self.steps.saturating_add(steps.into());
        self.model = towards(self.model.clone(), model, weight(self.rate, u64::from(steps)));
    }

    /// Returns the network with the uncorrected average, which is biased towards its start at zero.
    pub fn from_zero(&self) -> &M {
        &self.model
    }

    /// Returns the network with the bias-corrected average: a true weighted mean of the parameters seen, or zero before
    /// the first update. `model` determines which parameters are trained.
    pub fn corrected(&self, model: &M) -> M {
        let factor = if self.steps == 0 { 0.0 } else { 1.0 / weight(self.rate, self.steps) };
        self.model.clone().map(&mut Scale { factor, trained: Some(Current::from_model(model)) })
    }

    /// Returns the number of steps seen (8 bytes, little-endian) and Burn's record of the uncorrected average.
    ///
    /// # Errors
    /// If Burn cannot write it.
    pub fn to_record(&self) -> Result<Vec<u8>, ParameterError> {
        Ok([&self.steps.to_le_bytes()[..], &to_record(&self.model)?].concat())
    }

    /// Returns this average with the steps and the values of a record.
    ///
    /// # Errors
    /// If the record is not one of this network.
    pub fn with_record(self, record: &[u8]) -> Result<Self, ParameterError> {
        let (steps, record) = record.split_first_chunk().unwrap_or((&[0; 8], &[]));
        Ok(Self { steps: u64::from_le_bytes(*steps), model: with_record(self.model, record)?, ..self })
    }
}

/// TensorFlow's `ExponentialMovingAverage(1 - rate, num_updates = t)`: `a += max(rate, 9 / (10 + t)) (p - a)` after
/// step t = 1, 2, ..., starting from the initial parameters.
///
/// The second term is its warm-up: without it an average of decay 0.9999 would still hold 60 % of the initial weights after 5000
/// steps.
#[derive(Clone, Debug)]
pub struct WarmedUpAverage<M> {
    rate: f64,
    updates: usize,
    model: M,
}

impl<M: Module> WarmedUpAverage<M> {
    /// Starts at the parameters of `model`, a network on a device with gradients.
    pub fn new(rate: f64, model: &M) -> Self {
        Self { rate, updates: 0, model: model.valid() }
    }

    /// Updates the average with the parameters of `model` after one more step.
    #[expect(clippy::cast_possible_truncation, reason = "networks compute in f32")]
    pub fn update(&mut self, model: &M) {
        self.updates += 1;
        let rate = self.rate.max(9.0 / (10.0 + self.updates as f64));
        self.model = towards(self.model.clone(), model, rate as f32);
    }

    /// Returns the network with the averaged parameters, without gradients.
    pub fn into_model(self) -> M {
        self.model
    }
}

/// Returns `1 - (1 - rate)^steps`, the weight of an update after `steps` steps at rate `rate`.
fn weight(rate: f64, steps: u64) -> f32 {
    let steps = i32::try_from(steps).unwrap_or(i32::MAX);
    #[expect(clippy::cast_possible_truncation, reason = "the update computes with a weight in f32")]
    let weight = (1.0 - (1.0 - rate).powi(steps)) as f32;
    weight
}

/// Moves a network without gradients by the fraction `weight` towards `model`. Untrained parameters are replaced by
/// those of `model`.
fn towards<M: Module>(average: M, model: &M, weight: f32) -> M {
    struct MoveTowards {
        weight: f32,
        current: Current,
    }
    impl ModuleMapper for MoveTowards {
        fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
            let Some((current, is_trained)) = self.current.0.get(&param.id).cloned() else { return param };
            let weight = self.weight;
            param.map(|average| {
                let current = current.reshape(average.dims());
                if is_trained { add_scaled(average * (1.0 - weight), current, weight) } else { current }
            })
        }
    }
    average.map(&mut MoveTowards { weight, current: Current::from_model(model) })
}

/// The parameters of a network on a device with gradients: flattened, so that one map holds every rank, and a flag for
/// trained ones.
struct Current(HashMap<ParamId, (Tensor<1>, bool)>);

impl Current {
    fn from_model(model: &impl Module) -> Self {
        let mut current = Self(HashMap::new());
        model.visit(&mut current);
        current
    }
}

impl ModuleVisitor for Current {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let value = param.val();
        let (is_trained, value) = (value.is_require_grad(), value.inner());
        let size = value.shape().num_elements();
        self.0.insert(param.id, (value.reshape([size]), is_trained));
    }
}

/// Multiplies the trained parameters, or all of them.
struct Scale {
    factor: f32,
    trained: Option<Current>,
}

impl ModuleMapper for Scale {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let is_trained =
            self.trained.as_ref().is_none_or(|current| current.0.get(&param.id).is_some_and(|(_, is)| *is));
        let factor = self.factor;
        if is_trained { param.map(|value| value * factor) } else { param }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::init::constant;
    use crate::layers::{Dense, WeightNorm, WeightNormDense};
    use crate::ops::activation::Activation;
    use crate::params::number_parameters;
    use crate::test_support::values;
    use burn::tensor::Device;

    /// Returns a layer whose parameters all equal `value`.
    fn layer(value: f32) -> Dense {
        let device = Device::flex().autodiff();
        let (weight, bias) = (constant([2, 3], value, &device), constant([3], value, &device));
        number_parameters(Dense::new(weight, bias, Activation::Linear))
    }

    /// Returns the layer's output for a row of ones: two weights plus a bias.
    fn value(layer: &Dense) -> f64 {
        let found = values(layer.forward(constant([1, 2], 1.0, &Device::flex())));
        assert!(found.iter().all(|value| *value == found[0]));
        f64::from(found[0]) / 3.0
    }

    #[test]
    fn ten_steps_at_once_are_ten_steps_of_constant_parameters() {
        let model = layer(2.0);
        let (mut single, mut joint) = (Average::new(0.1, &model), Average::new(0.1, &model));
        (0..10).for_each(|_| single.update(1, &model));
        joint.update(10, &model);
        for average in [single, joint] {
            // (1 - 0.9^10) * 2 = 1.302643
            assert!((value(average.from_zero()) - 1.302_643_1).abs() < 1e-5);
            assert!((value(&average.corrected(&model)) - 2.0).abs() < 1e-5);
        }
    }

    #[test]
    fn newer_parameters_weigh_more() {
        let mut average = Average::new(0.25, &layer(1.0));
        assert_eq!(value(&average.corrected(&layer(1.0))), 0.0);
        average.update(1, &layer(1.0));
        average.update(1, &layer(2.0));
        // 0.75 * 0.25 * 1 + 0.25 * 2 = 0.6875, weights 0.4375
        assert!((value(average.from_zero()) - 0.6875).abs() < 1e-6);
        assert!((value(&average.corrected(&layer(2.0))) - 0.6875 / 0.4375).abs() < 1e-6);
    }

    #[test]
    fn parameters_that_are_not_trained_are_the_networks_own() {
        let device = Device::flex().autodiff();
        let kind =
            WeightNorm { activation: Activation::Linear, trained_scale: false, norm_epsilon: 0.0, deviation: 1.0 };
        let model = number_parameters(WeightNormDense::new(constant([4, 1], 1.0, &device), kind));
        // Scale 1 divided by a norm that does not depend on the scale of the average.
        let mut average = Average::new(0.25, &model);
        average.update(1, &model);
        for network in [average.from_zero(), &average.corrected(&model)] {
            let found = values(network.forward(constant([1, 4], 1.0, &Device::flex())));
            assert!((found[0] - 2.0).abs() < 1e-6, "{found:?}");
        }
    }

    #[test]
    fn records_of_other_networks_are_refused() {
        let mut average = Average::new(0.25, &layer(1.0));
        average.update(3, &layer(2.0));
        let record = average.to_record().expect("a record");
        let again = Average::new(0.25, &layer(5.0)).with_record(&record).expect("its own record");
        assert_eq!(value(&again.corrected(&layer(5.0))), value(&average.corrected(&layer(2.0))));
        assert_eq!(again.to_record().expect("a record"), record);

        let device = Device::flex().autodiff();
        let (weight, bias) = (constant([3, 2], 1.0, &device), constant([2], 1.0, &device));
        let other = number_parameters(Dense::new(weight, bias, Activation::Linear));
        assert!(Average::new(0.25, &other).with_record(&record).is_err());
        for length in [0, 7, 8, record.len() - 1] {
            assert!(Average::new(0.25, &layer(1.0)).with_record(&record[..length]).is_err(), "cut to {length}");
        }
    }

    #[test]
    fn the_warm_up_is_tensorflows() {
        let mut average = WarmedUpAverage::new(0.5, &layer(1.0));
        let mut expected = 1.0;
        for t in 1..=20 {
            let value = (t * t) as f32;
            average.update(&layer(value));
            // decay = min(0.5, (1 + t) / (10 + t)): the warm-up holds until t = 8.
            let decay = ((1.0 + t as f64) / (10.0 + t as f64)).min(0.5);
            expected = decay * expected + (1.0 - decay) * f64::from(value);
        }
        let found = value(&average.into_model());
        assert!((found / expected - 1.0).abs() < 1e-5, "{found}, {expected}");
    }
}
