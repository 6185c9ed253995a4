//! A convolution of any stride and padding.

use burn::module::{Module, Param};
use burn::tensor::Tensor;

use crate::ops::activation::Activation;
use crate::ops::bias::bias_activation;
use crate::ops::conv::{Geometry, conv};

/// The layer `y = activation(conv(x) + b)` of feature maps `[images, height, width, channels]`.
#[derive(Module, Debug)]
pub struct Conv {
    weight: Param<Tensor<2>>,
    bias: Param<Tensor<1>>,
    #[module(skip)]
    geometry: Geometry,
    #[module(skip)]
    activation: Activation,
}

impl Conv {
    /// Creates a layer with the initial `weight` `[kernel * kernel * channels, outputs]` and `bias` `[outputs]`. The rows of
    /// `weight` are in the order kernel row, kernel column, channel.
    pub fn new(geometry: Geometry, weight: Tensor<2>, bias: Tensor<1>, activation: Activation) -> Self {
        Self { weight: Param::from_tensor(weight), bias: Param::from_tensor(bias), geometry, activation }
    }

    /// Maps `[images, height, width, channels]` to `[images, rows, columns, outputs]`.
    pub fn forward(&self, maps: Tensor<4>) -> Tensor<4> {
        bias_activation(conv(maps, self.weight.val(), self.geometry), self.bias.val(), self.activation)
    }
}
