//! The paper's networks for MNIST: dense layers.

mod discriminator;
mod generator;
#[cfg(test)]
mod peer_trace;

use burn::tensor::{Device, Tensor};
use speed_core::random::Stream;
use speed_data::ImageShape;
use speed_nn::training::InvalidField;

use super::loss::feature_matching_loss;
use super::networks::Networks;
use crate::StudentConfig;
use discriminator::DenseDiscriminator;
use generator::DenseGenerator;

/// A discriminator and a generator of dense layers.
pub(crate) struct Dense;

impl Networks for Dense {
    type Discriminator = DenseDiscriminator;
    type Generator = DenseGenerator;

    const TITLE: &'static str = "GAN";
    // 16 MB, three times the values that a step uses.
    const NOISE_POOL: usize = 1 << 22;

    fn check_images(_: &StudentConfig, _: ImageShape) -> Result<(), InvalidField> {
        Ok(())
    }

    fn parameters(config: &StudentConfig, shape: ImageShape) -> usize {
        let generator = weights(&[&[config.gan.latent], &config.gan.generator[..], &[shape.pixels()]].concat());
        weights(&[&[shape.pixels()], &config.gan.discriminator[..]].concat()).saturating_add(generator)
    }

    fn least_parameters(config: &StudentConfig, shape: ImageShape, classes: usize) -> usize {
        weights(&[&[shape.pixels()], &config.gan.discriminator[..], &[classes]].concat())
    }

    fn discriminator(
        config: &StudentConfig,
        shape: ImageShape,
        classes: usize,
        weights: &mut Stream,
        device: &Device,
    ) -> DenseDiscriminator {
        DenseDiscriminator::new(config, shape.pixels(), classes, weights, device)
    }

    fn generator(config: &StudentConfig, shape: ImageShape, weights: &mut Stream, device: &Device) -> DenseGenerator {
        DenseGenerator::new(config, shape, weights, device)
    }

    /// Returns the mean over units of the squared difference of the batch means.
    fn feature_loss(real: Tensor<2>, generated: Tensor<2>) -> Tensor<1> {
        feature_matching_loss(real, generated)
    }
}

/// Returns the number of weights of dense layers between these numbers of units.
fn weights(sizes: &[usize]) -> usize {
    sizes.windows(2).fold(0, |sum: usize, pair| sum.saturating_add(pair[0].saturating_mul(pair[1])))
}
