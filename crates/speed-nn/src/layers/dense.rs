//! A fully connected layer.

use burn::module::{Module, Param};
use burn::tensor::Tensor;

use crate::ops::activation::Activation;
use crate::ops::bias::bias_activation;
use crate::ops::product::product;
use crate::ops::sums::total;

/// `y = activation(x W + b)` with `W` of shape `[inputs, outputs]`.
#[derive(Module, Debug)]
pub struct Dense {
    weight: Param<Tensor<2>>,
    bias: Param<Tensor<1>>,
    #[module(skip)]
    activation: Activation,
}

impl Dense {
    /// Returns a layer with the initial values `weight` `[inputs, outputs]` and `bias` `[outputs]`.
    pub fn new(weight: Tensor<2>, bias: Tensor<1>, activation: Activation) -> Self {
        Self { weight: Param::from_tensor(weight), bias: Param::from_tensor(bias), activation }
    }

    /// Maps rows `[n, inputs]` to rows `[n, outputs]`.
    pub fn forward(&self, rows: Tensor<2>) -> Tensor<2> {
        bias_activation(product(rows, self.weight.val()), self.bias.val(), self.activation)
    }

    /// Returns `|W|^2 / 2`, TensorFlow's `l2_loss`, for weight decay: its gradient is `W`. Shape `[1]`.
    pub fn half_squared_norm(&self) -> Tensor<1> {
        total(self.weight.val().square()) * 0.5
    }
}
