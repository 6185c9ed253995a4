//! Metrics of an epoch.

/// Losses and accuracies of one epoch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EpochMetrics {
    /// The epoch, from 1.
    pub epoch: u32,
    /// Mean loss of the discriminator over the epoch's steps.
    pub discriminator_loss: f64,
    /// Mean loss of the generator over the epoch's steps.
    pub generator_loss: f64,
    /// Accuracy on the test images with the parameters as they are; `None` in epochs without evaluation.
    pub accuracy_raw: Option<f64>,
    /// Accuracy with the average of rate `average_rate`, its start at zero divided out: the student's accuracy.
    pub accuracy_average: Option<f64>,
    /// Accuracy with the reference's average: rate 1e-4, drawn towards its start at zero (errata 19).
    pub accuracy_reference_average: Option<f64>,
    /// Wall time of the epoch in seconds, with its evaluation.
    pub seconds: f64,
}
