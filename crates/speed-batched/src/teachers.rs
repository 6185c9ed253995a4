//! Teachers of the small architecture, several trained as one.

mod network;
#[cfg(test)]
mod tests;

use std::ops::Range;

use burn::tensor::{Device, Tensor, TensorData};
use speed_data::{ImageShape, Split};
use speed_random::Streams;
use speed_teacher::training::{ADAM_BETA1, ADAM_BETA2, ADAM_EPSILON, Training, warmed_up};
use speed_teacher::{Architecture, OptimizerKind, TeacherConfig, TeacherError, TrainedTeacher};

use crate::DeviceError;
use crate::network::{ArrayKind, Network};
use crate::optimizer::{adam_floor_outside, descent};
use crate::stack::read;
use network::{cross_entropy, largest_array, logits};

/// Values of the largest array of a step: 100 MiB, below the 128 MiB that every GPU allows. More teachers than fit train
/// in several batches, one after another.
const MAX_VALUES: usize = 25 << 20;

/// Steps after which losses are read, which makes the processor wait for the device.
const READ_EVERY: usize = 100;

/// A training of teachers that ended early. `E` is the error of the caller's own function.
#[derive(Debug, thiserror::Error)]
pub enum TeachersError<E> {
    /// One of them cannot be trained.
    #[error(transparent)]
    Teacher(#[from] TeacherError),
    /// They are of another architecture.
    #[error("only teachers of the small architecture train together")]
    Architecture,
    /// The device failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The caller's function failed.
    #[error("the report function ended the training: {0}")]
    Caller(E),
}

/// Faults that are not the caller's.
enum Failure {
    Teacher(TeacherError),
    Device(DeviceError),
}

impl From<TeacherError> for Failure {
    fn from(error: TeacherError) -> Self {
        Self::Teacher(error)
    }
}

impl From<DeviceError> for Failure {
    fn from(error: DeviceError) -> Self {
        Self::Device(error)
    }
}

impl<E> From<Failure> for TeachersError<E> {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Teacher(error) => Self::Teacher(error),
            Failure::Device(error) => Self::Device(error),
        }
    }
}

/// Trains the teachers `todo` (indices into `partitions`) on `device`, as many together as memory allows, and hands each to
/// `on_finished`.
///
/// The grouping of teachers depends on all partitions and not on `todo`, so that a teacher has the same bits whichever
/// others were finished before.
///
/// Each is the training of [`speed_teacher::train_ensemble`] with the same arguments, up to the rounding of `f32`.
///
/// # Errors
/// [`TeachersError`]; a loss that is not finite is found up to a hundred steps later.
///
/// # Panics
/// When `device` follows gradients (autodiff) already.
pub fn train_teachers<E>(
    config: &TeacherConfig,
    data: &Split,
    partitions: &[Range<usize>],
    todo: &[usize],
    streams: &Streams,
    device: &Device,
    on_finished: &mut dyn FnMut(TrainedTeacher) -> Result<(), E>,
) -> Result<(), TeachersError<E>> {
    assert!(!device.is_autodiff(), "a device without autodiff");
    if config.architecture != Architecture::Small {
        return Err(TeachersError::Architecture);
    }
    if let Some(&teacher) = todo.iter().find(|&&teacher| teacher >= partitions.len()) {
        return Err(TeacherError::NoSuchTeacher { teacher, teachers: partitions.len() }.into());
    }
    let start = |index: usize| {
        let family = streams.child("teacher", index as u64);
        Training::start(index, config, data, partitions[index].clone(), &family)
    };
    let Some(&first) = todo.first() else { return Ok(()) };
    let most = together(config, data, &start(first)?)?;
    let indices: Vec<usize> = (0..partitions.len()).collect();
    for block in indices.chunks(most).filter(|block| block.iter().any(|index| todo.contains(index))) {
        let batch = block.iter().map(|&index| start(index)).collect::<Result<_, TeacherError>>()?;
        for trained in train_batch(config, batch, device)? {
            if todo.contains(&trained.index) {
                on_finished(trained).map_err(TeachersError::Caller)?;
            }
        }
    }
    Ok(())
}

/// Returns the number of teachers that train together.
fn together(config: &TeacherConfig, data: &Split, one: &Training<'_>) -> Result<usize, TeacherError> {
    let arrays = one.arrays()?;
    let ImageShape { height, width, .. } = data.shape();
    let shapes = [0, 2].map(|layer| [arrays[layer].shape[0], arrays[layer].shape[1]]);
    Ok((MAX_VALUES / largest_array(config.batch, [height, width], shapes)).max(1))
}

