//! Dense layer with batch norm and softplus, gradients by hand: the generator's hidden layer.
//!
//! `y = softplus((w x - mean) / sqrt(variance + 1e-6) + shift)` for every unit, with mean and variance over the batch.
//! As in Salimans' generator there is a trained shift and no scale, no bias before the norm, and the statistics are
//! those of the batch always.

use crate::adam::{AdamStep, Moments};
use crate::math::{dot, softplus, sum};
use crate::matrix::{Matrix, View, multiply, multiply_by_rows};

/// The number added to a variance below the root.
pub const EPSILON: f32 = 1e-6;

/// A dense layer of `inputs` to `outputs` units, batch-normalised, with softplus. `Debug` shows its size only.
#[derive(Clone, PartialEq)]
pub struct BatchNormDense {
    weight: Matrix,
    shift: Vec<f32>,
}

/// Values of a forward pass that the backward pass needs, and the layer's gradient.
#[derive(Clone, Debug, Default)]
pub struct BatchNormTrace {
    /// `(w x - mean) / deviation`, `[outputs, batch]`.
    normalized: Matrix,
    /// The softplus's derivative, `[outputs, batch]`.
    slope: Matrix,
    /// One over the deviation of every unit.
    inverse_deviation: Vec<f32>,
    /// The loss's derivative by `w x`, `[outputs, batch]`.
    by_products: Matrix,
    /// Some rows of the weights' gradient, which is computed where it is used.
    block: Matrix,
    shift_gradient: Vec<f32>,
}

impl BatchNormDense {
    /// Returns a layer with these weights `[outputs, inputs]` and shift 0.
    #[must_use]
    pub fn new(weight: Matrix) -> Self {
        let shift = vec![0.0; weight.rows()];
        Self { weight, shift }
    }

    /// `[inputs, batch]` to `out` `[outputs, batch]`.
    ///
    /// # Panics
    /// When `x` has not `inputs` rows.
    pub fn forward(&self, out: &mut Matrix, x: View<'_>, trace: &mut BatchNormTrace) {
        multiply(&mut trace.normalized, self.weight.view(), x);
        let [_, batch] = x.shape();
        let count = batch.max(1) as f32;
        out.resize(self.weight.rows(), batch);
        trace.slope.resize(self.weight.rows(), batch);
        trace.inverse_deviation.clear();
        for (unit, &shift) in self.shift.iter().enumerate() {
            let row = trace.normalized.row_mut(unit);
            let mean = sum(row) / count;
            row.iter_mut().for_each(|p| *p -= mean);
            let inverse = 1.0 / (dot(row, row) / count + EPSILON).sqrt();
            trace.inverse_deviation.push(inverse);
            for ((p, y), slope) in row.iter_mut().zip(out.row_mut(unit)).zip(trace.slope.row_mut(unit)) {
                *p *= inverse;
                (*y, *slope) = softplus(*p + shift);
            }
        }
    }

    /// Leaves what the layer's gradient needs in `trace`, which its last forward pass left, and replaces `gradient`,
    /// the derivative by the output, by the one by the input if that is wanted.
    pub fn backward(&self, gradient: &mut Matrix, trace: &mut BatchNormTrace, input_wanted: bool) {
        let count = gradient.columns().max(1) as f32;
        trace.shift_gradient.clear();
        for unit in 0..self.weight.rows() {
            let (g, normalized) = (gradient.row_mut(unit), trace.normalized.row(unit));
            for (g, slope) in g.iter_mut().zip(trace.slope.row(unit)) {
                *g *= slope;
            }
            let (by_shift, along) = (sum(g), dot(g, normalized));
            trace.shift_gradient.push(by_shift);
            let (mean, along, inverse) = (by_shift / count, along / count, trace.inverse_deviation[unit]);
            for (g, p) in g.iter_mut().zip(normalized) {
                *g = inverse * (*g - mean - along * p);
            }
        }
        std::mem::swap(gradient, &mut trace.by_products);
        if input_wanted {
            multiply(gradient, self.weight.view().transposed(), trace.by_products.view());
        }
    }

