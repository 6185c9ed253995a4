//! The interface between the networks of a GAN and their training.

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use speed_core::random::Stream;
use speed_data::ImageShape;
use speed_nn::noise::NormalPool;
use speed_nn::training::{Classifier, InvalidField};

use crate::{GanSize, StudentConfig};

/// Both networks of a GAN, with the settings and losses that are specific to them.
pub(crate) trait Networks: Sync + 'static {
    type Discriminator: Discriminator;
    type Generator: Generator;

    /// The student's name in tables.
    const TITLE: &'static str;

    /// Size of the pool of normal values from which the noise layers draw.
    const NOISE_POOL: usize;

    /// Returns the size of the networks, if they have several.
    fn size(_config: &StudentConfig) -> Option<GanSize> {
        None
    }

    /// Returns the step size of Adam.
    fn learning_rate(config: &StudentConfig) -> f64 {
        config.gan.learning_rate
    }

    /// Checks that the networks support images of this size.
    fn check_images(config: &StudentConfig, shape: ImageShape) -> Result<(), InvalidField>;

    /// Returns the approximate number of parameters of both networks.
    fn parameters(config: &StudentConfig, shape: ImageShape) -> usize;

    /// Returns a lower bound on the number of parameters of the discriminator.
    fn least_parameters(config: &StudentConfig, shape: ImageShape, classes: usize) -> usize;

    /// Returns the generator's loss, of shape `[1]`, from the features `[n, units]` of unlabelled and of generated
    /// images.
    fn feature_loss(real: Tensor<2>, generated: Tensor<2>) -> Tensor<1>;
}

/// The student's classifier. Images are `[n, height, width, channels]` within 0..=1.
pub(crate) trait Discriminator: Classifier + Clone {
    /// Creates layers with normal weights, scale 1 and bias 0. The size of the images must have been checked.
    fn new(config: &StudentConfig, shape: ImageShape, classes: usize, weights: &mut Stream, device: &Device) -> Self;

    /// Sets scales and biases so that each unit has mean 0 and a certain deviation over some images, from the first
    /// layer to the last (Salimans and Kingma 2016, section 3).
    fn initialized_on(self, images: Tensor<4>, noise: &mut Noise<'_>) -> Self;

    /// Returns the features `[n, units]` that the generator matches. Noise is given in training only.
    fn features(&self, images: Tensor<4>, noise: Option<&mut Noise<'_>>) -> Tensor<2>;

    /// Returns the logits `[n, classes]`. Noise is given in training only.
    fn logits_with(&self, images: Tensor<4>, noise: Option<&mut Noise<'_>>) -> Tensor<2>;
}

pub(crate) trait Generator: Module + Clone {
    fn new(config: &StudentConfig, shape: ImageShape, weights: &mut Stream, device: &Device) -> Self;

    /// Initialises parameters on data, from latent vectors `[n, latent]`.
    fn initialized_on(self, _latent: Tensor<2>) -> Self {
        self
    }

    /// Generates images `[n, height, width, channels]` within 0..=1 from latent vectors `[n, latent]`, uniform within
    /// 0..1.
    fn forward(&self, latent: Tensor<2>) -> Tensor<4>;
}

/// The source of noise: a pool of normal values, and a stream for places in it and for decisions.
pub(crate) struct Noise<'a> {
    pub(crate) pool: &'a NormalPool,
    pub(crate) stream: &'a mut Stream,
}

impl Noise<'_> {
    /// Adds noise of deviation `sigma` to every value.
    pub(crate) fn add(&mut self, rows: Tensor<2>, sigma: f32) -> Tensor<2> {
        self.pool.add(rows, sigma, self.stream)
    }
}
