//! A convolution without padding, followed by 2x2 max pooling and ReLU.

use burn::module::{Module, Param};
use burn::tensor::Tensor;

use crate::ops::pooled_conv::{PooledWindows, pooled_conv};

/// `y = relu(max_pool(conv(x)) + b)` of maps `[images, height, width, channels]`.
#[derive(Module, Debug)]
pub struct PooledConv {
    weight: Param<Tensor<2>>,
    bias: Param<Tensor<1>>,
    #[module(skip)]
    windows: PooledWindows,
}

impl PooledConv {
    /// Returns a layer with the initial values `weight` `[kernel * kernel * channels, outputs]`, in the order kernel row, kernel column,
    /// channel, and `bias` `[outputs]`.
    pub fn new(windows: PooledWindows, weight: Tensor<2>, bias: Tensor<1>) -> Self {
        Self { weight: Param::from_tensor(weight), bias: Param::from_tensor(bias), windows }
    }

    /// Maps `[images, height, width, channels]` to `[images, rows, columns, outputs]`.
    pub fn forward(&self, maps: Tensor<4>) -> Tensor<4> {
        pooled_conv(maps, self.weight.val(), self.bias.val(), self.windows)
    }
}
