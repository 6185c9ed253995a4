//! Settings of the student on pseudo-labels.

use std::f64::consts::FRAC_PI_2;

use serde::{Deserialize, Serialize};
use speed_nn::optim::Adam;
use speed_nn::training::InvalidField;

use super::Augmentation;
use crate::epoch_images::{REFERENCE_POOL, check_epoch_images, is_pass};
use crate::limits::{LEAST_DEVIATION, MAX_SIZE};

/// Settings of the student that learns from pseudo-labels. The default was chosen on training images of MNIST
/// (docs/student.md).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PseudoLabelsConfig {
    /// Epochs of `epoch_images` images each, the warm-up included. The learning rate falls to 0 over all of them.
    pub epochs: u32,
    /// Images of an epoch, independent of the size of the pool; 0: one pass over the pool.
    #[serde(default, skip_serializing_if = "is_pass")]
    pub epoch_images: usize,
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
    /// Decay of Adam's first moment.
    pub beta1: f64,
    /// Decay of Adam's second moment.
    pub beta2: f64,
    /// Smallest deviation by which Adam divides.
    pub adam_epsilon: f64,
    /// Rate per step of the parameter average, which gives the pseudo-labels and the student's accuracy.
    pub average_rate: f64,
    /// Weight of the pseudo-labelled loss relative to the labelled loss.
    pub unlabelled_weight: f64,
    /// Upper limit of the threshold of pseudo-labels, which is the mean confidence over the pool.
    pub threshold: f64,
    /// Strength by which pseudo-labels are drawn towards equal class frequencies: 0 not at all, 1 fully.
    pub alignment: f64,
    /// Assumed share of wrong given labels.
    pub label_noise: f64,
    /// Whether the first convolution sees only contrasts ([`ContrastConv`](speed_nn::layers::ContrastConv)), for photographs of digits.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub contrast: bool,
    /// Output channels of the convolutions, each followed by 2x2 pooling.
    pub convolutions: Vec<usize>,
    /// Side of the convolutions' kernels.
    pub kernel: usize,
    /// Units of the hidden layer.
    pub hidden: usize,
    /// Share of the hidden units that is dropped in training.
    pub dropout: f64,
    /// Epochs between two evaluations on the test images; the last epoch is always evaluated.
    pub evaluate_every: u32,
    /// The views from which pseudo-labels are predicted.
    pub weak: Augmentation,
    /// The views on which the network is trained.
    pub strong: Augmentation,
}

impl Default for PseudoLabelsConfig {
    fn default() -> Self {
        Self {
            epochs: 40,
            epoch_images: REFERENCE_POOL,
            warmup_epochs: 6,
            label_epochs: 20,
            labelled_batch: 32,
            batch: 160,
            learning_rate: 0.002,
            beta1: 0.9,
            beta2: 0.999,
            adam_epsilon: 1e-8,
            average_rate: 0.01,
            unlabelled_weight: 1.0,
            threshold: 0.95,
            alignment: 0.5,
            label_noise: 0.05,
            contrast: false,
            convolutions: vec![16, 32],
            kernel: 5,
            hidden: 128,
            dropout: 0.3,
            evaluate_every: 5,
            weak: Augmentation {
                shift: 1.0,
                rotation: 0.1,
                scale: 0.1,
                shear: 0.1,
                elastic: 0.0,
                erasures: 0,
                erased: 0.0,
            },
            strong: Augmentation {
                shift: 2.0,
                rotation: 0.25,
                scale: 0.2,
                shear: 0.2,
                elastic: 0.7,
                erasures: 2,
                erased: 0.1,
            },
        }
    }
}

/// Names of the [`Augmentation`] fields of both views.
const WEAK: [&str; 7] = [
    "pseudo_labels.weak.shift",
    "pseudo_labels.weak.rotation",
    "pseudo_labels.weak.scale",
    "pseudo_labels.weak.shear",
    "pseudo_labels.weak.elastic",
    "pseudo_labels.weak.erasures",
    "pseudo_labels.weak.erased",
];
const STRONG: [&str; 7] = [
    "pseudo_labels.strong.shift",
    "pseudo_labels.strong.rotation",
    "pseudo_labels.strong.scale",
    "pseudo_labels.strong.shear",
    "pseudo_labels.strong.elastic",
    "pseudo_labels.strong.erasures",
    "pseudo_labels.strong.erased",
];

