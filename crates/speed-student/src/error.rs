//! Errors of a training.

use speed_nn::device::DeviceError;
use speed_nn::optim::StepError;
use speed_nn::training::InvalidField;

use crate::CheckpointError;

/// An error of the caller's report function.
pub type ReportError = Box<dyn std::error::Error + Send + Sync>;

/// The reason why a training ended early.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages describe the fields")]
#[non_exhaustive]
pub enum StudentError {
    #[error("student settings: {0}")]
    Config(#[source] InvalidField),
    #[error("student data: {0}")]
    Data(#[source] InvalidData),
    #[error("student checkpoint: {0}")]
    Checkpoint(#[source] CheckpointError),
    #[error(transparent)]
    Device(#[from] DeviceError),
    #[error(
        "expected a finite loss of the {network}, found {loss} at step {step} of epoch {epoch}: try a lower learning rate"
    )]
    NotFinite {
        network: &'static str,
        loss: f64,
        /// The epoch, from 1.
        epoch: u32,
        /// The step within the epoch, from 1.
        step: usize,
    },
    #[error(transparent)]
    Report(ReportError),
}

impl StudentError {
    /// Names the step of an epoch that failed.
    pub fn from_step(error: StepError, network: &'static str, epoch: u32, step: usize) -> Self {
        match error {
            StepError::NotFinite { loss } => Self::NotFinite { network, loss, epoch, step },
            StepError::Device(error) => Self::Device(error),
        }
    }
}

/// The fault of images and labels on which a student cannot be trained, with the expected and the found value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidData(pub(crate) String);

impl InvalidData {
    /// The fault of test images that are none.
    pub fn no_test() -> Self {
        Self("expected at least one test image, found none".to_owned())
    }
}
