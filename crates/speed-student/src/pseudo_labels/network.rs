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

/// Values that a forward pass leaves for the backward pass, and the gradients. Keeps its memory from step to step.
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

/// Sides of the maps behind all convolutions; none if the images are too small.
pub(super) fn last_maps(config: &PseudoLabelsConfig, shape: ImageShape) -> Option<[usize; 2]> {
    let (mut sides, mut channels) = ([shape.height, shape.width], shape.channels);
    for &outputs in &config.convolutions {
        sides = PooledWindows::new(sides[0], sides[1], channels, config.kernel)?.pooled();
        channels = outputs;
    }
    Some(sides)
}

impl Classifier {
    /// Returns a network with He-normal weights, those of the last layer smaller. `None` if the images are too small.
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

    /// Returns the size of the images.
    #[must_use]
    pub fn shape(&self) -> ImageShape {
        self.shape
    }

    /// Returns the number of classes.
    #[must_use]
    pub fn classes(&self) -> usize {
        self.output.outputs()
    }

    /// Returns all parameters, in a fixed order.
    pub(super) fn parameters(&self) -> Vec<&[f32]> {
        let convolutions = self.convolutions.iter().flat_map(PooledConv::parameters);
        convolutions.chain(self.hidden.parameters()).chain(self.output.parameters()).collect()
    }

    /// Returns all parameters in the same order, to change.
    pub(super) fn parameters_mut(&mut self) -> Vec<&mut [f32]> {
        let convolutions = self.convolutions.iter_mut().flat_map(PooledConv::parameters_mut);
        convolutions.chain(self.hidden.parameters_mut()).chain(self.output.parameters_mut()).collect()
    }

