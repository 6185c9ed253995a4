//! The small network for photographs of digits: contrast 5x5x16, pool, 5x5x32, pool, 64, classes.

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use speed_core::random::Stream;
use speed_data::ImageShape;
use speed_nn::init;
use speed_nn::layers::{ContrastConv, Dense, PooledConv};
use speed_nn::ops::activation::Activation;
use speed_nn::ops::pooled_conv::PooledWindows;
use speed_nn::training::Classifier;

use super::SmallNetwork;
use crate::TeacherNetwork;

const KERNEL: usize = 5;
const FIRST: usize = 16;
const SECOND: usize = 32;
const HIDDEN: usize = 64;

/// The small network with a first layer that responds to contrast only, so that few images suffice in any colours.
#[derive(Module, Debug)]
pub(crate) struct SmallContrastNetwork {
    first: ContrastConv,
    second: PooledConv,
    hidden: Dense,
    output: Dense,
}

impl Classifier for SmallContrastNetwork {
    fn logits(&self, images: Tensor<4>) -> Tensor<2> {
        let maps = self.second.forward(self.first.forward(images));
        self.output.forward(self.hidden.forward(maps.flatten(1, 3)))
    }
}

impl TeacherNetwork for SmallContrastNetwork {
    const STEP_BYTES_PER_PIXEL: usize = 192;
    const LEAST_SIZE: usize = SmallNetwork::LEAST_SIZE;

    fn new(shape: ImageShape, classes: usize, stream: &mut Stream, device: &Device) -> Self {
        let windows = |height, width, channels| {
            PooledWindows::new(height, width, channels, KERNEL).expect("images are as large as the network needs")
        };
        let first = windows(shape.height, shape.width, 1);
        let [height, width] = first.pooled();
        let second = windows(height, width, FIRST);
        let flat = second.pooled().iter().product::<usize>() * SECOND;
        let mut parameters = |inputs: usize, outputs: usize, gain: f32| {
            let weight = init::normal([inputs, outputs], gain * (2.0 / inputs as f32).sqrt(), stream, device);
            (weight, init::constant([outputs], 0.0, device))
        };
        let (first_weight, first_bias) = parameters(first.patch_len(), FIRST, 1.0);
        let (second_weight, second_bias) = parameters(second.patch_len(), SECOND, 1.0);
        let (hidden_weight, hidden_bias) = parameters(flat, HIDDEN, 1.0);
        // Small initial logits, so that the first steps are not spent on unlearning random predictions.
        let (output_weight, output_bias) = parameters(HIDDEN, classes, 0.3);
        Self {
            first: ContrastConv::new(first, first_weight, first_bias),
            second: PooledConv::new(second, second_weight, second_bias),
            hidden: Dense::new(hidden_weight, hidden_bias, Activation::Relu),
            output: Dense::new(output_weight, output_bias, Activation::Linear),
        }
    }

    fn least_parameters(shape: ImageShape, classes: usize) -> usize {
        SmallNetwork::least_parameters(shape, classes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use speed_core::random::Streams;

    #[test]
    fn layers_have_their_sizes() {
        let device = Device::flex();
        // 32x32: 25*16+16, 400*32+32, 800*64+64, 64*10+10, for any number of channels.
        for (channels, height, width, classes, params) in [
            (1, 32, 32, 10, 416 + 12_832 + 51_264 + 650),
            (3, 32, 32, 10, 416 + 12_832 + 51_264 + 650),
            (3, 16, 17, 3, 416 + 12_832 + 32 * 64 + 64 + 195),
        ] {
            let shape = ImageShape { channels, height, width };
            let network = SmallContrastNetwork::new(shape, classes, &mut Streams::new(1).stream("w", 0), &device);
            assert_eq!(network.num_params(), params);
            let logits = network.logits(Tensor::zeros([3, height, width, channels], &device));
            assert_eq!(logits.dims(), [3, classes]);
        }
    }
}
