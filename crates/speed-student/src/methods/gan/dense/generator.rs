//! The generator for MNIST.

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use speed_core::random::Stream;
use speed_data::ImageShape;
use speed_nn::init;
use speed_nn::layers::{BatchNormDense, WeightNorm, WeightNormDense};
use speed_nn::ops::activation::Activation;

use super::super::networks::Generator;
use crate::StudentConfig;

/// The number that Salimans' code adds to the variance of a batch, and to the squared norm of the output layer's
/// weights.
const EPSILON: f32 = 1e-6;

/// Dense layers with batch norm and softplus, then a dense layer with normalised weights, a trained scale and a
/// logistic function.
#[derive(Module, Debug)]
pub(crate) struct DenseGenerator {
    hidden: Vec<BatchNormDense>,
    output: WeightNormDense,
    #[module(skip)]
    image: [usize; 3],
}

impl Generator for DenseGenerator {
    /// Creates layers of the sizes in `config` with Glorot-uniform weights.
    fn new(config: &StudentConfig, shape: ImageShape, stream: &mut Stream, device: &Device) -> Self {
        let mut inputs = config.gan.latent;
        let mut weights = |outputs: usize| {
            let limit = (6.0 / (inputs + outputs) as f32).sqrt();
            let weights = init::uniform([inputs, outputs], -limit, limit, stream, device);
            inputs = outputs;
            weights
        };
        let hidden = config
            .gan
            .generator
            .iter()
            .map(|&units| BatchNormDense::new(weights(units), EPSILON, Activation::Softplus));
        let hidden = hidden.collect();
        let kind =
            WeightNorm { activation: Activation::Sigmoid, trained_scale: true, norm_epsilon: EPSILON, deviation: 1.0 };
        let image = [shape.height, shape.width, shape.channels];
        Self { hidden, output: WeightNormDense::new(weights(shape.pixels()), kind), image }
    }

    fn forward(&self, latent: Tensor<2>) -> Tensor<4> {
        let images = self.output.forward(self.hidden.iter().fold(latent, |rows, layer| layer.forward(rows)));
        let [height, width, channels] = self.image;
        let count = images.dims()[0];
        images.reshape([count, height, width, channels])
    }
}
