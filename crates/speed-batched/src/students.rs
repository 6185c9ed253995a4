//! Students of the paper's method, several trained as one.

mod batch;
mod networks;
mod state;
#[cfg(test)]
mod tests;

use std::time::Instant;

use burn::tensor::{Device, Tensor};
use speed_data::Split;
use speed_random::Streams;
use speed_student::training::{AVERAGE_EVERY, EpochLosses, StepDraws, Training};
use speed_student::{Checkpoint, EpochMetrics, Images, StudentConfig, StudentError, StudentOutcome};

use crate::DeviceError;
use crate::network::ArrayKind;
use crate::stack::read;
use batch::Source;
use state::{Sizes, State};

/// One of several students on the same images with the same settings.
#[derive(Debug)]
pub struct Student<'a> {
    /// Its labels: index in the pool, label.
    pub labelled: &'a [(usize, u8)],
    /// Its own family of random streams.
    pub streams: Streams,
    /// The checkpoint at which its training goes on.
    pub resume: Option<Checkpoint>,
}

/// A training of students that ended early. `E` is the error of the caller's own report function.
#[derive(Debug, thiserror::Error)]
pub enum BatchError<E> {
    /// One of them cannot be trained.
    #[error("student {student}: {error}")]
    Student {
        /// Its place in the list.
        student: usize,
        /// The cause.
        error: StudentError<E>,
    },
    /// Two of them resume after different epochs.
    #[error("students {students:?} go on after epochs {epochs:?}, but only students of the same epoch train together")]
    Epochs {
        /// Their places in the list.
        students: [usize; 2],
        /// Epochs that they have done.
        epochs: [u32; 2],
    },
    /// The device failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The caller's report function ended the training.
    #[error("the report function ended the training: {0}")]
    Report(E),
}

/// An epoch that all students of a batch just finished.
#[derive(Debug)]
pub struct EpochReport<'a> {
    trainings: &'a [Training<'a>],
    state: &'a State,
    metrics: &'a [EpochMetrics],
}

impl EpochReport<'_> {
    /// Losses and accuracies, one entry a student; the time is that of the whole batch.
    #[must_use]
    pub fn metrics(&self) -> &[EpochMetrics] {
        self.metrics
    }

    /// Returns the trainings after this epoch, one checkpoint a student. They are read from the device, so take them as often as
    /// you would save them.
    ///
    /// # Errors
    /// [`DeviceError::Failed`].
    pub fn checkpoints(&self) -> Result<Vec<Checkpoint>, DeviceError> {
        let (steps, arrays) = (self.state.steps(), self.state.read()?);
        Ok(self.trainings.iter().zip(arrays).map(|(training, arrays)| training.checkpoint_of(steps, arrays)).collect())
    }
}

