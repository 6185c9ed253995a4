//! The training of one student.

use std::time::Instant;

use burn::store::RecordError;
use burn::tensor::{Device, Tensor, TensorData, activation};
use sha2::{Digest, Sha256};
use speed_data::Split;
use speed_nn::average::Average;
use speed_nn::matrix::Matrix;
use speed_nn::optim::Trained;
use speed_nn::params::number_parameters;
use speed_random::{Stream, Streams};

use super::batches::{Batch, Batches};
use super::network::Classifier;
use super::targets::Lesson;
use super::{PseudoLabelsConfig, PseudoLabelsMetrics};
use crate::checkpoint::{Checkpoint, CheckpointError};
use crate::classifier::{Classify, accuracy, predict, values};
use crate::{Images, InvalidData, StudentError};

/// Images that are labelled at a time.
const TOGETHER: usize = 100;

/// An epoch that was just finished.
#[derive(Debug)]
pub struct PseudoLabelsReport<'a> {
    training: &'a Training<'a>,
    metrics: PseudoLabelsMetrics,
}

impl PseudoLabelsReport<'_> {
    /// Losses, pseudo-labels and accuracies of the epoch.
    #[must_use]
    pub fn metrics(&self) -> &PseudoLabelsMetrics {
        &self.metrics
    }

    /// Returns the training after this epoch; costs a copy of everything (3 MB with the default network).
    ///
    /// # Errors
    /// [`CheckpointError::Damaged`] if Burn cannot write its records.
    pub fn checkpoint(&self) -> Result<Checkpoint<PseudoLabelsMetrics>, CheckpointError> {
        self.training.checkpoint()
    }
}

/// A trained student.
#[derive(Clone, Debug)]
pub struct PseudoLabelsOutcome {
    /// Metrics of every epoch.
    pub metrics: Vec<PseudoLabelsMetrics>,
    /// Accuracy on the test images, with averaged parameters: the student's accuracy.
    pub accuracy: f64,
    /// Accuracy on the test images, with the parameters of the last step.
    pub accuracy_raw: f64,
    /// The student, with averaged parameters.
    pub student: PseudoLabelsStudent,
}

/// A trained student's classifier.
#[derive(Clone, Debug)]
pub struct PseudoLabelsStudent {
    network: Classifier,
    device: Device,
}

impl PseudoLabelsStudent {
    /// Returns the most probable class of every image.
    ///
    /// # Panics
    /// When the images are not of this student's size.
    #[must_use]
    pub fn predict(&self, images: Images<'_>) -> Vec<u8> {
        predict(&self.network, images, &self.device)
    }

    /// Returns Burn's record of its parameters; equal students have equal records.
    ///
    /// # Errors
    /// If Burn cannot write it.
    pub fn to_record(&self) -> Result<Vec<u8>, RecordError> {
        speed_nn::params::to_record(&self.network)
    }
}

/// Trains a student on the images `pool`, the labels `labelled` (index in the pool, label) and nothing else, on `device`.
///
/// The number of classes is that of `test`, whose labels serve for accuracy only. `streams` is this student's own
/// family. With `resume` the training goes on after the checkpoint's last epoch and ends with the same bits as without
/// the interruption. `on_epoch` sees every epoch and may save a checkpoint; its error ends the training. On the processor all work
/// is done on the calling thread, if that is in a pool of one thread.
///
/// # Errors
/// [`StudentError`]: bad settings, data that do not fit, a checkpoint of another training, a loss that is not finite,
/// or the error of `on_epoch`.
#[expect(clippy::too_many_arguments, reason = "a training and the machine for it")]
pub fn train<E>(
    config: &PseudoLabelsConfig,
    pool: Images<'_>,
    labelled: &[(usize, u8)],
    test: &Split,
    streams: &Streams,
    device: &Device,
    resume: Option<Checkpoint<PseudoLabelsMetrics>>,
    on_epoch: &mut dyn FnMut(&PseudoLabelsReport<'_>) -> Result<(), E>,
) -> Result<PseudoLabelsOutcome, StudentError<E>> {
    config.check().map_err(StudentError::Config)?;
    InvalidData::check(config.batch, pool, labelled, test).map_err(StudentError::Data)?;
    let mut training = Training::new(config, pool, labelled, test, streams, device).map_err(StudentError::Data)?;
    if let Some(checkpoint) = resume {
        training = training.resumed(checkpoint).map_err(StudentError::Checkpoint)?;
    }
    for epoch in training.epochs_done() + 1..=config.epochs {
        let start = Instant::now();
        let metrics = training.run_epoch(epoch)?;
        let metrics = PseudoLabelsMetrics { seconds: start.elapsed().as_secs_f64(), ..metrics };
        training.metrics.push(metrics);
        on_epoch(&PseudoLabelsReport { training: &training, metrics }).map_err(StudentError::Report)?;
    }
    Ok(training.into_outcome())
}

/// One student in training.
struct Training<'a> {
    config: &'a PseudoLabelsConfig,
    pool: Images<'a>,
    labelled: &'a [(usize, u8)],
    test: &'a Split,
    streams: &'a Streams,
    device: &'a Device,
    network: Trained<Classifier>,
    average: Average<Classifier>,
    steps: u64,
    metrics: Vec<PseudoLabelsMetrics>,
}

