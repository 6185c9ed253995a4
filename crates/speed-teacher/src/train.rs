//! Training of one teacher on its own partition.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use burn::optim::{GradientsParams, ModuleOptimizer, SgdConfig};
use burn::tensor::{Device, Int, Tensor, TensorData, activation};
use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};
use speed_data::Split;
use speed_nn::average::WarmedUpAverage;
use speed_nn::optim::{Adam, Epsilon};
use speed_random::{Stream, Streams};

use crate::batch::Batches;
use crate::network::AnyNetwork;
use crate::schedule::learning_rate;
use crate::{Architecture, OptimizerKind, Teacher, TeacherConfig, TeacherError, TeacherNetwork};

#[cfg(test)]
mod peer_trace;

/// A teacher with its place in the ensemble and what its training came to.
#[derive(Clone, Debug)]
pub struct TrainedTeacher {
    /// Its index: which partition it holds.
    pub index: usize,
    /// The teacher.
    pub teacher: Teacher,
    /// The result of the training.
    pub metrics: TeacherMetrics,
}

/// The result of one teacher's training. All but the time are the same in every run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TeacherMetrics {
    /// Steps of the optimizer.
    pub steps: usize,
    /// The loss of the last step's batch, weight decay included.
    pub final_loss: f64,
    /// Share of its own training images that it classifies as labelled, without augmentation.
    pub train_accuracy: f64,
    /// The same for the images held out, if there are any.
    pub validation_accuracy: Option<f64>,
    /// Wall time in seconds.
    pub seconds: f64,
}

/// Trains teacher `index` on the images `partition` of `data`, on `device`.
///
/// `streams` is the teacher's own family: nothing else may draw from it. Run it inside a one-thread rayon pool (as
/// [`train_ensemble`](crate::train_ensemble) does) if its bits must not depend on the number of threads. It ends early, with
/// [`TeacherError::Stopped`], once `stop` is true.
///
/// # Errors
/// A configuration, image size or partition that cannot be trained on; [`TeacherError::Diverged`] as soon as the loss is
/// not finite.
pub fn train_teacher(
    index: usize,
    config: &TeacherConfig,
    data: &Split,
    partition: Range<usize>,
    streams: &Streams,
    device: &Device,
    stop: &AtomicBool,
) -> Result<TrainedTeacher, TeacherError> {
    let start = Instant::now();
    config.check()?;
    config.check_images(data.shape())?;
    Architecture::check_classes(data.classes())?;
    let (images, held_out) = divide(&partition, data.len(), config.validation, &mut streams.stream("validation", 0))
        .ok_or(TeacherError::Partition { teacher: index, partition, images: data.len() })?;
    let lesson = Lesson { index, config, data, images: &images, streams, device, stop };
    let (network, final_loss) = (config.architecture.train)(&lesson)?;
    let teacher = Teacher::new(config.architecture, network, device.clone(), data.shape(), data.classes());
    let metrics = TeacherMetrics {
        steps: config.steps,
        final_loss: f64::from(final_loss),
        train_accuracy: accuracy(&teacher, data, &images)?,
        validation_accuracy: (!held_out.is_empty()).then(|| accuracy(&teacher, data, &held_out)).transpose()?,
        seconds: start.elapsed().as_secs_f64(),
    };
    Ok(TrainedTeacher { index, teacher, metrics })
}

/// The arguments of one teacher's training, all checked.
pub(crate) struct Lesson<'a> {
    index: usize,
    config: &'a TeacherConfig,
    data: &'a Split,
    /// Indices of the images to train on.
    images: &'a [usize],
    streams: &'a Streams,
    device: &'a Device,
    stop: &'a AtomicBool,
}

