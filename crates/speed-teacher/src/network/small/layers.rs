//! Values and gradients of the small network, written out.

use speed_nn::matrix::{Matrix, multiply};
use speed_nn::pooled_conv::{PooledConv, PooledConvTrace};

/// The four layers with their parameters.
pub(super) struct Layers {
    pub(super) first: PooledConv,
    pub(super) second: PooledConv,
    pub(super) hidden: DenseLayer,
    pub(super) output: DenseLayer,
}

/// `y = x W + b`, one example a row.
pub(super) struct DenseLayer {
    /// `[inputs, outputs]`.
    pub(super) weight: Matrix,
    pub(super) bias: Vec<f32>,
}

/// What a forward pass leaves for the backward pass, and the gradients. Keeps its memory from step to step.
#[derive(Default)]
pub(crate) struct Trace {
    first: PooledConvTrace,
    second: PooledConvTrace,
    /// The second layer's output, one image a row.
    flat: Matrix,
    hidden: DenseTrace,
    logits: DenseTrace,
    /// Gradients of the layers' outputs.
    first_gradient: Vec<f32>,
    flat_gradient: Matrix,
}

/// A dense layer's output, the gradients of it, of the weights and of the bias.
#[derive(Default)]
struct DenseTrace {
    output: Matrix,
    gradient: Matrix,
    weight: Matrix,
    bias: Vec<f32>,
}

impl Trace {
    /// The gradients of weight and bias of every layer.
    pub(super) fn gradients(&self) -> [(&Matrix, &[f32]); 4] {
        [
            (&self.first.weight, &self.first.bias),
            (&self.second.weight, &self.second.bias),
            (&self.hidden.weight, &self.hidden.bias),
            (&self.logits.weight, &self.logits.bias),
        ]
    }
}

impl Layers {
    /// The logits of `images` images, one a row.
    pub(super) fn forward<'a>(&self, pixels: &[f32], images: usize, trace: &'a mut Trace) -> &'a Matrix {
        self.first.forward(pixels, &mut trace.first);
        self.second.forward(trace.first.output().values(), &mut trace.second);
        let rows = trace.second.output().values();
        trace.flat.resize(images, self.hidden.weight.rows());
        trace.flat.values_mut().copy_from_slice(rows);
        self.hidden.forward(&trace.flat, &mut trace.hidden);
        // Not `max`, which would hide a NaN.
        trace.hidden.output.values_mut().iter_mut().for_each(|value| *value = if *value < 0.0 { 0.0 } else { *value });
        self.output.forward(&trace.hidden.output, &mut trace.logits);
        &trace.logits.output
    }

    /// The mean cross-entropy of the batch of the last forward pass, on the same `pixels`; leaves its gradients in `trace`.
    pub(super) fn backward(&self, pixels: &[f32], labels: &[u8], trace: &mut Trace) -> f32 {
        let loss = cross_entropy(labels, &mut trace.logits);
        trace.logits.backward(&trace.hidden.output);
        multiply(&mut trace.hidden.gradient, trace.logits.gradient.view(), self.output.weight.view().transposed());
        for (gradient, output) in trace.hidden.gradient.values_mut().iter_mut().zip(trace.hidden.output.values()) {
            *gradient = if *output > 0.0 { *gradient } else { 0.0 };
        }
        trace.hidden.backward(&trace.flat);
        multiply(&mut trace.flat_gradient, trace.hidden.gradient.view(), self.hidden.weight.view().transposed());
        let maps = trace.first.output().values();
        trace.first_gradient.resize(maps.len(), 0.0);
        let map_gradient = Some(trace.first_gradient.as_mut_slice());
        self.second.backward(maps, trace.flat_gradient.values(), map_gradient, &mut trace.second);
        self.first.backward(pixels, &trace.first_gradient, None, &mut trace.first);
        loss
    }
}

impl DenseLayer {
    fn forward(&self, rows: &Matrix, trace: &mut DenseTrace) {
        multiply(&mut trace.output, rows.view(), self.weight.view());
        for row in trace.output.values_mut().chunks_exact_mut(self.bias.len()) {
            row.iter_mut().zip(&self.bias).for_each(|(value, bias)| *value += bias);
        }
    }
}

impl DenseTrace {
    /// The gradients of weight and bias, from that of the output and the input.
    fn backward(&mut self, input: &Matrix) {
        multiply(&mut self.weight, input.view().transposed(), self.gradient.view());
        self.bias.clear();
        self.bias.resize(self.gradient.columns(), 0.0);
        for row in self.gradient.values().chunks_exact(self.bias.len()) {
            self.bias.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
        }
    }
}

/// The mean cross-entropy of logits in nats; leaves the logits' gradient, `(softmax - one hot) / n`.
fn cross_entropy(labels: &[u8], logits: &mut DenseTrace) -> f32 {
    let (rows, classes) = (logits.output.rows(), logits.output.columns());
    logits.gradient.resize(rows, classes);
    let scale = 1.0 / rows as f32;
    let mut loss = 0.0;
    let all = logits.output.values().chunks_exact(classes).zip(logits.gradient.values_mut().chunks_exact_mut(classes));
    for ((row, gradient), &label) in all.zip(labels) {
        let label = usize::from(label);
        let greatest = row.iter().fold(f32::NEG_INFINITY, |greatest, &value| greatest.max(value));
        gradient.iter_mut().zip(row).for_each(|(g, value)| *g = (value - greatest).exp());
        let sum: f32 = gradient.iter().sum();
        loss += sum.ln() + greatest - row[label];
        gradient.iter_mut().for_each(|g| *g *= scale / sum);
        gradient[label] -= scale;
    }
    loss * scale
}
