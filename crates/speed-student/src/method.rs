//! The ways of training a student, by name.

use serde_json::Value;
use speed_data::ImageShape;
use speed_nn::device::DeviceError;
use speed_nn::params::ParameterError;
use speed_random::Stream;
use speed_training::{Classifier, InvalidField, Named, RegistrationError, Registry, by_name};

use crate::gan::{Convolutional, Dense, Gan};
use crate::pseudo_labels::PseudoLabels;
use crate::training::train;
use crate::{Checkpoint, CheckpointError, EpochReport, Lesson, ReportError, Samples, StudentConfig};
use crate::{StudentError, StudentOutcome};

/// A way of training a student: its networks, their optimisers and averages, and what an epoch does with them.
///
/// [`StudentMethod::register`] gives it a name. What all methods share is done for it: checks, the loop over epochs, evaluation,
/// checkpoints and reports.
pub trait Method: Sized + 'static {
    /// The network that classifies in the end.
    type Network: Classifier;

    /// Its name in tables.
    const TITLE: &'static str;

    /// Names of what it measures in an epoch beside the accuracies of [`last`](Self::last) and [`averaged`](Self::averaged): losses,
    /// for instance.
    const MEASURES: &'static [&'static str];

    /// A number to raise when the same name stands for another method: trainings that were finished are then not used again.
    const VERSION: u32 = 1;

    /// Returns the settings that it reads: others change nothing.
    fn settings(config: &StudentConfig) -> Value;

    /// Returns the settings that an interrupted training must share with the one that continues it.
    fn identity(config: &StudentConfig) -> Value {
        Self::settings(config)
    }

    /// Returns its epochs and batches.
    fn passes(config: &StudentConfig) -> Passes;

    /// Returns settings for `epochs` epochs with batches of `batch` images and the same networks, to estimate what a training takes.
    fn trial(config: &StudentConfig, epochs: u32, batch: usize) -> StudentConfig;

    /// Returns the number of parameters of all its networks, about.
    fn parameters(config: &StudentConfig, shape: ImageShape) -> usize;

    /// Checks that its networks go with images of this size.
    ///
    /// # Errors
    /// The field that does not go with them.
    fn check_images(_config: &StudentConfig, _shape: ImageShape) -> Result<(), InvalidField> {
        Ok(())
    }

    /// Returns networks that have not learnt yet. Settings, images and labels are checked.
    fn new(lesson: &Lesson<'_>) -> Self;

    /// Makes all steps of an epoch, and returns its [`MEASURES`](Self::MEASURES): as many values, in their order, none of them NaN.
    ///
    /// # Errors
    /// [`StudentError::NotFinite`] and [`StudentError::Device`].
    fn run_epoch(&mut self, lesson: &Lesson<'_>, epoch: &mut Epoch) -> Result<Vec<Option<f64>>, StudentError>;

    /// Returns the classifier with the parameters of the last step, without gradients.
    fn last(&self) -> Self::Network;

    /// Returns the classifier with the average of its parameters, without gradients: the student.
    fn averaged(&self) -> Self::Network;

    /// Returns everything that an epoch depends on, as records.
    ///
    /// # Errors
    /// If Burn cannot write them.
    fn to_records(&self) -> Result<Vec<Vec<u8>>, ParameterError>;

    /// Returns the same training with the state of other records.
    ///
    /// # Errors
    /// If they are not those of these networks.
    fn with_records(self, records: Vec<Vec<u8>>) -> Result<Self, CheckpointError>;

    /// Returns generated images, if it generates any.
    ///
    /// # Errors
    /// If the device failed.
    fn samples(&self, _lesson: &Lesson<'_>) -> Result<Option<Samples>, DeviceError> {
        Ok(None)
    }
}

/// Epochs and batches of a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passes {
    /// Epochs.
    pub epochs: u32,
    /// Images of an epoch; 0: as many as the pool has.
    pub epoch_images: usize,
    /// Images a step.
    pub batch: usize,
    /// Epochs between two evaluations on the test images; the last epoch is always evaluated.
    pub evaluate_every: u32,
}

impl Passes {
    /// Returns the images of an epoch with a pool of `pool` images: one batch at least.
    #[must_use]
    pub fn images(&self, pool: usize) -> usize {
        let images = if self.epoch_images == 0 { pool } else { self.epoch_images };
        images.max(self.batch)
    }

    /// Returns the steps of an epoch with a pool of `pool` images: one at least.
    ///
    /// # Panics
    /// When a batch has no image.
    #[must_use]
    pub fn steps(&self, pool: usize) -> usize {
        self.images(pool) / self.batch
    }
}

/// One epoch of a training.
#[derive(Debug)]
pub struct Epoch {
    /// Its number, from 1.
    pub number: u32,
    /// Whether it is evaluated on the test images.
    pub is_evaluated: bool,
    /// Its own randomness.
    pub stream: Stream,
}