/// Trains a network, and returns it without gradients and the loss of its last batch.
pub(crate) type TrainFunction = fn(&Lesson<'_>) -> Result<(Box<dyn AnyNetwork>, f32), TeacherError>;

/// Makes all steps of a network of this type.
pub(crate) fn train<N: TeacherNetwork>(lesson: &Lesson<'_>) -> Result<(Box<dyn AnyNetwork>, f32), TeacherError> {
    let Lesson { index, config, data, images, streams, device, stop } = *lesson;
    let mut network = initial::<N>(data, streams, device);
    let mut batches = Batches::new(data, images.to_vec(), streams.stream("batches", 0));
    let mut average = (config.average > 0.0).then(|| WarmedUpAverage::new(config.average, &network));
    let (mut optimizer, mut final_loss) = (optimizer(config.optimizer), f32::NAN);
    for step in 0..config.steps {
        if stop.load(Ordering::Relaxed) {
            return Err(TeacherError::Stopped { teacher: index });
        }
        let (images, labels) = batches.next(config.batch, config.shift, N::OFFSET);
        let loss = loss(&network, images.into_tensor(device), &labels);
        let gradients = GradientsParams::from_grads(loss.backward(), &network);
        final_loss = loss.inner().try_into_scalar().map_err(TeacherError::device)?;
        if !final_loss.is_finite() {
            return Err(TeacherError::Diverged { teacher: index, step: step + 1, loss: final_loss });
        }
        network = optimizer.step(learning_rate(config, lesson.images.len(), step), network, gradients);
        if let Some(average) = &mut average {
            average.update(&network);
        }
    }
    let trained = average.map_or_else(|| network.valid(), WarmedUpAverage::into_model);
    Ok((Box::new(trained), final_loss))
}

/// Returns the network with its initial weights, parameters numbered so that equal networks have equal bytes.
fn initial<N: TeacherNetwork>(data: &Split, streams: &Streams, device: &Device) -> N {
    let device = device.clone().autodiff();
    let network = N::new(data.shape(), data.classes(), &mut streams.stream("weights", 0), &device);
    speed_nn::params::number_parameters(network)
}

/// Returns the mean cross-entropy of a batch in nats and what the network adds to it, of shape `[1]`.
fn loss(network: &impl TeacherNetwork, images: Tensor<4>, labels: &[u8]) -> Tensor<1> {
    let images_count = images.dims()[0];
    let logits = network.logits(images);
    let labels: Vec<i32> = labels.iter().map(|&label| i32::from(label)).collect();
    let labels = Tensor::<2, Int>::from_data(TensorData::new(labels, [images_count, 1]), &logits.device());
    let loss = activation::log_softmax(logits, 1).gather(1, labels).mean().neg();
    match network.penalty() {
        Some(penalty) => loss + penalty,
        None => loss,
    }
}

fn optimizer(kind: OptimizerKind) -> ModuleOptimizer {
    match kind {
        OptimizerKind::Adam => {
            ModuleOptimizer::from(Adam { beta1: 0.9, beta2: 0.999, epsilon: Epsilon::Outside(1e-8) })
        }
        OptimizerKind::Sgd => SgdConfig::new().init(),
    }
}

/// Divides a partition into images to train on and images held out: a random choice of the `fraction`, rounded, but
/// at least one where the fraction is not zero. `None` if no image is left to train on or the partition lies outside.
fn divide(
    partition: &Range<usize>,
    images: usize,
    fraction: f64,
    stream: &mut Stream,
) -> Option<(Vec<usize>, Vec<usize>)> {
    if partition.end > images {
        return None;
    }
    let mut order: Vec<usize> = partition.clone().collect();
    let least = usize::from(fraction > 0.0);
    let held_out = ((order.len() as f64 * fraction).round() as usize).max(least);
    if held_out > 0 {
        order.shuffle(stream);
    }
    let training = order.split_off(held_out.min(order.len()));
    (!training.is_empty()).then_some((training, order))
}

fn accuracy(teacher: &Teacher, data: &Split, images: &[usize]) -> Result<f64, TeacherError> {
    let own = teacher.predict_some(data, images)?;
    let right = own.iter().zip(images).filter(|&(label, &image)| *label == data.label(image)).count();
    Ok(right as f64 / images.len() as f64)
}
