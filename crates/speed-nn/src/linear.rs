//! A fully connected layer with its gradients written out, one example a row.

use std::fmt;

use crate::matrix::{Matrix, multiply};

/// `y = x W + b`. `Debug` shows its size only.
#[derive(Clone, PartialEq)]
pub struct Linear {
    /// `[inputs, outputs]`.
    weight: Matrix,
    /// `[outputs]`.
    bias: Vec<f32>,
}

/// A layer's output and, after a backward pass, the gradients of its parameters. Keeps its memory.
#[derive(Clone, Debug, Default)]
pub struct LinearTrace {
    /// `[examples, outputs]`.
    pub output: Matrix,
    /// Gradient of the loss by `output`, which the caller fills before [`Linear::backward`].
    pub gradient: Matrix,
    /// Gradient of the weights, `[inputs, outputs]`.
    pub weight: Matrix,
    /// Gradient of the bias, `[outputs]`.
    pub bias: Vec<f32>,
}

impl Linear {
    /// Returns a layer with weights `[inputs, outputs]` and bias `[outputs]`.
    ///
    /// # Panics
    /// When their sizes do not fit together.
    #[must_use]
    pub fn new(weight: Matrix, bias: Vec<f32>) -> Self {
        assert_eq!(weight.columns(), bias.len(), "outputs of weight and bias");
        Self { weight, bias }
    }

    /// Returns the number of input units.
    #[must_use]
    pub fn inputs(&self) -> usize {
        self.weight.rows()
    }

    /// Returns the number of output units.
    #[must_use]
    pub fn outputs(&self) -> usize {
        self.bias.len()
    }

    /// Weights and bias.
    #[must_use]
    pub fn parameters(&self) -> [&[f32]; 2] {
        [self.weight.values(), &self.bias]
    }

    /// Weights and bias, to change.
    pub fn parameters_mut(&mut self) -> [&mut [f32]; 2] {
        [self.weight.values_mut(), &mut self.bias]
    }

    /// Computes `trace.output` of the rows `input` `[examples, inputs]`.
    pub fn forward(&self, input: &Matrix, trace: &mut LinearTrace) {
        multiply(&mut trace.output, input.view(), self.weight.view());
        for row in trace.output.values_mut().chunks_exact_mut(self.bias.len()) {
            row.iter_mut().zip(&self.bias).for_each(|(value, bias)| *value += bias);
        }
    }

    /// Computes the gradients of weights and bias from `trace.gradient`, for the `input` of the forward pass.
    pub fn backward(&self, input: &Matrix, trace: &mut LinearTrace) {
        multiply(&mut trace.weight, input.view().transposed(), trace.gradient.view());
        trace.bias.clear();
        trace.bias.resize(self.bias.len(), 0.0);
        for row in trace.gradient.values().chunks_exact(self.bias.len()) {
            trace.bias.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
        }
    }

    /// Computes the gradient by the input, `[examples, inputs]`, from `trace.gradient`.
    pub fn input_gradient(&self, trace: &LinearTrace, gradient: &mut Matrix) {
        multiply(gradient, trace.gradient.view(), self.weight.view().transposed());
    }
}

impl LinearTrace {
    /// Puts a ReLU behind the layer: turns negative outputs into zero.
    pub fn relu(&mut self) {
        // Not `max`, which would hide a NaN.
        self.output.values_mut().iter_mut().for_each(|value| *value = if *value < 0.0 { 0.0 } else { *value });
    }

    /// Turns `gradient`, by the outputs of [`relu`](Self::relu), into that by the layer's own.
    pub fn relu_gradient(&mut self) {
        for (gradient, output) in self.gradient.values_mut().iter_mut().zip(self.output.values()) {
            *gradient = if *output > 0.0 { *gradient } else { 0.0 };
        }
    }

    /// Gradients of weights and bias.
    #[must_use]
    pub fn gradients(&self) -> [&[f32]; 2] {
        [self.weight.values(), &self.bias]
    }
}

impl fmt::Debug for Linear {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Linear({} -> {})", self.inputs(), self.outputs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::init;
    use crate::test_support::{assert_within, matrix, values};
    use burn::tensor::Device;
    use speed_random::Streams;

    /// Output and all gradients against Burn's autodiff.
    #[test]
    fn agrees_with_burn() {
        let device = Device::flex().autodiff();
        let mut stream = Streams::new(1).stream("linear", 0);
        let mut trace = LinearTrace::default();
        for (examples, inputs, outputs) in [(7, 5, 3), (2, 40, 17), (33, 1, 4)] {
            let mut normal = |shape| init::normal(shape, 1.0, &mut stream, &device);
            let (x, w) = (normal([examples, inputs]).require_grad(), normal([inputs, outputs]).require_grad());
            let (b, upstream) = (normal([1, outputs]).require_grad(), normal([examples, outputs]));
            let expected = x.clone().matmul(w.clone()) + b.clone();
            let gradients = (expected.clone() * upstream.clone()).sum().backward();

            let layer = Linear::new(matrix(w.clone().inner()), matrix(b.clone().inner()).values().to_vec());
            let input = matrix(x.clone().inner());
            layer.forward(&input, &mut trace);
            assert_within(1e-4, trace.output.values(), &values(expected.inner()));
            trace.gradient = matrix(upstream.inner());
            layer.backward(&input, &mut trace);
            let mut by_input = Matrix::default();
            layer.input_gradient(&trace, &mut by_input);
            assert_within(1e-4, trace.weight.values(), &values(w.grad(&gradients).expect("a gradient")));
            assert_within(1e-4, &trace.bias, &values(b.grad(&gradients).expect("a gradient")));
            assert_within(1e-4, by_input.values(), &values(x.grad(&gradients).expect("a gradient")));
        }
    }
}
