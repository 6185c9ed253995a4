//! A training between its steps: for code that runs the steps of many students at once on another device.
//!
//! A [`Training`] has all of a training but the arithmetic of its steps: initial weights, what is drawn at random, what
//! the parameters are worth, checkpoints. [`train`](crate::train) runs the steps on the processor; other code reads the
//! [`arrays`](Training::arrays), takes the steps of [`draw_epoch`](Training::draw_epoch) in their order with them, and
//! gives the arrays back.

use std::time::Instant;

use speed_data::Split;
use speed_nn::adam::AdamConfig;
use speed_nn::noise::NormalPool;
use speed_random::{Stream, Streams};

use crate::batches::Order;
use crate::checkpoint::{Checkpoint, CheckpointError};
use crate::discriminator::{Depth, Discriminator};
use crate::generator::{GeneratorTrace, draw_latent};
use crate::state::{State, Workspace, identity};
use crate::{EpochMetrics, Images, InvalidData, Samples, StudentConfig, StudentError, StudentOutcome};

pub use crate::generator::NORM_EPSILON;
pub use crate::state::REFERENCE_RATE;

/// Steps between two updates of the parameter averages, whose rate is compounded accordingly.
pub const AVERAGE_EVERY: u32 = 10;

/// Generated images in the outcome.
pub(crate) const SAMPLES: usize = 100;

/// One student's training after some whole epochs.
#[derive(Debug)]
pub struct Training<'a> {
    pub(crate) config: &'a StudentConfig,
    pub(crate) pool: Images<'a>,
    pub(crate) labelled: &'a [(usize, u8)],
    pub(crate) test: &'a Split,
    pub(crate) streams: Streams,
    pub(crate) state: State,
    pub(crate) workspace: Workspace,
    identity: [u8; 32],
}

/// Random draws of one step of the discriminator and of the step of the generator after it.
#[derive(Clone, Debug, PartialEq)]
pub struct StepDraws {
    /// Labelled images of the pool, as many as a batch has.
    pub labelled: Vec<usize>,
    /// Their labels.
    pub labels: Vec<u8>,
    /// Unlabelled images of the pool for the discriminator's step, as many.
    pub unlabelled: Vec<usize>,
    /// Latent vectors and noise of the discriminator's step, over a batch of labelled, unlabelled and generated images.
    pub discriminator: NetworkDraws,
    /// Unlabelled images of the pool for the generator's step.
    pub matched: Vec<usize>,
    /// Latent vectors and noise of the generator's step, over a batch of unlabelled and generated images; noise to the
    /// last hidden layer's input.
    pub generator: NetworkDraws,
}

/// Random draws of both networks in one forward pass.
#[derive(Clone, Debug, PartialEq)]
pub struct NetworkDraws {
    /// The generator's input `[latent, batch]` in row-major order.
    pub latent: Vec<f32>,
    /// For each layer of the discriminator: where its windows of noise start ([`NormalPool::draw_starts`]) for its input
    /// `[inputs, batch]` in row-major order; none where the noise's deviation is 0.
    pub noise: Vec<Vec<usize>>,
}

/// The losses of an epoch, step by step.
#[derive(Clone, Copy, Debug)]
pub struct EpochLosses {
    epoch: u32,
    /// Sum and number of the discriminator's and of the generator's.
    sums: [(f64, usize); 2],
}

impl<'a> Training<'a> {
    /// Returns the training that [`train`](crate::train) starts or, with `resume`, goes on with.
    ///
    /// # Errors
    /// [`StudentError`]: bad settings, data that do not fit, a checkpoint of another training.
    pub fn start<E>(
        config: &'a StudentConfig,
        pool: Images<'a>,
        labelled: &'a [(usize, u8)],
        test: &'a Split,
        streams: &Streams,
        resume: Option<Checkpoint>,
    ) -> Result<Self, StudentError<E>> {
        config.check().map_err(StudentError::Config)?;
        check_data(config.batch, pool, labelled, test).map_err(StudentError::Data)?;
        let identity = identity(config, pool, test.classes(), labelled, streams);
        let mut workspace = Workspace::new(streams);
        let state = State::new(config, pool, test.classes(), streams, &mut workspace);
        let mut training = Self { config, pool, labelled, test, streams: streams.clone(), state, workspace, identity };
        if let Some(checkpoint) = resume {
            training.restore(checkpoint).map_err(StudentError::Checkpoint)?;
        }
        Ok(training)
    }

