//! Values and gradients of the small network, written out.

use speed_nn::linear::{Linear, LinearTrace};
use speed_nn::matrix::Matrix;
use speed_nn::pooled_conv::{PooledConv, PooledConvTrace};

use super::super::loss::cross_entropy;

/// The four layers with their parameters.
pub(super) struct Layers {
    pub(super) first: PooledConv,
    pub(super) second: PooledConv,
    pub(super) hidden: Linear,
    pub(super) output: Linear,
}

/// Values that a forward pass leaves for the backward pass, and the gradients. Keeps its memory from step to step.
#[derive(Default)]
pub(crate) struct Trace {
    first: PooledConvTrace,
    second: PooledConvTrace,
    /// The second layer's output, one image a row.
    flat: Matrix,
    hidden: LinearTrace,
    logits: LinearTrace,
    /// Gradients of the layers' outputs.
    first_gradient: Vec<f32>,
    flat_gradient: Matrix,
}

impl Trace {
    /// Returns the gradients of weight and bias of every layer.
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
    /// Returns the logits of `images` images, one a row.
    pub(super) fn forward<'a>(&self, pixels: &[f32], images: usize, trace: &'a mut Trace) -> &'a Matrix {
        self.first.forward(pixels, &mut trace.first);
        self.second.forward(trace.first.output().values(), &mut trace.second);
        let rows = trace.second.output().values();
        trace.flat.resize(images, self.hidden.inputs());
        trace.flat.values_mut().copy_from_slice(rows);
        self.hidden.forward(&trace.flat, &mut trace.hidden);
        trace.hidden.relu();
        self.output.forward(&trace.hidden.output, &mut trace.logits);
        &trace.logits.output
    }

    /// Returns the mean cross-entropy of the batch of the last forward pass, on the same `pixels`; leaves its gradients in `trace`.
    pub(super) fn backward(&self, pixels: &[f32], labels: &[u8], trace: &mut Trace) -> f32 {
        let loss = cross_entropy(labels, &mut trace.logits);
        self.output.backward(&trace.hidden.output, &mut trace.logits);
        self.output.input_gradient(&trace.logits, &mut trace.hidden.gradient);
        trace.hidden.relu_gradient();
        self.hidden.backward(&trace.flat, &mut trace.hidden);
        self.hidden.input_gradient(&trace.hidden, &mut trace.flat_gradient);
        let maps = trace.first.output().values();
        trace.first_gradient.resize(maps.len(), 0.0);
        let map_gradient = Some(trace.first_gradient.as_mut_slice());
        self.second.backward(maps, trace.flat_gradient.values(), map_gradient, &mut trace.second);
        self.first.backward(pixels, &trace.first_gradient, None, &mut trace.first);
        loss
    }
}
