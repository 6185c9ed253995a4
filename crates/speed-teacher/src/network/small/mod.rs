//! The small, fast network: 5x5x16, pool, 5x5x32, pool, 64, classes.
//!
//! Its parameters are a Burn module like any other. Its values and gradients are written out in [`layers`]: a step takes
//! a few milliseconds, so memory is reused and little but the matrix products is left. A test holds them against Burn's
//! own layers and autodiff.

mod layers;

use crate::TeacherError;
use crate::batch::Images;
use burn::module::{Module, Param};
use burn::optim::GradientsParams;
use burn::tensor::{Device, Tensor, TensorData};
use layers::{DenseLayer, Layers};
use speed_data::ImageShape;
use speed_nn::dense::Dense;
use speed_nn::init;
use speed_nn::matrix::Matrix;
use speed_nn::pooled_conv::{PooledConv, PooledWindows};
use speed_random::Stream;

pub(crate) use layers::Trace;

const KERNEL: usize = 5;
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
    pub(crate) const LEAST_SIZE: usize = 16;

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

    /// The mean cross-entropy of a batch in nats, and its gradients.
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
        for (layer, (weight, bias)) in
            [&self.first, &self.second, &self.hidden, &self.output].into_iter().zip(trace.gradients())
        {
            let (weight_id, bias_id) = (layer.parameters().0.id, layer.parameters().1.id);
            let data = TensorData::new(weight.values().to_vec(), [weight.rows(), weight.columns()]);
            gradients.register(weight_id, Tensor::<2>::from_data(data, device));
            gradients.register(bias_id, Tensor::<1>::from_data(TensorData::from(bias), device));
        }
        Ok((loss, gradients))
    }

    /// The layers with a copy of the present parameters.
    fn layers(&self) -> Result<Layers, TeacherError> {
        let [first, second] = self.windows;
        let ((first_weight, first_bias), (second_weight, second_bias)) = (values(&self.first)?, values(&self.second)?);
        let ((hidden_weight, hidden_bias), (output_weight, output_bias)) =
            (values(&self.hidden)?, values(&self.output)?);
        Ok(Layers {
            first: PooledConv::new(first, first_weight, first_bias),
            second: PooledConv::new(second, second_weight, second_bias),
            hidden: DenseLayer { weight: hidden_weight, bias: hidden_bias },
            output: DenseLayer { weight: output_weight, bias: output_bias },
        })
    }
}

fn values(layer: &Dense) -> Result<(Matrix, Vec<f32>), TeacherError> {
    fn read<const D: usize>(param: &Param<Tensor<D>>) -> Result<Vec<f32>, TeacherError> {
        param.val().into_data().try_to_vec().map_err(TeacherError::device)
    }
    let (weight, bias) = layer.parameters();
    let [rows, columns] = weight.val().dims();
    let mut matrix = Matrix::zeros(rows, columns);
    matrix.values_mut().copy_from_slice(&read(weight)?);
    Ok((matrix, read(bias)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::module::{conv2d, max_pool2d};
    use burn::tensor::ops::{ConvOptions, MaxPoolOptions};
    use burn::tensor::{Int, activation};
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

    /// The network in Burn's own layers.
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
            let chosen = labels.iter().map(|&l| i32::from(l)).collect::<Vec<_>>();
            let chosen: Tensor<2, Int> = Tensor::from_data(TensorData::new(chosen, [count, 1]), &device);
            let expected_loss = activation::log_softmax(logits.clone(), 1).gather(1, chosen).mean().neg();
            let expected = GradientsParams::from_grads(expected_loss.clone().backward(), &network);
            let (loss, found) =
                network.gradients(&images, &labels, &mut Trace::default(), &Device::flex()).expect("gradients");

            let close = |found: &[f32], expected: &[f32], what: &str| {
                assert_eq!(found.len(), expected.len());
                // Relative to the greatest: sums of thousands of products in another order.
                let scale = expected.iter().fold(0.0_f32, |scale, e| scale.max(e.abs()));
                assert!(scale > 0.0, "{what} is zero");
                for (f, e) in found.iter().zip(expected) {
                    assert!((f - e).abs() <= 1e-4 * scale, "{what}: {f} and {e}");
                }
            };
            let read = |tensor: Tensor<1>| -> Vec<f32> { tensor.into_data().try_to_vec().expect("f32") };
            let own = network.logits(&images, &mut Trace::default()).expect("logits");
            close(&own, &read(logits.inner().flatten(0, 1)), "logits");
            close(&[loss], &read(expected_loss.inner()), "loss");
            for layer in [&network.first, &network.second, &network.hidden, &network.output] {
                let (weight, bias) = layer.parameters();
                let weights = [&found, &expected].map(|g| g.get::<2>(weight.id).expect("a gradient").flatten(0, 1));
                let biases = [&found, &expected].map(|g| g.get::<1>(bias.id).expect("a gradient"));
                for [found, expected] in [weights, biases] {
                    close(&read(found), &read(expected), &format!("gradient of parameter {}", weight.id));
                }
            }
        }
    }
}