    /// # Errors
    /// [`CheckpointError::Other`] for a checkpoint of another training, [`CheckpointError::Epochs`] for one of a longer
    /// training, [`CheckpointError::Damaged`] when its arrays are not those of these networks.
    fn restore(&mut self, checkpoint: Checkpoint) -> Result<(), CheckpointError> {
        if checkpoint.identity != self.identity {
            return Err(CheckpointError::Other);
        }
        let (found, asked) = (checkpoint.epoch(), self.config.epochs);
        if found > asked {
            return Err(CheckpointError::Epochs { found, asked });
        }
        self.load(checkpoint.steps, &checkpoint.arrays)?;
        self.state.metrics = checkpoint.metrics;
        Ok(())
    }

    /// Returns the settings.
    #[must_use]
    pub fn config(&self) -> &'a StudentConfig {
        self.config
    }

    /// Returns the number of classes.
    #[must_use]
    pub fn classes(&self) -> usize {
        self.test.classes()
    }

    /// Epochs done.
    #[must_use]
    pub fn epochs_done(&self) -> u32 {
        self.state.metrics.last().map_or(0, |metrics| metrics.epoch)
    }

    /// Steps of an epoch.
    #[must_use]
    pub fn steps_an_epoch(&self) -> usize {
        self.pool.len() / self.config.batch
    }

    /// Steps that each network's optimiser has done.
    #[must_use]
    pub fn steps_done(&self) -> u64 {
        self.state.steps()
    }

    /// Returns the optimiser of both networks.
    #[must_use]
    pub fn adam(&self) -> AdamConfig {
        self.config.adam()
    }

    /// Everything that steps change, each array in row-major order:
    ///
    /// - the discriminator's weights `[outputs, inputs]`, bias and scale, layer by layer;
    /// - the generator's weights and shift of every hidden layer, and weights, bias and scale of its last one;
    /// - Adam's first and second moment of each of these arrays;
    /// - the average of the discriminator's arrays, and the reference's average of them.
    ///
    /// Moments and averages of scales that are not trained, all but that of the logits and that of the generator's images,
    /// are empty.
    #[must_use]
    pub fn arrays(&self) -> Vec<&[f32]> {
        self.state.arrays()
    }

    /// Takes over `arrays` after `steps` steps.
    ///
    /// # Errors
    /// [`CheckpointError::Damaged`] when they are not of the sizes of [`arrays`](Self::arrays). The training is then of no
    /// further use.
    pub fn load(&mut self, steps: u64, arrays: &[Vec<f32>]) -> Result<(), CheckpointError> {
        self.state.load(self.config.adam(), steps, arrays)
    }

    /// Returns the normal values that noise is read from.
    #[must_use]
    pub fn noise(&self) -> &NormalPool {
        &self.workspace.noise
    }

    /// Returns the draws of the steps of epoch `epoch` (from 1), in their order.
    pub fn draw_epoch(&self, epoch: u32) -> impl Iterator<Item = StepDraws> {
        let mut stream = epoch_stream(&self.streams, epoch);
        let order = Order::draw(self.pool.len(), self.labelled.len(), &mut stream);
        let n = self.config.batch;
        (0..self.steps_an_epoch()).map(move |step| {
            let batch = step * n..(step + 1) * n;
            let (labelled, labels) = order.labels(self.labelled, batch.clone());
            StepDraws {
                labelled,
                labels,
                unlabelled: order.discriminator[batch.clone()].to_vec(),
                discriminator: self.draw_networks(Depth::Logits, 3 * n, &mut stream),
                matched: order.generator[batch].to_vec(),
                generator: self.draw_networks(Depth::Features, 2 * n, &mut stream),
            }
        })
    }

    fn draw_networks(&self, depth: Depth, columns: usize, stream: &mut Stream) -> NetworkDraws {
        let mut latent = vec![0.0; self.config.latent * self.config.batch];
        draw_latent(&mut latent, stream);
        let noise = self.state.discriminator.draw_noise(depth, columns, &self.workspace.noise, stream);
        NetworkDraws { latent, noise }
    }

    /// Returns whether an epoch's parameters are judged on the test images.
    #[must_use]
    pub fn evaluates(&self, epoch: u32) -> bool {
        epoch.is_multiple_of(self.config.evaluate_every) || epoch == self.config.epochs
    }

    /// Ends an epoch that began at `start`, with its losses: adds its metrics, for which the arrays must be loaded in
    /// epochs that are [evaluated](Self::evaluates), and returns them.
    pub fn end_epoch(&mut self, losses: &EpochLosses, start: Instant) -> EpochMetrics {
        let epoch = losses.epoch;
        let evaluate = self.evaluates(epoch);
        let accuracy_of = |network: &Discriminator| accuracy(network, self.test);
        let [discriminator_loss, generator_loss] = losses.sums.map(|(sum, steps)| sum / steps as f64);
        let metrics = EpochMetrics {
            epoch,
            discriminator_loss,
            generator_loss,
            accuracy_raw: evaluate.then(|| accuracy_of(&self.state.discriminator)),
            accuracy_average: evaluate.then(|| accuracy_of(&self.state.averaged())),
            accuracy_reference_average: evaluate.then(|| accuracy_of(&self.state.reference_averaged())),
            seconds: start.elapsed().as_secs_f64(),
        };
        self.state.metrics.push(metrics);
        metrics
    }

    /// Returns the training after its last epoch, with the arrays that are loaded.
    #[must_use]
    pub fn checkpoint(&self) -> Checkpoint {
        self.checkpoint_of(self.steps_done(), self.arrays().into_iter().map(<[f32]>::to_vec).collect())
    }

    /// Returns the same with other arrays, in the order of [`arrays`](Self::arrays), after `steps` steps.
    #[must_use]
    pub fn checkpoint_of(&self, steps: u64, arrays: Vec<Vec<f32>>) -> Checkpoint {
        Checkpoint { identity: self.identity, metrics: self.state.metrics.clone(), steps, arrays }
    }

    /// Returns the trained student, with the arrays that are loaded.
    #[must_use]
    pub fn into_outcome(self) -> StudentOutcome {
        let mut trace = GeneratorTrace::default();
        let samples = self.state.generator.forward(SAMPLES, &mut trace, &mut self.streams.stream("samples", 0));
        let discriminator = self.state.averaged();
        StudentOutcome {
            accuracy: accuracy(&discriminator, self.test),
            accuracy_raw: accuracy(&self.state.discriminator, self.test),
            samples: Samples::from_columns(samples, self.pool.shape()),
            discriminator,
            metrics: self.state.metrics,
        }
    }
}

