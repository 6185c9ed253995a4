//! The paper's networks for MNIST: dense layers.

mod discriminator;
mod generator;
#[cfg(test)]
mod peer_trace;

use burn::tensor::Tensor;
use speed_data::ImageShape;
use speed_nn::ops::sums::{column_means, mean};
use speed_nn::training::InvalidField;

use super::networks::Networks;
use crate::StudentConfig;
use discriminator::DenseDiscriminator;
use generator::DenseGenerator;

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

    /// Returns the mean over units of the squared difference of the batch means.
    fn feature_loss(real: Tensor<2>, generated: Tensor<2>) -> Tensor<1> {
        mean((column_means(generated) - column_means(real)).square())
    }
}

fn weights(sizes: &[usize]) -> usize {
    sizes.windows(2).fold(0, |sum: usize, pair| sum.saturating_add(pair[0].saturating_mul(pair[1])))
}
