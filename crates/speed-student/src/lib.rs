//! The students of SPEED: the paper's semi-supervised [`gan`], and [`pseudo_labels`], a stronger one on the same labels.
//!
//! A student has a pool of unlabelled images and, for a few of them, labels that the teachers' noisy vote gave. Each module's
//! `train` runs a training and reports every epoch; a [`Checkpoint`] continues an interrupted one to the same bits. Networks are
//! Burn modules on [`speed_nn`]'s layers. On the processor everything runs on the calling thread, if it is in a pool of one thread,
//! so that results do not depend on what runs beside it; train several students on several threads.

mod bytes;
mod checkpoint;
mod classifier;
mod config;
mod error;
pub mod gan;
mod images;
mod metrics;
pub mod pseudo_labels;
mod samples;

pub use burn::tensor::Device;
pub use checkpoint::{Checkpoint, CheckpointError, CheckpointMetrics};
pub use config::{InvalidField, StudentConfig, StudentMethod};
pub use error::{InvalidData, StudentError};
pub use images::Images;
pub use metrics::EpochMetrics;
pub use samples::{Grid, Samples};
