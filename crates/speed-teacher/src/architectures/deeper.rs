//! The paper's network for SVHN, layer by layer as in its published code.

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use speed_core::random::Stream;
use speed_data::ImageShape;
use speed_nn::init;
use speed_nn::layers::{Conv, Dense, standardised};
use speed_nn::ops::activation::Activation;
use speed_nn::ops::conv::Geometry;
use speed_nn::training::Classifier;

use crate::TeacherNetwork;

/// Kernel, stride, outputs, deviation of the weights and bias of each convolution.
const CONVOLUTIONS: [(usize, usize, usize, f32, f32); 7] = [
    (3, 1, 96, 0.05, 0.0),
    (3, 1, 96, 0.05, 0.0),
    (3, 2, 96, 0.05, 0.0),
    (3, 1, 192, 0.05, 0.0),
    (3, 1, 192, 0.05, 0.0),
    (3, 2, 192, 0.05, 0.0),
    (5, 1, 192, 1e-4, 0.1),
];

/// Seven convolutions, dense 192, dense 192, dense classes, on images of mean 0 and deviation 1.
#[derive(Module, Debug)]
pub(crate) struct DeeperNetwork {
    convolutions: Vec<Conv>,
    dense: [Dense; 3],
}

impl Classifier for DeeperNetwork {
    fn logits(&self, images: Tensor<4>) -> Tensor<2> {
        let maps = self.convolutions.iter().fold(standardised(images), |maps, layer| layer.forward(maps));
        self.dense.iter().fold(maps.flatten(1, 3), |rows, layer| layer.forward(rows))
    }
}

impl TeacherNetwork for DeeperNetwork {
    const STEP_BYTES_PER_PIXEL: usize = 8192;

    fn new(shape: ImageShape, classes: usize, stream: &mut Stream, device: &Device) -> Self {
        let mut map = [shape.height, shape.width, shape.channels];
        let mut parameters = |inputs, outputs, deviation, bias| {
            let weight = init::truncated_normal([inputs, outputs], deviation, stream, device);
            (weight, init::constant([outputs], bias, device))
        };
        let convolutions = CONVOLUTIONS.map(|(kernel, stride, outputs, deviation, bias)| {
            let geometry = Geometry::same(map, kernel, stride).expect("images with pixels");
            let (weight, bias) = parameters(geometry.patch_len(), outputs, deviation, bias);
            map = [geometry.results()[0], geometry.results()[1], outputs];
            Conv::new(geometry, weight, bias, Activation::Relu)
        });
        let dense = [
            (map.iter().product(), 192, 0.1, Activation::Relu),
            (192, 192, 0.1, Activation::Relu),
            (192, classes, 0.0, Activation::Linear),
        ];
        let dense = dense.map(|(inputs, outputs, bias, activation)| {
            let (weight, bias) = parameters(inputs, outputs, 0.05, bias);
            Dense::new(weight, bias, activation)
        });
        Self { convolutions: convolutions.into(), dense }
    }

    fn least_parameters(shape: ImageShape, _: usize) -> usize {
        // Two convolutions of stride 2 leave a quarter of the rows and columns.
        shape.height.div_ceil(4) * shape.width.div_ceil(4) * 192 * 192
    }
}
