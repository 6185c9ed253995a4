//! A dense layer with batch norm in place of a bias.

use burn::module::{Module, Param};
use burn::tensor::Tensor;

use crate::ops::activation::Activation;
use crate::ops::batch_norm::batch_norm;
use crate::ops::bias::bias_activation;
use crate::ops::product::product;

/// `y = activation((x W - mean) / sqrt(variance + epsilon) + shift)` with mean and variance over the batch (Ioffe and
/// Szegedy, 2015), both in training and at evaluation.
#[derive(Module, Debug)]
pub struct BatchNormDense {
    weight: Param<Tensor<2>>,
    shift: Param<Tensor<1>>,
    #[module(skip)]
    epsilon: f32,
    #[module(skip)]
    activation: Activation,
}

impl BatchNormDense {
    /// Returns a layer with weights `[inputs, outputs]` and shift 0.
    pub fn new(weight: Tensor<2>, epsilon: f32, activation: Activation) -> Self {
        let shift = Tensor::zeros([weight.dims()[1]], &weight.device());
        Self { weight: Param::from_tensor(weight), shift: Param::from_tensor(shift), epsilon, activation }
    }

    /// Maps a batch of rows `[n, inputs]` to rows `[n, outputs]`.
    pub fn forward(&self, rows: Tensor<2>) -> Tensor<2> {
        let normalised = batch_norm(product(rows, self.weight.val()), self.epsilon);
        bias_activation(normalised, self.shift.val(), self.activation)
    }
}
