//! The training of one student.

use std::time::Instant;

use burn::store::RecordError;
use burn::tensor::{Device, Tensor};
use sha2::{Digest, Sha256};
use speed_data::{ImageShape, Split};
use speed_nn::average::Average;
use speed_nn::init;
use speed_nn::noise::NormalPool;
use speed_nn::optim::{Adam, Epsilon, Trained};
use speed_nn::params::number_parameters;
use speed_random::{Stream, Streams};

use super::discriminator::{Discriminator, Noise};
use super::generator::Generator;
use super::loss::{discriminator_loss, feature_matching_loss};
use super::order::Order;
use crate::checkpoint::{Checkpoint, CheckpointError};
use crate::classifier::{Classify, accuracy, predict, values};
use crate::{EpochMetrics, Images, InvalidData, Samples, StudentConfig, StudentError};

/// Rate of the reference's parameter average.
const REFERENCE_RATE: f64 = 1e-4;
/// Normal values drawn for the noise layers: 16 MB, three times what a step uses.
const NOISE_POOL: usize = 1 << 22;
/// Steps between two updates of the parameter averages, whose rate is compounded accordingly.
const AVERAGE_EVERY: u32 = 10;
/// Generated images in the outcome.
pub(super) const SAMPLES: usize = 100;

/// An epoch that was just finished.
#[derive(Debug)]
pub struct EpochReport<'a> {
    training: &'a Training<'a>,
    metrics: EpochMetrics,
}

impl EpochReport<'_> {
    /// Losses and accuracies of the epoch.
    #[must_use]
    pub fn metrics(&self) -> &EpochMetrics {
        &self.metrics
    }

    /// Returns the training after this epoch; costs a copy of everything (38 MB with the paper's networks), so take one as
    /// often as you would save it.
    ///
    /// # Errors
    /// [`CheckpointError::Record`] if Burn cannot write its records.
    pub fn checkpoint(&self) -> Result<Checkpoint, CheckpointError> {
        self.training.checkpoint()
    }
}

/// A trained student.
#[derive(Clone, Debug)]
pub struct StudentOutcome {
    /// Metrics of every epoch.
    pub metrics: Vec<EpochMetrics>,
    /// Accuracy on the test images, with averaged parameters: the student's accuracy.
    pub accuracy: f64,
    /// Accuracy on the test images, with the parameters of the last step.
    pub accuracy_raw: f64,
    /// Generated images.
    pub samples: Samples,
    /// The student, with averaged parameters.
    pub student: Gan,
}

/// A trained student's classifier: the discriminator.
#[derive(Clone, Debug)]
pub struct Gan {
    discriminator: Discriminator,
    device: Device,
}

impl Gan {
    /// Returns the most likely class of every image, without noise.
    ///
    /// # Panics
    /// When the images have not as many pixels as those that this student was made for.
    #[must_use]
    pub fn predict(&self, images: Images<'_>) -> Vec<u8> {
        predict(&self.discriminator, images, &self.device)
    }

    /// Returns Burn's record of its parameters; equal students have equal records.
    ///
    /// # Errors
    /// If Burn cannot write it.
    pub fn to_record(&self) -> Result<Vec<u8>, RecordError> {
        speed_nn::params::to_record(&self.discriminator)
    }
}

