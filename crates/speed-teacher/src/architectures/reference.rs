//! The paper's network, layer by layer as in its published code.

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use speed_core::random::Stream;
use speed_data::ImageShape;
use speed_nn::init;
use speed_nn::layers::{Conv, Dense};
use speed_nn::ops::activation::Activation;
use speed_nn::ops::conv::Geometry;
use speed_nn::ops::lrn::{Window, local_response_norm};
use speed_nn::ops::max_pool::{max_pool_same, pooled};
use speed_nn::training::Classifier;

use crate::TeacherNetwork;

const KERNEL: usize = 5;
const FIRST: usize = 64;
const SECOND: usize = 128;
const HIDDEN: [usize; 2] = [384, 192];
const POOL: usize = 3;
const POOL_STRIDE: usize = 2;
/// TensorFlow's alpha is a factor of the sum over the window of nine.
const LRN: Window = Window { radius: 4, alpha: 0.001 / 9.0 };
/// The published code intends pixels from -0.5 to 0.5 but feeds -0.5 to 254.5 (erratum 21). Its rate of 0.01 depends on
/// this mistake: with small pixels, kernels of deviation 1e-4 produce such small outputs that the learning rate of a
/// partition has decayed before anything is learned.
const PIXEL_DEPTH: f32 = 255.0;
/// Weight decay of the two hidden dense layers.
const WEIGHT_DECAY: f64 = 0.004;

/// conv 5x5x64, pool, LRN, conv 5x5x128, LRN, pool, dense 384, dense 192, dense classes, on pixels from -0.5 to 254.5.
#[derive(Module, Debug)]
pub(crate) struct ReferenceNetwork {
    first: Conv,
    second: Conv,
    hidden: [Dense; 2],
    output: Dense,
}

impl Classifier for ReferenceNetwork {
    const OFFSET: f32 = -0.5 / PIXEL_DEPTH;

    fn logits(&self, images: Tensor<4>) -> Tensor<2> {
        let maps = max_pool_same(self.first.forward(images * PIXEL_DEPTH), POOL, POOL_STRIDE);
        let maps = self.second.forward(local_response_norm(maps, LRN));
        let maps = max_pool_same(local_response_norm(maps, LRN), POOL, POOL_STRIDE);
        // Channel by channel, as in the teachers that were checked earlier.
        let rows = maps.permute([0, 3, 1, 2]).flatten(1, 3);
        let [wide, narrow] = &self.hidden;
        self.output.forward(narrow.forward(wide.forward(rows)))
    }
}

impl TeacherNetwork for ReferenceNetwork {
    const STEP_BYTES_PER_PIXEL: usize = 2560;
    // Version 1 had pixels from -0.5 to 0.5.
    const VERSION: u32 = 2;

    fn new(shape: ImageShape, classes: usize, stream: &mut Stream, device: &Device) -> Self {
        let half = |[height, width]: [usize; 2]| [pooled(height, POOL_STRIDE), pooled(width, POOL_STRIDE)];
        let mut convolution = |[height, width]: [usize; 2], inputs, outputs, bias| {
            let geometry = Geometry::same([height, width, inputs], KERNEL, 1).expect("images with pixels");
            let drawn = init::truncated_normal([outputs, inputs, KERNEL, KERNEL], 1e-4, stream, device);
            let weight = drawn.permute([2, 3, 1, 0]).reshape([geometry.patch_len(), outputs]);
            Conv::new(geometry, weight, init::constant([outputs], bias, device), Activation::Relu)
        };
        let size = [shape.height, shape.width];
        let first = convolution(size, shape.channels, FIRST, 0.0);
        let second = convolution(half(size), FIRST, SECOND, 0.1);

        let flat = half(half(size)).iter().product::<usize>() * SECOND;
        let mut dense = |inputs, outputs, deviation, bias, activation| {
            let weight = init::truncated_normal([inputs, outputs], deviation, stream, device);
            Dense::new(weight, init::constant([outputs], bias, device), activation)
        };
        let wide = dense(flat, HIDDEN[0], 0.04, 0.1, Activation::Relu);
        let narrow = dense(HIDDEN[0], HIDDEN[1], 0.04, 0.1, Activation::Relu);
        let output = dense(HIDDEN[1], classes, 1.0 / HIDDEN[1] as f32, 0.0, Activation::Linear);
        Self { first, second, hidden: [wide, narrow], output }
    }

    fn least_parameters(shape: ImageShape, _: usize) -> usize {
        let quarter = |side: usize| pooled(pooled(side, POOL_STRIDE), POOL_STRIDE);
        quarter(shape.height) * quarter(shape.width) * SECOND * HIDDEN[0]
    }

    fn penalty(&self) -> Option<Tensor<1>> {
        let [wide, narrow] = &self.hidden;
        Some((wide.half_squared_norm() + narrow.half_squared_norm()) * WEIGHT_DECAY)
    }
}
