//! Values and gradients of the reference network, written out. Maps are stored pixel by pixel (NHWC).

use speed_nn::linear::{Linear, LinearTrace};
use speed_nn::lrn::LocalResponseNorm;
use speed_nn::math::dot;
use speed_nn::matrix::Matrix;
use speed_nn::max_pool::SameMaxPool;
use speed_nn::same_conv::{SameConvRelu, SameConvTrace};

use super::super::loss::cross_entropy;
use super::{LRN_ALPHA, LRN_RADIUS, SECOND, WEIGHT_DECAY};

const NORM: LocalResponseNorm = LocalResponseNorm { radius: LRN_RADIUS, alpha: LRN_ALPHA };

/// The layers with their parameters.
pub(super) struct Layers {
    pub(super) first: SameConvRelu,
    pub(super) first_pool: SameMaxPool,
    pub(super) second: SameConvRelu,
    pub(super) second_pool: SameMaxPool,
    pub(super) dense: [Linear; 3],
}

/// Values that a forward pass leaves for the backward pass, and the gradients. Keeps its memory from step to step.
#[derive(Default)]
pub(crate) struct Trace {
    first: SameConvTrace,
    first_pool: Pooled,
    first_norm: Normed,
    second: SameConvTrace,
    second_norm: Normed,
    second_pool: Pooled,
    /// The last maps, one image a row, channel by channel.
    flat: Matrix,
    dense: [LinearTrace; 3],
    flat_gradient: Matrix,
    maps_gradient: Vec<f32>,
    first_gradient: Matrix,
    second_gradient: Matrix,
}

#[derive(Default)]
struct Pooled {
    output: Vec<f32>,
    choice: Vec<u32>,
}

#[derive(Default)]
struct Normed {
    output: Vec<f32>,
    scale: Vec<f32>,
}

impl Trace {
    /// Returns the gradients of weights and bias of both convolutions.
    pub(super) fn convolutions(&self) -> [(&Matrix, &[f32]); 2] {
        [&self.first, &self.second].map(|trace| (&trace.weight, trace.bias.as_slice()))
    }

    /// Returns the gradients of weights and bias of the dense layers.
    pub(super) fn dense(&self) -> [(&Matrix, &[f32]); 3] {
        self.dense.each_ref().map(|trace| (&trace.weight, trace.bias.as_slice()))
    }
}

impl Layers {
    /// Returns the logits of `images` images, one a row.
    pub(super) fn forward<'a>(&self, pixels: &[f32], images: usize, trace: &'a mut Trace) -> &'a Matrix {
        let Trace { first, first_pool, first_norm, second, second_norm, second_pool, flat, dense, .. } = trace;
        self.first.forward(pixels, first);
        self.first_pool.forward(first.output().values(), &mut first_pool.output, &mut first_pool.choice);
        let channels = first.output().columns();
        NORM.forward(&first_pool.output, channels, &mut first_norm.output, &mut first_norm.scale);
        self.second.forward(&first_norm.output, second);
        NORM.forward(second.output().values(), SECOND, &mut second_norm.output, &mut second_norm.scale);
        self.second_pool.forward(&second_norm.output, &mut second_pool.output, &mut second_pool.choice);
        flat.resize(images, self.dense[0].inputs());
        channels_first(&second_pool.output, flat);

        let [wide, narrow, logits] = dense;
        self.dense[0].forward(flat, wide);
        wide.relu();
        self.dense[1].forward(&wide.output, narrow);
        narrow.relu();
        self.dense[2].forward(&narrow.output, logits);
        &logits.output
    }

    /// Returns the loss of the batch of the last forward pass, on the same `pixels`: the mean cross-entropy and the hidden dense
    /// layers' decay. Leaves its gradients in `trace`.
    pub(super) fn backward(&self, pixels: &[f32], labels: &[u8], trace: &mut Trace) -> f32 {
        let mut loss = cross_entropy(labels, &mut trace.dense[2]);
        let [wide, narrow, logits] = &mut trace.dense;
        self.dense[2].backward(&narrow.output, logits);
        self.dense[2].input_gradient(logits, &mut narrow.gradient);
        narrow.relu_gradient();
        self.dense[1].backward(&wide.output, narrow);
        self.dense[1].input_gradient(narrow, &mut wide.gradient);
        wide.relu_gradient();
        self.dense[0].backward(&trace.flat, wide);
        self.dense[0].input_gradient(wide, &mut trace.flat_gradient);
        loss += decay(&self.dense[0], &mut wide.weight) + decay(&self.dense[1], &mut narrow.weight);

        let Trace { first, first_pool, first_norm, second, second_norm, second_pool, .. } = trace;
        let pooled = &mut trace.maps_gradient;
        pooled.resize(second_pool.output.len(), 0.0);
        channels_last(&trace.flat_gradient, SECOND, pooled);
        let by_second = &mut trace.second_gradient;
        by_second.resize(second.output().rows(), SECOND);
        self.second_pool.backward(pooled, &second_pool.choice, by_second.values_mut());
        NORM.backward(by_second.values_mut(), second.output().values(), SECOND, &second_norm.scale);

        let by_pooled = pooled;
        by_pooled.resize(first_norm.output.len(), 0.0);
        self.second.backward(&first_norm.output, by_second, Some(by_pooled), second);
        let channels = first.output().columns();
        NORM.backward(by_pooled, &first_pool.output, channels, &first_norm.scale);
        let by_first = &mut trace.first_gradient;
        by_first.resize(first.output().rows(), channels);
        self.first_pool.backward(by_pooled, &first_pool.choice, by_first.values_mut());
        self.first.backward(pixels, by_first, None, first);
        loss
    }
}

/// `WEIGHT_DECAY * |W|^2 / 2`; adds its gradient to `gradient`.
fn decay(layer: &Linear, gradient: &mut Matrix) -> f32 {
    let [weight, _] = layer.parameters();
    gradient.values_mut().iter_mut().zip(weight).for_each(|(g, w)| *g += WEIGHT_DECAY * w);
    // One sum of millions of terms in f32 would be off by 2e-5.
    let squares: f64 = weight.chunks(4096).map(|part| f64::from(dot(part, part))).sum();
    WEIGHT_DECAY / 2.0 * squares as f32
}

/// Maps pixel by pixel to rows channel by channel.
fn channels_first(maps: &[f32], rows: &mut Matrix) {
    let length = rows.columns();
    for (map, row) in maps.chunks_exact(length).zip(rows.values_mut().chunks_exact_mut(length)) {
        let area = length / SECOND;
        for (channel, values) in row.chunks_exact_mut(area).enumerate() {
            values.iter_mut().zip(map.iter().skip(channel).step_by(SECOND)).for_each(|(to, from)| *to = *from);
        }
    }
}

/// Undoes [`channels_first`].
fn channels_last(rows: &Matrix, channels: usize, maps: &mut [f32]) {
    let length = rows.columns();
    for (row, map) in rows.values().chunks_exact(length).zip(maps.chunks_exact_mut(length)) {
        for (channel, values) in row.chunks_exact(length / channels).enumerate() {
            map.iter_mut().skip(channel).step_by(channels).zip(values).for_each(|(to, from)| *to = *from);
        }
    }
}
