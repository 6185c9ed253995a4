//! What is known of an epoch.

/// Losses, pseudo-labels and accuracies of one epoch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PseudoLabelsMetrics {
    /// The epoch, from 1.
    pub epoch: u32,
    /// Mean cross-entropy on labelled images over the epoch's steps.
    pub labelled_loss: f64,
    /// Mean cross-entropy on pseudo-labelled images over the epoch's steps; 0 during the warm-up.
    pub unlabelled_loss: f64,
    /// Share of the pool that has a pseudo-label; 0 during the warm-up.
    pub confident: f64,
    /// Given labels that are taken to be wrong: another class is more probable.
    pub disputed: u32,
    /// Accuracy on the test images with the parameters as they are; `None` in epochs without evaluation.
    pub accuracy_raw: Option<f64>,
    /// Accuracy with the average of the parameters: the student's accuracy.
    pub accuracy_average: Option<f64>,
    /// Wall time of the epoch in seconds, with its evaluation.
    pub seconds: f64,
}
