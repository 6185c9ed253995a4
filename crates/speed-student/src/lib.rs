//! The students of SPEED: the paper's semi-supervised GAN (Salimans et al., "Improved techniques for training GANs", 2016),
//! and, in [`pseudo_labels`], a stronger one on the same labels. This page is about the GAN.
//!
//! The student has a pool of unlabelled images and, for a few of them, labels that the teachers' noisy vote gave. A
//! [`Discriminator`] learns to classify the labelled ones and to tell real images from those of a [`Generator`], which
//! in turn learns to match the mean of the discriminator's last hidden layer on real images. [`train`] runs both and
//! reports every epoch; a [`Checkpoint`] continues an interrupted training to the same bits.
//!
//! Layers and settings are those of the paper's published code; [`StudentConfig`] names the differences. Gradients are
//! written out by hand on top of [`speed_nn`]'s layers, and checked against Burn's automatic differentiation in tests:
//! the product of matrices is then nearly all that a step costs. Everything runs on the calling thread, so results do
//! not depend on what runs beside it; train several students on several threads.

mod batches;
#[cfg(test)]
mod burn_twin;
mod bytes;
mod checkpoint;
mod config;
mod discriminator;
mod error;
mod generator;
mod images;
mod loss;
mod metrics;
pub mod pseudo_labels;
mod samples;
mod state;
mod train;
pub mod training;

pub use checkpoint::{Checkpoint, CheckpointError, CheckpointMetrics};
pub use config::{InvalidField, StudentConfig, StudentMethod};
pub use discriminator::Discriminator;
pub use error::{InvalidData, StudentError};
pub use generator::Generator;
pub use images::Images;
pub use metrics::EpochMetrics;
pub use samples::{Grid, Samples};
pub use train::{EpochReport, StudentOutcome, train};