impl EpochLosses {
    /// None yet, of epoch `epoch` (from 1).
    #[must_use]
    pub fn of(epoch: u32) -> Self {
        Self { epoch, sums: [(0.0, 0); 2] }
    }

    /// Returns the discriminator's loss of the next step.
    ///
    /// # Errors
    /// [`StudentError::NotFinite`].
    pub fn add_discriminator<E>(&mut self, loss: f64) -> Result<(), StudentError<E>> {
        self.add(0, "discriminator", loss)
    }

    /// Returns the generator's loss of the same step.
    ///
    /// # Errors
    /// [`StudentError::NotFinite`].
    pub fn add_generator<E>(&mut self, loss: f64) -> Result<(), StudentError<E>> {
        self.add(1, "generator", loss)
    }

    fn add<E>(&mut self, index: usize, network: &'static str, loss: f64) -> Result<(), StudentError<E>> {
        let (sum, steps) = &mut self.sums[index];
        *steps += 1;
        if !loss.is_finite() {
            return Err(StudentError::NotFinite { network, loss, epoch: self.epoch, step: *steps });
        }
        *sum += loss;
        Ok(())
    }
}

/// Returns the random stream of an epoch's steps.
pub(crate) fn epoch_stream(streams: &Streams, epoch: u32) -> Stream {
    streams.stream("epoch", u64::from(epoch))
}

fn accuracy(network: &Discriminator, test: &Split) -> f64 {
    let right = network.predict(Images::of(test)).iter().zip(test.labels()).filter(|(a, b)| a == b).count();
    right as f64 / test.len() as f64
}

/// Checks that pool, labels and test images fit together and the pool has at least one batch.
pub(crate) fn check_data(
    batch: usize,
    pool: Images<'_>,
    labelled: &[(usize, u8)],
    test: &Split,
) -> Result<(), InvalidData> {
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
