//! The paper's network, layer by layer as its published code has it ("conv" of networks.md).

use crate::batch::Images;
use burn::module::Module;
use burn::tensor::{Device, Tensor, TensorData, activation};
use speed_data::ImageShape;
use speed_nn::conv::{SameConv, max_pool_same, pooled_size};
use speed_nn::dense::Dense;
use speed_nn::init;
use speed_nn::lrn::local_response_norm;
use speed_random::Stream;

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
const WEIGHT_DECAY: f64 = 0.004;

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

    pub(crate) fn forward(&self, images: &Images, device: &Device) -> Tensor<2> {
        let ImageShape { channels, height, width } = images.shape;
        let values = TensorData::new(images.values.clone(), [images.count, height, width, channels]);
        let maps = Tensor::<4>::from_data(values, device).permute([0, 3, 1, 2]);
        let maps = activation::relu(self.first.forward(maps));
        let maps = local_response_norm(max_pool_same(maps, POOL, POOL_STRIDE), LRN_RADIUS, LRN_ALPHA);
        let maps = activation::relu(self.second.forward(maps));
        let maps = max_pool_same(local_response_norm(maps, LRN_RADIUS, LRN_ALPHA), POOL, POOL_STRIDE);
        let mut rows: Tensor<2> = maps.flatten(1, 3);
        for layer in &self.hidden {
            rows = activation::relu(layer.forward(rows));
        }
        self.output.forward(rows)
    }

    /// `0.004 * |W|^2 / 2`, summed over the two hidden dense layers.
    pub(crate) fn penalty(&self) -> Tensor<1> {
        let [first, second] = &self.hidden;
        (first.half_squared_norm() + second.half_squared_norm()) * WEIGHT_DECAY
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
            assert_eq!(network.forward(&images, &device).dims(), [2, classes]);
        }
    }

    #[test]
    fn the_penalty_is_that_of_the_hidden_layers() {
        let shape = ImageShape { channels: 1, height: 4, width: 4 };
        let network = ReferenceNetwork::new(shape, 2, &mut Streams::new(1).stream("w", 0), &Device::flex());
        let found: f32 = network.penalty().into_scalar();
        // 128*384 + 384*192 weights of variance 0.04^2 * 0.773741 (a normal cut at two deviations); the sum of
        // squares of n of them has a relative deviation of about 1/sqrt(n) = 0.003.
        let expected = 0.004 / 2.0 * 0.04_f32.powi(2) * 0.773_741 * (128 * 384 + 384 * 192) as f32;
        assert!((found / expected - 1.0).abs() < 0.02, "{found} and {expected}");
    }
}
