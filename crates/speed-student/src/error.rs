//! Errors of a training.

use speed_data::ImageShape;
use speed_nn::device::DeviceError;
use speed_nn::optim::StepError;
use speed_nn::training::InvalidField;

use crate::CheckpointError;

/// An error of the caller's report function.
pub type ReportError = Box<dyn std::error::Error + Send + Sync>;

/// The reason why a training ended early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StudentError {
    /// A setting is impossible.
    #[error("student settings: {0}")]
    Config(#[source] InvalidField),
    /// Images and labels do not fit together.
    #[error("student data: {0}")]
    Data(#[source] InvalidData),
    /// The training cannot resume from the checkpoint.
    #[error("student checkpoint: {0}")]
    Checkpoint(#[source] CheckpointError),
    /// The device failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A loss became infinite or not a number.
    #[error(
        "expected a finite loss of the {network}, found {loss} at step {step} of epoch {epoch}: try a lower learning rate"
    )]
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
    pub fn from_step(error: StepError, network: &'static str, epoch: u32, step: usize) -> Self {
        match error {
            StepError::NotFinite { loss } => Self::NotFinite { network, loss, epoch, step },
            StepError::Device(error) => Self::Device(error),
        }
    }
}

/// The fault of images and labels on which a student cannot be trained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidData {
    /// There are no labelled images.
    #[error("expected at least one labelled image, found none")]
    NoLabels,
    /// A label of an image that is not in the pool.
    #[error("label {position}: expected an image of the pool of {pool} images, found image {index}")]
    Index {
        /// Place in the list of labels.
        position: usize,
        /// The image of the label.
        index: usize,
        /// Images in the pool.
        pool: usize,
    },
    /// A label that is not a class.
    #[error("label {position}: expected a class below {classes}, found {label}")]
    Label {
        /// Place in the list of labels.
        position: usize,
        /// The label.
        label: u8,
        /// Number of classes.
        classes: usize,
    },
    /// Doubts that do not fit the labels.
    #[error(
        "expected a doubt of at least 0 and below 1 for each of {labels} labels, found {found} of {doubts} doubts in this range"
    )]
    Doubts {
        /// Number of labels.
        labels: usize,
        /// Number of doubts.
        doubts: usize,
        /// Number of doubts in the range.
        found: usize,
    },
    /// Pool and test images differ in size.
    #[error("expected test images of the size of the pool's images, {pool}, found {test}")]
    Shape {
        /// Size of the pool's images.
        pool: ImageShape,
        /// Size of the test images.
        test: ImageShape,
    },
    /// Pool and test images differ in their number of classes.
    #[error("expected test images of the pool's {pool} classes, found {test} classes")]
    Classes {
        /// Number of classes of the pool.
        pool: usize,
        /// Number of classes of the test images.
        test: usize,
    },
    /// The test images are an empty split.
    #[error("expected at least one test image, found none")]
    NoTest,
    /// A network for images or classes that cannot exist.
    #[error("expected images with pixels and 1 to 256 classes, found images of {shape} and {classes} classes")]
    Network {
        /// Size of the images.
        shape: ImageShape,
        /// Number of classes.
        classes: usize,
    },
    /// Fewer parameters than the network has.
    #[error("expected at least {least} parameters of the network, found {found}")]
    Parameters {
        /// A lower bound on the network's number.
        least: usize,
        /// The number found.
        found: usize,
    },
}
