//! The small, fast network: 5x5x16, pool, 5x5x32, pool, 64, classes.
//!
//! Its parameters are a Burn module like any other. Its values and gradients are written out in [`layers`]: a step takes
//! a few milliseconds, so memory is reused and little but the matrix products is left. A test holds them against Burn's
//! own layers and autodiff.

mod layers;

use super::parameters::{dense_values, linear, register};
use crate::TeacherError;
use crate::batch::Images;
use burn::module::Module;
use burn::optim::GradientsParams;
use burn::tensor::Device;
use layers::Layers;
use speed_data::ImageShape;
use speed_nn::dense::Dense;
use speed_nn::init;
use speed_nn::pooled_conv::{PooledConv, PooledWindows};
use speed_random::Stream;

pub(crate) use layers::Trace;

/// Rows and columns of the small network's kernels.
pub const KERNEL: usize = 5;
const FIRST: usize = 16;
const SECOND: usize = 32;
const HIDDEN: usize = 64;

/// Convolutions without padding, 2x2 pools, ReLU everywhere; weights He-normal, the last layer's smaller.
#[derive(Module, Debug)]
pub(crate) struct SmallNetwork {
    /// Of the convolutions, the weight is `[patch length, outputs]`.
    first: Dense,
    second: Dense,
    hidden: Dense,
    output: Dense,
    #[module(skip)]
    windows: [PooledWindows; 2],
}

impl SmallNetwork {
    /// Pixels are read from 0 to 1.
    pub(crate) const OFFSET: f32 = 0.0;

    /// The least height and width: (16 - 4) / 2 = 6 behind the first pool, (6 - 4) / 2 = 1 behind the second.
    pub(crate) const MIN_SIZE: usize = 16;

    /// `None` if the images are too small.
    pub(crate) fn new(shape: ImageShape, classes: usize, stream: &mut Stream, device: &Device) -> Option<Self> {
        let first = PooledWindows::new(shape.height, shape.width, shape.channels, KERNEL)?;
        let [height, width] = first.pooled();
        let second = PooledWindows::new(height, width, FIRST, KERNEL)?;
        let [height, width] = second.pooled();

        let mut layer = |inputs: usize, outputs: usize, gain: f32| {
            let weight = init::normal([inputs, outputs], gain * (2.0 / inputs as f32).sqrt(), stream, device);
            Dense::new(weight, init::constant([outputs], 0.0, device))
        };
        Some(Self {
            first: layer(first.patch_len(), FIRST, 1.0),
            second: layer(second.patch_len(), SECOND, 1.0),
            hidden: layer(height * width * SECOND, HIDDEN, 1.0),
            // Small first logits: the first steps are not spent on unlearning chance.
            output: layer(HIDDEN, classes, 0.3),
            windows: [first, second],
        })
    }

    /// Logits of images, `classes` an image.
    pub(crate) fn logits(&self, images: &Images, trace: &mut Trace) -> Result<Vec<f32>, TeacherError> {
        Ok(self.layers()?.forward(&images.values, images.count, trace).values().to_vec())
    }

    /// Returns the mean cross-entropy of a batch in nats, and its gradients.
    pub(crate) fn gradients(
        &self,
        images: &Images,
        labels: &[u8],
        trace: &mut Trace,
        device: &Device,
    ) -> Result<(f32, GradientsParams), TeacherError> {
        let layers = self.layers()?;
        layers.forward(&images.values, images.count, trace);
        let loss = layers.backward(&images.values, labels, trace);
        let mut gradients = GradientsParams::new();
        let layers = [&self.first, &self.second, &self.hidden, &self.output];
        for (layer, (weight, bias)) in layers.into_iter().zip(trace.gradients()) {
            let (weight_param, bias_param) = layer.parameters();
            register(&mut gradients, weight_param, weight.values(), device);
            register(&mut gradients, bias_param, bias, device);
        }
        Ok((loss, gradients))
    }

