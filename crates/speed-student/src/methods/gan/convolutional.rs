//! The paper's networks for SVHN: convolutions and transposed convolutions.

mod discriminator;
mod generator;
#[cfg(test)]
mod peer_trace;

use burn::tensor::Tensor;
use speed_data::ImageShape;
use speed_nn::ops::sums::{column_means, mean};
use speed_nn::training::InvalidField;

use super::networks::Networks;
use crate::{ConvolutionalConstants, GanSize, StudentConfig};
use discriminator::{ConvolutionalDiscriminator, geometries};
use generator::ConvolutionalGenerator;

fn networks(config: &StudentConfig) -> ConvolutionalConstants {
    config.gan.convolutional.of_size(config.size)
}

pub(crate) struct Convolutional;

impl Networks for Convolutional {
    type Discriminator = ConvolutionalDiscriminator;
    type Generator = ConvolutionalGenerator;

    const TITLE: &'static str = "conv GAN";
    const NOISE_POOL: usize = 2;

    fn size(config: &StudentConfig) -> Option<GanSize> {
        Some(config.size)
    }

    fn learning_rate(config: &StudentConfig) -> f64 {
        networks(config).learning_rate
    }

    fn check_images(config: &StudentConfig, shape: ImageShape) -> Result<(), InvalidField> {
        InvalidField::unless(geometries(&networks(config), shape).is_some(), "method", || {
            let blocks = config.gan.convolutional.channels.len();
            format!(
                "images of {shape} are too small for {blocks} blocks, each of which halves rows and columns, and a 3x3 window after them"
            )
        })
    }

    fn parameters(config: &StudentConfig, shape: ImageShape) -> usize {
        let ConvolutionalConstants { channels, generator, .. } = &networks(config);
        let mut inputs = shape.channels;
        let mut values = 0_usize;
        for &outputs in channels {
            values = values.saturating_add(9 * inputs * outputs + 18 * outputs * outputs);
            inputs = outputs;
        }
        values = values.saturating_add(11 * inputs * inputs);
        let start = (shape.height * shape.width) >> (2 * generator.len());
        values = values.saturating_add(config.gan.latent.saturating_mul(start * generator[0]));
        let maps = generator.iter().copied().chain([shape.channels]).collect::<Vec<usize>>();
        maps.windows(2).fold(values, |values, pair| values.saturating_add(25 * pair[0] * pair[1]))
    }

    fn least_parameters(config: &StudentConfig, shape: ImageShape, classes: usize) -> usize {
        let geometries = geometries(&networks(config), shape).unwrap_or_default();
        let features = geometries.last().map_or(0, |(_, outputs)| *outputs);
        let convolutions = geometries.iter().map(|(geometry, outputs)| geometry.patch_len() * outputs);
        convolutions.sum::<usize>() + features * classes
    }

    /// Returns the mean over units of the absolute difference of the batch means.
    fn feature_loss(real: Tensor<2>, generated: Tensor<2>) -> Tensor<1> {
        mean((column_means(generated) - column_means(real)).abs())
    }
}
