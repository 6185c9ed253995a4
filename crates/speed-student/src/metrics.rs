//! Metrics of an epoch.

use serde::{Deserialize, Serialize};

/// Losses and accuracies of one epoch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EpochMetrics {
    /// The epoch, from 1.
    pub epoch: u32,
    /// The measures of the method, in the order of [`Method::measures`](crate::Method::measures); `None`
    /// if the epoch has no value.
    pub measures: Vec<Option<f64>>,
    /// Accuracy on the test images with the parameters of the last step; `None` in epochs without evaluation.
    pub accuracy_raw: Option<f64>,
    /// Accuracy with the average of the parameters: the student's accuracy.
    pub accuracy_average: Option<f64>,
    /// Wall-clock time of the epoch in seconds, including its evaluation.
    pub seconds: f64,
}
