//! A teacher's network, with everything that a config needs to train an ensemble.

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use speed_data::ImageShape;
use speed_nn::init;
use speed_nn::layers::{Conv, Dense};
use speed_nn::ops::activation::Activation;
use speed_nn::ops::conv::Geometry;
use speed_core::random::Stream;
use speed_teacher::{Classifier, TeacherNetwork};

/// Two 3x3 convolutions of stride 2 and a dense layer. Burn computes its gradient.
#[derive(Module, Debug)]
pub struct Strided {
    first: Conv,
    second: Conv,
    output: Dense,
}

impl Classifier for Strided {
    fn logits(&self, images: Tensor<4>) -> Tensor<2> {
        self.output.forward(self.second.forward(self.first.forward(images)).flatten(1, 3))
    }
}

impl TeacherNetwork for Strided {
    fn new(shape: ImageShape, classes: usize, stream: &mut Stream, device: &Device) -> Self {
        let mut parameters = |inputs: usize, outputs: usize| {
            let weight = init::normal([inputs, outputs], (2.0 / inputs as f32).sqrt(), stream, device);
            (weight, init::constant([outputs], 0.0, device))
        };
        let mut convolution = |map, outputs| {
            let geometry = Geometry::same(map, 3, 2).expect("images with pixels");
            let (weight, bias) = parameters(geometry.patch_len(), outputs);
            let [rows, columns] = geometry.results();
            (Conv::new(geometry, weight, bias, Activation::Relu), [rows, columns, outputs])
        };
        let (first, map) = convolution([shape.height, shape.width, shape.channels], 12);
        let (second, map) = convolution(map, 24);
        let (weight, bias) = parameters(map.iter().product(), classes);
        Self { first, second, output: Dense::new(weight, bias, Activation::Linear) }
    }

    fn least_parameters(shape: ImageShape, classes: usize) -> usize {
        shape.height.div_ceil(4) * shape.width.div_ceil(4) * 24 * classes
    }
}