    /// Returns the layers with a copy of the present parameters.
    fn layers(&self) -> Result<Layers, TeacherError> {
        let [first, second] = self.windows;
        let convolution = |layer, windows| -> Result<_, TeacherError> {
            let (weight, bias) = dense_values(layer)?;
            Ok(PooledConv::new(windows, weight, bias))
        };
        Ok(Layers {
            first: convolution(&self.first, first)?,
            second: convolution(&self.second, second)?,
            hidden: linear(&self.hidden)?,
            output: linear(&self.output)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::burn_twin::{assert_close, assert_gradients_agree, cross_entropy, read};
    use burn::tensor::module::{conv2d, max_pool2d};
    use burn::tensor::ops::{ConvOptions, MaxPoolOptions};
    use burn::tensor::{Tensor, TensorData, activation};
    use speed_random::Streams;

    fn network(shape: ImageShape, classes: usize, device: &Device) -> Option<SmallNetwork> {
        let network = SmallNetwork::new(shape, classes, &mut Streams::new(1).stream("w", 0), device)?;
        Some(speed_nn::params::number_parameters(network))
    }

    #[test]
    fn layers_have_their_sizes() {
        let device = Device::flex();
        // 28x28x1: 25*16+16, 400*32+32, 512*64+64, 64*10+10.
        for (channels, height, width, classes, params) in [
            (1, 28, 28, 10, 416 + 12_832 + 32_832 + 650),
            (3, 32, 32, 10, 1216 + 12_832 + 800 * 64 + 64 + 650),
            (1, 16, 17, 3, 416 + 12_832 + 32 * 64 + 64 + 195),
        ] {
            let shape = ImageShape { channels, height, width };
            let network = network(shape, classes, &device).expect("fits");
            assert_eq!(network.num_params(), params);
            let images = Images { values: vec![0.5; 3 * shape.pixels()], count: 3, shape };
            assert_eq!(network.logits(&images, &mut Trace::default()).expect("logits").len(), 3 * classes);
        }
        for (height, width) in [(15, 28), (28, 15), (5, 5), (1, 1)] {
            assert!(network(ImageShape { channels: 1, height, width }, 10, &device).is_none());
        }
    }

    /// Returns the network in Burn's own layers.
    fn in_burn(network: &SmallNetwork, images: &Images, device: &Device) -> Tensor<2> {
        let ImageShape { channels, height, width } = images.shape;
        let data = TensorData::new(images.values.clone(), [images.count, height, width, channels]);
        let mut maps = Tensor::<4>::from_data(data, device).permute([0, 3, 1, 2]);
        for layer in [&network.first, &network.second] {
            let (weight, bias) = layer.parameters();
            let [inputs, outputs] = [maps.dims()[1], bias.val().dims()[0]];
            let kernels = weight.val().reshape([KERNEL, KERNEL, inputs, outputs]).permute([3, 2, 0, 1]);
            let options = ConvOptions::new([1, 1], [0, 0], [1, 1], 1);
            maps = max_pool2d(conv2d(maps, kernels, Some(bias.val()), options), MaxPoolOptions::new([2, 2]));
            maps = activation::relu(maps);
        }
        let flat = maps.permute([0, 2, 3, 1]).reshape([images.count as i32, -1]);
        network.output.forward(activation::relu(network.hidden.forward(flat)))
    }

    #[test]
    fn values_and_gradients_agree_with_burn() {
        let device = Device::flex().autodiff();
        let mut stream = Streams::new(1).stream("images", 0);
        for (channels, height, width, count) in [(1, 28, 28, 4), (3, 18, 21, 7)] {
            let shape = ImageShape { channels, height, width };
            let network = network(shape, 5, &device).expect("fits");
            let values = init::uniform([count * shape.pixels()], 0.0, 1.0, &mut stream, &device).inner();
            let images = Images { values: values.into_data().try_to_vec().expect("f32"), count, shape };
            let labels: Vec<u8> = (0..count).map(|i| (i % 5) as u8).collect();

            let logits = in_burn(&network, &images, &device);
            let expected_loss = cross_entropy(logits.clone(), &labels, &device);
            let expected = GradientsParams::from_grads(expected_loss.clone().backward(), &network);
            let (loss, found) =
                network.gradients(&images, &labels, &mut Trace::default(), &Device::flex()).expect("gradients");

            let own = network.logits(&images, &mut Trace::default()).expect("logits");
            assert_close(&own, &read(logits.inner()), "logits");
            assert_close(&[loss], &read(expected_loss.inner()), "loss");
            assert_gradients_agree(&network, &found, &expected);
        }
    }
}
