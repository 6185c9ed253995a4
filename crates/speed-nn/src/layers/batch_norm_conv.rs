//! A transposed convolution with batch norm in place of a bias.

use burn::module::{Module, Param};
use burn::tensor::Tensor;

use crate::ops::activation::Activation;
use crate::ops::batch_norm::batch_norm;
use crate::ops::bias::bias_activation;
use crate::ops::conv::{Geometry, conv_transposed};

/// `y = activation((conv_transposed(x, W) - mean) / sqrt(variance + epsilon) + shift)` with mean and variance of every
/// channel over batch, rows and columns (Ioffe and Szegedy, 2015), both in training and at evaluation.
#[derive(Module, Debug)]
pub struct BatchNormConvTransposed {
    weight: Param<Tensor<2>>,
    shift: Param<Tensor<1>>,
    #[module(skip)]
    geometry: Geometry,
    #[module(skip)]
    epsilon: f32,
    #[module(skip)]
    activation: Activation,
}

impl BatchNormConvTransposed {
    /// Returns a layer with weights `[kernel * kernel * channels, inputs]` for maps of `channels` channels, and shift
    /// 0.
    pub fn new(geometry: Geometry, weight: Tensor<2>, epsilon: f32, activation: Activation) -> Self {
        let shift = Tensor::zeros([geometry.map()[2]], &weight.device());
        Self { weight: Param::from_tensor(weight), shift: Param::from_tensor(shift), geometry, epsilon, activation }
    }

    /// Maps `[images, rows, columns, inputs]` to `[images, height, width, channels]`.
    pub fn forward(&self, results: Tensor<4>) -> Tensor<4> {
        let maps = conv_transposed(results, self.weight.val(), self.geometry);
        let dims @ [images, height, width, channels] = maps.dims();
        let normalised = batch_norm(maps.reshape([images * height * width, channels]), self.epsilon);
        bias_activation(normalised, self.shift.val(), self.activation).reshape(dims)
    }
}