fn train_batch(
    config: &TeacherConfig,
    mut trainings: Vec<Training<'_>>,
    device: &Device,
) -> Result<Vec<TrainedTeacher>, Failure> {
    let mut network = load(&trainings, device)?;
    let mut average = (config.average > 0.0).then(|| network.values());
    let (mut losses, mut last) = (Vec::new(), Vec::new());
    for step in 0..config.steps {
        let (images, labels) = batch(&mut trainings, config.batch, device);
        let tracked = network.tracked();
        let loss = cross_entropy(&logits(images, &tracked), labels);
        let mut gradients = loss.clone().sum().backward();
        losses.push(loss.inner());
        let rates = trainings.iter().map(|training| training.learning_rate(step));
        match config.optimizer {
            OptimizerKind::Adam => {
                // As Burn's: the moments' start at zero is divided out of the rate, and of what is added to the root.
                let time = i32::try_from(step + 1).unwrap_or(i32::MAX);
                let [first, second] = [ADAM_BETA1, ADAM_BETA2].map(|beta| 1.0 - f64::from(beta).powi(time));
                let rates = per_teacher(rates.map(|rate| rate * second.sqrt() / first), device);
                let floor = f64::from(ADAM_EPSILON) * second.sqrt();
                network.update(&tracked, &mut gradients, adam_floor_outside([ADAM_BETA1, ADAM_BETA2], rates, floor));
            }
            OptimizerKind::Sgd => network.update(&tracked, &mut gradients, descent(per_teacher(rates, device))),
        }
        if let Some(average) = &mut average {
            let rate = warmed_up(config.average, step + 1);
            for (average, value) in average.iter_mut().zip(network.values()) {
                average.inplace(|a| a.clone() + (value - a) * rate);
            }
        }
        if losses.len() == READ_EVERY || step + 1 == config.steps {
            let first = step + 1 - losses.len();
            last = check(&trainings, std::mem::take(&mut losses), first)?;
        }
    }
    let arrays = match average {
        Some(average) => average.iter().map(crate::stack::unstack).collect::<Result<Vec<_>, DeviceError>>()?,
        None => network.read_values()?,
    };
    let finished = trainings.into_iter().zip(last).enumerate().map(|(place, (training, loss))| {
        training.finish(arrays.iter().map(|array| array[place].clone()).collect(), loss)
    });
    Ok(finished.collect::<Result<_, TeacherError>>()?)
}

/// Puts the initial parameters on the device.
fn load(trainings: &[Training<'_>], device: &Device) -> Result<Network, TeacherError> {
    let arrays = trainings.iter().map(Training::arrays).collect::<Result<Vec<_>, TeacherError>>()?;
    let kind = |array: &speed_teacher::training::ParameterArray| match array.shape[..] {
        [inputs, outputs] => ArrayKind::trained([inputs, outputs]),
        _ => ArrayKind::trained([1, array.values.len()]),
    };
    let zeros: Vec<Vec<f32>> = arrays[0].iter().map(|array| vec![0.0; array.values.len()]).collect();
    let kinds: Vec<ArrayKind> = arrays[0].iter().map(kind).collect();
    let value = |i: usize| arrays.iter().map(|arrays| arrays[i].values.as_slice()).collect();
    let moment = |i: usize, _: usize| vec![zeros[i].as_slice(); arrays.len()];
    Ok(Network::load(&kinds, value, moment, device))
}

/// Returns the next batch of every teacher: images `[teachers * images, height, width, channels]` and labels `[teachers, images,
/// classes]`, 1 at the label and 0 elsewhere.
fn batch(trainings: &mut [Training<'_>], size: usize, device: &Device) -> (Tensor<4>, Tensor<3>) {
    let (teachers, classes) = (trainings.len(), trainings[0].classes());
    let ImageShape { channels, height, width } = trainings[0].shape();
    let (mut images, mut hot) = (Vec::new(), vec![0.0_f32; teachers * size * classes]);
    for (training, hot) in trainings.iter_mut().zip(hot.chunks_exact_mut(size * classes)) {
        let (pixels, labels) = training.next_batch();
        images.extend(pixels);
        labels.iter().zip(hot.chunks_exact_mut(classes)).for_each(|(&label, hot)| hot[usize::from(label)] = 1.0);
    }
    let images = TensorData::new(images, [teachers * size, height, width, channels]);
    let labels = TensorData::new(hot, [teachers, size, classes]);
    (Tensor::from_data(images, device), Tensor::from_data(labels, device))
}

/// Returns one number a teacher, `[teachers, 1, 1]`.
#[expect(clippy::cast_possible_truncation, reason = "networks compute in f32")]
fn per_teacher(values: impl Iterator<Item = f64>, device: &Device) -> Tensor<3> {
    let values: Vec<f32> = values.map(|value| value as f32).collect();
    let teachers = values.len();
    Tensor::from_data(TensorData::new(values, [teachers, 1, 1]), device)
}

/// Reads the losses of some steps from step `first` on (from 0), and returns the last of every teacher.
fn check(trainings: &[Training<'_>], losses: Vec<Tensor<3>>, first: usize) -> Result<Vec<f32>, Failure> {
    let steps = losses.len();
    let losses = read(&Tensor::cat(losses, 2))?;
    let mut last = Vec::with_capacity(trainings.len());
    for (training, losses) in trainings.iter().zip(losses.chunks_exact(steps)) {
        if let Some(step) = losses.iter().position(|loss| !loss.is_finite()) {
            let loss = losses[step];
            return Err(TeacherError::Diverged { teacher: training.index(), step: first + step + 1, loss }.into());
        }
        last.push(losses[steps - 1]);
    }
    Ok(last)
}
