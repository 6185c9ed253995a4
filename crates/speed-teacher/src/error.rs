//! Errors of a teacher.

use std::ops::Range;

use speed_data::ImageShape;
use speed_nn::device::DeviceError;
use speed_nn::training::InvalidField;

/// The reason why a teacher cannot be built, trained, read or used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TeacherError {
    /// The configuration fails its own check.
    #[error("the teacher's configuration is not valid")]
    Config(#[from] InvalidField),
    /// The images are too small for the network's layers.
    #[error("images of {shape} are too small for the {architecture} network, which needs at least {least}x{least}")]
    ImageTooSmall {
        /// The images' size.
        shape: ImageShape,
        /// The network's name in a configuration.
        architecture: &'static str,
        /// The least height and width.
        least: usize,
    },
    /// The augmentation could move an image completely out of the frame.
    #[error("a shift of {shift} pixels is too large for images of {shape}")]
    ShiftTooLarge {
        /// The configured shift.
        shift: usize,
        /// The images' size.
        shape: ImageShape,
    },
    /// A teacher's partition is not within the data, or is too small to train (and to validate) on.
    #[error("teacher {teacher}: the partition {partition:?} of {images} images gives too few images to train on")]
    Partition {
        /// The teacher's index.
        teacher: usize,
        /// Its partition.
        partition: Range<usize>,
        /// Images in the data.
        images: usize,
    },
    /// A teacher index without a partition.
    #[error("expected one of the ensemble's {teachers} teachers, numbered from 0, found teacher {teacher}")]
    NoSuchTeacher {
        /// The index requested.
        teacher: usize,
        /// The number of partitions.
        teachers: usize,
    },
    /// The loss is no longer finite.
    #[error("teacher {teacher} diverged: its loss is {loss} at step {step}; lower the learning rate")]
    Diverged {
        /// The teacher's index.
        teacher: usize,
        /// The step, from 1.
        step: usize,
        /// The loss.
        loss: f64,
    },
    /// The training was told to stop.
    #[error("the training of teacher {teacher} was stopped")]
    Stopped {
        /// The teacher's index.
        teacher: usize,
    },
    /// Images of a size other than that of the training images.
    #[error("expected images of the teacher's size, {expected}, found {found}")]
    ImageShape {
        /// The teacher's size.
        expected: ImageShape,
        /// The data's size.
        found: ImageShape,
    },
    /// Data with a number of classes other than the teacher's.
    #[error("expected data with the teacher's {expected} classes, found {found}")]
    Classes {
        /// The teacher's number.
        expected: usize,
        /// The data's number.
        found: usize,
    },
    /// A number of classes that does not fit labels of one byte.
    #[error("a teacher needs 1 to 256 classes, found {found}")]
    ClassCount {
        /// The number.
        found: usize,
    },
    /// Fewer parameters than the network has.
    #[error("expected at least {least} parameters of the network, found {found}")]
    FewParameters {
        /// A lower bound on the network's number.
        least: usize,
        /// The number found.
        found: usize,
    },
    /// Bytes that are not a teacher of the given configuration, image size and classes.
    #[error("not a saved teacher: {reason}")]
    Bytes {
        /// The fault.
        reason: String,
    },
    /// Burn could not write or read its record of the parameters.
    #[error("not a saved teacher")]
    Record(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The device failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

impl TeacherError {
    pub(crate) fn record(error: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::Record(Box::new(error))
    }
}