impl<'a> Training<'a> {
    /// # Errors
    /// [`InvalidData::SmallImages`].
    fn new(
        config: &'a PseudoLabelsConfig,
        pool: Images<'a>,
        labelled: &'a [(usize, u8)],
        test: &'a Split,
        streams: &'a Streams,
        device: &'a Device,
    ) -> Result<Self, InvalidData> {
        config.check_images(pool.shape())?;
        let (mut weights, recorded) = (streams.stream("weights", 0), device.clone().autodiff());
        let network = Classifier::new(config, pool.shape(), test.classes(), &mut weights, &recorded)
            .expect("images whose size was checked");
        let network = number_parameters(network);
        Ok(Self {
            average: Average::new(config.average_rate, &network),
            network: Trained::new(network, config.adam()),
            config,
            pool,
            labelled,
            test,
            streams,
            device,
            steps: 0,
            metrics: Vec::new(),
        })
    }

    fn epochs_done(&self) -> u32 {
        self.metrics.last().map_or(0, |metrics| metrics.epoch)
    }

    /// Returns the student, and the teacher of the next epoch: the network with the average of its parameters.
    fn averaged(&self) -> Classifier {
        self.average.corrected(self.network.network())
    }

    /// Labels the pool, does all steps of one epoch, and evaluates. The metrics lack the time.
    fn run_epoch<E>(&mut self, epoch: u32) -> Result<PseudoLabelsMetrics, StudentError<E>> {
        let (config, labelled) = (self.config, self.labelled);
        let mut stream = self.streams.stream("epoch", u64::from(epoch));
        let lesson = if epoch <= config.warmup_epochs {
            Lesson::of_labels(labelled, self.test.classes())
        } else {
            Lesson::of_pool(config, self.probabilities(&mut stream), labelled)
        };

        let steps = self.pool.len() / config.batch;
        let (mut batches, mut batch) = (Batches::new(config, self.pool, labelled, &lesson), Batch::default());
        let mut sums = [0.0; 2];
        for step in 0..steps {
            let done = (f64::from(epoch - 1) + step as f64 / steps as f64) / f64::from(config.epochs);
            batches.next(config.labelled_weight(done), &mut batch, &mut stream);
            let losses = self.step(done, &batch, &mut stream);
            for (sum, loss) in sums.iter_mut().zip(losses) {
                if !loss.is_finite() {
                    return Err(StudentError::NotFinite { network: "classifier", loss, epoch, step: step + 1 });
                }
                *sum += loss;
            }
        }

        let evaluate = epoch.is_multiple_of(config.evaluate_every) || epoch == config.epochs;
        let accuracy_of = |network: Classifier| accuracy(&network, self.test, self.device);
        Ok(PseudoLabelsMetrics {
            epoch,
            labelled_loss: sums[0] / steps as f64,
            unlabelled_loss: sums[1] / steps as f64,
            confident: lesson.confident.len() as f64 / self.pool.len() as f64,
            disputed: lesson.disputed,
            accuracy_raw: evaluate.then(|| accuracy_of(self.network.frozen())),
            accuracy_average: evaluate.then(|| accuracy_of(self.averaged())),
            seconds: 0.0,
        })
    }

