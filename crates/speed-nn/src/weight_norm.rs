//! Weight-normalised dense layer with data-dependent initialisation (Salimans and Kingma, 2016), gradients by hand.
//!
//! `y = scale / |theta| * (theta x) + bias` for every output unit, with `|theta|` the norm of that unit's weights. The
//! normalised weights are never built: the norm multiplies the product instead, and its share of the gradient is a
//! multiple of `theta` that the optimiser adds while it passes over the weights ([`AdamStep::update_part`]).

use std::fmt;
use std::ops::Range;

use crate::adam::{AdamStep, Moments};
use crate::math::{dot, sum};
use crate::matrix::{Matrix, View, multiply, multiply_by_rows};

/// The function after the dense layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    /// Nothing.
    Linear,
    /// `max(y, 0)`.
    Relu,
}

/// A dense layer of `inputs` to `outputs` units with normalised weights. `Debug` shows its size only.
#[derive(Clone, PartialEq)]
pub struct WeightNormDense {
    theta: Matrix,
    scale: Vec<f32>,
    bias: Vec<f32>,
    activation: Activation,
    trained_scale: bool,
    norm_epsilon: f32,
    /// `|theta|` of every unit, kept current by whoever changes `theta`.
    norm: Vec<f32>,
}

/// The gradient of a loss with respect to a [`WeightNormDense`], and the memory it is computed in.
///
/// That of the weights, with the norm held fixed, is the derivative by the products times the transposed input. It is
/// computed where it is used, a few rows at a time.
#[derive(Clone, Debug, Default)]
pub struct WeightNormGradient {
    /// Some rows of the weights' gradient.
    block: Matrix,
    /// The norm's own part: `pull * theta`, one value per unit.
    pull: Vec<f32>,
    scale: Vec<f32>,
    bias: Vec<f32>,
}

impl WeightNormDense {
    /// Returns a layer with weights `theta` `[outputs, inputs]`, scale 1 and bias 0.
    ///
    /// `norm_epsilon` is added to the squared norm (Salimans' code has 1e-6 in the generator and 0 elsewhere).
    /// `trained_scale` says whether the scale is a parameter.
    #[must_use]
    pub fn new(theta: Matrix, activation: Activation, trained_scale: bool, norm_epsilon: f32) -> Self {
        let outputs = theta.rows();
        let mut layer = Self {
            theta,
            scale: vec![1.0; outputs],
            bias: vec![0.0; outputs],
            activation,
            trained_scale,
            norm_epsilon,
            norm: vec![0.0; outputs],
        };
        layer.refresh_norms();
        layer
    }

    /// Returns the number of input units.
    #[must_use]
    pub fn inputs(&self) -> usize {
        self.theta.columns()
    }

    /// Returns the number of output units.
    #[must_use]
    pub fn outputs(&self) -> usize {
        self.theta.rows()
    }

    /// `products = theta x` `[outputs, batch]`, before norm, bias and activation; [`activate`](Self::activate) goes on
    /// from there and [`backward_activation`](Self::backward_activation) needs it again. `x` is `[inputs, batch]`.
    ///
    /// # Panics
    /// When `x` has not `inputs` rows.
    pub fn multiply(&self, products: &mut Matrix, x: View<'_>) {
        multiply(products, self.theta.view(), x);
    }

    /// Returns the outputs `[outputs, batch]` of the layer, from its products.
    pub fn activate(&self, out: &mut Matrix, products: &Matrix) {
        out.resize(products.rows(), products.columns());
        let floor = self.floor();
        for unit in 0..self.outputs() {
            let (factor, bias) = (self.scale[unit] / self.norm[unit], self.bias[unit]);
            for (y, &p) in out.row_mut(unit).iter_mut().zip(products.row(unit)) {
                let value = factor.mul_add(p, bias);
                // Not `max`, which would turn a NaN into the floor.
                *y = if value < floor { floor } else { value };
            }
        }
    }

