//! Training of one teacher on its own partition.

use crate::average::ParameterAverage;
use crate::batch::Batches;
use crate::network::{Network, Trace};
use crate::schedule::learning_rate;
use crate::{OptimizerKind, Teacher, TeacherConfig, TeacherError};
use burn::module::Module;
use burn::optim::{AdamConfig, ModuleOptimizer, SgdConfig};
use burn::tensor::Device;
use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};
use speed_data::Split;
use speed_random::{Stream, Streams};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

#[cfg(test)]
mod peer_trace;

/// A teacher with its place in the ensemble and what its training came to.
#[derive(Clone, Debug)]
pub struct TrainedTeacher {
    /// Its index: which partition it holds.
    pub index: usize,
    /// The teacher.
    pub teacher: Teacher,
    /// What came of the training.
    pub metrics: TeacherMetrics,
}

/// What came of one teacher's training. All but the time are the same in every run.
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

/// Trains teacher `index` on the images `partition` of `data`.
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
    stop: &AtomicBool,
) -> Result<TrainedTeacher, TeacherError> {
    let start = Instant::now();
    config.check()?;
    let (shape, classes) = (data.shape(), data.classes());
    if config.shift >= shape.height.min(shape.width) {
        return Err(TeacherError::ShiftTooLarge { shift: config.shift, shape });
    }
    let (training, held_out) = divide(&partition, data.len(), config.validation, &mut streams.stream("validation", 0))
        .ok_or(TeacherError::Partition { teacher: index, partition, images: data.len() })?;

    let device = Device::flex().autodiff();
    let mut weights = streams.stream("weights", 0);
    let mut network = Network::new(config.architecture, shape, classes, &mut weights, &device)?;
    let mut average = (config.average > 0.0).then(|| ParameterAverage::new(&network, config.average));
    let mut optimizer = optimizer(config.optimizer);
    let mut batches = Batches::new(data, training.clone(), streams.stream("batches", 0));
    let (mut trace, mut final_loss) = (Trace::default(), f32::NAN);
    for step in 0..config.steps {
        if stop.load(Ordering::Relaxed) {
            return Err(TeacherError::Stopped { teacher: index });
        }
        let (images, labels) = batches.next(config.batch, config.shift, network.offset());
        let (loss, gradients) = network.gradients(&images, &labels, &mut trace, &device)?;
        if !loss.is_finite() {
            return Err(TeacherError::Diverged { teacher: index, step: step + 1, loss });
        }
        final_loss = loss;
        network = optimizer.step(learning_rate(config, training.len(), step), network, gradients);
        average = average.map(|average| average.update(&network));
    }

    let trained = average.map_or_else(|| network.valid(), ParameterAverage::into_model);
    let teacher = Teacher::new(trained, shape, classes);
    let metrics = TeacherMetrics {
        steps: config.steps,
        final_loss: f64::from(final_loss),
        train_accuracy: accuracy(&teacher, data, &training)?,
        validation_accuracy: (!held_out.is_empty()).then(|| accuracy(&teacher, data, &held_out)).transpose()?,
        seconds: start.elapsed().as_secs_f64(),
    };
    Ok(TrainedTeacher { index, teacher, metrics })
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

fn optimizer(kind: OptimizerKind) -> ModuleOptimizer {
    match kind {
        OptimizerKind::Adam => AdamConfig::new().with_beta_1(0.9).with_beta_2(0.999).with_epsilon(1e-8).init(),
        OptimizerKind::Sgd => SgdConfig::new().init(),
    }
}

fn accuracy(teacher: &Teacher, data: &Split, images: &[usize]) -> Result<f64, TeacherError> {
    let own = teacher.predict_some(data, images)?;
    let right = own.iter().zip(images).filter(|&(label, &image)| *label == data.label(image)).count();
    Ok(right as f64 / images.len() as f64)
}