/// A method by its name.
#[derive(Clone, Copy)]
pub struct StudentMethod {
    name: &'static str,
    title: &'static str,
    measures: &'static [&'static str],
    version: u32,
    settings: fn(&StudentConfig) -> Value,
    passes: fn(&StudentConfig) -> Passes,
    trial: fn(&StudentConfig, u32, usize) -> StudentConfig,
    parameters: fn(&StudentConfig, ImageShape) -> usize,
    check_images: fn(&StudentConfig, ImageShape) -> Result<(), InvalidField>,
    train: TrainFunction,
}

/// The function that sees every epoch of a training.
pub type OnEpoch<'a> = dyn FnMut(&EpochReport<'_>) -> Result<(), ReportError> + 'a;

type TrainFunction =
    fn(&str, &Lesson<'_>, Option<Checkpoint>, &mut OnEpoch<'_>) -> Result<StudentOutcome, StudentError>;

static METHODS: Registry<StudentMethod> =
    Registry::new(&[StudentMethod::GAN, StudentMethod::PSEUDO_LABELS, StudentMethod::CONV_GAN]);

impl StudentMethod {
    /// The paper's for MNIST: a semi-supervised GAN of dense layers.
    pub const GAN: Self = Self::of::<Gan<Dense>>("gan");
    /// The paper's for SVHN: a semi-supervised GAN of convolutions.
    pub const CONV_GAN: Self = Self::of::<Gan<Convolutional>>("conv-gan");
    /// A convolutional network on its own pseudo-labels.
    pub const PSEUDO_LABELS: Self = Self::of::<PseudoLabels>("pseudo-labels");

    const fn of<M: Method>(name: &'static str) -> Self {
        Self {
            name,
            title: M::TITLE,
            measures: M::MEASURES,
            version: M::VERSION,
            settings: M::settings,
            passes: M::passes,
            trial: M::trial,
            parameters: M::parameters,
            check_images: M::check_images,
            train: train::<M>,
        }
    }

    /// The name of no method: in a row of a table, that it has none of its own.
    pub const NONE: &str = "default";

    /// Gives a method a name, under which configs of this process find it.
    ///
    /// # Errors
    /// [`RegistrationError`].
    pub fn register<M: Method>(name: &'static str) -> Result<Self, RegistrationError> {
        if name == Self::NONE {
            return Err(RegistrationError::Taken { name: name.to_owned() });
        }
        METHODS.add(Self::of::<M>(name))
    }

    /// Returns all methods, the built-in ones first.
    #[must_use]
    pub fn all() -> Vec<Self> {
        METHODS.all()
    }

    /// Returns the method of a name.
    ///
    /// # Errors
    /// A message with the names that there are.
    pub fn find(name: &str) -> Result<Self, String> {
        METHODS.find(name)
    }

    /// Returns its name in a config.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.name
    }

    /// Returns its name in tables.
    #[must_use]
    pub const fn title(self) -> &'static str {
        self.title
    }

    /// Returns the names of what an epoch measures beside accuracies.
    #[must_use]
    pub const fn measures(self) -> &'static [&'static str] {
        self.measures
    }

    /// Returns the version of the method behind the name.
    #[must_use]
    pub const fn version(self) -> u32 {
        self.version
    }

    /// Returns the settings that it reads.
    #[must_use]
    pub fn settings(self, config: &StudentConfig) -> Value {
        (self.settings)(config)
    }

    /// Returns its epochs and batches.
    #[must_use]
    pub fn passes(self, config: &StudentConfig) -> Passes {
        (self.passes)(config)
    }

    /// Returns settings for `epochs` epochs with batches of `batch` images and the same networks, to estimate what a training takes.
    #[must_use]
    pub fn trial(self, config: &StudentConfig, epochs: u32, batch: usize) -> StudentConfig {
        (self.trial)(config, epochs, batch)
    }

    /// Returns the number of parameters of all its networks, about.
    #[must_use]
    pub fn parameters(self, config: &StudentConfig, shape: ImageShape) -> usize {
        (self.parameters)(config, shape)
    }

    /// Checks that its networks go with images of this size.
    ///
    /// # Errors
    /// The field that does not go with them.
    pub fn check_images(self, config: &StudentConfig, shape: ImageShape) -> Result<(), InvalidField> {
        (self.check_images)(config, shape)
    }

    /// Trains a student.
    ///
    /// With `resume` the training goes on after the checkpoint's last epoch and ends with the same bits as without the interruption.
    /// `on_epoch` sees every epoch and may save a checkpoint; its error ends the training. On the processor all work is done on the
    /// calling thread, if that is in a pool of one thread.
    ///
    /// # Errors
    /// [`StudentError`]: bad settings, data that do not fit, a checkpoint of another training, a loss that is not finite, or the
    /// error of `on_epoch`.
    pub fn train(
        self,
        lesson: &Lesson<'_>,
        resume: Option<Checkpoint>,
        on_epoch: &mut OnEpoch<'_>,
    ) -> Result<StudentOutcome, StudentError> {
        (self.train)(self.name, lesson, resume, on_epoch)
    }
}

impl Named for StudentMethod {
    fn name(self) -> &'static str {
        self.name
    }
}

impl Default for StudentMethod {
    fn default() -> Self {
        Self::GAN
    }
}

by_name!(StudentMethod, METHODS);
