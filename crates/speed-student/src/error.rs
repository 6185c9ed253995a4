//! Faults of a training.

use crate::{CheckpointError, Images, InvalidField};
use speed_data::{ImageShape, Split};

/// A training that ended early. `E` is the error of the caller's own report function.
#[derive(Debug, thiserror::Error)]
pub enum StudentError<E> {
    /// A setting is impossible.
    #[error("student settings: {0}")]
    Config(#[source] InvalidField),
    /// Images and labels do not fit together.
    #[error("student data: {0}")]
    Data(#[source] InvalidData),
    /// The checkpoint cannot be continued.
    #[error("student checkpoint: {0}")]
    Checkpoint(#[source] CheckpointError),
    /// A loss became infinite or not a number.
    #[error("the {network}'s loss is {loss} at step {step} of epoch {epoch}: try a lower learning rate")]
    NotFinite {
        /// "discriminator", "generator" or "classifier".
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
    Report(E),
}

/// Images and labels that no student can be trained on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidData {
    /// Not one batch of unlabelled images.
    #[error("the pool has {pool} images, fewer than one batch of {batch}")]
    SmallPool {
        /// Images in the pool.
        pool: usize,
        /// Images in a batch.
        batch: usize,
    },
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
    /// A label that is no class.
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
    /// Images that leave nothing behind the convolutions.
    #[error("images of {shape} are too small for {convolutions} convolutions of side {kernel} with pooling")]
    SmallImages {
        /// Size of the images.
        shape: ImageShape,
        /// Number of convolutions.
        convolutions: usize,
        /// Side of their kernels.
        kernel: usize,
    },
    /// No image to test on.
    #[error("there is no test image")]
    NoTest,
}

impl InvalidData {
    /// Checks that pool, labels and test images fit together and the pool has at least one batch.
    pub(crate) fn check(batch: usize, pool: Images<'_>, labelled: &[(usize, u8)], test: &Split) -> Result<(), Self> {
        let (images, classes) = (pool.len(), test.classes());
        if pool.shape() != test.shape() {
            return Err(InvalidData::Shape { pool: pool.shape(), test: test.shape() });
        }
        if test.is_empty() {
            return Err(InvalidData::NoTest);
        }
        if images < batch {
            return Err(InvalidData::SmallPool { pool: images, batch });
        }
        if labelled.is_empty() {
            return Err(InvalidData::NoLabels);
        }
        for (position, &(index, label)) in labelled.iter().enumerate() {
            if index >= images {
                return Err(InvalidData::Index { position, index, pool: images });
            }
            if usize::from(label) >= classes {
                return Err(InvalidData::Label { position, label, classes });
            }
        }
        Ok(())
    }
}
