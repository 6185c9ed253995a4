//! The paper's network, layer by layer as its published code has it ("conv" of networks.md).
//!
//! Its parameters are a Burn module like any other; values and gradients are written out in [`layers`], three to four
//! times as fast as Burn's own, against which a test holds them.

mod layers;

use super::parameters::{linear, register, values};
use crate::TeacherError;
use crate::batch::Images;
use burn::module::Module;
use burn::optim::GradientsParams;
use burn::tensor::Device;
use layers::Layers;
use speed_data::ImageShape;
use speed_nn::conv::{SameConv, pooled_size};
use speed_nn::dense::Dense;
use speed_nn::init;
use speed_nn::matrix::Matrix;
use speed_nn::max_pool::SameMaxPool;
use speed_nn::same_conv::SameConvRelu;
use speed_random::Stream;

pub(crate) use layers::Trace;

const KERNEL: usize = 5;
const FIRST: usize = 64;
const SECOND: usize = 128;
const HIDDEN: [usize; 2] = [384, 192];
const POOL: usize = 3;
const POOL_STRIDE: usize = 2;
const LRN_RADIUS: usize = 4;
/// TensorFlow's alpha, which multiplies the sum over the window of nine.
const LRN_ALPHA: f32 = 0.001 / 9.0;
/// Of the two hidden dense layers.
const WEIGHT_DECAY: f32 = 0.004;

/// conv 5x5x64, pool, LRN, conv 5x5x128, LRN, pool, dense 384, dense 192, dense classes.
///
/// Deviation: the published code feeds pixels from -0.5 to 254.5 by mistake (errata 21); here they run from -0.5 to
/// 0.5, as it means to.
#[derive(Module, Debug)]
pub(crate) struct ReferenceNetwork {
    first: SameConv,
    second: SameConv,
    hidden: [Dense; 2],
    output: Dense,
}

impl ReferenceNetwork {
    /// Pixels are read from -0.5 to 0.5.
    pub(crate) const OFFSET: f32 = -0.5;

    pub(crate) fn new(shape: ImageShape, classes: usize, stream: &mut Stream, device: &Device) -> Self {
        let pooled = |size| pooled_size(pooled_size(size, POOL_STRIDE), POOL_STRIDE);
        let flat = pooled(shape.height) * pooled(shape.width) * SECOND;
        let mut conv = |inputs, outputs, bias| {
            let weight = init::truncated_normal([outputs, inputs, KERNEL, KERNEL], 1e-4, stream, device);
            SameConv::new(weight, init::constant([outputs], bias, device))
        };
        let (first, second) = (conv(shape.channels, FIRST, 0.0), conv(FIRST, SECOND, 0.1));
        let mut dense = |inputs, outputs, std, bias| {
            let weight = init::truncated_normal([inputs, outputs], std, stream, device);
            Dense::new(weight, init::constant([outputs], bias, device))
        };
        let hidden = [dense(flat, HIDDEN[0], 0.04, 0.1), dense(HIDDEN[0], HIDDEN[1], 0.04, 0.1)];
        let output = dense(HIDDEN[1], classes, 1.0 / HIDDEN[1] as f32, 0.0);
        Self { first, second, hidden, output }
    }

    /// Logits of images, `classes` an image.
    pub(crate) fn logits(&self, images: &Images, trace: &mut Trace) -> Result<Vec<f32>, TeacherError> {
        Ok(self.layers(images.shape)?.forward(&images.values, images.count, trace).values().to_vec())
    }

    /// Returns the mean cross-entropy of a batch in nats plus `0.004 * |W|^2 / 2` of both hidden dense layers, and its gradients.
    pub(crate) fn gradients(
        &self,
        images: &Images,
        labels: &[u8],
        trace: &mut Trace,
        device: &Device,
    ) -> Result<(f32, GradientsParams), TeacherError> {
        let layers = self.layers(images.shape)?;
        layers.forward(&images.values, images.count, trace);
        let loss = layers.backward(&images.values, labels, trace);
        let mut gradients = GradientsParams::new();
        for (layer, (weight, bias)) in [&self.first, &self.second].into_iter().zip(trace.convolutions()) {
            let (weight_param, bias_param) = layer.parameters();
            let mut kernels = vec![0.0; weight.values().len()];
            for_each_weight(weight_param.val().dims(), |burn, own| kernels[burn] = weight.values()[own]);
            register(&mut gradients, weight_param, &kernels, device);
            register(&mut gradients, bias_param, bias, device);
        }
        let [wide, narrow] = &self.hidden;
        for (layer, (weight, bias)) in [wide, narrow, &self.output].into_iter().zip(trace.dense()) {
            let (weight_param, bias_param) = layer.parameters();
            register(&mut gradients, weight_param, weight.values(), device);
            register(&mut gradients, bias_param, bias, device);
        }
        Ok((loss, gradients))
    }

