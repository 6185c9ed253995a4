//! Multinomial logistic regression on an encoder's vectors.

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use speed_core::random::Stream;
use speed_data::ImageShape;
use speed_nn::init;
use speed_nn::layers::{Dense, unit_rows};
use speed_nn::ops::activation::Activation;
use speed_nn::training::{Classifier, VECTOR_OFFSET};

use crate::TeacherNetwork;

/// The length of a vector, for logits of usual sizes.
const LENGTH: f64 = 16.0;

/// Logits of the vector scaled to one length.
#[derive(Module, Debug)]
pub(crate) struct LinearNetwork {
    output: Dense,
}

impl Classifier for LinearNetwork {
    const OFFSET: f32 = VECTOR_OFFSET;

    fn logits(&self, images: Tensor<4>) -> Tensor<2> {
        self.output.forward(unit_rows(images.flatten(1, 3)).mul_scalar(LENGTH))
    }
}

impl TeacherNetwork for LinearNetwork {
    const STEP_BYTES_PER_PIXEL: usize = 16;

    fn reads_vectors() -> bool {
        true
    }

    fn new(shape: ImageShape, classes: usize, _: &mut Stream, device: &Device) -> Self {
        let weight = init::constant([shape.pixels(), classes], 0.0, device);
        Self { output: Dense::new(weight, init::constant([classes], 0.0, device), Activation::Linear) }
    }

    fn least_parameters(shape: ImageShape, classes: usize) -> usize {
        shape.pixels() * classes
    }
}

#[cfg(test)]
mod tests {
    use speed_core::random::Streams;
    use speed_nn::device::values;

    use super::*;

    #[test]
    fn only_the_direction_of_a_vector_counts() {
        let (device, shape) = (Device::flex(), ImageShape { channels: 1, height: 1, width: 3 });
        let network = LinearNetwork::new(shape, 2, &mut Streams::new(1).stream("w", 0), &device);
        assert_eq!(network.num_params(), LinearNetwork::least_parameters(shape, 2) + 2);
        let weight = Tensor::from_floats([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]], &device);
        let output = Dense::new(weight, Tensor::from_floats([0.0, 0.0], &device), Activation::Linear);
        let network = LinearNetwork { output };
        let of = |vector: [f32; 3]| {
            let images = Tensor::<1>::from_floats(vector, &device).reshape([1, 1, 3, 1]);
            values(network.logits(images)).expect("values")
        };
        let (one, other) = (of([3.0, 4.0, 0.0]), of([0.3, 0.4, 0.0]));
        assert!(one.iter().zip(&other).all(|(one, other)| (one - other).abs() < 1e-4), "{one:?} {other:?}");
        assert!((one[0] - 0.6 * LENGTH as f32).abs() < 1e-4 && (one[1] - 0.8 * LENGTH as f32).abs() < 1e-4);
    }
}
