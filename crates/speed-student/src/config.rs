//! Settings of a student's training.

use serde::{Deserialize, Serialize};
use speed_nn::training::InvalidField;

use crate::gan::{GanConstants, GanSize};
use crate::prior::ClassPrior;
use crate::pseudo_labels::PseudoLabelsConfig;

/// Images of the paper's pool: the first 9000 test images of MNIST.
const REFERENCE_POOL: usize = 9000;
/// Largest number of images of an epoch; a larger number is a typing error.
const MAX_EPOCH: usize = 10_000_000;

/// A method of training a student, identified by its name. `methods.rs` lists the methods.
#[derive(Clone, Copy)]
pub struct StudentMethod {
    pub(crate) name: &'static str,
}

impl StudentMethod {
    /// Returns the method's name in a config.
    pub const fn name(self) -> &'static str {
        self.name
    }
}

/// Settings of the student.
///
/// `epoch_images` and `evaluate_every` hold for all methods except `linear`. `epochs` belongs to the GANs and `size` to the
/// convolutional GAN; other methods may read them too.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StudentConfig {
    /// The default method of students.
    pub method: StudentMethod,
    /// Epochs of `epoch_images` images each.
    pub epochs: u32,
    /// Images of an epoch, independent of the size of the pool; 0: one pass over the pool. If the pool is smaller, an epoch uses its images
    /// several times; if the pool is larger, an epoch does not use all images.
    pub epoch_images: usize,
    /// Epochs between two evaluations on the test images; the last epoch is always evaluated.
    pub evaluate_every: u32,
    /// The size of the convolutional GAN's networks.
    pub size: GanSize,
    /// The class frequencies towards which pseudo-labels and `linear` draw their predictions for the pool.
    #[serde(default, skip_serializing_if = "speed_core::is_default")]
    pub prior: ClassPrior,
    /// Settings of the method on pseudo-labels.
    pub pseudo_labels: PseudoLabelsConfig,
    /// Constants of the GANs, which no config changes.
    #[serde(skip)]
    pub gan: GanConstants,
}

impl Default for StudentConfig {
    fn default() -> Self {
        Self {
            method: StudentMethod::GAN,
            epochs: 500,
            epoch_images: REFERENCE_POOL,
            evaluate_every: 5,
            size: GanSize::Paper,
            prior: ClassPrior::Uniform,
            pseudo_labels: PseudoLabelsConfig::default(),
            gan: GanConstants::default(),
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
        InvalidField::unless(self.epoch_images <= MAX_EPOCH, "epoch_images", || {
            format!("must be 0 (a pass over the pool) or at most {MAX_EPOCH}, not {}", self.epoch_images)
        })?;
        InvalidField::epochs("evaluate_every", self.evaluate_every)?;
        self.prior.check()?;
        self.pseudo_labels.check()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_impossible_value_is_named() {
        type Break = fn(&mut StudentConfig);
        let cases: [(&str, Break); 12] = [
            ("prior", |c| c.prior = ClassPrior::Given(vec![0.5, 0.6])),
            ("epochs", |c| c.epochs = 0),
            ("epoch_images", |c| c.epoch_images = MAX_EPOCH + 1),
            ("evaluate_every", |c| c.evaluate_every = 0),
            ("pseudo_labels.epochs", |c| c.pseudo_labels.epochs = 0),
            ("pseudo_labels.warmup_epochs", |c| c.pseudo_labels.warmup_epochs = 0),
            ("pseudo_labels.warmup_epochs", |c| c.pseudo_labels.warmup_epochs = c.pseudo_labels.epochs + 1),
            ("pseudo_labels.label_epochs", |c| c.pseudo_labels.label_epochs = c.pseudo_labels.warmup_epochs - 1),
            ("pseudo_labels.labelled_batch", |c| c.pseudo_labels.labelled_batch = 0),
            ("pseudo_labels.batch", |c| c.pseudo_labels.batch = usize::MAX),
            ("pseudo_labels.learning_rate", |c| c.pseudo_labels.learning_rate = 0.0),
            ("pseudo_labels.learning_rate", |c| c.pseudo_labels.learning_rate = f64::NAN),
        ];
        for (field, change) in cases {
            let mut config = StudentConfig::default();
            change(&mut config);
            assert_eq!(config.check().map_err(|error| error.field), Err(field), "{config:?}");
        }
    }
}
