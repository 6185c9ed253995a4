//! Metrics of an epoch.

use crate::checkpoint::{CheckpointMetrics, optional_to_value, value_to_optional};

/// Losses, pseudo-labels and accuracies of one epoch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PseudoLabelsMetrics {
    /// The epoch, from 1.
    pub epoch: u32,
    /// Mean weighted cross-entropy on labelled images over the epoch's steps.
    pub labelled_loss: f64,
    /// Mean weighted cross-entropy on pseudo-labelled images over the epoch's steps; 0 during the warm-up.
    pub unlabelled_loss: f64,
    /// Share of the pool that has a pseudo-label; 0 during the warm-up.
    pub confident: f64,
    /// Share of the given labels that are taken to be wrong: another class is more probable.
    pub disputed: f64,
    /// Accuracy on the test images with the parameters as they are; `None` in epochs without evaluation.
    pub accuracy_raw: Option<f64>,
    /// Accuracy with the average of the parameters: the student's accuracy.
    pub accuracy_average: Option<f64>,
    /// Wall time of the epoch in seconds, with its evaluation.
    pub seconds: f64,
}

impl CheckpointMetrics for PseudoLabelsMetrics {
    const MAGIC: &'static [u8; 8] = b"SPEEDPSL";
    const VALUES: usize = 7;

    fn epoch(&self) -> u32 {
        self.epoch
    }

    fn values(&self) -> Vec<f64> {
        let accuracies = [self.accuracy_raw, self.accuracy_average].map(optional_to_value);
        let others = [self.labelled_loss, self.unlabelled_loss, self.confident, self.disputed, self.seconds];
        others.into_iter().chain(accuracies).collect()
    }

    fn from_values(epoch: u32, values: &[f64]) -> Self {
        Self {
            epoch,
            labelled_loss: values[0],
            unlabelled_loss: values[1],
            confident: values[2],
            disputed: values[3],
            seconds: values[4],
            accuracy_raw: value_to_optional(values[5]),
            accuracy_average: value_to_optional(values[6]),
        }
    }
}
