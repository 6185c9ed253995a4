//! A small convolutional network.

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use speed_core::random::Stream;
use speed_data::ImageShape;
use speed_nn::dropout::dropout;
use speed_nn::init;
use speed_nn::layers::{ContrastConv, Dense, PooledConv};
use speed_nn::ops::activation::Activation;
use speed_nn::ops::pooled_conv::PooledWindows;
use speed_nn::training::Classifier;

use super::PseudoLabelsConfig;

/// Convolutions without padding, each followed by 2x2 max pooling and ReLU; a hidden layer with ReLU and dropout; and
/// logits. The first convolution may see only contrasts.
#[derive(Module, Debug)]
pub(crate) struct PseudoLabelsNetwork {
    contrast: Option<ContrastConv>,
    convolutions: Vec<PooledConv>,
    hidden: Dense,
    output: Dense,
    #[module(skip)]
    dropout: f32,
}

/// Returns the windows of all convolutions, or `None` if the images are too small.
pub(super) fn windows(config: &PseudoLabelsConfig, shape: ImageShape) -> Option<Vec<PooledWindows>> {
    let channels = if config.sees_contrasts() { 1 } else { shape.channels };
    let (mut sides, mut channels) = ([shape.height, shape.width], channels);
    let mut windows = Vec::new();
    for outputs in config.convolutions() {
        let next = PooledWindows::new(sides[0], sides[1], channels, config.constants.kernel)?;
        (sides, channels) = (next.pooled(), outputs);
        windows.push(next);
    }
    Some(windows)
}

/// Returns the number of values that the hidden layer reads.
fn flat(config: &PseudoLabelsConfig, shape: ImageShape, windows: &[PooledWindows]) -> usize {
    windows.last().map_or(shape.height * shape.width, |last| last.pooled().iter().product())
        * config.convolutions().last().copied().unwrap_or(shape.channels)
}

/// Returns the number of weights without biases; 0 if the images are too small.
pub(super) fn least_parameters(config: &PseudoLabelsConfig, shape: ImageShape, classes: usize) -> usize {
    let Some(windows) = windows(config, shape) else { return 0 };
    let convolutions =
        windows.iter().zip(config.convolutions()).map(|(windows, outputs)| windows.patch_len() * outputs);
    convolutions.sum::<usize>() + (flat(config, shape, &windows) + classes) * config.hidden()
}

impl PseudoLabelsNetwork {
    /// Creates a network with He-normal weights, smaller in the last layer. Returns `None` if the images are too small.
    pub(super) fn new(
        config: &PseudoLabelsConfig,
        shape: ImageShape,
        classes: usize,
        stream: &mut Stream,
        device: &Device,
    ) -> Option<Self> {
        let windows = windows(config, shape)?;
        let mut parameters = |inputs: usize, outputs: usize, gain: f32| {
            let weight = init::normal([inputs, outputs], gain * (2.0 / inputs as f32).sqrt(), stream, device);
            (weight, init::constant([outputs], 0.0, device))
        };
        let flat = flat(config, shape, &windows);
        let mut layers = windows.iter().zip(config.convolutions());
        let first = if config.sees_contrasts() { layers.next() } else { None };
        let contrast = first.map(|(windows, outputs)| {
            let (weight, bias) = parameters(windows.patch_len(), outputs, 1.0);
            ContrastConv::new(*windows, weight, bias)
        });
        let convolutions = layers.map(|(windows, outputs)| {
            let (weight, bias) = parameters(windows.patch_len(), outputs, 1.0);
            PooledConv::new(*windows, weight, bias)
        });
        let convolutions = convolutions.collect();
        let (weight, bias) = parameters(flat, config.hidden(), 1.0);
        let hidden = Dense::new(weight, bias, Activation::Relu);
        // The first logits are small, so that the first steps are not spent on correcting random predictions.
        let (weight, bias) = parameters(config.hidden(), classes, 0.3);
        let output = Dense::new(weight, bias, Activation::Linear);
        Some(Self { contrast, convolutions, hidden, output, dropout: config.constants.dropout as f32 })
    }

    /// Returns the logits `[images, classes]` of images `[images, height, width, channels]` within 0..=1, with dropout.
    pub(super) fn training_logits(&self, images: Tensor<4>, stream: &mut Stream) -> Tensor<2> {
        self.output.forward(dropout(self.hidden(images), self.dropout, stream))
    }

    fn hidden(&self, images: Tensor<4>) -> Tensor<2> {
        let maps = match &self.contrast {
            Some(contrast) => contrast.forward(images),
            None => images,
        };
        let maps = self.convolutions.iter().fold(maps, |maps, layer| layer.forward(maps));
        self.hidden.forward(maps.flatten(1, 3))
    }
}

impl Classifier for PseudoLabelsNetwork {
    fn logits(&self, images: Tensor<4>) -> Tensor<2> {
        self.output.forward(self.hidden(images))
    }
}

#[cfg(test)]
mod tests {
    use super::super::PseudoLabelsConstants;
    use super::*;
    use speed_core::random::Streams;
    use speed_nn::device::values;

    fn config(convolutions: &[usize], kernel: usize) -> PseudoLabelsConfig {
        let convolutions = convolutions.to_vec();
        let constants = PseudoLabelsConstants { convolutions, kernel, hidden: 11, dropout: 0.5, ..Default::default() };
        PseudoLabelsConfig { constants, ..Default::default() }
    }

    fn network(convolutions: &[usize], kernel: usize, height: usize, width: usize) -> Option<PseudoLabelsNetwork> {
        let config = config(convolutions, kernel);
        let shape = ImageShape { channels: 2, height, width };
        PseudoLabelsNetwork::new(&config, shape, 4, &mut Streams::new(1).stream("weights", 0), &Device::flex())
    }

    #[test]
    fn layers_have_their_sizes() {
        // 16x18x2: 6x7x3 after the first pool, 1x1x5 after the second.
        let network = network(&[3, 5], 5, 16, 18).expect("large enough");
        assert_eq!(network.num_params(), 150 + 3 + 375 + 5 + 5 * 11 + 11 + 44 + 4);
        let shape = ImageShape { channels: 2, height: 16, width: 18 };
        assert_eq!(least_parameters(&config(&[3, 5], 5), shape, 4), 150 + 375 + 5 * 11 + 44);
    }

    #[test]
    fn dropout_is_for_training_only() {
        let network = network(&[3], 5, 16, 16).expect("large enough");
        let images = || Tensor::ones([1, 16, 16, 2], &Device::flex());
        let plain = values(network.logits(images()));
        let mut stream = Streams::new(1).stream("dropout", 0);
        assert_ne!(values(network.training_logits(images(), &mut stream)), plain);
        assert_eq!(values(network.logits(images())), plain);
    }

    #[test]
    fn images_that_leave_nothing_are_refused() {
        assert!(network(&[3, 5], 5, 15, 28).is_none());
        assert!(network(&[3, 5], 5, 28, 5).is_none());
        assert!(network(&[3, 5], 5, 16, 16).is_some());
    }
}
