//! What student to train on pseudo-labels, and how.

use serde::{Deserialize, Serialize};
use speed_nn::adam::AdamConfig;

use super::Augmentation;

/// Settings of the student that learns from pseudo-labels.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PseudoLabelsConfig {
    /// Passes of the student over the pool, the warm-up included. The learning rate falls to 0 over all of them.
    pub epochs: u32,
    /// The first so many epochs see the labelled images only.
    pub warmup_epochs: u32,
    /// The given labels' weight falls linearly from 1 after the warm-up to 0 at this epoch; 0: it stays 1.
    pub label_epochs: u32,
    /// Up to this epoch agreement.
    pub graph_epochs: u32,
    /// Epochs of a round: it begins with new weights and learns from what the last round ended with.
    pub round_epochs: u32,
    /// Rounds before the one that learns from its own average.
    pub rounds: u32,
    /// Views that the teacher's probabilities are averaged over.
    pub views: u32,
    /// Labelled images a step.
    pub labelled_batch: usize,
    /// Unlabelled images a step.
    pub batch: usize,
    /// Step size of Adam at the start; it falls to 0 along a quarter of a cosine.
    pub learning_rate: f64,
    /// Decay of Adam's first moment.
    pub beta1: f64,
    /// Decay of Adam's second moment.
    pub beta2: f64,
    /// Smallest deviation that Adam divides by.
    pub adam_epsilon: f64,
    /// Rate a step of the parameter average that gives the pseudo-labels and that the student is judged by.
    pub average_rate: f64,
    /// Least probability of a pseudo-label that is learnt from.
    pub threshold: f64,
    /// Lower.
    pub adaptive: bool,
    /// Weight of the pseudo-labelled loss against the labelled one.
    pub unlabelled_weight: f64,
    /// How far the pseudo-labels are drawn towards equal class frequencies: 0 not at all, 1 fully.
    pub alignment: f64,
    /// Share of the given labels that is taken to be wrong.
    pub label_noise: f64,
    /// Output channels of the convolutions, each followed by 2x2 pooling.
    pub convolutions: Vec<usize>,
    /// Side of their kernels.
    pub kernel: usize,
    /// Units of the hidden layer.
    pub hidden: usize,
    /// Share of the hidden units that are dropped in training.
    pub dropout: f64,
    /// Epochs between two evaluations on the test images; the last epoch is always evaluated.
    pub evaluate_every: u32,
    /// The views that pseudo-labels are given for.
    pub weak: Augmentation,
    /// The views that are learnt from.
    pub strong: Augmentation,
}

impl Default for PseudoLabelsConfig {
    fn default() -> Self {
        Self {
            epochs: 50,
            warmup_epochs: 4,
            label_epochs: 0,
            graph_epochs: 0,
            round_epochs: 6,
            rounds: 0,
            views: 1,
            labelled_batch: 32,
            batch: 160,
            learning_rate: 0.002,
            beta1: 0.9,
            beta2: 0.999,
            adam_epsilon: 1e-8,
            average_rate: 0.005,
            threshold: 0.95,
            adaptive: true,
            unlabelled_weight: 1.0,
            alignment: 0.5,
            label_noise: 0.05,
            convolutions: vec![32, 64],
            kernel: 5,
            hidden: 128,
            dropout: 0.5,
            evaluate_every: 5,
            weak: Augmentation { shift: 1.0, rotation: 0.1, scale: 0.1, shear: 0.1, elastic: 0.0, cutout: 0, erase: 0.0, erasures: 0 },
            strong: Augmentation { shift: 3.0, rotation: 0.35, scale: 0.3, shear: 0.3, elastic: 1.0, cutout: 8, erase: 0.0, erasures: 0 },
        }
    }
}

impl PseudoLabelsConfig {
    /// The weight of the given labels at the share `done` of all steps.
    pub(super) fn labelled_weight(&self, done: f64) -> f64 {
        if self.label_epochs == 0 {
            return 1.0;
        }
        let epoch = done * f64::from(self.epochs);
        let falling = (f64::from(self.label_epochs) - epoch) / f64::from(self.label_epochs - self.warmup_epochs);
        falling.clamp(0.0, 1.0)
    }

    /// The optimiser's settings at the share `done` of all steps.
    #[expect(clippy::cast_possible_truncation, reason = "networks compute in f32")]
    pub(super) fn adam(&self, done: f64) -> AdamConfig {
        let first = f64::from(self.warmup_epochs + self.rounds * self.round_epochs) / f64::from(self.epochs);
        let epoch = done * f64::from(self.epochs);
        let done = if done >= first {
            (done - first) / (1.0 - first)
        } else if epoch < f64::from(self.warmup_epochs) {
            0.0
        } else {
            0.7 * ((epoch - f64::from(self.warmup_epochs)) / f64::from(self.round_epochs)).fract()
        };
        let rate = self.learning_rate * (0.5 * std::f64::consts::PI * done).cos();
        AdamConfig {
            learning_rate: rate as f32,
            beta1: self.beta1 as f32,
            beta2: self.beta2 as f32,
            epsilon: self.adam_epsilon as f32,
        }
    }
}
