//! The training of one student by any method.

#[cfg(test)]
mod tests;

use std::time::Instant;

use burn::tensor::Device;
use sha2::{Digest, Sha256};
use speed_data::Split;
use speed_nn::device::DeviceError;
use speed_nn::params::ParameterError;
use speed_nn::training::{AnyClassifier, accuracy, predict};

use crate::method::{Epoch, Method, OnEpoch};
use crate::{Checkpoint, CheckpointError, EpochMetrics, Images, Lesson, Samples, StudentError};

/// An epoch that was just finished.
pub struct EpochReport<'a> {
    metrics: &'a EpochMetrics,
    checkpoint: &'a dyn Fn() -> Result<Checkpoint, CheckpointError>,
}

impl EpochReport<'_> {
    /// Returns the losses and accuracies of the epoch.
    #[must_use]
    pub fn metrics(&self) -> &EpochMetrics {
        self.metrics
    }

    /// Returns the state of the training after this epoch. It is a copy (38 MB with the paper's networks), so call this function only for
    /// checkpoints that you save.
    ///
    /// # Errors
    /// [`CheckpointError::Damaged`] if Burn cannot write the records.
    pub fn checkpoint(&self) -> Result<Checkpoint, CheckpointError> {
        (self.checkpoint)()
    }
}

impl std::fmt::Debug for EpochReport<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EpochReport").field("metrics", &self.metrics).finish_non_exhaustive()
    }
}

/// A trained student with its metrics.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StudentOutcome {
    /// Metrics of every epoch.
    pub metrics: Vec<EpochMetrics>,
    /// Accuracy on the test images, with averaged parameters: the student's accuracy.
    pub accuracy: f64,
    /// Accuracy on the test images, with the parameters of the last step.
    pub accuracy_raw: f64,
    /// Generated images, if the method generates images.
    pub samples: Option<Samples>,
    /// The student, with averaged parameters.
    pub student: Student,
}

/// A trained student.
#[derive(Clone)]
pub struct Student {
    network: Box<dyn AnyClassifier>,
    device: Device,
}

impl Student {
    /// Returns the most likely class of every image; the lowest class on a tie.
    ///
    /// # Errors
    /// If the device failed.
    ///
    /// # Panics
    /// If the images do not have the size of the student's training images.
    pub fn predict(&self, images: Images<'_>) -> Result<Vec<u8>, DeviceError> {
        predict(self.network.as_ref(), images.split(), &all(images.split()), &self.device)
    }

    /// Returns Burn's record of the parameters; equal students have equal records.
    ///
    /// # Errors
    /// If Burn cannot write the record.
    pub fn to_record(&self) -> Result<Vec<u8>, ParameterError> {
        self.network.to_record()
    }
}

impl std::fmt::Debug for Student {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Student").finish_non_exhaustive()
    }
}

/// Trains a student with the method `M`, from the start or from the checkpoint `resume`. `name` is the method's name.
pub(crate) fn train<M: Method>(
    name: &str,
    lesson: &Lesson<'_>,
    resume: Option<Checkpoint>,
    on_epoch: &mut OnEpoch<'_>,
) -> Result<StudentOutcome, StudentError> {
    lesson.config.check().map_err(StudentError::Config)?;
    lesson.check().map_err(StudentError::Data)?;
    let passes = M::passes(lesson.config);
    M::check_images(lesson.config, lesson.pool.shape()).map_err(StudentError::Config)?;
    let mut training = Training { method: M::new(lesson), metrics: Vec::new(), identity: identity::<M>(name, lesson) };
    if let Some(checkpoint) = resume {
        training = training.resumed(checkpoint, passes.epochs).map_err(StudentError::Checkpoint)?;
    }
    for epoch in training.epochs_done() + 1..=passes.epochs {
        let start = Instant::now();
        let is_evaluated = epoch.is_multiple_of(passes.evaluate_every) || epoch == passes.epochs;
        let stream = lesson.streams.stream("epoch", u64::from(epoch));
        let measures = training.method.run_epoch(lesson, &mut Epoch { number: epoch, is_evaluated, stream })?;
        assert_eq!(measures.len(), M::MEASURES.len(), "number of measures of the method {name}");
        let [accuracy_raw, accuracy_average] = match is_evaluated {
            true => training.accuracies(lesson)?.map(Some),
            false => [None; 2],
        };
        let seconds = start.elapsed().as_secs_f64();
        let metrics = EpochMetrics { epoch, measures, accuracy_raw, accuracy_average, seconds };
        training.metrics.push(metrics.clone());
        let report = EpochReport { metrics: &metrics, checkpoint: &|| training.checkpoint() };
        on_epoch(&report).map_err(StudentError::Report)?;
    }
    training.into_outcome(lesson)
}