impl Classify for Discriminator {
    fn classify(&self, images: Tensor<4>) -> Tensor<2> {
        self.logits(images.flatten(1, 3), None)
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
    config: &StudentConfig,
    pool: Images<'_>,
    labelled: &[(usize, u8)],
    test: &Split,
    streams: &Streams,
    device: &Device,
    resume: Option<Checkpoint>,
    on_epoch: &mut dyn FnMut(&EpochReport<'_>) -> Result<(), E>,
) -> Result<StudentOutcome, StudentError<E>> {
    config.check().map_err(StudentError::Config)?;
    InvalidData::check(config.batch, pool, labelled, test).map_err(StudentError::Data)?;
    let mut training = Training::new(config, pool, labelled, test, streams, device);
    if let Some(checkpoint) = resume {
        training = training.resumed(checkpoint).map_err(StudentError::Checkpoint)?;
    }
    for epoch in training.epochs_done() + 1..=config.epochs {
        let start = Instant::now();
        let losses = training.run_epoch(epoch)?;
        let metrics = training.end_epoch(epoch, losses, start);
        on_epoch(&EpochReport { training: &training, metrics }).map_err(StudentError::Report)?;
    }
    Ok(training.into_outcome())
}

/// One student in training.
pub(super) struct Training<'a> {
    pub(super) config: &'a StudentConfig,
    pub(super) pool: Images<'a>,
    labelled: &'a [(usize, u8)],
    test: &'a Split,
    streams: &'a Streams,
    device: &'a Device,
    pub(super) noise: NormalPool,
    pub(super) discriminator: Trained<Discriminator>,
    pub(super) generator: Trained<Generator>,
    average: Average<Discriminator>,
    reference_average: Average<Discriminator>,
    /// Steps of each network's optimiser.
    steps: u64,
    metrics: Vec<EpochMetrics>,
}

/// The images of one step: indices into the pool.
pub(super) struct Batch<'a> {
    pub(super) labelled: Vec<usize>,
    pub(super) labels: Vec<u8>,
    /// For the discriminator's step.
    pub(super) unlabelled: &'a [usize],
    /// For the generator's step.
    pub(super) matched: &'a [usize],
}

impl<'a> Training<'a> {
    /// Returns new networks, the discriminator initialised on some images of the pool.
    pub(super) fn new(
        config: &'a StudentConfig,
        pool: Images<'a>,
        labelled: &'a [(usize, u8)],
        test: &'a Split,
        streams: &'a Streams,
        device: &'a Device,
    ) -> Self {
        let (pixels, recorded) = (pool.shape().pixels(), device.clone().autodiff());
        let mut weights = streams.stream("discriminator", 0);
        let discriminator = Discriminator::new(config, pixels, test.classes(), &mut weights, &recorded);
        let generator = Generator::new(config, pixels, &mut streams.stream("generator", 0), &recorded);

        let noise = NormalPool::new(NOISE_POOL, &mut streams.stream("noise pool", 0), device);
        let mut stream = streams.stream("initial images", 0);
        let count = config.initial_images.min(pool.len());
        let indices = rand::seq::index::sample(&mut stream, pool.len(), count).into_vec();
        let images = pool.batch(&indices, device).flatten(1, 3);
        let discriminator = discriminator.initialized_on(images, &mut Noise { pool: &noise, stream: &mut stream });

        let (discriminator, generator) = (number_parameters(discriminator), number_parameters(generator));
        Self {
            average: Average::new(config.average_rate, &discriminator),
            reference_average: Average::new(REFERENCE_RATE, &discriminator),
            discriminator: Trained::new(discriminator, config.adam()),
            generator: Trained::new(generator, config.adam()),
            config,
            pool,
            labelled,
            test,
            streams,
            device,
            noise,
            steps: 0,
            metrics: Vec::new(),
        }
    }

    fn epochs_done(&self) -> u32 {
        self.metrics.last().map_or(0, |metrics| metrics.epoch)
    }

