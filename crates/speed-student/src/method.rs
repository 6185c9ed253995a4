//! The interface of the methods of training a student.

use burn::tensor::Device;
use serde_json::Value;
use speed_core::random::Stream;
use speed_data::ImageShape;
use speed_nn::device::DeviceError;
use speed_nn::params::ParameterError;
use speed_nn::training::{AnyClassifier, InvalidField};

use crate::{CheckpointError, Lesson, Samples, StudentConfig, StudentError};

/// A method of training a student: its settings and their checks. [`start`](Self::start) creates a [`Training`].
///
/// [`StudentMethod::register`](crate::StudentMethod::register) gives a method a name. The crate implements everything that all methods share:
/// checks, the loop over epochs, evaluation, checkpoints and reports.
pub trait Method: Sync + 'static {
    /// Returns the method's name in tables.
    fn title(&self) -> &'static str;

    /// Returns the names of the values measured in an epoch, for example losses. The accuracies of [`Training::last`] and
    /// [`Training::averaged`] are not among them.
    fn measures(&self) -> &'static [&'static str];

    /// Returns the version of the method. Increase it if the method changes under the same name, so that finished trainings are not
    /// reused.
    fn version(&self) -> u32 {
        1
    }

    /// Returns whether its networks learn from an encoder's vectors. Other methods read pictures, whose neighbouring pixels belong together.
    fn reads_vectors(&self) -> bool {
        false
    }

    /// Returns the settings that the method reads; other settings do not influence the training.
    fn settings(&self, config: &StudentConfig) -> Value;

    /// Returns the settings that must be equal when an interrupted training resumes.
    fn identity(&self, config: &StudentConfig) -> Value {
        self.settings(config)
    }

    /// Returns the epochs and batches of a training.
    fn passes(&self, config: &StudentConfig) -> Passes;

    /// Returns settings for `epochs` epochs with batches of `batch` images and the same networks, to estimate the time of a training.
    fn trial(&self, config: &StudentConfig, epochs: u32, batch: usize) -> StudentConfig;

    /// Returns settings for a training of the same network on labelled images alone, without a pool, with as many steps as a
    /// training with a pool of `pool` images; `None` if the method has none. The pool of such a training is its labelled
    /// images.
    fn labelled_only(&self, _config: &StudentConfig, _pool: usize) -> Option<StudentConfig> {
        None
    }

    /// Returns the approximate number of parameters of all networks.
    fn parameters(&self, config: &StudentConfig, shape: ImageShape) -> usize;

    /// Checks that the networks support images of this size.
    ///
    /// # Errors
    /// Names the setting that does not fit the images.
    fn check_images(&self, _config: &StudentConfig, _shape: ImageShape) -> Result<(), InvalidField> {
        Ok(())
    }

    /// Returns a lower bound on the number of parameters of the classifier. A file with fewer values is refused before the
    /// network is built, so a damaged or hostile file cannot make a program reserve memory.
    fn least_parameters(&self, config: &StudentConfig, shape: ImageShape, classes: usize) -> usize;

    /// Returns the classifier with parameters of arbitrary values, without gradients. Settings and size of the images are
    /// already checked.
    fn classifier(&self, config: &StudentConfig, shape: ImageShape, classes: usize, device: &Device)
    -> BoxedClassifier;

    /// Returns a training before its first epoch. Settings, images and labels are already checked.
    fn start(&self, lesson: &Lesson<'_>) -> Box<dyn Training>;
}

/// A classifier of any type.
pub type BoxedClassifier = Box<dyn AnyClassifier>;

/// A student in training: networks with their optimisers and averages.
pub trait Training {
    /// Runs all steps of an epoch, and returns one value for each of the [measures](Method::measures), in the same order. A value is never
    /// NaN.
    ///
    /// # Errors
    /// [`StudentError::NotFinite`] and [`StudentError::Device`].
    fn run_epoch(&mut self, lesson: &Lesson<'_>, epoch: &mut Epoch) -> Result<Vec<Option<f64>>, StudentError>;

    /// Returns the classifier with the parameters of the last step, without gradients.
    fn last(&self) -> BoxedClassifier;

    /// Returns the student: the classifier with the average of its parameters, without gradients.
    fn averaged(&self) -> BoxedClassifier;

    /// Returns the complete state between two epochs, as records.
    ///
    /// # Errors
    /// If Burn cannot write the records.
    fn to_records(&self) -> Result<Vec<Vec<u8>>, ParameterError>;

    /// Restores the state of `records`.
    ///
    /// # Errors
    /// If the records do not belong to these networks.
    fn with_records(self: Box<Self>, records: Vec<Vec<u8>>) -> Result<Box<dyn Training>, CheckpointError>;

    /// Returns generated images, or `None` if the method does not generate images.
    ///
    /// # Errors
    /// If the device failed.
    fn samples(&self, _lesson: &Lesson<'_>) -> Result<Option<Samples>, DeviceError> {
        Ok(None)
    }
}

/// The epochs and batches of a training.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passes {
    /// Number of epochs.
    pub epochs: u32,
    /// Number of images per epoch; 0 stands for the size of the pool.
    pub epoch_images: usize,
    /// Number of images per step.
    pub batch: usize,
    /// Number of epochs between two evaluations on the test images; the last epoch is always evaluated.
    pub evaluate_every: u32,
}

impl Passes {
    /// Returns the number of images of an epoch with a pool of `pool` images: at least one batch.
    pub fn images(&self, pool: usize) -> usize {
        let images = if self.epoch_images == 0 { pool } else { self.epoch_images };
        images.max(self.batch)
    }

    /// Returns the number of steps of an epoch with a pool of `pool` images: at least 1.
    ///
    /// # Panics
    /// If `batch` is 0.
    pub fn steps(&self, pool: usize) -> usize {
        self.images(pool) / self.batch
    }
}

/// One epoch of a training.
#[derive(Debug)]
#[non_exhaustive]
pub struct Epoch {
    /// The number of the epoch, from 1.
    pub number: u32,
    /// Whether the epoch is evaluated on the test images.
    pub is_evaluated: bool,
    /// The randomness of the epoch.
    pub stream: Stream,
}
