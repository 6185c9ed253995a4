//! The paper's networks for SVHN: convolutions and transposed convolutions.

mod config;
mod discriminator;
mod generator;
#[cfg(test)]
mod peer_trace;

use burn::tensor::{Device, Tensor};
use serde_json::{Value, json};
use speed_core::random::Stream;
use speed_data::ImageShape;
use speed_nn::ops::sums::{column_means, mean};
use speed_nn::training::InvalidField;

use super::networks::Networks;
use crate::StudentConfig;
pub use config::ConvolutionalConfig;
use discriminator::{ConvolutionalDiscriminator, geometries};
use generator::ConvolutionalGenerator;

/// A discriminator of convolutions and a generator of transposed convolutions.
pub(crate) struct Convolutional;

impl Networks for Convolutional {
    type Discriminator = ConvolutionalDiscriminator;
    type Generator = ConvolutionalGenerator;

    const TITLE: &'static str = "conv GAN";
    const NOISE_POOL: usize = 2;

    fn settings(config: &StudentConfig) -> Value {
        let StudentConfig { epochs, batch, learning_rate, beta1, beta2, adam_epsilon, average_rate, .. } = config;
        let StudentConfig {
            epoch_images,
            unlabelled_weight,
            latent,
            initial_images,
            evaluate_every,
            convolutional,
            ..
        } = config;
        json!({
            "epochs": epochs, "epoch_images": epoch_images, "batch": batch, "learning_rate": learning_rate, "beta1": beta1, "beta2": beta2,
            "adam_epsilon": adam_epsilon, "average_rate": average_rate, "unlabelled_weight": unlabelled_weight,
            "latent": latent, "initial_images": initial_images, "evaluate_every": evaluate_every,
            "convolutional": convolutional,
        })
    }

    fn check_images(config: &StudentConfig, shape: ImageShape) -> Result<(), InvalidField> {
        InvalidField::unless(geometries(&config.convolutional, shape).is_some(), "convolutional.channels", || {
            let blocks = config.convolutional.channels.len();
            format!(
                "images of {shape} are too small for {blocks} blocks, each of which halves rows and columns, and a 3x3 window after them"
            )
        })
    }

    fn parameters(config: &StudentConfig, shape: ImageShape) -> usize {
        let ConvolutionalConfig { channels, generator, .. } = &config.convolutional;
        let mut inputs = shape.channels;
        let mut values = 0_usize;
        for &outputs in channels {
            values = values.saturating_add(9 * inputs * outputs + 18 * outputs * outputs);
            inputs = outputs;
        }
        values = values.saturating_add(11 * inputs * inputs);
        let start = (shape.height * shape.width) >> (2 * generator.len());
        values = values.saturating_add(config.latent.saturating_mul(start * generator[0]));
        let maps = generator.iter().copied().chain([shape.channels]).collect::<Vec<usize>>();
        maps.windows(2).fold(values, |values, pair| values.saturating_add(25 * pair[0] * pair[1]))
    }

    fn least_parameters(config: &StudentConfig, shape: ImageShape, classes: usize) -> usize {
        let geometries = geometries(&config.convolutional, shape).unwrap_or_default();
        let features = geometries.last().map_or(0, |(_, outputs)| *outputs);
        let convolutions = geometries.iter().map(|(geometry, outputs)| geometry.patch_len() * outputs);
        convolutions.sum::<usize>() + features * classes
    }

    fn discriminator(
        config: &StudentConfig,
        shape: ImageShape,
        classes: usize,
        weights: &mut Stream,
        device: &Device,
    ) -> ConvolutionalDiscriminator {
        ConvolutionalDiscriminator::new(&config.convolutional, shape, classes, weights, device)
    }

    fn generator(
        config: &StudentConfig,
        shape: ImageShape,
        weights: &mut Stream,
        device: &Device,
    ) -> ConvolutionalGenerator {
        ConvolutionalGenerator::new(config, shape, weights, device)
    }

    /// Returns the mean over units of the absolute difference of the batch means.
    fn feature_loss(real: Tensor<2>, generated: Tensor<2>) -> Tensor<1> {
        mean((column_means(generated) - column_means(real)).abs())
    }
}
