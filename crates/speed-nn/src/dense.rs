//! A fully connected layer whose parameters are given, not drawn.

use burn::module::{Module, Param};
use burn::tensor::Tensor;

/// `y = x W + b` with `W` of shape `[inputs, outputs]`.
#[derive(Module, Debug)]
pub struct Dense {
    weight: Param<Tensor<2>>,
    bias: Param<Tensor<1>>,
}

impl Dense {
    /// Returns a layer with the initial values `weight` `[inputs, outputs]` and `bias` `[outputs]` (see [`init`](crate::init)).
    #[must_use]
    pub fn new(weight: Tensor<2>, bias: Tensor<1>) -> Self {
        Self { weight: Param::from_tensor(weight), bias: Param::from_tensor(bias) }
    }

    /// Rows `[n, inputs]` to rows `[n, outputs]`.
    #[must_use]
    pub fn forward(&self, rows: Tensor<2>) -> Tensor<2> {
        rows.matmul(self.weight.val()) + self.bias.val().unsqueeze()
    }

    /// Returns the parameters: weight `[inputs, outputs]` and bias `[outputs]`.
    #[must_use]
    pub fn parameters(&self) -> (&Param<Tensor<2>>, &Param<Tensor<1>>) {
        (&self.weight, &self.bias)
    }

    /// `|W|^2 / 2`, TensorFlow's `l2_loss`, for weight decay: its gradient is `W`. Shape `[1]`.
    #[must_use]
    pub fn half_squared_norm(&self) -> Tensor<1> {
        self.weight.val().square().sum() * 0.5
    }
}