    /// Returns the smallest output there is.
    fn floor(&self) -> f32 {
        match self.activation {
            Activation::Linear => f32::NEG_INFINITY,
            Activation::Relu => 0.0,
        }
    }

    /// Turns `gradient`, the loss's derivative by the outputs, into its derivative by the products, and adds up the
    /// part of the parameters' gradient that is per unit.
    ///
    /// `products` is what the forward pass left; `gradient` `[outputs, examples.len()]` belongs to its columns
    /// `examples`.
    ///
    /// # Panics
    /// When there are no such columns.
    pub fn backward_activation(
        &self,
        gradient: &mut Matrix,
        products: &Matrix,
        examples: Range<usize>,
        to: &mut WeightNormGradient,
    ) {
        let outputs = self.outputs();
        for part in [&mut to.pull, &mut to.scale, &mut to.bias] {
            part.resize(outputs, 0.0);
        }
        let floor = self.floor();
        for unit in 0..outputs {
            let (norm, bias) = (self.norm[unit], self.bias[unit]);
            let factor = self.scale[unit] / norm;
            let (gradient, products) = (gradient.row_mut(unit), &products.row(unit)[examples.clone()]);
            for (g, &p) in gradient.iter_mut().zip(products) {
                // Comparing, not multiplying by 0 or 1, so that a NaN does not vanish behind a ReLU.
                *g = if factor.mul_add(p, bias) <= floor { 0.0 } else { *g };
            }
            let by_factor = dot(gradient, products);
            to.bias[unit] = sum(gradient);
            to.scale[unit] = by_factor / norm;
            // y = scale p / |theta|, so d|theta| = -factor / |theta| * sum(g p), and d|theta| / dtheta = theta / |theta|.
            to.pull[unit] = -factor * by_factor / (norm * norm);
            for g in gradient {
                *g *= factor;
            }
        }
    }

    /// Returns the derivative by the input `[inputs, batch]`, from the derivative by the products.
    pub fn backward_input(&self, to: &mut Matrix, by_products: View<'_>) {
        multiply(to, self.theta.view().transposed(), by_products);
    }

    /// Data-dependent initialisation: sets scale and bias so that the outputs before the activation have mean 0 and
    /// variance 1 over the batch that gave `products`, for every unit. A unit that does not vary gets mean 0 only.
    pub fn normalize_on(&mut self, products: &Matrix) {
        for unit in 0..self.outputs() {
            let row = products.row(unit);
            let count = row.len().max(1) as f32;
            let mean = sum(row) / count;
            let variance = row.iter().map(|p| (p - mean) * (p - mean)).sum::<f32>() / count;
            // What rounding leaves of a constant row is no variance.
            let factor = if variance > 1e-12 * mean * mean { 1.0 / variance.sqrt() } else { 1.0 };
            self.scale[unit] = factor * self.norm[unit];
            self.bias[unit] = -mean * factor;
        }
    }

