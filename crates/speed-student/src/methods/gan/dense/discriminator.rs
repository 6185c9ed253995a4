//! The discriminator for MNIST, which is the student's classifier.

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use speed_core::random::Stream;
use speed_data::ImageShape;
use speed_nn::init;
use speed_nn::layers::{WeightNorm, WeightNormDense};
use speed_nn::ops::activation::Activation;
use speed_nn::training::Classifier;

use super::super::networks::{Discriminator, Noise};
use crate::StudentConfig;

const WEIGHT_DEVIATION: f32 = 0.1;

/// Weight-normalised dense layers with ReLU and Gaussian noise before each layer, and a last layer to the logits of the
/// classes.
#[derive(Module, Debug)]
pub(crate) struct DenseDiscriminator {
    hidden: Vec<WeightNormDense>,
    output: WeightNormDense,
    #[module(skip)]
    input_noise: f32,
    #[module(skip)]
    hidden_noise: f32,
}

impl Classifier for DenseDiscriminator {
    fn logits(&self, images: Tensor<4>) -> Tensor<2> {
        self.logits_with(images, None)
    }
}

impl Discriminator for DenseDiscriminator {
    fn new(config: &StudentConfig, shape: ImageShape, classes: usize, weights: &mut Stream, device: &Device) -> Self {
        let mut inputs = shape.pixels();
        let mut layer = |outputs, activation, trained_scale| {
            let theta = init::normal([inputs, outputs], WEIGHT_DEVIATION, weights, device);
            inputs = outputs;
            WeightNormDense::new(theta, WeightNorm { activation, trained_scale, norm_epsilon: 0.0, deviation: 1.0 })
        };
        let hidden = config.gan.discriminator.iter().map(|&units| layer(units, Activation::Relu, false)).collect();
        let output = layer(classes, Activation::Linear, true);
        let [input_noise, hidden_noise] = [config.gan.input_noise, config.gan.hidden_noise].map(|sigma| sigma as f32);
        Self { hidden, output, input_noise, hidden_noise }
    }

    fn initialized_on(self, images: Tensor<4>, noise: &mut Noise<'_>) -> Self {
        let (mut rows, mut sigma) = (images.flatten(1, 3), self.input_noise);
        let mut hidden = Vec::with_capacity(self.hidden.len());
        for layer in self.hidden {
            rows = noise.add(rows, sigma);
            let layer = layer.normalized_on(rows.clone());
            rows = layer.valid().forward(rows);
            hidden.push(layer);
            sigma = self.hidden_noise;
        }
        let output = self.output.normalized_on(noise.add(rows, sigma));
        Self { hidden, output, ..self }
    }

    /// The features are the last hidden layer, after its ReLU and before its noise.
    fn features(&self, images: Tensor<4>, mut noise: Option<&mut Noise<'_>>) -> Tensor<2> {
        let deviations = std::iter::once(self.input_noise).chain(std::iter::repeat(self.hidden_noise));
        self.hidden.iter().zip(deviations).fold(images.flatten(1, 3), |rows, (layer, sigma)| {
            layer.forward(match &mut noise {
                Some(noise) => noise.add(rows, sigma),
                None => rows,
            })
        })
    }

    fn logits_with(&self, images: Tensor<4>, mut noise: Option<&mut Noise<'_>>) -> Tensor<2> {
        let features = self.features(images, noise.as_deref_mut());
        self.output.forward(match noise {
            Some(noise) => noise.add(features, self.hidden_noise),
            None => features,
        })
    }
}
