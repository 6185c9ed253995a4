//! Errors of a teacher.

use speed_data::ImageShape;
use speed_nn::device::DeviceError;
use speed_nn::training::InvalidField;

/// The reason why a teacher cannot be built, trained, read or used.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages describe the fields")]
#[non_exhaustive]
pub enum TeacherError {
    #[error("the teacher's configuration is not valid")]
    Config(#[from] InvalidField),
    #[error("a shift of {shift} pixels is too large for images of {shape}")]
    ShiftTooLarge { shift: usize, shape: ImageShape },
    /// Images, classes, a partition or a teacher's index that do not fit, with the expected and the found value.
    #[error("{0}")]
    Data(String),
    #[error("teacher {teacher} diverged: its loss is {loss} at step {step}; lower the learning rate")]
    Diverged {
        teacher: usize,
        /// The step, from 1.
        step: usize,
        loss: f64,
    },
    #[error("the training of teacher {teacher} was stopped")]
    Stopped { teacher: usize },
    #[error("expected at least {least} parameters of the network, found {found}")]
    FewParameters { least: usize, found: usize },
    #[error("not a saved teacher: {reason}")]
    Bytes { reason: String },
    #[error(transparent)]
    Device(#[from] DeviceError),
}
