//! The discriminator for MNIST, which is the student's classifier.

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use speed_core::random::Stream;
use speed_nn::init;
use speed_nn::layers::{WeightNorm, WeightNormDense};
use speed_nn::ops::activation::Activation;
use speed_nn::training::Classifier;

use super::super::networks::{Discriminator, Noise};
use crate::StudentConfig;

/// Deviation of the initial weights.
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

impl DenseDiscriminator {
    /// Creates layers of the sizes in `config` with normal weights, scale 1 and bias 0.
    #[expect(clippy::cast_possible_truncation, reason = "networks compute in f32")]
    pub(crate) fn new(
        config: &StudentConfig,
        pixels: usize,
        classes: usize,
        stream: &mut Stream,
        device: &Device,
    ) -> Self {
        let mut inputs = pixels;
        let mut layer = |outputs, activation, trained_scale| {
            let theta = init::normal([inputs, outputs], WEIGHT_DEVIATION, stream, device);
            inputs = outputs;
            WeightNormDense::new(theta, WeightNorm { activation, trained_scale, norm_epsilon: 0.0, deviation: 1.0 })
        };
        let hidden = config.gan.discriminator.iter().map(|&units| layer(units, Activation::Relu, false)).collect();
        let output = layer(classes, Activation::Linear, true);
        Self {
            hidden,
            output,
            input_noise: config.gan.input_noise as f32,
            hidden_noise: config.gan.hidden_noise as f32,
        }
    }

    /// Sets every scale and bias so that each unit has mean 0 and variance 1 over the images `[n, pixels]`, from the
    /// first layer to the last (Salimans and Kingma 2016, section 3).
    pub(super) fn initialized_on_rows(self, images: Tensor<2>, noise: &mut Noise<'_>) -> Self {
        let (mut rows, mut sigma) = (images, self.input_noise);
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

    /// Returns the features that the generator matches: the last hidden layer `[n, units]` of images `[n, pixels]` within
    /// 0..=1, after its ReLU and before its noise. `noise` is given in training only.
    pub(super) fn features_of_rows(&self, images: Tensor<2>, mut noise: Option<&mut Noise<'_>>) -> Tensor<2> {
        let deviations = std::iter::once(self.input_noise).chain(std::iter::repeat(self.hidden_noise));
        self.hidden.iter().zip(deviations).fold(images, |rows, (layer, sigma)| {
            layer.forward(match &mut noise {
                Some(noise) => noise.add(rows, sigma),
                None => rows,
            })
        })
    }

    /// Returns the logits `[n, classes]` of images `[n, pixels]` within 0..=1. `noise` is given in training only.
    pub(super) fn logits_of_rows(&self, images: Tensor<2>, mut noise: Option<&mut Noise<'_>>) -> Tensor<2> {
        let features = self.features_of_rows(images, noise.as_deref_mut());
        self.output.forward(match noise {
            Some(noise) => noise.add(features, self.hidden_noise),
            None => features,
        })
    }
}

impl Classifier for DenseDiscriminator {
    fn logits(&self, images: Tensor<4>) -> Tensor<2> {
        self.logits_of_rows(images.flatten(1, 3), None)
    }
}

impl Discriminator for DenseDiscriminator {
    fn initialized_on(self, images: Tensor<4>, noise: &mut Noise<'_>) -> Self {
        self.initialized_on_rows(images.flatten(1, 3), noise)
    }

    fn features(&self, images: Tensor<4>, noise: &mut Noise<'_>) -> Tensor<2> {
        self.features_of_rows(images.flatten(1, 3), Some(noise))
    }

    fn training_logits(&self, images: Tensor<4>, noise: &mut Noise<'_>) -> Tensor<2> {
        self.logits_of_rows(images.flatten(1, 3), Some(noise))
    }
}

#[cfg(test)]
mod tests {
    use speed_core::random::Streams;
    use speed_nn::noise::NormalPool;

    use super::*;
    use crate::GanConstants;

    const IMAGES: usize = 40;

    fn network(hidden: &[usize], input_noise: f64, hidden_noise: f64) -> DenseDiscriminator {
        let gan = GanConstants { discriminator: hidden.to_vec(), input_noise, hidden_noise, ..Default::default() };
        let config = StudentConfig { gan, ..StudentConfig::default() };
        DenseDiscriminator::new(&config, 6, 3, &mut Streams::new(1).stream("weights", 0), &Device::flex())
    }

    fn images() -> Tensor<2> {
        init::uniform([IMAGES, 6], 0.0, 1.0, &mut Streams::new(1).stream("images", 0), &Device::flex())
    }

    fn values(tensor: Tensor<2>) -> Vec<f32> {
        tensor.into_data().try_to_vec().expect("f32")
    }

    /// Returns the values of the features and of the logits, with or without noise.
    fn run(network: &DenseDiscriminator, noisy: bool) -> [Vec<f32>; 2] {
        let streams = Streams::new(2);
        let pool = NormalPool::new(1000, &mut streams.stream("pool", 0), &Device::flex());
        let (mut first, mut second) = (streams.stream("places", 0), streams.stream("places", 0));
        let [mut first, mut second] = [&mut first, &mut second].map(|stream| Noise { pool: &pool, stream });
        [
            values(network.features_of_rows(images(), noisy.then_some(&mut first))),
            values(network.logits_of_rows(images(), noisy.then_some(&mut second))),
        ]
    }

    #[test]
    fn noise_comes_before_every_layer_and_not_after_the_features() {
        let plain = run(&network(&[7, 5], 0.3, 0.5), false);
        assert_eq!(run(&network(&[7, 5], 0.0, 0.0), true), plain);
        for noisy in [network(&[7, 5], 0.3, 0.0), network(&[7, 5], 0.0, 0.5)] {
            let found = run(&noisy, true);
            assert!(found[0] != plain[0] && found[1] != plain[1]);
        }
        // With a single hidden layer, only the input noise comes before the features.
        let single = network(&[7], 0.0, 0.5);
        let ([features, logits], [plain_features, plain_logits]) = (run(&single, true), run(&single, false));
        assert_eq!(features, plain_features);
        assert_ne!(logits, plain_logits);
        assert_eq!((features.len(), logits.len()), (IMAGES * 7, IMAGES * 3));
    }

    #[test]
    fn initialisation_gives_every_unit_mean_0_and_variance_1() {
        let pool = NormalPool::new(2, &mut Streams::new(2).stream("pool", 0), &Device::flex());
        let mut noise = Noise { pool: &pool, stream: &mut Streams::new(2).stream("places", 0) };
        let network = network(&[7, 5], 0.0, 0.0).initialized_on_rows(images(), &mut noise);
        let logits = values(network.logits_of_rows(images(), None));
        for class in 0..3 {
            let column: Vec<f64> = logits.iter().skip(class).step_by(3).map(|&z| f64::from(z)).collect();
            let mean = column.iter().sum::<f64>() / IMAGES as f64;
            let variance = column.iter().map(|z| (z - mean).powi(2)).sum::<f64>() / IMAGES as f64;
            assert!(mean.abs() < 1e-5 && (variance - 1.0).abs() < 1e-4, "{mean} {variance}");
        }
    }
}
