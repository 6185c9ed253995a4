//! Settings of the student on pseudo-labels.

use std::f64::consts::FRAC_PI_2;

use serde::{Deserialize, Serialize};
use speed_nn::optim::Adam;
use speed_nn::training::InvalidField;

use super::{PseudoLabelsConstants, Views};

/// Largest number of images per step. A larger number is a mistake that would only fail later, for lack of memory.
const MAX_SIZE: usize = 1 << 16;

/// Settings of the student that learns from pseudo-labels. The default was chosen on training images of MNIST
/// (docs/student.md).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PseudoLabelsConfig {
    /// Epochs of [`epoch_images`](crate::StudentConfig::epoch_images) images each, the warm-up included. The learning rate
    /// falls to 0 over all of them.
    pub epochs: u32,
    /// Number of epochs at the start that use only the labelled images.
    pub warmup_epochs: u32,
    /// Epoch at which the weight of the given labels reaches 0; it falls linearly from 1 at the end of the warm-up.
    /// Later epochs use only pseudo-labels, so the pseudo-labels of similar images outvote wrong given labels.
    pub label_epochs: u32,
    /// Labelled images per step.
    pub labelled_batch: usize,
    /// Pseudo-labelled images per step. If fewer images have a pseudo-label, a step contains several views of an image.
    pub batch: usize,
    /// Step size of Adam at the start; it falls to 0 along a quarter of a cosine.
    pub learning_rate: f64,
    /// The random views of images, and the network for them.
    pub views: Views,
    /// Constants of the method, which no config changes.
    #[serde(skip)]
    pub constants: PseudoLabelsConstants,
}

impl Default for PseudoLabelsConfig {
    fn default() -> Self {
        Self {
            epochs: 40,
            warmup_epochs: 6,
            label_epochs: 20,
            labelled_batch: 32,
            batch: 160,
            learning_rate: 0.002,
            views: Views::Wide,
            constants: PseudoLabelsConstants::default(),
        }
    }
}

impl PseudoLabelsConfig {
    /// Checks every field. Names of fields are relative to `student`, for example `pseudo_labels.epochs`.
    pub(crate) fn check(&self) -> Result<(), InvalidField> {
        let (epochs, warmup) = (self.epochs, self.warmup_epochs);
        InvalidField::epochs("pseudo_labels.epochs", epochs)?;
        InvalidField::unless(warmup > 0 && warmup <= epochs, "pseudo_labels.warmup_epochs", || {
            format!("must be within 1..={epochs}, the number of epochs, not {warmup}")
        })?;
        InvalidField::unless(self.label_epochs >= warmup, "pseudo_labels.label_epochs", || {
            format!("must be at least warmup_epochs = {warmup}, not {}", self.label_epochs)
        })?;
        InvalidField::within("pseudo_labels.labelled_batch", self.labelled_batch, 1..=MAX_SIZE)?;
        InvalidField::within("pseudo_labels.batch", self.batch, 1..=MAX_SIZE)?;
        InvalidField::rate("pseudo_labels.learning_rate", self.learning_rate)
    }

    /// Returns the weight of the given labels at the share `done` of all steps.
    pub(super) fn labelled_weight(&self, done: f64) -> f64 {
        let (epoch, warmup) = (done * f64::from(self.epochs), f64::from(self.warmup_epochs));
        if epoch < warmup {
            return 1.0;
        }
        let falling = f64::from(self.label_epochs) - warmup;
        if falling > 0.0 { (1.0 - (epoch - warmup) / falling).max(0.0) } else { 0.0 }
    }

    /// Returns the step size at the share `done` of all steps.
    pub(super) fn rate(&self, done: f64) -> f64 {
        self.learning_rate * libm::cos(FRAC_PI_2 * done)
    }

    pub(super) fn convolutions(&self) -> Vec<usize> {
        self.constants.convolutions.iter().map(|&channels| self.widened(channels)).collect()
    }

    pub(super) fn hidden(&self) -> usize {
        self.widened(self.constants.hidden)
    }

    pub(super) fn sees_contrasts(&self) -> bool {
        self.views == Views::PhotographedDigits
    }

    fn widened(&self, units: usize) -> usize {
        if self.sees_contrasts() { 2 * units } else { units }
    }

    pub(super) fn adam(&self) -> Adam {
        Adam::with_least_deviation([self.constants.beta1, self.constants.beta2], self.constants.adam_epsilon)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_given_labels_lose_their_weight_between_two_epochs() {
        let config =
            PseudoLabelsConfig { epochs: 10, warmup_epochs: 2, label_epochs: 6, ..PseudoLabelsConfig::default() };
        let weights = [0.0, 0.19, 0.3, 0.4, 0.6, 0.9].map(|done| config.labelled_weight(done));
        for (found, expected) in weights.into_iter().zip([1.0, 1.0, 0.75, 0.5, 0.0, 0.0]) {
            assert!((found - expected).abs() < 1e-9, "{weights:?}");
        }
        let at_once = PseudoLabelsConfig { label_epochs: 2, ..config.clone() };
        assert_eq!([0.1, 0.2].map(|done| at_once.labelled_weight(done)), [1.0, 0.0]);
        assert_eq!(config.rate(0.0), 0.002);
        assert!(config.rate(1.0) < 1e-9);
    }
}