    /// Makes all steps of an epoch, and returns the mean losses of both networks.
    fn run_epoch<E>(&mut self, epoch: u32) -> Result<[f64; 2], StudentError<E>> {
        let (n, steps) = (self.config.batch, self.pool.len() / self.config.batch);
        let mut stream = self.streams.stream("epoch", u64::from(epoch));
        let order = Order::draw(self.pool.len(), self.labelled.len(), &mut stream);
        let (mut sums, mut steps_since_average) = ([0.0; 2], 0);
        for step in 0..steps {
            let places = step * n..(step + 1) * n;
            let (labelled, labels) = order.labels(self.labelled, places.clone());
            let unlabelled = &order.discriminator[places.clone()];
            let batch = Batch { labelled, labels, unlabelled, matched: &order.generator[places] };
            let not_finite = |network, loss| StudentError::NotFinite { network, loss, epoch, step: step + 1 };

            let loss = self.discriminator_step(&batch, &mut stream);
            sums[0] += if loss.is_finite() { loss } else { return Err(not_finite("discriminator", loss)) };
            steps_since_average += 1;
            if steps_since_average == AVERAGE_EVERY || step + 1 == steps {
                self.average.update(steps_since_average, self.discriminator.network());
                self.reference_average.update(steps_since_average, self.discriminator.network());
                steps_since_average = 0;
            }
            let loss = self.generator_step(&batch, &mut stream);
            sums[1] += if loss.is_finite() { loss } else { return Err(not_finite("generator", loss)) };
            self.steps += 1;
        }
        Ok(sums.map(|sum| sum / steps as f64))
    }

    /// Makes one step of the discriminator. Returns the loss before the step.
    pub(super) fn discriminator_step(&mut self, batch: &Batch<'_>, stream: &mut Stream) -> f64 {
        let loss = self.discriminator_loss(self.discriminator.network(), batch, stream);
        self.discriminator.step(self.config.learning_rate, &loss);
        scalar(loss)
    }

    /// Makes one step of the generator. Returns the loss before the step.
    pub(super) fn generator_step(&mut self, batch: &Batch<'_>, stream: &mut Stream) -> f64 {
        let loss = self.generator_loss(self.generator.network(), batch, stream);
        self.generator.step(self.config.learning_rate, &loss);
        scalar(loss)
    }

    /// Returns a discriminator's loss on labelled, unlabelled and as many generated images, all in one batch.
    pub(super) fn discriminator_loss(
        &self,
        discriminator: &Discriminator,
        batch: &Batch<'_>,
        stream: &mut Stream,
    ) -> Tensor<1> {
        let generated = self.generator.frozen().forward(self.latent(stream));
        let real = [batch.labelled.as_slice(), batch.unlabelled].concat();
        let images = Tensor::cat(vec![self.pool.batch(&real, self.device).flatten(1, 3), generated], 0);
        let logits = discriminator.logits(images, Some(&mut Noise { pool: &self.noise, stream }));
        discriminator_loss(logits, &batch.labels, self.config.unlabelled_weight)
    }

    /// Returns a generator's loss: how far the features of its images are from those of unlabelled ones.
    pub(super) fn generator_loss(&self, generator: &Generator, batch: &Batch<'_>, stream: &mut Stream) -> Tensor<1> {
        let latent = self.latent(stream);
        let mut noise = Noise { pool: &self.noise, stream };
        let frozen = self.discriminator.frozen();
        let real = self.pool.batch(batch.matched, self.device).flatten(1, 3);
        // A constant for the generator, which no gradient follows.
        let real = Tensor::from_inner(frozen.features(real, Some(&mut noise)));
        feature_matching_loss(real, frozen.features(generator.forward(latent), Some(&mut noise)))
    }

    /// Draws latent vectors, one for each image of a batch.
    pub(super) fn latent(&self, stream: &mut Stream) -> Tensor<2> {
        init::uniform([self.config.batch, self.config.latent], 0.0, 1.0, stream, self.device)
    }

    /// Returns the student: the discriminator with the average of its parameters.
    fn averaged(&self) -> Discriminator {
        self.average.corrected(self.discriminator.network())
    }

    fn end_epoch(
        &mut self,
        epoch: u32,
        [discriminator_loss, generator_loss]: [f64; 2],
        start: Instant,
    ) -> EpochMetrics {
        let evaluate = epoch.is_multiple_of(self.config.evaluate_every) || epoch == self.config.epochs;
        let accuracy_of = |network: &Discriminator| accuracy(network, self.test, self.device);
        let metrics = EpochMetrics {
            epoch,
            discriminator_loss,
            generator_loss,
            accuracy_raw: evaluate.then(|| accuracy_of(&self.discriminator.frozen())),
            accuracy_average: evaluate.then(|| accuracy_of(&self.averaged())),
            // Drawn towards zero, as the reference's is (errata 19).
            accuracy_reference_average: evaluate.then(|| accuracy_of(self.reference_average.from_zero())),
            seconds: start.elapsed().as_secs_f64(),
        };
        self.metrics.push(metrics);
        metrics
    }

