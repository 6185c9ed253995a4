//! The training of one student by any method.

#[cfg(test)]
mod tests;

use std::time::Instant;

use burn::tensor::Device;
use sha2::{Digest, Sha256};
use speed_data::{ImageShape, Split};
use speed_nn::device::DeviceError;
use speed_nn::training::{AnyClassifier, accuracy_of, greatest, logits, margins, predict};

use crate::{BoxedClassifier, Checkpoint, CheckpointError, Epoch, EpochMetrics, Images, Lesson, Samples};
use crate::{InvalidData, ReportError, StudentConfig, StudentError, StudentMethod, Training};

/// An epoch that was just finished.
pub struct EpochReport<'a> {
    metrics: &'a EpochMetrics,
    checkpoint: &'a dyn Fn() -> Result<Checkpoint, CheckpointError>,
}

impl EpochReport<'_> {
    /// Returns the losses and accuracies of the epoch.
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

speed_core::debug_as!(EpochReport<'_>, this => "EpochReport {{ metrics: {:?}, .. }}", this.metrics);

/// The function that is called after every epoch of a training.
pub type OnEpoch<'a> = dyn FnMut(&EpochReport<'_>) -> Result<(), ReportError> + 'a;

/// A trained student with its metrics.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StudentOutcome {
    /// Metrics of every epoch.
    pub metrics: Vec<EpochMetrics>,
    /// Accuracy on the test images, with averaged parameters: the student's accuracy. `None` without test images.
    pub accuracy: Option<f64>,
    /// Accuracy on the test images, with the parameters of the last step.
    pub accuracy_raw: Option<f64>,
    /// The class that the averaged parameters give to each test image, as counted in `accuracy`; empty without test images.
    pub predictions: Vec<u8>,
    /// With two classes: by how much the logit of the second exceeds that of the first, for each test image, so that images
    /// can be ranked; empty otherwise.
    pub margins: Vec<f64>,
    /// Generated images, if the method generates images.
    pub samples: Option<Samples>,
    /// The student, with averaged parameters.
    pub student: Student,
}

/// A trained student.
#[derive(Clone)]
pub struct Student {
    network: BoxedClassifier,
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

    /// Returns its network.
    pub fn network(&self) -> &dyn AnyClassifier {
        self.network.as_ref()
    }
}

speed_core::debug_as!(Student, _this => "Student {{ .. }}");

impl StudentMethod {
    /// Returns a classifier of this method with `parameters` parameters of arbitrary values, so that those of a file can
    /// replace them.
    ///
    /// # Errors
    /// If a setting is impossible, or the network does not exist for this size of images and number of classes, or has more
    /// parameters.
    pub fn network(
        self,
        config: &StudentConfig,
        shape: ImageShape,
        classes: usize,
        parameters: usize,
        device: &Device,
    ) -> Result<BoxedClassifier, StudentError> {
        config.check().map_err(StudentError::Config)?;
        if !(1..=256).contains(&classes) || shape.pixels() == 0 {
            return Err(StudentError::Data(InvalidData(format!(
                "expected images with pixels and 1 to 256 classes, found images of {shape} and {classes} classes"
            ))));
        }
        self.check_images(config, shape).map_err(StudentError::Config)?;
        let least = self.least_parameters(config, shape, classes);
        if parameters < least {
            let message = format!("expected at least {least} parameters of the network, found {parameters}");
            return Err(StudentError::Data(InvalidData(message)));
        }
        Ok(self.classifier(config, shape, classes, device))
    }