    /// Returns the layers with a copy of the present parameters, for images of `shape`.
    fn layers(&self, shape: ImageShape) -> Result<Layers, TeacherError> {
        let convolution = |layer: &SameConv, size| -> Result<_, TeacherError> {
            let (weight, bias) = layer.parameters();
            let dims @ [outputs, inputs, ..] = weight.val().dims();
            let kernels = values(weight)?;
            let mut matrix = Matrix::zeros(KERNEL * KERNEL * inputs, outputs);
            for_each_weight(dims, |burn, own| matrix.values_mut()[own] = kernels[burn]);
            Ok(SameConvRelu::new(size, KERNEL, matrix, values(bias)?))
        };
        let first_pool = SameMaxPool::new([shape.height, shape.width, FIRST], POOL, POOL_STRIDE);
        let [height, width] = first_pool.pooled();
        let [wide, narrow] = &self.hidden;
        Ok(Layers {
            first: convolution(&self.first, [shape.height, shape.width])?,
            first_pool,
            second: convolution(&self.second, [height, width])?,
            second_pool: SameMaxPool::new([height, width, SECOND], POOL, POOL_STRIDE),
            dense: [linear(wide)?, linear(narrow)?, linear(&self.output)?],
        })
    }
}

/// Calls `pair(i, j)` for every weight of a convolution: `i` is its place in Burn's order `[outputs, inputs, kernel row,
/// kernel column]`, `j` in that of the windows, `[kernel row, kernel column, inputs, outputs]`.
fn for_each_weight([outputs, inputs, rows, columns]: [usize; 4], mut pair: impl FnMut(usize, usize)) {
    let area = rows * columns;
    for (output, input) in (0..outputs * inputs).map(|i| (i / inputs, i % inputs)) {
        for position in 0..area {
            pair((output * inputs + input) * area + position, (position * inputs + input) * outputs + output);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::burn_twin::{assert_close, assert_gradients_agree, cross_entropy, read};
    use burn::module::{ModuleMapper, Param};
    use burn::tensor::{Tensor, TensorData, activation};
    use speed_nn::conv::max_pool_same;
    use speed_nn::lrn::local_response_norm;
    use speed_random::Streams;

    #[test]
    fn layers_have_their_sizes() {
        let device = Device::flex();
        // 28x28x1 is pooled to 14 and 7: 25*64+64, 1600*128+128, 6272*384+384, 384*192+192, 192*10+10.
        for (channels, height, width, classes, params) in [
            (1, 28, 28, 10, 1664 + 204_928 + 2_408_832 + 73_920 + 1930),
            (3, 9, 5, 4, 4864 + 204_928 + 3 * 2 * 128 * 384 + 384 + 73_920 + 772),
        ] {
            let shape = ImageShape { channels, height, width };
            let network = ReferenceNetwork::new(shape, classes, &mut Streams::new(1).stream("w", 0), &device);
            assert_eq!(network.num_params(), params);
            let images = Images { values: vec![0.25; 2 * shape.pixels()], count: 2, shape };
            assert_eq!(network.logits(&images, &mut Trace::default()).expect("logits").len(), 2 * classes);
        }
    }

    /// Returns the network in Burn's own layers, and its weight decay.
    fn in_burn(network: &ReferenceNetwork, images: &Images, device: &Device) -> (Tensor<2>, Tensor<1>) {
        let ImageShape { channels, height, width } = images.shape;
        let data = TensorData::new(images.values.clone(), [images.count, height, width, channels]);
        let maps = Tensor::<4>::from_data(data, device).permute([0, 3, 1, 2]);
        let maps = activation::relu(network.first.forward(maps));
        let maps = local_response_norm(max_pool_same(maps, POOL, POOL_STRIDE), LRN_RADIUS, LRN_ALPHA);
        let maps = activation::relu(network.second.forward(maps));
        let maps = max_pool_same(local_response_norm(maps, LRN_RADIUS, LRN_ALPHA), POOL, POOL_STRIDE);
        let mut rows: Tensor<2> = maps.flatten(1, 3);
        for layer in &network.hidden {
            rows = activation::relu(layer.forward(rows));
        }
        let [first, second] = &network.hidden;
        let penalty = (first.half_squared_norm() + second.half_squared_norm()) * f64::from(WEIGHT_DECAY);
        (network.output.forward(rows), penalty)
    }

    /// Larger kernels than the initial ones, whose signals are too small to tell anything.
    struct Larger;

    impl ModuleMapper for Larger {
        fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
            let (id, value, _) = param.consume();
            let value = if D == 4 { value.inner() * 500.0 } else { value.inner() };
            Param::initialized(id, Tensor::from_inner(value).require_grad())
        }
    }

    #[test]
    fn values_and_gradients_agree_with_burn() {
        let device = Device::flex().autodiff();
        let mut stream = Streams::new(1).stream("images", 0);
        for (channels, height, width, count) in [(1, 28, 28, 3), (3, 9, 6, 5)] {
            let shape = ImageShape { channels, height, width };
            let network = ReferenceNetwork::new(shape, 5, &mut Streams::new(2).stream("w", 0), &device);
            let network = speed_nn::params::number_parameters(network).map(&mut Larger);
            let values = init::uniform([count * shape.pixels()], -0.5, 0.5, &mut stream, &device).inner();
            let images = Images { values: values.into_data().try_to_vec().expect("f32"), count, shape };
            let labels: Vec<u8> = (0..count).map(|i| (i % 5) as u8).collect();

            let (logits, penalty) = in_burn(&network, &images, &device);
            let expected_loss = cross_entropy(logits.clone(), &labels, &device) + penalty;
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