impl PseudoLabelsConfig {
    /// Checks every field. Names of fields are relative to `student`, for example `pseudo_labels.epochs`.
    ///
    /// # Errors
    /// Names the first field with an impossible value.
    pub(crate) fn check(&self) -> Result<(), InvalidField> {
        let (epochs, warmup) = (self.epochs, self.warmup_epochs);
        InvalidField::epochs("pseudo_labels.epochs", epochs)?;
        InvalidField::unless(warmup > 0 && warmup <= epochs, "pseudo_labels.warmup_epochs", || {
            format!("must be within 1..={epochs}, the number of epochs, not {warmup}")
        })?;
        InvalidField::unless(self.label_epochs >= warmup, "pseudo_labels.label_epochs", || {
            format!("must be at least warmup_epochs = {warmup}, not {}", self.label_epochs)
        })?;
        check_epoch_images("pseudo_labels.epoch_images", self.epoch_images)?;
        InvalidField::within("pseudo_labels.labelled_batch", self.labelled_batch, 1..=MAX_SIZE)?;
        InvalidField::within("pseudo_labels.batch", self.batch, 1..=MAX_SIZE)?;
        InvalidField::rate("pseudo_labels.learning_rate", self.learning_rate)?;
        InvalidField::below_one("pseudo_labels.beta1", self.beta1)?;
        InvalidField::below_one("pseudo_labels.beta2", self.beta2)?;
        InvalidField::within("pseudo_labels.adam_epsilon", self.adam_epsilon, LEAST_DEVIATION)?;
        InvalidField::rate("pseudo_labels.average_rate", self.average_rate)?;
        InvalidField::within("pseudo_labels.unlabelled_weight", self.unlabelled_weight, 0.0..=1e6)?;
        InvalidField::within("pseudo_labels.threshold", self.threshold, 0.0..=1.0)?;
        InvalidField::within("pseudo_labels.alignment", self.alignment, 0.0..=1.0)?;
        InvalidField::below_one("pseudo_labels.label_noise", self.label_noise)?;
        InvalidField::layers("pseudo_labels.convolutions", &self.convolutions, 16, MAX_SIZE)?;
        InvalidField::within("pseudo_labels.kernel", self.kernel, 1..=64)?;
        InvalidField::within("pseudo_labels.hidden", self.hidden, 1..=MAX_SIZE)?;
        InvalidField::below_one("pseudo_labels.dropout", self.dropout)?;
        InvalidField::epochs("pseudo_labels.evaluate_every", self.evaluate_every)?;
        check_augmentation(&self.weak, WEAK)?;
        check_augmentation(&self.strong, STRONG)
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

    /// Returns the optimiser.
    pub(super) fn adam(&self) -> Adam {
        Adam::with_least_deviation([self.beta1, self.beta2], self.adam_epsilon)
    }
}

fn check_augmentation(view: &Augmentation, names: [&'static str; 7]) -> Result<(), InvalidField> {
    let bounds = [(view.shift, 1e3), (view.rotation, 4.0), (view.scale, 2.0), (view.shear, 2.0), (view.elastic, 1e3)];
    for ((value, most), name) in bounds.into_iter().zip(names) {
        InvalidField::within(name, value, 0.0..=most)?;
    }
    InvalidField::within(names[5], view.erasures, 0..=64)?;
    InvalidField::within(names[6], view.erased, 0.0..=1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_valid() {
        assert_eq!(PseudoLabelsConfig::default().check(), Ok(()));
    }

    #[test]
    fn every_impossible_value_is_named() {
        type Break = fn(&mut PseudoLabelsConfig);
        let cases: [(&str, Break); 28] = [
            ("epochs", |c| c.epochs = 0),
            ("epoch_images", |c| c.epoch_images = usize::MAX),
            ("warmup_epochs", |c| c.warmup_epochs = 0),
            ("warmup_epochs", |c| c.warmup_epochs = c.epochs + 1),
            ("label_epochs", |c| c.label_epochs = c.warmup_epochs - 1),
            ("labelled_batch", |c| c.labelled_batch = 0),
            ("batch", |c| c.batch = MAX_SIZE + 1),
            ("learning_rate", |c| c.learning_rate = 0.0),
            ("learning_rate", |c| c.learning_rate = f64::NAN),
            ("beta1", |c| c.beta1 = 1.0 - 1e-9),
            ("beta2", |c| c.beta2 = -0.1),
            ("adam_epsilon", |c| c.adam_epsilon = 0.0),
            ("average_rate", |c| c.average_rate = 1.0),
            ("unlabelled_weight", |c| c.unlabelled_weight = f64::INFINITY),
            ("threshold", |c| c.threshold = 1.1),
            ("alignment", |c| c.alignment = -0.5),
            ("label_noise", |c| c.label_noise = 1.0),
            ("convolutions", |c| c.convolutions.clear()),
            ("convolutions", |c| c.convolutions[1] = 0),
            ("kernel", |c| c.kernel = 0),
            ("hidden", |c| c.hidden = 0),
            ("dropout", |c| c.dropout = 1.0),
            ("evaluate_every", |c| c.evaluate_every = 0),
            ("weak.shift", |c| c.weak.shift = -1.0),
            ("weak.erased", |c| c.weak.erased = 1.5),
            ("strong.rotation", |c| c.strong.rotation = f64::NAN),
            ("strong.elastic", |c| c.strong.elastic = f64::INFINITY),
            ("strong.erasures", |c| c.strong.erasures = 65),
        ];
        for (field, change) in cases {
            let mut config = PseudoLabelsConfig::default();
            change(&mut config);
            let found = config.check().map_err(|error| error.field);
            assert_eq!(found, Err(format!("pseudo_labels.{field}").as_str()), "{config:?}");
        }
    }

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