    /// Makes one step at the share `done` of all steps. Returns the losses of labelled and pseudo-labelled images before the step.
    fn step(&mut self, done: f64, batch: &Batch, stream: &mut Stream) -> [f64; 2] {
        let images = batch.images(self.pool.shape(), self.device);
        if images.dims()[0] == 0 {
            return [0.0; 2];
        }
        let losses = batch.losses(self.network.network().logits(images, Some(stream)));
        let sums = [batch.labelled, batch.weights.len()];
        let total = losses.clone().sum();
        self.network.step(self.config.rate(done), &total);
        self.average.update(1, self.network.network());
        self.steps += 1;
        let losses: Vec<f64> = values(losses).into_iter().map(f64::from).collect();
        [losses[..sums[0]].iter().sum(), losses[sums[0]..sums[1]].iter().sum()]
    }

    /// Returns the probabilities `[images, classes]` that the averaged network gives to weak views of the pool.
    fn probabilities(&self, stream: &mut Stream) -> Matrix {
        let (network, shape) = (self.averaged(), self.pool.shape());
        let mut all = Vec::with_capacity(self.pool.len() * self.test.classes());
        for first in (0..self.pool.len()).step_by(TOGETHER) {
            let some = first..(first + TOGETHER).min(self.pool.len());
            let mut pixels = vec![0.0; some.len() * shape.pixels()];
            for (image, to) in some.clone().zip(pixels.chunks_exact_mut(shape.pixels())) {
                self.config.weak.write(self.pool.pixels(image), shape, stream, to);
            }
            let data = TensorData::new(pixels, [some.len(), shape.height, shape.width, shape.channels]);
            let logits = network.classify(Tensor::from_data(data, self.device));
            all.extend(values(activation::softmax(logits, 1)));
        }
        Matrix::from_vec(self.pool.len(), self.test.classes(), all)
    }

    /// Returns the training after its last epoch.
    fn checkpoint(&self) -> Result<Checkpoint<PseudoLabelsMetrics>, CheckpointError> {
        let [network, optimizer] = self.network.to_records()?;
        let records = vec![network, optimizer, self.average.to_record()?];
        Ok(Checkpoint { identity: self.identity(), metrics: self.metrics.clone(), steps: self.steps, records })
    }

    /// # Errors
    /// [`CheckpointError::Other`] for a checkpoint of another training, [`CheckpointError::Damaged`] when its records are not
    /// those of this network.
    fn resumed(self, checkpoint: Checkpoint<PseudoLabelsMetrics>) -> Result<Self, CheckpointError> {
        if checkpoint.identity != self.identity() {
            return Err(CheckpointError::Other);
        }
        let Checkpoint { metrics, steps, records, .. } = checkpoint;
        let [network, optimizer, average] = records.try_into().map_err(|_| CheckpointError::Damaged)?;
        Ok(Self {
            network: self.network.with_records(&network, &optimizer)?,
            average: self.average.with_record(steps, &average)?,
            steps,
            metrics,
            ..self
        })
    }

    /// Returns the identity of a training: settings, sizes, labels, and the random streams. The number of epochs is one of
    /// the settings, since the learning rate depends on it.
    fn identity(&self) -> [u8; 32] {
        let fingerprint: [u8; 32] = rand::RngExt::random(&mut self.streams.stream("identity", 0));
        let sizes = (self.pool.len(), self.pool.shape(), self.test.classes());
        Sha256::digest(format!("{:?} {sizes:?} {:?} {fingerprint:?}", self.config, self.labelled)).into()
    }

    fn into_outcome(self) -> PseudoLabelsOutcome {
        let network = self.averaged();
        PseudoLabelsOutcome {
            accuracy: accuracy(&network, self.test, self.device),
            accuracy_raw: accuracy(&self.network.frozen(), self.test, self.device),
            student: PseudoLabelsStudent { network, device: self.device.clone() },
            metrics: self.metrics,
        }
    }
}

impl std::fmt::Debug for Training<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Training").field("epochs", &self.epochs_done()).finish_non_exhaustive()
    }
}
