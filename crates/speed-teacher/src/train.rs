//! Training of one teacher on its own partition.

use crate::average::ParameterAverage;
use crate::network::Trace;
use crate::training::{ADAM_BETA1, ADAM_BETA2, ADAM_EPSILON, Training};
use crate::{OptimizerKind, Teacher, TeacherConfig, TeacherError};
use burn::module::Module;
use burn::optim::{AdamConfig, ModuleOptimizer, SgdConfig};
use burn::tensor::Device;
use serde::{Deserialize, Serialize};
use speed_data::Split;
use speed_random::Streams;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

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
    let mut training = Training::start(index, config, data, partition, streams)?;
    let device = Device::flex().autodiff();
    let mut network = training.network.clone();
    let mut average = (config.average > 0.0).then(|| ParameterAverage::new(&network, config.average));
    let mut optimizer = optimizer(config.optimizer);
    let (mut trace, mut final_loss) = (Trace::default(), f32::NAN);
    for step in 0..config.steps {
        if stop.load(Ordering::Relaxed) {
            return Err(TeacherError::Stopped { teacher: index });
        }
        let (images, labels) = training.batches.next(config.batch, config.shift, network.offset());
        let (loss, gradients) = network.gradients(&images, &labels, &mut trace, &device)?;
        if !loss.is_finite() {
            return Err(TeacherError::Diverged { teacher: index, step: step + 1, loss });
        }
        final_loss = loss;
        network = optimizer.step(training.learning_rate(step), network, gradients);
        average = average.map(|average| average.update(&network));
    }
    let trained = average.map_or_else(|| network.valid(), ParameterAverage::into_model);
    training.finish_with(trained, final_loss)
}

fn optimizer(kind: OptimizerKind) -> ModuleOptimizer {
    match kind {
        OptimizerKind::Adam => {
            AdamConfig::new().with_beta_1(ADAM_BETA1).with_beta_2(ADAM_BETA2).with_epsilon(ADAM_EPSILON).init()
        }
        OptimizerKind::Sgd => SgdConfig::new().init(),
    }
}
