//! The small, fast networks: 5x5x16, pool, 5x5x32, pool, 64, classes; the first layer may respond to contrast only.

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use speed_core::random::Stream;
use speed_data::ImageShape;
use speed_nn::init;
use speed_nn::layers::{ContrastConv, Dense, PooledConv};
use speed_nn::ops::activation::Activation;
use speed_nn::ops::pooled_conv::PooledWindows;
use speed_nn::training::Classifier;

use crate::TeacherNetwork;

const KERNEL: usize = 5;
const FIRST: usize = 16;
const SECOND: usize = 32;
const HIDDEN: usize = 64;

/// Convolutions without padding, 2x2 pools, ReLU after every layer but the last; weights He-normal, smaller in the last
/// layer.
#[derive(Module, Debug)]
pub(crate) struct SmallNetwork {
    first: PooledConv,
    second: PooledConv,
    hidden: Dense,
    output: Dense,
}

/// The small network with a first layer that responds to contrast only, so that few images suffice in any colours.
#[derive(Module, Debug)]
pub(crate) struct SmallContrastNetwork {
    first: ContrastConv,
    second: PooledConv,
    hidden: Dense,
    output: Dense,
}

/// The initial layers of a small network; the first one as its windows, weight and bias.
struct Layers {
    first: (PooledWindows, Tensor<2>, Tensor<1>),
    second: PooledConv,
    hidden: Dense,
    output: Dense,
}

impl Layers {
    fn new(shape: ImageShape, classes: usize, stream: &mut Stream, device: &Device) -> Self {
        let windows = |height, width, channels| {
            PooledWindows::new(height, width, channels, KERNEL).expect("images are as large as the network needs")
        };
        let first = windows(shape.height, shape.width, shape.channels);
        let [height, width] = first.pooled();
        let second = windows(height, width, FIRST);
        let flat = second.pooled().iter().product::<usize>() * SECOND;

        let mut parameters = |inputs: usize, outputs: usize, gain: f32| {
            let weight = init::normal([inputs, outputs], gain * (2.0 / inputs as f32).sqrt(), stream, device);
            (weight, init::constant([outputs], 0.0, device))
        };
        let (first_weight, first_bias) = parameters(first.patch_len(), FIRST, 1.0);
        let (weight, bias) = parameters(second.patch_len(), SECOND, 1.0);
        let dense = |activation, (weight, bias)| Dense::new(weight, bias, activation);
        Self {
            first: (first, first_weight, first_bias),
            second: PooledConv::new(second, weight, bias),
            hidden: dense(Activation::Relu, parameters(flat, HIDDEN, 1.0)),
            // Small initial logits, so that the first steps are not spent on unlearning random predictions.
            output: dense(Activation::Linear, parameters(HIDDEN, classes, 0.3)),
        }
    }
}

/// Returns the number of values that the hidden layer reads.
fn flat(shape: ImageShape) -> usize {
    let pooled = |side: usize| (side + 1).saturating_sub(KERNEL) / 2;
    pooled(pooled(shape.height)) * pooled(pooled(shape.width)) * SECOND
}

impl Classifier for SmallNetwork {
    fn logits(&self, images: Tensor<4>) -> Tensor<2> {
        let maps = self.second.forward(self.first.forward(images));
        self.output.forward(self.hidden.forward(maps.flatten(1, 3)))
    }
}

impl Classifier for SmallContrastNetwork {
    fn logits(&self, images: Tensor<4>) -> Tensor<2> {
        let maps = self.second.forward(self.first.forward(images));
        self.output.forward(self.hidden.forward(maps.flatten(1, 3)))
    }
}

impl TeacherNetwork for SmallNetwork {
    const STEP_BYTES_PER_PIXEL: usize = 128;
    // (16 - 4) / 2 = 6 after the first pool, (6 - 4) / 2 = 1 after the second.
    const LEAST_SIZE: usize = 16;

    fn new(shape: ImageShape, classes: usize, stream: &mut Stream, device: &Device) -> Self {
        let Layers { first: (windows, weight, bias), second, hidden, output } =
            Layers::new(shape, classes, stream, device);
        Self { first: PooledConv::new(windows, weight, bias), second, hidden, output }
    }

    fn least_parameters(shape: ImageShape, _: usize) -> usize {
        flat(shape) * HIDDEN
    }
}

impl TeacherNetwork for SmallContrastNetwork {
    const STEP_BYTES_PER_PIXEL: usize = 192;
    const LEAST_SIZE: usize = SmallNetwork::LEAST_SIZE;

    fn new(shape: ImageShape, classes: usize, stream: &mut Stream, device: &Device) -> Self {
        let grey = ImageShape { channels: 1, ..shape };
        let Layers { first: (windows, weight, bias), second, hidden, output } =
            Layers::new(grey, classes, stream, device);
        Self { first: ContrastConv::new(windows, weight, bias), second, hidden, output }
    }

    fn least_parameters(shape: ImageShape, classes: usize) -> usize {
        SmallNetwork::least_parameters(shape, classes)
    }
}
