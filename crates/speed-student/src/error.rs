//! Errors of a training.

use speed_data::ImageShape;
use speed_nn::device::DeviceError;
use speed_nn::optim::StepError;
use speed_training::InvalidField;

use crate::CheckpointError;

/// The error of the caller's own report function.
pub type ReportError = Box<dyn std::error::Error + Send + Sync>;

/// A training that ended early.
#[derive(Debug, thiserror::Error)]
pub enum StudentError {
    /// A setting is impossible.
    #[error("student settings: {0}")]
    Config(#[source] InvalidField),
    /// Images and labels do not fit together.
    #[error("student data: {0}")]
    Data(#[source] InvalidData),
    /// The checkpoint cannot be continued.
    #[error("student checkpoint: {0}")]
    Checkpoint(#[source] CheckpointError),
    /// The device failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A loss became infinite or not a number.
    #[error("the {network}'s loss is {loss} at step {step} of epoch {epoch}: try a lower learning rate")]
    NotFinite {
        /// The network's name: "discriminator", for instance.
        network: &'static str,
        /// The loss.
        loss: f64,
        /// The epoch, from 1.
        epoch: u32,
        /// The step within the epoch, from 1.
        step: usize,
    },
    /// The caller's report function ended the training.
    #[error(transparent)]
    Report(ReportError),
}

impl StudentError {
    /// Names the step of an epoch that failed.
    #[must_use]
    pub fn of_step(error: StepError, network: &'static str, epoch: u32, step: usize) -> Self {
        match error {
            StepError::NotFinite { loss } => Self::NotFinite { network, loss, epoch, step },
            StepError::Device(error) => Self::Device(error),
        }
    }
}

/// Images and labels that no student can be trained on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidData {
    /// No labelled image.
    #[error("there is no labelled image")]
    NoLabels,
    /// A label of an image that is not in the pool.
    #[error("label {position} is for image {index}, but the pool has {pool} images")]
    Index {
        /// Place in the list of labels.
        position: usize,
        /// The image it names.
        index: usize,
        /// Images in the pool.
        pool: usize,
    },
    /// A label that is not a class.
    #[error("label {position} is {label}, but there are {classes} classes")]
    Label {
        /// Place in the list of labels.
        position: usize,
        /// The label.
        label: u8,
        /// Number of classes.
        classes: usize,
    },
    /// Pool and test images differ in size.
    #[error("the pool's images are {pool}, the test images {test}")]
    Shape {
        /// Size of the pool's images.
        pool: ImageShape,
        /// Size of the test images.
        test: ImageShape,
    },
    /// No image to test on.
    #[error("there is no test image")]
    NoTest,
}
