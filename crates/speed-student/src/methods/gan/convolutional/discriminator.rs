//! The discriminator for SVHN, which is the student's classifier.

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use speed_core::random::Stream;
use speed_data::ImageShape;
use speed_nn::dropout::dropout;
use speed_nn::init;
use speed_nn::layers::{WeightNorm, WeightNormConv, WeightNormDense};
use speed_nn::ops::activation::Activation;
use speed_nn::ops::conv::Geometry;
use speed_nn::ops::sums::row_sums;
use speed_nn::training::Classifier;

use super::super::networks::{Discriminator, Noise};
use crate::{ConvolutionalConstants, StudentConfig};

const WEIGHT_DEVIATION: f32 = 0.05;
/// Deviation of the logits after the initialisation on data.
const LOGIT_DEVIATION: f32 = 0.1;
const LEAKY_RELU: Activation = Activation::LeakyRelu(0.2);
/// Convolutions of a block.
const BLOCK: usize = 3;

/// Blocks of three 3x3 convolutions with dropout before each block; then one 3x3 convolution without padding and two
/// 1x1 convolutions, the mean over rows and columns, and a dense layer to the logits of the classes. Weights are
/// normalised, and activations are leaky ReLU.
#[derive(Module, Debug)]
pub(crate) struct ConvolutionalDiscriminator {
    convolutions: Vec<WeightNormConv>,
    output: WeightNormDense,
    #[module(skip)]
    input_dropout: f32,
    #[module(skip)]
    dropout: f32,
}

/// Returns the windows and the outputs of all convolutions, or `None` for images that are too small.
pub(super) fn geometries(config: &ConvolutionalConstants, shape: ImageShape) -> Option<Vec<(Geometry, usize)>> {
    let blocks = config.channels.iter().flat_map(|&outputs| [1, 1, 2].map(|stride| (Some(stride), 3, outputs)));
    let outputs = *config.channels.last()?;
    let last = [3, 1, 1].map(|kernel| (None, kernel, outputs));
    let mut map = [shape.height, shape.width, shape.channels];
    blocks
        .chain(last)
        .map(|(padded_stride, kernel, outputs)| {
            let geometry = match padded_stride {
                Some(stride) => Geometry::half(map, kernel, stride),
                None => Geometry::valid(map, kernel),
            }?;
            let [rows, columns] = geometry.results();
            map = [rows, columns, outputs];
            Some((geometry, outputs))
        })
        .collect()
}

impl ConvolutionalDiscriminator {
    /// Returns the input of convolution `index`. With a stream, values are dropped before every block as in training.
    fn input(&self, index: usize, maps: Tensor<4>, stream: Option<&mut Stream>) -> Tensor<4> {
        let rate = if index == 0 { self.input_dropout } else { self.dropout };
        match stream {
            Some(stream) if index.is_multiple_of(BLOCK) && rate > 0.0 => dropout(maps, rate, stream),
            _ => maps,
        }
    }
}

fn centred(images: Tensor<4>) -> Tensor<4> {
    images * 2.0 - 1.0
}

/// Returns the means `[images, channels]` over rows and columns.
fn pooled(maps: Tensor<4>) -> Tensor<2> {
    let [images, rows, columns, channels] = maps.dims();
    let places = rows * columns;
    let by_channel = maps.reshape([images, places, channels]).swap_dims(1, 2).reshape([images * channels, places]);
    row_sums(by_channel).reshape([images, channels]) / places as f64
}

impl Classifier for ConvolutionalDiscriminator {
    fn logits(&self, images: Tensor<4>) -> Tensor<2> {
        self.logits_with(images, None)
    }
}

impl Discriminator for ConvolutionalDiscriminator {
    fn new(config: &StudentConfig, shape: ImageShape, classes: usize, weights: &mut Stream, device: &Device) -> Self {
        let config = &config.gan.convolutional.of_size(config.size);
        let kind = |activation, trained_scale, deviation| WeightNorm {
            activation,
            trained_scale,
            norm_epsilon: 0.0,
            deviation,
        };
        let geometries = geometries(config, shape).expect("images whose size was checked");
        let features = geometries.last().map_or(0, |(_, outputs)| *outputs);
        let convolutions = geometries.into_iter().map(|(geometry, outputs)| {
            let theta = init::normal([geometry.patch_len(), outputs], WEIGHT_DEVIATION, weights, device);
            WeightNormConv::new(geometry, theta, kind(LEAKY_RELU, false, 1.0))
        });
        let convolutions = convolutions.collect();
        let theta = init::normal([features, classes], WEIGHT_DEVIATION, weights, device);
        let output = WeightNormDense::new(theta, kind(Activation::Linear, true, LOGIT_DEVIATION));
        Self { convolutions, output, input_dropout: config.input_dropout as f32, dropout: config.dropout as f32 }
    }

    fn initialized_on(self, images: Tensor<4>, noise: &mut Noise<'_>) -> Self {
        let (mut maps, mut convolutions) = (centred(images), Vec::new());
        for (index, layer) in self.convolutions.iter().enumerate() {
            maps = self.input(index, maps, Some(noise.stream));
            let layer = layer.clone().normalized_on(maps.clone());
            maps = layer.valid().forward(maps);
            convolutions.push(layer);
        }
        let output = self.output.normalized_on(pooled(maps));
        Self { convolutions, output, ..self }
    }

    fn features(&self, images: Tensor<4>, mut noise: Option<&mut Noise<'_>>) -> Tensor<2> {
        let convolutions = self.convolutions.iter().enumerate();
        pooled(convolutions.fold(centred(images), |maps, (index, layer)| {
            layer.forward(self.input(index, maps, noise.as_mut().map(|noise| &mut *noise.stream)))
        }))
    }

    fn logits_with(&self, images: Tensor<4>, noise: Option<&mut Noise<'_>>) -> Tensor<2> {
        self.output.forward(self.features(images, noise))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: ImageShape = ImageShape { channels: 3, height: 32, width: 32 };

    #[test]
    fn layers_have_the_sizes_of_the_published_code() {
        let config = ConvolutionalConstants::default();
        let sizes: Vec<([usize; 3], usize)> =
            geometries(&config, SHAPE).expect("large enough").iter().map(|(g, outputs)| (g.map(), *outputs)).collect();
        assert_eq!(
            sizes,
            [
                ([32, 32, 3], 64),
                ([32, 32, 64], 64),
                ([32, 32, 64], 64),
                ([16, 16, 64], 128),
                ([16, 16, 128], 128),
                ([16, 16, 128], 128),
                ([8, 8, 128], 128),
                ([6, 6, 128], 128),
                ([6, 6, 128], 128),
            ]
        );
        let small = ImageShape { channels: 1, height: 8, width: 40 };
        assert!(geometries(&config, small).is_none());
        assert!(geometries(&config, ImageShape { height: 9, ..small }).is_some());
    }
}