    /// Trains a student.
    ///
    /// With `resume`, the training continues after the checkpoint's last epoch and ends with the same bits as without the interruption.
    /// `on_epoch` is called after every epoch and may save a checkpoint; its error ends the training. On the CPU, all work runs on the
    /// calling thread if that thread is in a pool of one thread.
    ///
    /// # Errors
    /// [`StudentError`]: invalid settings, images and labels that do not fit together, a checkpoint of another training, a loss that is
    /// not finite, or the error of `on_epoch`.
    pub fn train(
        self,
        lesson: &Lesson<'_>,
        resume: Option<Checkpoint>,
        on_epoch: &mut OnEpoch<'_>,
    ) -> Result<StudentOutcome, StudentError> {
        lesson.config.check().map_err(StudentError::Config)?;
        lesson.check().map_err(StudentError::Data)?;
        lesson.config.prior.check_classes(lesson.classes()).map_err(StudentError::Config)?;
        let passes = self.passes(lesson.config);
        self.check_images(lesson.config, lesson.pool.shape()).map_err(StudentError::Config)?;
        let (training, identity) = (self.start(lesson), identity(self, lesson));
        let mut session = Session { method: self, training, metrics: Vec::new(), identity };
        if let Some(checkpoint) = resume {
            session = session.resumed(checkpoint, passes.epochs).map_err(StudentError::Checkpoint)?;
        }
        let done = session.metrics.last().map_or(0, |metrics| metrics.epoch);
        for epoch in done + 1..=passes.epochs {
            let start = Instant::now();
            let is_evaluated = epoch.is_multiple_of(passes.evaluate_every) || epoch == passes.epochs;
            let stream = lesson.streams.stream("epoch", u64::from(epoch));
            let measures = session.training.run_epoch(lesson, &mut Epoch { number: epoch, is_evaluated, stream })?;
            assert_eq!(measures.len(), self.measures().len(), "number of measures of the method {self:?}");
            let [accuracy_raw, accuracy_average] = match is_evaluated {
                true => {
                    let networks = [session.training.last(), session.training.averaged()];
                    let [last, averaged] = networks.map(|network| lesson.accuracy(network.as_ref()));
                    [last?, averaged?]
                }
                false => [None; 2],
            };
            let seconds = start.elapsed().as_secs_f64();
            let metrics = EpochMetrics { epoch, measures, accuracy_raw, accuracy_average, seconds };
            session.metrics.push(metrics.clone());
            let report = EpochReport { metrics: &metrics, checkpoint: &|| session.checkpoint() };
            on_epoch(&report).map_err(StudentError::Report)?;
        }
        session.into_outcome(lesson)
    }
}

/// Returns a hash that identifies a training: its method, settings, sizes, labels with their doubts, and random streams.
fn identity(method: StudentMethod, lesson: &Lesson<'_>) -> [u8; 32] {
    let settings = method.identity(lesson.config);
    let seed: [u8; 32] = rand::RngExt::random(&mut lesson.streams.stream("identity", 0));
    let sizes = (lesson.pool.len(), lesson.pool.shape(), lesson.classes());
    let method = (method.name(), method.version());
    let doubts = lesson.doubts.map_or_else(String::new, |doubts| format!(" {doubts:?}"));
    Sha256::digest(format!("{method:?} {settings} {sizes:?} {:?} {seed:?}{doubts}", lesson.labelled)).into()
}

struct Session {
    method: StudentMethod,
    training: Box<dyn Training>,
    metrics: Vec<EpochMetrics>,
    identity: [u8; 32],
}

impl Session {
    fn checkpoint(&self) -> Result<Checkpoint, CheckpointError> {
        let records = self.training.to_records()?;
        Ok(Checkpoint { identity: self.identity, metrics: self.metrics.clone(), records })
    }

    /// Returns the training at the state of a checkpoint. `asked` is the number of epochs of the training.
    fn resumed(self, checkpoint: Checkpoint, asked: u32) -> Result<Self, CheckpointError> {
        if checkpoint.identity != self.identity {
            return Err(CheckpointError::Other);
        }
        let found = checkpoint.epoch();
        if found > asked {
            return Err(CheckpointError::Epochs { found, asked });
        }
        let Checkpoint { metrics, records, .. } = checkpoint;
        let measures = self.method.measures().len();
        if metrics.iter().any(|metrics| metrics.measures.len() != measures) {
            return Err(CheckpointError::Damaged);
        }
        Ok(Self { training: self.training.with_records(records)?, metrics, ..self })
    }

    fn into_outcome(self, lesson: &Lesson<'_>) -> Result<StudentOutcome, StudentError> {
        let student = Student { network: self.training.averaged(), device: lesson.device.clone() };
        let ranked = |test: &Split| logits(student.network(), test, &all(test), lesson.device);
        let (logits, classes) = lesson.test.map_or(Ok((Vec::new(), lesson.classes())), ranked)?;
        let predictions: Vec<u8> = logits.chunks_exact(classes).map(greatest).collect();
        Ok(StudentOutcome {
            accuracy: lesson.test.map(|test| accuracy_of(&predictions, test, &all(test))),
            accuracy_raw: lesson.accuracy(self.training.last().as_ref())?,
            margins: margins(&logits, classes),
            predictions,
            samples: self.training.samples(lesson)?,
            student,
            metrics: self.metrics,
        })
    }
}

fn all(images: &Split) -> Vec<usize> {
    (0..images.len()).collect()
}
