//! The students of SPEED: the paper's semi-supervised GAN, and [`pseudo_labels`], a student that is more accurate with
//! the same labels.
//!
//! Its main uses:
//! - train a student on a pool of images and few labels ([`StudentMethod::train`]);
//! - compare it with a classifier without a network ([`label_spreading`]);
//! - save a training at any epoch and resume it to the same bits ([`Checkpoint`]);
//! - add a method under a name ([`StudentMethod::register`]);
//! - find typical images and groups of a public pool to ask about, without labels ([`pool`]).
//!
//! A [`Lesson`] contains a pool of unlabelled images and labels from the teachers' noisy vote for a few of them.
//! [`StudentMethod::train`] runs a training and reports every epoch; a [`Checkpoint`] resumes an interrupted training
//! to the same bits. On the CPU, everything runs on the calling thread if that thread is in a pool of one thread, so
//! results do not depend on concurrent work. Train several students on several threads.
//!
//! A custom student is a [`Method`] with a name and its [`Training`]; its networks are Burn modules on [`speed_nn`]'s layers.

mod checkpoint;
mod config;
mod error;
pub mod label_spreading;
mod lesson;
mod method;
mod methods;
pub mod pool;
mod prior;
mod samples;
#[cfg(test)]
mod test_support;
mod training;

pub use burn::tensor::Device;
pub use checkpoint::{Checkpoint, CheckpointError, EpochMetrics};
pub use config::{StudentConfig, StudentMethod};
pub use error::{InvalidData, ReportError, StudentError};
pub use gan::{ConvolutionalConstants, GanConstants, GanSize};
pub use lesson::Lesson;
pub use method::{BoxedClassifier, Epoch, Method, Passes, Training};
use methods::gan;
pub use methods::pseudo_labels;
pub use prior::ClassPrior;
pub use samples::{Picture, Samples};
pub use speed_data::Images;
pub use speed_nn::training::{Classifier, InvalidField, RegistrationError};
pub use training::{EpochReport, OnEpoch, Student, StudentOutcome};