    /// Returns the training after its last epoch.
    fn checkpoint(&self) -> Result<Checkpoint, CheckpointError> {
        let networks = [self.discriminator.to_records()?, self.generator.to_records()?];
        let averages = [self.average.to_record()?, self.reference_average.to_record()?];
        let records = networks.into_iter().flatten().chain(averages).collect();
        Ok(Checkpoint { identity: self.identity(), metrics: self.metrics.clone(), steps: self.steps, records })
    }

    /// # Errors
    /// [`CheckpointError::Other`] for a checkpoint of another training, [`CheckpointError::Epochs`] for one of a longer
    /// training, [`CheckpointError::Damaged`] when its records are not those of these networks.
    fn resumed(self, checkpoint: Checkpoint) -> Result<Self, CheckpointError> {
        if checkpoint.identity != self.identity() {
            return Err(CheckpointError::Other);
        }
        let (found, asked) = (checkpoint.epoch(), self.config.epochs);
        if found > asked {
            return Err(CheckpointError::Epochs { found, asked });
        }
        let Checkpoint { metrics, steps, records, .. } = checkpoint;
        let [discriminator, its_optimizer, generator, optimizer, average, reference] =
            records.try_into().map_err(|_| CheckpointError::Damaged)?;
        Ok(Self {
            discriminator: self.discriminator.with_records(&discriminator, &its_optimizer)?,
            generator: self.generator.with_records(&generator, &optimizer)?,
            average: self.average.with_record(steps, &average)?,
            reference_average: self.reference_average.with_record(steps, &reference)?,
            steps,
            metrics,
            ..self
        })
    }

    /// Returns the identity of a training: settings, sizes, labels, and the random streams; not the number of epochs, so that a
    /// training can be made longer.
    fn identity(&self) -> [u8; 32] {
        let settings = StudentConfig { epochs: 0, ..self.config.clone() };
        let fingerprint: [u8; 32] = rand::RngExt::random(&mut self.streams.stream("identity", 0));
        let sizes = (self.pool.len(), self.pool.shape(), self.test.classes());
        Sha256::digest(format!("{settings:?} {sizes:?} {:?} {fingerprint:?}", self.labelled)).into()
    }

    fn into_outcome(self) -> StudentOutcome {
        let mut stream = self.streams.stream("samples", 0);
        let latent = init::uniform([SAMPLES, self.config.latent], 0.0, 1.0, &mut stream, self.device);
        let samples = values(self.generator.frozen().forward(latent));
        let shape: ImageShape = self.pool.shape();
        let discriminator = self.averaged();
        StudentOutcome {
            accuracy: accuracy(&discriminator, self.test, self.device),
            accuracy_raw: accuracy(&self.discriminator.frozen(), self.test, self.device),
            samples: Samples::from_channels_last(&samples, shape),
            student: Gan { discriminator, device: self.device.clone() },
            metrics: self.metrics,
        }
    }
}

impl std::fmt::Debug for Training<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Training").field("epochs", &self.epochs_done()).finish_non_exhaustive()
    }
}

impl StudentConfig {
    /// Returns the optimiser of both networks.
    #[expect(clippy::cast_possible_truncation, reason = "networks compute in f32")]
    fn adam(&self) -> Adam {
        let epsilon = Epsilon::Inside(self.adam_epsilon as f32);
        Adam { beta1: self.beta1 as f32, beta2: self.beta2 as f32, epsilon }
    }
}

/// Returns the value of a loss.
fn scalar(loss: Tensor<1>) -> f64 {
    f64::from(values(loss)[0])
}