/// Returns a hash that identifies a training: its method, settings, sizes, labels and random streams.
fn identity<M: Method>(name: &str, lesson: &Lesson<'_>) -> [u8; 32] {
    let settings = M::identity(lesson.config);
    let seed: [u8; 32] = rand::RngExt::random(&mut lesson.streams.stream("identity", 0));
    let sizes = (lesson.pool.len(), lesson.pool.shape(), lesson.classes());
    let method = (name, M::VERSION);
    Sha256::digest(format!("{method:?} {settings} {sizes:?} {:?} {seed:?}", lesson.labelled)).into()
}

/// One student in training.
struct Training<M> {
    method: M,
    metrics: Vec<EpochMetrics>,
    identity: [u8; 32],
}

impl<M: Method> Training<M> {
    fn epochs_done(&self) -> u32 {
        self.metrics.last().map_or(0, |metrics| metrics.epoch)
    }

    /// Returns the accuracies on the test images with the last and with the averaged parameters.
    fn accuracies(&self, lesson: &Lesson<'_>) -> Result<[f64; 2], DeviceError> {
        let of = |network: &M::Network| accuracy(network, lesson.test, &all(lesson.test), lesson.device);
        Ok([of(&self.method.last())?, of(&self.method.averaged())?])
    }

    fn checkpoint(&self) -> Result<Checkpoint, CheckpointError> {
        let records = self.method.to_records()?;
        Ok(Checkpoint { identity: self.identity, metrics: self.metrics.clone(), records })
    }

    /// Returns the training at the state of a checkpoint. `asked` is the number of epochs of the training.
    ///
    /// # Errors
    /// [`CheckpointError::Other`] for a checkpoint of another training, [`CheckpointError::Epochs`] if it has more than `asked`
    /// epochs, [`CheckpointError::Damaged`] if its records do not belong to this method.
    fn resumed(self, checkpoint: Checkpoint, asked: u32) -> Result<Self, CheckpointError> {
        if checkpoint.identity != self.identity {
            return Err(CheckpointError::Other);
        }
        let found = checkpoint.epoch();
        if found > asked {
            return Err(CheckpointError::Epochs { found, asked });
        }
        let Checkpoint { metrics, records, .. } = checkpoint;
        if metrics.iter().any(|metrics| metrics.measures.len() != M::MEASURES.len()) {
            return Err(CheckpointError::Damaged);
        }
        Ok(Self { method: self.method.with_records(records)?, metrics, ..self })
    }

    fn into_outcome(self, lesson: &Lesson<'_>) -> Result<StudentOutcome, StudentError> {
        let [accuracy_raw, accuracy] = self.accuracies(lesson)?;
        Ok(StudentOutcome {
            accuracy,
            accuracy_raw,
            samples: self.method.samples(lesson)?,
            student: Student { network: Box::new(self.method.averaged()), device: lesson.device.clone() },
            metrics: self.metrics,
        })
    }
}

fn all(images: &Split) -> Vec<usize> {
    (0..images.len()).collect()
}
