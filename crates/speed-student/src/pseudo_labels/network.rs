//! A small convolutional network with its gradients written out.

use rand_distr::{Distribution, StandardNormal};
use speed_data::ImageShape;
use speed_nn::dropout::DropoutMask;
use speed_nn::linear::{Linear, LinearTrace};
use speed_nn::matrix::Matrix;
use speed_nn::pooled_conv::{PooledConv, PooledConvTrace, PooledWindows};
use speed_random::Stream;

use super::PseudoLabelsConfig;

/// Convolutions without padding, each with 2x2 max pooling and ReLU behind it, a hidden layer with ReLU and dropout,
/// and logits.
#[derive(Clone, Debug, PartialEq)]
pub struct Classifier {
    shape: ImageShape,
    convolutions: Vec<PooledConv>,
    hidden: Linear,
    output: Linear,
    dropout: f32,
}

/// What a forward pass leaves for the backward pass, and the gradients. Keeps its memory from step to step.
#[derive(Debug, Default)]
pub(super) struct Trace {
    convolutions: Vec<PooledConvTrace>,
    /// Gradients of the convolutions' outputs but the last one's, which is `flat_gradient`.
    map_gradients: Vec<Vec<f32>>,
    /// The last convolution's output, one image a row.
    flat: Matrix,
    flat_gradient: Matrix,
    hidden: LinearTrace,
    dropout: DropoutMask,
    /// Its `gradient` is for the caller to fill before the backward pass.
    pub(super) logits: LinearTrace,
}

impl Classifier {
    /// A network with He-normal weights, those of the last layer smaller. `None` if the images are too small.
    pub(super) fn new(
        config: &PseudoLabelsConfig,
        shape: ImageShape,
        classes: usize,
        stream: &mut Stream,
    ) -> Option<Self> {
        let mut weights = |inputs: usize, outputs: usize, gain: f32| {
            let deviation = gain * (2.0 / inputs as f32).sqrt();
            let mut normal = || -> f32 { StandardNormal.sample(&mut *stream) };
            (Matrix::from_fn(inputs, outputs, || deviation * normal()), vec![0.0; outputs])
        };
        let (mut height, mut width, mut channels) = (shape.height, shape.width, shape.channels);
        let mut convolutions = Vec::new();
        for &outputs in &config.convolutions {
            let windows = PooledWindows::new(height, width, channels, config.kernel)?;
            let (weight, bias) = weights(windows.patch_len(), outputs, 1.0);
            convolutions.push(PooledConv::new(windows, weight, bias));
            [height, width] = windows.pooled();
            channels = outputs;
        }
        let linear = |(weight, bias)| Linear::new(weight, bias);
        let hidden = linear(weights(height * width * channels, config.hidden, 1.0));
        // Small first logits: the first steps are not spent on unlearning chance.
        let output = linear(weights(config.hidden, classes, 0.3));
        Some(Self { shape, convolutions, hidden, output, dropout: config.dropout as f32 })
    }

    /// The size of the images.
    #[must_use]
    pub fn shape(&self) -> ImageShape {
        self.shape
    }

    /// Number of classes.
    #[must_use]
    pub fn classes(&self) -> usize {
        self.output.outputs()
    }

    /// All parameters, in a fixed order.
    pub(super) fn parameters(&self) -> Vec<&[f32]> {
        let convolutions = self.convolutions.iter().flat_map(PooledConv::parameters);
        convolutions.chain(self.hidden.parameters()).chain(self.output.parameters()).collect()
    }

    /// All parameters in the same order, to change.
    pub(super) fn parameters_mut(&mut self) -> Vec<&mut [f32]> {
        let convolutions = self.convolutions.iter_mut().flat_map(PooledConv::parameters_mut);
        convolutions.chain(self.hidden.parameters_mut()).chain(self.output.parameters_mut()).collect()
    }

    /// The same network with other parameters.
    ///
    /// # Panics
    /// When they are not of this network.
    pub(super) fn with_parameters(&self, parameters: &[Vec<f32>]) -> Self {
        let mut other = self.clone();
        let to = other.parameters_mut();
        assert_eq!(to.len(), parameters.len(), "arrays of parameters");
        to.into_iter().zip(parameters).for_each(|(to, from)| to.copy_from_slice(from));
        other
    }

    /// Computes `trace.logits.output` `[images, classes]` of `images` images (HWC each, 0..=1). With a stream there is
    /// dropout, as in training.
    pub(super) fn forward(&self, pixels: &[f32], images: usize, trace: &mut Trace, dropout: Option<&mut Stream>) {
        trace.convolutions.resize_with(self.convolutions.len(), Default::default);
        let mut maps = pixels;
        for (layer, trace) in self.convolutions.iter().zip(&mut trace.convolutions) {
            layer.forward(maps, trace);
            maps = trace.output().values();
        }
        trace.flat.resize(images, self.hidden.inputs());
        trace.flat.values_mut().copy_from_slice(maps);
        self.hidden.forward(&trace.flat, &mut trace.hidden);
        let hidden = trace.hidden.output.values_mut();
        // Not `max`, which would hide a NaN.
        hidden.iter_mut().for_each(|value| *value = if *value < 0.0 { 0.0 } else { *value });
        if let Some(stream) = dropout {
            trace.dropout.draw(hidden.len(), self.dropout, stream);
            trace.dropout.apply(hidden);
        }
        self.output.forward(&trace.hidden.output, &mut trace.logits);
    }

    /// Computes the gradients of all parameters from `trace.logits.gradient`, after a forward pass of the same `pixels`
    /// with dropout.
    pub(super) fn backward(&self, pixels: &[f32], trace: &mut Trace) {
        self.output.backward(&trace.hidden.output, &mut trace.logits);
        self.output.input_gradient(&trace.logits, &mut trace.hidden.gradient);
        let gradient = trace.hidden.gradient.values_mut();
        trace.dropout.apply(gradient);
        for (gradient, output) in gradient.iter_mut().zip(trace.hidden.output.values()) {
            *gradient = if *output > 0.0 { *gradient } else { 0.0 };
        }
        self.hidden.backward(&trace.flat, &mut trace.hidden);
        self.hidden.input_gradient(&trace.hidden, &mut trace.flat_gradient);

        // From the last convolution to the first; of the first's input, the images, no gradient is wanted.
        let last = self.convolutions.len() - 1;
        trace.map_gradients.resize_with(last, Vec::new);
        for (level, layer) in self.convolutions.iter().enumerate().rev() {
            let (below, from) = trace.convolutions.split_at_mut(level);
            let maps = below.last().map_or(pixels, |below| below.output().values());
            let (lower, upper) = trace.map_gradients.split_at_mut(level);
            let gradient = upper.first().map_or(trace.flat_gradient.values(), Vec::as_slice);
            let map_gradient = lower.last_mut().map(|gradient| {
                gradient.resize(maps.len(), 0.0);
                gradient.as_mut_slice()
            });
            layer.backward(maps, gradient, map_gradient, &mut from[0]);
        }
    }
}

impl Trace {
    /// The gradients of all parameters, in the network's order.
    pub(super) fn gradients(&self) -> Vec<&[f32]> {
        let convolutions = self.convolutions.iter().flat_map(PooledConvTrace::gradients);
        convolutions.chain(self.hidden.gradients()).chain(self.logits.gradients()).collect()
    }
}
