//! Settings of a student's training.

use serde::{Deserialize, Serialize};
use speed_nn::training::InvalidField;

use crate::StudentMethod;
use crate::epoch_images::{REFERENCE_POOL, check_epoch_images, is_pass};
use crate::gan::ConvolutionalConfig;
use crate::limits::{LEAST_DEVIATION, MAX_SIZE};
use crate::pseudo_labels::PseudoLabelsConfig;

/// Settings of the student. The default is the paper's published code, except for `average_rate`.
///
/// All fields except the method, `pseudo_labels` and `convolutional` belong to the GANs; other methods may read them too.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StudentConfig {
    /// The default method of students.
    pub method: StudentMethod,
    /// Epochs of `epoch_images` images each.
    pub epochs: u32,
    /// Images of an epoch, independent of the size of the pool; 0: one pass over the pool. If the pool is smaller, an epoch uses its images
    /// several times; if the pool is larger, an epoch does not use all images.
    #[serde(default, skip_serializing_if = "is_pass")]
    pub epoch_images: usize,
    /// Images of each kind (labelled, unlabelled, generated) per step. The images that remain after the last full batch of
    /// an epoch are not used in that epoch. If the pool is smaller than a batch, a batch contains images several times.
    pub batch: usize,
    /// Step size of Adam, constant.
    pub learning_rate: f64,
    /// Decay of Adam's first moment.
    pub beta1: f64,
    /// Decay of Adam's second moment.
    pub beta2: f64,
    /// Smallest deviation by which Adam divides. The reference divides by `sqrt(v + 1e-8)`, which is at least 1e-4;
    /// with 1e-8 instead, the student learns clearly worse.
    pub adam_epsilon: f64,
    /// Rate per step of the parameter average, whose accuracy is the student's. The reference uses 1e-4 from a start at
    /// zero (erratum 19); its accuracy is reported too. 2e-3, with the start divided out, was better at every epoch.
    pub average_rate: f64,
    /// Weight of the unlabelled loss relative to the labelled loss.
    pub unlabelled_weight: f64,
    /// Deviation of the Gaussian noise on the discriminator's input, whose pixels are within 0..=1.
    pub input_noise: f64,
    /// Deviation of the Gaussian noise on each hidden layer of the discriminator.
    pub hidden_noise: f64,
    /// Units of the discriminator's hidden layers, from the image on; feature matching uses the last layer.
    pub discriminator: Vec<usize>,
    /// Units of the generator's hidden layers, from the latent vector on.
    pub generator: Vec<usize>,
    /// Length of the generator's latent vector, uniform in 0..1.
    pub latent: usize,
    /// Images of the pool on which the discriminator's scales and biases are initialised (at most all of them).
    pub initial_images: usize,
    /// Epochs between two evaluations on the test images; the last epoch is always evaluated.
    pub evaluate_every: u32,
    /// Settings of the method on pseudo-labels.
    pub pseudo_labels: PseudoLabelsConfig,
    /// Networks of the convolutional GAN.
    #[serde(default, skip_serializing_if = "ConvolutionalConfig::is_default")]
    pub convolutional: ConvolutionalConfig,
}

impl Default for StudentConfig {
    fn default() -> Self {
        Self {
            method: StudentMethod::GAN,
            epochs: 500,
            epoch_images: REFERENCE_POOL,
            batch: 100,
            learning_rate: 0.001,
            beta1: 0.5,
            beta2: 0.999,
            adam_epsilon: 1e-4,
            average_rate: 2e-3,
            unlabelled_weight: 1.0,
            input_noise: 0.3,
            hidden_noise: 0.5,
            discriminator: vec![1000, 500, 250, 250, 250],
            generator: vec![500, 500],
            latent: 100,
            initial_images: 500,
            evaluate_every: 5,
            pseudo_labels: PseudoLabelsConfig::default(),
            convolutional: ConvolutionalConfig::default(),
        }
    }
}

impl StudentConfig {
    /// Checks every field.
    ///
    /// # Errors
    /// Names the first field with an impossible value.
    pub fn check(&self) -> Result<(), InvalidField> {
        InvalidField::epochs("epochs", self.epochs)?;
        check_epoch_images("epoch_images", self.epoch_images)?;
        // Batch norm over a single generated image would remove all of its information.
        InvalidField::within("batch", self.batch, 2..=MAX_SIZE)?;
        InvalidField::rate("learning_rate", self.learning_rate)?;
        InvalidField::below_one("beta1", self.beta1)?;
        InvalidField::below_one("beta2", self.beta2)?;
        InvalidField::within("adam_epsilon", self.adam_epsilon, LEAST_DEVIATION)?;
        InvalidField::rate("average_rate", self.average_rate)?;
        InvalidField::within("unlabelled_weight", self.unlabelled_weight, 0.0..=1e6)?;
        InvalidField::within("input_noise", self.input_noise, 0.0..=1e6)?;
        InvalidField::within("hidden_noise", self.hidden_noise, 0.0..=1e6)?;
        InvalidField::layers("discriminator", &self.discriminator, 64, MAX_SIZE)?;
        InvalidField::layers("generator", &self.generator, 64, MAX_SIZE)?;
        InvalidField::within("latent", self.latent, 1..=MAX_SIZE)?;
        InvalidField::within("initial_images", self.initial_images, 2..=MAX_SIZE)?;
        InvalidField::epochs("evaluate_every", self.evaluate_every)?;
        self.convolutional.check()?;
        self.pseudo_labels.check()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::epoch_images::MAX_EPOCH;

    #[test]
    fn the_default_is_valid() {
        assert_eq!(StudentConfig::default().check(), Ok(()));
    }

    #[test]
    fn every_impossible_value_is_named() {
        type Break = fn(&mut StudentConfig);
        let cases: [(&str, Break); 23] = [
            ("epochs", |c| c.epochs = 0),
            ("epoch_images", |c| c.epoch_images = MAX_EPOCH + 1),
            ("batch", |c| c.batch = 1),
            ("batch", |c| c.batch = MAX_SIZE + 1),
            ("learning_rate", |c| c.learning_rate = 0.0),
            ("learning_rate", |c| c.learning_rate = f64::NAN),
            ("beta1", |c| c.beta1 = 1.0 - 1e-9),
            ("beta2", |c| c.beta2 = -0.1),
            ("adam_epsilon", |c| c.adam_epsilon = 0.0),
            ("average_rate", |c| c.average_rate = 1.0),
            ("unlabelled_weight", |c| c.unlabelled_weight = -1.0),
            ("unlabelled_weight", |c| c.unlabelled_weight = f64::INFINITY),
            ("input_noise", |c| c.input_noise = f64::NAN),
            ("hidden_noise", |c| c.hidden_noise = -0.5),
            ("discriminator", |c| c.discriminator.clear()),
            ("discriminator", |c| c.discriminator[1] = 0),
            ("generator", |c| c.generator.clear()),
            ("generator", |c| c.generator[0] = MAX_SIZE + 1),
            ("generator", |c| c.generator = vec![1; 65]),
            ("latent", |c| c.latent = 0),
            ("initial_images", |c| c.initial_images = 1),
            ("evaluate_every", |c| c.evaluate_every = 0),
            ("beta1", |c| c.beta1 = f64::NAN),
        ];
        for (field, change) in cases {
            let mut config = StudentConfig::default();
            change(&mut config);
            assert_eq!(config.check().map_err(|error| error.field), Err(field), "{config:?}");
        }
    }
}
