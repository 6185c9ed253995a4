//! Everything that a training changes, and its step.

use sha2::{Digest, Sha256};
use speed_nn::adam::{Adam, Moments};
use speed_nn::average::Average;
use speed_nn::cross_entropy::{cross_entropy, softmax};
use speed_nn::matrix::Matrix;
use speed_random::{Stream, Streams};

use super::batches::Batch;
use super::network::{Classifier, Trace};
use super::{Augmentation, PseudoLabelsConfig, PseudoLabelsMetrics};
use crate::checkpoint::{Checkpoint, CheckpointError};
use crate::{Images, InvalidData};

/// Images that are classified at a time.
const CLASSIFIED: usize = 100;

/// The network in training.
#[derive(Debug)]
pub(super) struct State {
    pub(super) network: Classifier,
    moments: Vec<Moments>,
    average: Average,
    steps: u64,
    pub(super) metrics: Vec<PseudoLabelsMetrics>,
}

/// Memory that steps share; holds nothing that outlives a step.
#[derive(Debug, Default)]
pub(super) struct Workspace {
    pub(super) batch: Batch,
    trace: Trace,
}

impl State {
    /// Returns a new network.
    ///
    /// # Errors
    /// [`InvalidData::SmallImages`].
    pub(super) fn new(
        config: &PseudoLabelsConfig,
        pool: Images<'_>,
        classes: usize,
        streams: &Streams,
    ) -> Result<Self, InvalidData> {
        let shape = pool.shape();
        let network = Classifier::new(config, shape, classes, &mut streams.stream("weights", 0)).ok_or(
            InvalidData::SmallImages { shape, convolutions: config.convolutions.len(), kernel: config.kernel },
        )?;
        let lengths: Vec<usize> = network.parameters().iter().map(|array| array.len()).collect();
        Ok(Self {
            moments: lengths.iter().map(|&length| Moments::zeros(length)).collect(),
            average: Average::new(config.average_rate, lengths),
            steps: 0,
            metrics: Vec::new(),
            network,
        })
    }

    /// Returns the student, and the teacher of the next epoch: the network with the average of its parameters.
    pub(super) fn averaged(&self) -> Classifier {
        self.network.with_parameters(&self.average.corrected())
    }

    /// Returns one step on the batch in `workspace`, at the share `done` of all steps. Returns the losses of labelled and
    /// pseudo-labelled images before the step.
    pub(super) fn step(
        &mut self,
        config: &PseudoLabelsConfig,
        done: f64,
        workspace: &mut Workspace,
        stream: &mut Stream,
    ) -> [f64; 2] {
        let Workspace { batch: Batch { pixels, targets, weights, labelled }, trace } = workspace;
        self.network.forward(pixels, weights.len(), trace, Some(stream));
        let logits = &mut trace.logits;
        let ends = [*labelled, weights.len()];
        let losses = cross_entropy(&logits.output, targets, weights, ends, &mut logits.gradient);
        self.network.backward(pixels, trace);

        let update = Adam::new(config.adam(done), self.steps).begin_step();
        let parameters = self.network.parameters_mut().into_iter().zip(&mut self.moments);
        for ((parameters, moments), gradient) in parameters.zip(trace.gradients()) {
            update.update(parameters, gradient, moments);
        }
        self.steps += 1;
        self.average.update(1, &self.network.parameters());
        losses
    }

    /// Returns the state after a whole epoch.
    pub(super) fn to_checkpoint(&self, identity: [u8; 32]) -> Checkpoint<PseudoLabelsMetrics> {
        let moments = self.moments.iter().flat_map(Moments::arrays);
        let arrays = self.network.parameters().into_iter().chain(moments).chain(self.average.arrays());
        Checkpoint {
            identity,
            metrics: self.metrics.clone(),
            steps: self.steps,
            arrays: arrays.map(<[f32]>::to_vec).collect(),
        }
    }

    /// Takes over the state of a checkpoint of the same training.
    ///
    /// # Errors
    /// [`CheckpointError::Other`] for one of another training, [`CheckpointError::Damaged`] when its arrays are not
    /// those of this network. The state is then of no further use.
    pub(super) fn restore(
        &mut self,
        identity: [u8; 32],
        checkpoint: Checkpoint<PseudoLabelsMetrics>,
    ) -> Result<(), CheckpointError> {
        if checkpoint.identity != identity {
            return Err(CheckpointError::Other);
        }
        let mut arrays = checkpoint.arrays.iter();
        let mut read = |to: &mut [f32]| -> Result<(), CheckpointError> {
            let from = arrays.next().filter(|from| from.len() == to.len()).ok_or(CheckpointError::Damaged)?;
            to.copy_from_slice(from);
            Ok(())
        };
        self.network.parameters_mut().into_iter().try_for_each(&mut read)?;
        self.moments.iter_mut().flat_map(Moments::arrays_mut).try_for_each(&mut read)?;
        self.average.restore(checkpoint.steps).try_for_each(&mut read)?;
        if arrays.next().is_some() {
            return Err(CheckpointError::Damaged);
        }
        self.steps = checkpoint.steps;
        self.metrics = checkpoint.metrics;
        Ok(())
    }
}

/// Returns the identity of a training: settings, sizes, labels, and the random streams. The number of epochs is one of
/// the settings, since the learning rate depends on it.
pub(super) fn identity(
    config: &PseudoLabelsConfig,
    pool: Images<'_>,
    classes: usize,
    labelled: &[(usize, u8)],
    streams: &Streams,
) -> [u8; 32] {
    let fingerprint: [u8; 32] = rand::RngExt::random(&mut streams.stream("identity", 0));
    let sizes = (pool.len(), pool.shape(), classes);
    Sha256::digest(format!("{config:?} {sizes:?} {labelled:?} {fingerprint:?}")).into()
}

/// Returns the probabilities `[images, classes]` that a network gives to `images`, or to random views of them.
pub(super) fn probabilities(
    network: &Classifier,
    images: Images<'_>,
    mut views: Option<(&Augmentation, &mut Stream)>,
    workspace: &mut Workspace,
) -> Matrix {
    let (shape, pixels) = (images.shape(), &mut workspace.batch.pixels);
    let mut all = Matrix::zeros(images.len(), network.classes());
    for first in (0..images.len()).step_by(CLASSIFIED) {
        let some = first..(first + CLASSIFIED).min(images.len());
        pixels.resize(some.len() * shape.pixels(), 0.0);
        for (image, to) in some.clone().zip(pixels.chunks_exact_mut(shape.pixels())) {
            match &mut views {
                Some((views, stream)) => views.write(images.pixels(image), shape, stream, to),
                None => images.write_channels_last(image, to),
            }
        }
        network.forward(pixels, some.len(), &mut workspace.trace, None);
        let logits = workspace.trace.logits.output.values();
        let place = first * all.columns();
        all.values_mut()[place..place + logits.len()].copy_from_slice(logits);
    }
    softmax(&mut all);
    all
}