    /// Makes one optimiser step on weights, bias and, if it is trained, scale, from the derivative by the products and the
    /// input `[inputs, batch]`.
    ///
    /// # Panics
    /// When an argument belongs to a layer of another size.
    pub fn update(
        &mut self,
        step: AdamStep,
        [by_products, x]: [View<'_>; 2],
        gradient: &mut WeightNormGradient,
        moments: &mut [Moments; 3],
    ) {
        let [theta, bias, scale] = moments;
        let inputs = self.inputs();
        assert_eq!([by_products.shape()[0], x.shape()[0]], [self.outputs(), inputs], "units of the layer");
        multiply_by_rows(&mut gradient.block, by_products, x.transposed(), |first, block| {
            for unit in first..first + block.rows() {
                let row = self.theta.row_mut(unit);
                step.update_part(row, block.row(unit - first), gradient.pull[unit], theta, unit * inputs);
                self.norm[unit] = (dot(row, row) + self.norm_epsilon).sqrt();
            }
        });
        step.update(&mut self.bias, &gradient.bias, bias);
        if self.trained_scale {
            step.update(&mut self.scale, &gradient.scale, scale);
        }
    }

    /// Moments for [`update`](Self::update), zero.
    #[must_use]
    pub fn moments(&self) -> [Moments; 3] {
        let scale = if self.trained_scale { self.outputs() } else { 0 };
        [Moments::zeros(self.theta.values().len()), Moments::zeros(self.outputs()), Moments::zeros(scale)]
    }

    /// Returns the trained parameters: weights `[outputs, inputs]`, bias, and the scale if it is trained (else empty).
    #[must_use]
    pub fn trained(&self) -> [&[f32]; 3] {
        [self.theta.values(), &self.bias, if self.trained_scale { &self.scale } else { &[] }]
    }

    /// Everything that a checkpoint must hold: weights, bias, scale.
    #[must_use]
    pub fn state(&self) -> [&[f32]; 3] {
        [self.theta.values(), &self.bias, &self.scale]
    }

    /// Changes weights, bias and scale and then brings the norms up to date.
    pub fn edit<R>(&mut self, change: impl FnOnce([&mut [f32]; 3]) -> R) -> R {
        let result = change([self.theta.values_mut(), &mut self.bias, &mut self.scale]);
        self.refresh_norms();
        result
    }

    fn refresh_norms(&mut self) {
        for unit in 0..self.outputs() {
            let row = self.theta.row(unit);
            self.norm[unit] = (dot(row, row) + self.norm_epsilon).sqrt();
        }
    }
}

impl fmt::Debug for WeightNormDense {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WeightNormDense({} to {})", self.inputs(), self.outputs())
    }
}

