//! The generator for SVHN.

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use speed_core::random::Stream;
use speed_data::ImageShape;
use speed_nn::init;
use speed_nn::layers::{BatchNormConvTransposed, BatchNormDense, WeightNorm, WeightNormConvTransposed};
use speed_nn::ops::activation::Activation;
use speed_nn::ops::conv::Geometry;

use super::super::networks::Generator;
use crate::StudentConfig;

const WEIGHT_DEVIATION: f32 = 0.05;
/// Deviation of the outputs before their tanh, after the initialisation on data.
const OUTPUT_DEVIATION: f32 = 0.1;
/// The number that Salimans' code adds to the variance of a batch, and to the squared norm of the output layer's
/// weights.
const EPSILON: f32 = 1e-6;
const KERNEL: usize = 5;

/// A dense layer to the smallest maps; transposed 5x5 convolutions of stride 2, each with batch norm and ReLU; and a
/// last convolution with normalised weights, a trained scale and tanh.
#[derive(Module, Debug)]
pub(crate) struct ConvolutionalGenerator {
    start: BatchNormDense,
    convolutions: Vec<BatchNormConvTransposed>,
    output: WeightNormConvTransposed,
    #[module(skip)]
    smallest: [usize; 3],
}

impl ConvolutionalGenerator {
    /// Returns the maps before the last layer.
    fn maps(&self, latent: Tensor<2>) -> Tensor<4> {
        let [height, width, channels] = self.smallest;
        let images = latent.dims()[0];
        let start = self.start.forward(latent).reshape([images, height, width, channels]);
        self.convolutions.iter().fold(start, |maps, layer| layer.forward(maps))
    }
}

impl Generator for ConvolutionalGenerator {
    /// Creates layers with normal weights, scale 1, shift and bias 0, for images of any size: the sides of the smallest
    /// maps are the sides of the images, halved and rounded up once for each layer.
    fn new(config: &StudentConfig, shape: ImageShape, stream: &mut Stream, device: &Device) -> Self {
        let channels = config.gan.convolutional.of_size(config.size).generator;
        // From the images to the smallest maps.
        let mut map = [shape.height, shape.width, shape.channels];
        let mut geometries = Vec::new();
        for &inputs in channels.iter().rev() {
            let geometry = Geometry::half(map, KERNEL, 2).expect("images with pixels");
            let [rows, columns] = geometry.results();
            geometries.push((geometry, inputs));
            map = [rows, columns, inputs];
        }
        let smallest = map;
        let mut normal =
            |inputs: usize, outputs: usize| init::normal([inputs, outputs], WEIGHT_DEVIATION, stream, device);
        let start =
            BatchNormDense::new(normal(config.gan.latent, smallest.iter().product()), EPSILON, Activation::Relu);
        let (last, inputs) = geometries.remove(0);
        let convolutions = geometries.into_iter().rev().map(|(geometry, inputs)| {
            let weight = normal(geometry.patch_len(), inputs);
            BatchNormConvTransposed::new(geometry, weight, EPSILON, Activation::Relu)
        });
        let convolutions = convolutions.collect();
        let kind = WeightNorm {
            activation: Activation::Tanh,
            trained_scale: true,
            norm_epsilon: EPSILON,
            deviation: OUTPUT_DEVIATION,
        };
        let output = WeightNormConvTransposed::new(last, normal(last.patch_len(), inputs), kind);
        Self { start, convolutions, output, smallest }
    }

    fn initialized_on(self, latent: Tensor<2>) -> Self {
        let maps = self.valid().maps(latent);
        Self { output: self.output.normalized_on(maps), ..self }
    }

    fn forward(&self, latent: Tensor<2>) -> Tensor<4> {
        self.output.forward(self.maps(latent)) * 0.5 + 0.5
    }
}

#[cfg(test)]
mod tests {
    use speed_core::random::Streams;

    use super::*;

    #[test]
    fn images_of_every_size_are_within_their_range() {
        let mut config = StudentConfig::default();
        config.gan.latent = 5;
        config.gan.convolutional.generator = vec![8, 6, 4];
        let (streams, device) = (Streams::new(1), Device::flex());
        for [height, width, channels] in [[32, 32, 3], [32, 20, 3], [17, 23, 1]] {
            let shape = ImageShape { channels, height, width };
            let generator = ConvolutionalGenerator::new(&config, shape, &mut streams.stream("weights", 0), &device);
            let latent = init::uniform([30, 5], 0.0, 1.0, &mut streams.stream("latent", 0), &device);
            let generator = generator.initialized_on(latent.clone());
            let images = generator.forward(latent);
            assert_eq!(images.dims(), [30, height, width, channels]);
            let values: Vec<f32> = images.into_data().try_to_vec().expect("f32");
            let mean = values.iter().sum::<f32>() / values.len() as f32;
            let deviation = (values.iter().map(|x| (x - mean).powi(2)).sum::<f32>() / values.len() as f32).sqrt();
            // tanh hardly changes 0.1, and scaling to 0..=1 halves it.
            assert!((mean - 0.5).abs() < 0.01 && (deviation - 0.05).abs() < 0.01, "{mean} {deviation}");
        }
    }
}