    /// Makes one optimiser step with what [`backward`](Self::backward) left, after a forward pass of `x` `[inputs, batch]`.
    ///
    /// # Panics
    /// When an argument belongs to a layer of another size.
    pub fn update(&mut self, step: AdamStep, x: View<'_>, trace: &mut BatchNormTrace, moments: &mut [Moments; 2]) {
        let [weight, shift] = moments;
        let (outputs, inputs) = (self.weight.rows(), self.weight.columns());
        assert_eq!([trace.by_products.rows(), x.shape()[0]], [outputs, inputs], "units of the layer");
        multiply_by_rows(&mut trace.block, trace.by_products.view(), x.transposed(), |first, block| {
            let part = first * inputs..(first + block.rows()) * inputs;
            step.update_part(&mut self.weight.values_mut()[part.clone()], block.values(), 0.0, weight, part.start);
        });
        step.update(&mut self.shift, &trace.shift_gradient, shift);
    }

    /// Moments for [`update`](Self::update), zero.
    #[must_use]
    pub fn moments(&self) -> [Moments; 2] {
        [Moments::zeros(self.weight.values().len()), Moments::zeros(self.shift.len())]
    }

    /// Everything that a checkpoint must hold: weights `[outputs, inputs]` and shift.
    #[must_use]
    pub fn state(&self) -> [&[f32]; 2] {
        [self.weight.values(), &self.shift]
    }

    /// Weights and shift, to change.
    pub fn state_mut(&mut self) -> [&mut [f32]; 2] {
        [self.weight.values_mut(), &mut self.shift]
    }
}

impl std::fmt::Debug for BatchNormDense {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "BatchNormDense({} to {})", self.weight.columns(), self.weight.rows())
    }
}

impl BatchNormTrace {
    /// Returns the gradients of weights and shift after a forward pass of `x` `[inputs, batch]`, for checks against other code.
    #[must_use]
    pub fn gradients(&self, x: View<'_>) -> [Vec<f32>; 2] {
        let mut weight = Matrix::default();
        multiply(&mut weight, self.by_products.view(), x.transposed());
        [weight.values().to_vec(), self.shift_gradient.clone()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::{assert_within, tensor, values};
    use burn::tensor::{Tensor, activation};
    use rand::RngExt;
    use speed_random::Streams;

    fn random(rows: usize, columns: usize, index: u64) -> Matrix {
        let mut stream = Streams::new(3).stream("batch norm", index);
        Matrix::from_fn(rows, columns, || stream.random::<f32>() - 0.5)
    }

    #[test]
    fn outputs_and_gradients_are_those_of_burn() {
        let mut layer = BatchNormDense::new(random(4, 6, 0));
        layer.state_mut()[1].copy_from_slice(&[0.3, -0.1, 0.0, 1.0]);
        let (x, by_output) = (random(6, 9, 1), random(4, 9, 2));

        let weight = tensor(layer.weight.values(), [4, 6]).require_grad();
        let shift = tensor(&layer.shift, [4, 1]).require_grad();
        let input = tensor(x.values(), [6, 9]).require_grad();
        let product = weight.clone().matmul(input.clone());
        let centred = product.clone() - product.mean_dim(1);
        let deviation = (centred.clone().square().mean_dim(1) + 1e-6).sqrt();
        let y = activation::softplus(centred / deviation + shift.clone(), 1.0);
        let gradients = (y.clone() * tensor(by_output.values(), [4, 9])).sum().backward();
        let expected = |t: &Tensor<2>| values(t.grad(&gradients).expect("a gradient"));

        let (mut out, mut trace, mut gradient) = (Matrix::default(), BatchNormTrace::default(), by_output);
        layer.forward(&mut out, x.view(), &mut trace);
        assert_within(2e-5, out.values(), &values(y));
        layer.backward(&mut gradient, &mut trace, true);
        let [by_weight, by_shift] = trace.gradients(x.view());
        assert_within(2e-5, &by_weight, &expected(&weight));
        assert_within(2e-5, &by_shift, &expected(&shift));
        assert_within(2e-5, gradient.values(), &expected(&input));
    }
}
