//! The activation function of a layer, fused into the layer's pass over its outputs.

use burn::tensor::{Tensor, activation};

use crate::math;

/// An activation function.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Activation {
    /// The identity.
    Linear,
    /// `max(y, 0)`.
    Relu,
    /// `y` if it is not negative, else `slope y`; the slope is within 0..=1.
    LeakyRelu(f32),
    /// `ln(1 + e^y)`.
    Softplus,
    /// `1 / (1 + e^-y)`.
    Sigmoid,
    /// The hyperbolic tangent.
    Tanh,
}

/// Calls `$run` with the function, and with its derivative: from an output `y` and the gradient there to the gradient
/// of the input.
macro_rules! with_functions {
    ($activation:expr, $run:ident($($argument:expr),*)) => {
        match $activation {
            Activation::Linear => $run($($argument),*, |y| y, |_, g| g),
            // Compares instead of using `max` or a product with 0 or 1, so that a NaN does not disappear.
            Activation::Relu => {
                $run($($argument),*, |y| if y < 0.0 { 0.0 } else { y }, |y, g| if y <= 0.0 { 0.0 } else { g })
            }
            Activation::LeakyRelu(slope) => {
                $run($($argument),*, |y| if y < 0.0 { slope * y } else { y }, |y, g| if y < 0.0 { slope * g } else { g })
            }
            Activation::Softplus => $run($($argument),*, |y| math::softplus(y), |y, g| g * (1.0 - math::exp(-y))),
            Activation::Sigmoid => $run($($argument),*, math::sigmoid, |y, g| g * y * (1.0 - y)),
            Activation::Tanh => {
                $run($($argument),*, |y| 2.0 * math::sigmoid(2.0 * y) - 1.0, |y, g| g * (1.0 - y * y))
            }
        }
    };
}

impl Activation {
    /// Every kind, for tests.
    #[cfg(test)]
    pub(crate) const ALL: [Self; 6] =
        [Self::Linear, Self::Relu, Self::LeakyRelu(0.2), Self::Softplus, Self::Sigmoid, Self::Tanh];

    /// Computes the function with Burn's own operations.
    pub(crate) fn in_burn<const D: usize>(self, y: Tensor<D>) -> Tensor<D> {
        match self {
            Self::Linear => y,
            Self::Relu => activation::relu(y),
            Self::LeakyRelu(slope) => activation::leaky_relu(y, f64::from(slope)),
            Self::Softplus => activation::softplus(y, 1.0),
            Self::Sigmoid => activation::sigmoid(y),
            Self::Tanh => activation::tanh(y),
        }
    }

    /// Returns `activation(factor p + bias)` of rows of products `p`, one for each unit.
    pub(crate) fn of_products(self, products: &[f32], factor: &[f32], bias: &[f32]) -> Vec<f32> {
        fn run(
            products: &[f32],
            factor: &[f32],
            bias: &[f32],
            f: impl Fn(f32) -> f32,
            _: impl Fn(f32, f32) -> f32,
        ) -> Vec<f32> {
            let mut out = Vec::with_capacity(products.len());
            for row in products.chunks_exact(bias.len()) {
                out.extend(row.iter().zip(factor).zip(bias).map(|((p, factor), bias)| f(factor.mul_add(*p, *bias))));
            }
            out
        }
        with_functions!(self, run(products, factor, bias))
    }

    /// Turns `gradient`, that of the outputs of [`of_products`](Self::of_products), into that of the products. Adds the
    /// gradients of factor and bias to `sums`.
    pub(crate) fn gradient_of_products(
        self,
        products: &[f32],
        [factor, bias]: [&[f32]; 2],
        gradient: &mut [f32],
        sums: [&mut [f32]; 2],
    ) {
        fn run(
            products: &[f32],
            [factor, bias]: [&[f32]; 2],
            gradient: &mut [f32],
            [by_factor, by_bias]: [&mut [f32]; 2],
            f: impl Fn(f32) -> f32,
            d: impl Fn(f32, f32) -> f32,
        ) {
            let units = bias.len();
            for (products, gradient) in products.chunks_exact(units).zip(gradient.chunks_exact_mut(units)) {
                let units = factor.iter().zip(bias).zip(by_factor.iter_mut().zip(by_bias.iter_mut()));
                for ((g, p), ((factor, bias), (along, sum))) in gradient.iter_mut().zip(products).zip(units) {
                    let slope = d(f(factor.mul_add(*p, *bias)), *g);
                    *along = slope.mul_add(*p, *along);
                    *sum += slope;
                    *g = slope * factor;
                }
            }
        }
        with_functions!(self, run(products, [factor, bias], gradient, sums));
    }

    /// Turns the rows `y` into `activation(y + bias)`.
    pub(crate) fn add_bias(self, y: &mut [f32], bias: &[f32]) {
        fn run(y: &mut [f32], bias: &[f32], f: impl Fn(f32) -> f32, _: impl Fn(f32, f32) -> f32) {
            for row in y.chunks_exact_mut(bias.len()) {
                row.iter_mut().zip(bias).for_each(|(y, bias)| *y = f(*y + bias));
            }
        }
        with_functions!(self, run(y, bias));
    }

    /// Turns `gradient`, that of the outputs `y`, into that before the activation. Adds the gradient of the bias.
    pub(crate) fn gradient_of_bias(self, y: &[f32], gradient: &mut [f32], by_bias: &mut [f32]) {
        fn run(
            y: &[f32],
            gradient: &mut [f32],
            by_bias: &mut [f32],
            _: impl Fn(f32) -> f32,
            d: impl Fn(f32, f32) -> f32,
        ) {
            let units = by_bias.len();
            for (y, gradient) in y.chunks_exact(units).zip(gradient.chunks_exact_mut(units)) {
                for ((g, y), sum) in gradient.iter_mut().zip(y).zip(by_bias.iter_mut()) {
                    *g = d(*y, *g);
                    *sum += *g;
                }
            }
        }
        with_functions!(self, run(y, gradient, by_bias));
    }
}