/// Trains students on the images `pool`, each on its own labels, all on `device` as one computation.
///
/// Each is the training of [`speed_student::train`] with the same arguments, up to the rounding of `f32`. `on_epoch` sees
/// every epoch of all of them together. With checkpoints, all of the same epoch, the trainings go on after it; on the same
/// device the same batch of students ends with the same bits as without the interruption.
///
/// # Errors
/// [`BatchError`]; nothing is trained when one student's settings or data do not fit.
///
/// # Panics
/// When `device` follows gradients (autodiff) already.
pub fn train_students<E>(
    config: &StudentConfig,
    pool: &Split,
    students: Vec<Student<'_>>,
    test: &Split,
    device: &Device,
    on_epoch: &mut dyn FnMut(&EpochReport<'_>) -> Result<(), E>,
) -> Result<Vec<StudentOutcome>, BatchError<E>> {
    assert!(!device.is_autodiff(), "a device without autodiff");
    let mut trainings = Vec::with_capacity(students.len());
    for (student, Student { labelled, streams, resume }) in students.into_iter().enumerate() {
        let training = Training::start(config, Images::of(pool), labelled, test, &streams, resume);
        trainings.push(training.map_err(|error| BatchError::Student { student, error })?);
    }
    let Some(first) = trainings.first() else { return Ok(Vec::new()) };
    let done = first.epochs_done();
    if let Some(other) = trainings.iter().position(|training| training.epochs_done() != done) {
        return Err(BatchError::Epochs { students: [0, other], epochs: [done, trainings[other].epochs_done()] });
    }
    if done == config.epochs {
        return Ok(trainings.into_iter().map(Training::into_outcome).collect());
    }

    let sizes = sizes(config, pool.shape().pixels(), test.classes());
    let source = Source::new(pool, &trainings, device);
    let mut state = State::load(&trainings, &sizes, device);
    for epoch in done + 1..=config.epochs {
        let start = Instant::now();
        let losses = run_epoch(&source, &trainings, epoch, &mut state)?;
        if trainings[0].evaluates(epoch) {
            load(&mut trainings, &state)?;
        }
        let ended = trainings.iter_mut().zip(&losses).map(|(training, losses)| training.end_epoch(losses, start));
        let metrics: Vec<EpochMetrics> = ended.collect();
        on_epoch(&EpochReport { trainings: &trainings, state: &state, metrics: &metrics })
            .map_err(BatchError::Report)?;
    }
    Ok(trainings.into_iter().map(Training::into_outcome).collect())
}

/// Makes all steps of one epoch. Losses are read once at its end, so that the device never waits for the processor.
fn run_epoch<E>(
    source: &Source,
    trainings: &[Training<'_>],
    epoch: u32,
    state: &mut State,
) -> Result<Vec<EpochLosses>, BatchError<E>> {
    let steps = trainings[0].steps_an_epoch();
    let mut draws: Vec<_> = trainings.iter().map(|training| training.draw_epoch(epoch)).collect();
    let (mut losses, mut steps_since_average) = (Vec::with_capacity(2 * steps), 0);
    for step in 0..steps {
        let draws: Vec<StepDraws> = draws.iter_mut().filter_map(Iterator::next).collect();
        losses.push(state.discriminator_step(source.discriminator(&draws), source.labels(&draws)));
        steps_since_average += 1;
        if steps_since_average == AVERAGE_EVERY || step + 1 == steps {
            state.update_averages(steps_since_average);
            steps_since_average = 0;
        }
        losses.push(state.generator_step(source.generator(&draws)));
    }
    let losses = read(&Tensor::cat(losses, 2))?;
    let mut sums = Vec::with_capacity(trainings.len());
    for (student, losses) in losses.chunks_exact(2 * steps).enumerate() {
        let mut sum = EpochLosses::of(epoch);
        for pair in losses.chunks_exact(2) {
            let added = sum.add_discriminator(pair[0].into()).and_then(|()| sum.add_generator(pair[1].into()));
            added.map_err(|error| BatchError::Student { student, error })?;
        }
        sums.push(sum);
    }
    Ok(sums)
}

/// Brings the trainings up to what the device holds.
fn load(trainings: &mut [Training<'_>], state: &State) -> Result<(), DeviceError> {
    for (training, arrays) in trainings.iter_mut().zip(state.read()?) {
        training.load(state.steps(), &arrays).map_err(DeviceError::failed)?;
    }
    Ok(())
}

/// Returns the arrays of both networks in the order of [`Training::arrays`].
fn sizes(config: &StudentConfig, pixels: usize, classes: usize) -> Sizes {
    let weight_norm = |[outputs, inputs]: [usize; 2], trained_scale: bool| {
        let scale = ArrayKind { shape: [outputs, 1], trained: trained_scale };
        [ArrayKind::trained([outputs, inputs]), ArrayKind::trained([outputs, 1]), scale]
    };
    let layers = |first: usize, hidden: &[usize], last: usize| -> Vec<[usize; 2]> {
        let units: Vec<usize> = std::iter::once(first).chain(hidden.iter().copied()).chain([last]).collect();
        units.windows(2).map(|pair| [pair[1], pair[0]]).collect()
    };
    let discriminator = layers(pixels, &config.discriminator, classes);
    let generator = layers(config.latent, &config.generator, pixels);
    let last = config.discriminator.len();
    let (hidden, images) = generator.split_at(config.generator.len());
    Sizes {
        discriminator: discriminator.iter().enumerate().flat_map(|(i, &size)| weight_norm(size, i == last)).collect(),
        generator: (hidden.iter())
            .flat_map(|&[outputs, inputs]| [[outputs, inputs], [outputs, 1]].map(ArrayKind::trained))
            .chain(weight_norm(images[0], true))
            .collect(),
        average_rate: config.average_rate,
        unlabelled_weight: config.unlabelled_weight,
    }
}