impl WeightNormGradient {
    /// Returns the full gradients of weights, bias and scale, with the norm's share, from the same arguments as
    /// [`WeightNormDense::update`] of `layer`: for checks against other code.
    #[must_use]
    pub fn full(&self, layer: &WeightNormDense, [by_products, x]: [View<'_>; 2]) -> [Vec<f32>; 3] {
        let mut theta = Matrix::default();
        multiply(&mut theta, by_products, x.transposed());
        for unit in 0..theta.rows() {
            for (g, &t) in theta.row_mut(unit).iter_mut().zip(layer.theta.row(unit)) {
                *g += self.pull[unit] * t;
            }
        }
        [theta.values().to_vec(), self.bias.clone(), self.scale.clone()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adam::{Adam, AdamConfig};
    use crate::test_support::{assert_within, tensor, values};
    use burn::tensor::{Tensor, activation};
    use rand::RngExt;
    use speed_random::Streams;

    const BATCH: usize = 9;

    fn random(rows: usize, columns: usize, index: u64) -> Matrix {
        let mut stream = Streams::new(2).stream("weight norm", index);
        Matrix::from_fn(rows, columns, || stream.random::<f32>() - 0.5)
    }

    fn layer(activation: Activation) -> WeightNormDense {
        let mut layer = WeightNormDense::new(random(4, 6, 0), activation, true, 1e-3);
        layer.edit(|[_, bias, scale]| {
            bias.copy_from_slice(&[0.1, -0.2, 0.0, 0.3]);
            scale.copy_from_slice(&[1.5, 0.7, -0.4, 2.0]);
        });
        layer
    }

    #[test]
    fn outputs_and_gradients_are_those_of_burn() {
        for activation in [Activation::Linear, Activation::Relu] {
            let layer = layer(activation);
            let (x, by_output) = (random(6, BATCH, 1), random(4, BATCH, 2));

            let theta = tensor(layer.theta.values(), [4, 6]).require_grad();
            let scale = tensor(&layer.scale, [4, 1]).require_grad();
            let bias = tensor(&layer.bias, [4, 1]).require_grad();
            let input = tensor(x.values(), [6, BATCH]).require_grad();
            let norm = (theta.clone().square().sum_dim(1) + 1e-3).sqrt();
            let y = (theta.clone() * (scale.clone() / norm)).matmul(input.clone()) + bias.clone();
            let y = if activation == Activation::Relu { activation::relu(y) } else { y };
            let gradients = (y.clone() * tensor(by_output.values(), [4, BATCH])).sum().backward();
            let expected = |t: &Tensor<2>| values(t.grad(&gradients).expect("a gradient"));

            let (mut products, mut out) = (Matrix::default(), Matrix::default());
            layer.multiply(&mut products, x.view());
            layer.activate(&mut out, &products);
            assert_within(1e-5, out.values(), &values(y));

            let (mut gradient, mut found) = (by_output, WeightNormGradient::default());
            layer.backward_activation(&mut gradient, &products, 0..BATCH, &mut found);
            let mut by_input = Matrix::default();
            layer.backward_input(&mut by_input, gradient.view());
            let [by_theta, by_bias, by_scale] = found.full(&layer, [gradient.view(), x.view()]);
            assert_within(1e-5, &by_theta, &expected(&theta));
            assert_within(1e-5, &by_bias, &expected(&bias));
            assert_within(1e-5, &by_scale, &expected(&scale));
            assert_within(1e-5, by_input.values(), &expected(&input));
        }
    }

    #[test]
    fn data_dependent_initialisation_gives_mean_0_and_variance_1() {
        let mut layer = layer(Activation::Linear);
        let (x, mut products, mut out) = (random(6, 500, 3), Matrix::default(), Matrix::default());
        layer.multiply(&mut products, x.view());
        layer.normalize_on(&products);
        layer.activate(&mut out, &products);
        for unit in 0..4 {
            let row: Vec<f64> = out.row(unit).iter().map(|&y| f64::from(y)).collect();
            let mean = row.iter().sum::<f64>() / 500.0;
            let variance = row.iter().map(|y| (y - mean).powi(2)).sum::<f64>() / 500.0;
            assert!(mean.abs() < 1e-5 && (variance - 1.0).abs() < 1e-4, "unit {unit}: {mean} {variance}");
        }
    }

    #[test]
    fn a_unit_that_does_not_vary_stays_finite() {
        let mut layer = layer(Activation::Linear);
        let (mut products, mut out) = (Matrix::zeros(4, 3), Matrix::default());
        products.row_mut(1).fill(2.0);
        layer.normalize_on(&products);
        layer.activate(&mut out, &products);
        assert_eq!(out.values(), [0.0; 12]);
    }

    #[test]
    fn an_update_uses_the_full_gradient_and_keeps_the_norms() {
        let config = AdamConfig { learning_rate: 0.01, beta1: 0.5, beta2: 0.999, epsilon: 1e-4 };
        let (x, mut by_output) = (random(6, BATCH, 1), random(4, BATCH, 2));
        for trained_scale in [false, true] {
            let mut layer = WeightNormDense { trained_scale, ..layer(Activation::Relu) };
            let (mut products, mut gradient) = (Matrix::default(), WeightNormGradient::default());
            layer.multiply(&mut products, x.view());
            layer.backward_activation(&mut by_output, &products, 0..BATCH, &mut gradient);
            let (before, operands) = (layer.clone(), [by_output.view(), x.view()]);
            let step = Adam::new(config, 0).begin_step();
            layer.update(step, operands, &mut gradient, &mut before.moments());

            let mut expected = before.theta.values().to_vec();
            step.update(&mut expected, &gradient.full(&before, operands)[0], &mut Moments::zeros(24));
            assert_within(1e-5, layer.theta.values(), &expected);
            assert_eq!(layer.scale != before.scale, trained_scale);
            assert_ne!(layer.bias, before.bias);
            let fresh = WeightNormDense::new(layer.theta.clone(), Activation::Relu, true, 1e-3);
            assert_eq!(layer.norm, fresh.norm);
        }
    }

    #[test]
    fn nan_is_not_hidden_by_the_activation() {
        let layer = layer(Activation::Relu);
        let (mut out, mut products) = (Matrix::default(), Matrix::zeros(4, 1));
        products.values_mut()[2] = f32::NAN;
        layer.activate(&mut out, &products);
        assert!(out.values()[2].is_nan());
    }
}