    /// Returns the same network with other parameters.
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
        trace.hidden.relu();
        let hidden = trace.hidden.output.values_mut();
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
        trace.dropout.apply(trace.hidden.gradient.values_mut());
        trace.hidden.relu_gradient();
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
    /// Returns the gradients of all parameters, in the network's order.
    pub(super) fn gradients(&self) -> Vec<&[f32]> {
        let convolutions = self.convolutions.iter().flat_map(PooledConvTrace::gradients);
        convolutions.chain(self.hidden.gradients()).chain(self.logits.gradients()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::module::{conv2d, max_pool2d};
    use burn::tensor::ops::{ConvOptions, MaxPoolOptions};
    use burn::tensor::{Device, Tensor, TensorData, activation};
    use speed_nn::cross_entropy::cross_entropy;
    use speed_random::Streams;

    fn config(convolutions: &[usize], kernel: usize) -> PseudoLabelsConfig {
        PseudoLabelsConfig {
            convolutions: convolutions.to_vec(),
            kernel,
            hidden: 11,
            dropout: 0.0,
            ..PseudoLabelsConfig::default()
        }
    }

    fn network(config: &PseudoLabelsConfig, shape: ImageShape) -> Option<Classifier> {
        Classifier::new(config, shape, 4, &mut Streams::new(1).stream("weights", 0))
    }

    /// Loss and all gradients of the whole network against Burn's layers and autodiff.
    #[test]
    fn values_and_gradients_agree_with_burn() {
        let device = Device::flex().autodiff();
        for (channels, height, width, convolutions, kernel) in
            [(1, 16, 18, &[3, 5][..], 5), (3, 22, 22, &[4, 3, 6], 3), (2, 8, 7, &[5], 3)]
        {
            let (config, shape) = (config(convolutions, kernel), ImageShape { channels, height, width });
            let network = network(&config, shape).expect("large enough");
            let mut stream = Streams::new(2).stream("batch", 0);
            let mut normal = |rows, columns| Matrix::from_fn(rows, columns, || StandardNormal.sample(&mut stream));
            let (images, mut targets) = (normal(6, shape.pixels()), normal(6, 4));
            speed_nn::cross_entropy::softmax(&mut targets);

            let mut trace = Trace::default();
            let dropout = &mut Streams::new(3).stream("dropout", 0);
            network.forward(images.values(), 6, &mut trace, Some(dropout));
            let weights = [0.3, 0.1, 0.2, 0.5, 1.0, 0.7];
            let output = trace.logits.output.clone();
            let [loss] = cross_entropy(&output, &targets, &weights, [6], &mut trace.logits.gradient);
            network.backward(images.values(), &mut trace);

            // The same in Burn, from the parameters in their order.
            let parameters: Vec<Tensor<1>> = network
                .parameters()
                .into_iter()
                .map(|p| Tensor::<1>::from_data(TensorData::from(p), &device).require_grad())
                .collect();
            let data = TensorData::new(images.values().to_vec(), [6, height, width, channels]);
            let mut maps = Tensor::<4>::from_data(data, &device).permute([0, 3, 1, 2]);
            let (conv, dense) = parameters.split_at(2 * convolutions.len());
            for pair in conv.chunks(2) {
                let (inputs, outputs) = (maps.dims()[1], pair[1].dims()[0]);
                let kernels = pair[0].clone().reshape([kernel, kernel, inputs, outputs]).permute([3, 2, 0, 1]);
                let options = ConvOptions::new([1, 1], [0, 0], [1, 1], 1);
                maps = max_pool2d(conv2d(maps, kernels, Some(pair[1].clone()), options), MaxPoolOptions::new([2, 2]));
                maps = activation::relu(maps);
            }
            let mut rows: Tensor<2> = maps.permute([0, 2, 3, 1]).reshape([6, -1]);
            for (layer, pair) in dense.chunks(2).enumerate() {
                let (inputs, outputs) = (rows.dims()[1], pair[1].dims()[0]);
                rows = rows.matmul(pair[0].clone().reshape([inputs, outputs])) + pair[1].clone().unsqueeze();
                rows = if layer == 0 { activation::relu(rows) } else { rows };
            }
            let data = |matrix: &Matrix| TensorData::new(matrix.values().to_vec(), [matrix.rows(), matrix.columns()]);
            let weighted = Tensor::<1>::from_floats(weights, &device).reshape([6, 1]);
            let entropies = Tensor::<2>::from_data(data(&targets), &device) * activation::log_softmax(rows, 1);
            let expected_loss = (entropies.neg() * weighted).sum();
            let gradients = expected_loss.clone().backward();

            assert!((loss - f64::from(expected_loss.into_scalar::<f32>())).abs() < 1e-4);
            for (found, parameter) in trace.gradients().into_iter().zip(&parameters) {
                let expected: Vec<f32> =
                    parameter.grad(&gradients).expect("a gradient").into_data().try_to_vec().expect("f32");
                assert_eq!(found.len(), expected.len());
                let scale = expected.iter().fold(0.0_f32, |scale, e| scale.max(e.abs()));
                assert!(scale > 0.0, "a gradient is zero");
                assert!(found.iter().zip(&expected).all(|(f, e)| (f - e).abs() <= 1e-4 * scale));
            }
        }
    }

    #[test]
    fn dropout_is_for_training_only() {
        let shape = ImageShape { channels: 1, height: 16, width: 16 };
        let network = network(&PseudoLabelsConfig { dropout: 0.5, ..config(&[3], 5) }, shape).expect("large enough");
        let (pixels, mut trace) = (vec![0.5; 256], Trace::default());
        let mut logits = |dropout: Option<&mut Stream>| {
            network.forward(&pixels, 1, &mut trace, dropout);
            trace.logits.output.clone()
        };
        let plain = logits(None);
        assert_eq!(logits(None), plain);
        assert_ne!(logits(Some(&mut Streams::new(1).stream("dropout", 0))), plain);
    }

    #[test]
    fn images_that_leave_nothing_are_refused() {
        let shape = |height, width| ImageShape { channels: 1, height, width };
        assert!(network(&config(&[3, 5], 5), shape(15, 28)).is_none());
        assert!(network(&config(&[3, 5], 5), shape(28, 5)).is_none());
        assert!(network(&config(&[3, 5], 5), shape(16, 16)).is_some());
    }
}
