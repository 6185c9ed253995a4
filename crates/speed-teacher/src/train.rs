//! Training of one teacher on its own partition.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use burn::optim::{Optimizer, SgdConfig};
use burn::tensor::{Device, Int, Tensor, TensorData};
use rand::RngExt;
use serde::{Deserialize, Serialize};
use speed_core::random::{Stream, Streams};
use speed_data::Split;
use speed_nn::average::WarmedUpAverage;
use speed_nn::ops::log_sum_exp::log_softmax;
use speed_nn::ops::sums::mean;
use speed_nn::optim::{Adam, Epsilon, StepError, Trained};
use speed_nn::params::number_parameters;
use speed_nn::training::{AnyClassifier, Cycle, Pixels, accuracy};

use crate::config::TeacherTraining;
use crate::{Architecture, OptimizerKind, OwnImages, Teacher, TeacherConfig, TeacherError, TeacherNetwork};

#[cfg(test)]
mod peer_trace;

/// A teacher with its index in the ensemble and the result of its training.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TrainedTeacher {
    /// The index of the teacher and of its partition.
    pub index: usize,
    /// The teacher.
    pub teacher: Teacher,
    /// The result of the training.
    pub metrics: TeacherMetrics,
}

/// The result of one teacher's training. All values except the time are the same in every run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TeacherMetrics {
    /// Steps of the optimizer.
    pub steps: usize,
    /// The loss of the last step's batch, with class weights and weight decay.
    pub final_loss: f64,
    /// Fraction of its own training images that it classifies as labelled, without augmentation.
    pub train_accuracy: f64,
    /// Wall time in seconds.
    pub seconds: f64,
}

/// Trains teacher `index` on the images `partition` of `data`, on `device`.
///
/// `streams` is the teacher's own family: no other code may draw from it. Call this inside a one-thread rayon pool (as
/// [`train_ensemble`](crate::train_ensemble) does) if the bits must not depend on the number of threads. It ends early,
/// with [`TeacherError::Stopped`], once `stop` is true.
///
/// # Errors
/// If the configuration, image size or partition is unsuitable for training; [`TeacherError::Diverged`] as soon as the
/// loss is not finite.
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
    if partition.is_empty() || partition.end > data.len() {
        let images = data.len();
        return Err(TeacherError::Data(format!(
            "teacher {index}: the partition {partition:?} of {images} images gives no images to train on"
        )));
    }
    let images: Vec<usize> = partition.collect();
    let training = TeacherTraining { index, config, data, images: &images, streams, device, stop };
    let (network, final_loss) = (config.architecture.train)(&training)?;
    let train_accuracy = accuracy(network.as_ref(), data, &images, device)?;
    let own = OwnImages::new(config.architecture.reads_vectors(), data, &images);
    let (shape, classes) = (data.shape(), data.classes());
    let teacher = Teacher { network, device: device.clone(), shape, classes, own };
    let metrics =
        TeacherMetrics { steps: config.steps, final_loss, train_accuracy, seconds: start.elapsed().as_secs_f64() };
    Ok(TrainedTeacher { index, teacher, metrics })
}

pub(crate) fn train<N: TeacherNetwork>(
    training: &TeacherTraining<'_>,
) -> Result<(Box<dyn AnyClassifier>, f64), TeacherError> {
    let network = initial::<N>(training.data, training.streams, training.device);
    match training.config.optimizer {
        OptimizerKind::Adam => run(training, Trained::new(network, ADAM)),
        OptimizerKind::Sgd => run(training, Trained::new(network, SgdConfig::new().build())),
    }
}

/// Adam with the default parameters of most libraries.
const ADAM: Adam = Adam { beta1: 0.9, beta2: 0.999, epsilon: Epsilon::Outside(1e-8) };

fn run<N: TeacherNetwork, O: Optimizer>(
    training: &TeacherTraining<'_>,
    mut network: Trained<N, O>,
) -> Result<(Box<dyn AnyClassifier>, f64), TeacherError> {
    let TeacherTraining { index, config, data, images, streams, device, stop } = *training;
    let mut batches = Batches::new(config, data, images, streams);
    let weights = config.class_weights.of_labels(images.iter().map(|&image| data.label(image)), data.classes());
    let mut average = (config.average > 0.0).then(|| WarmedUpAverage::new(config.average, network.network()));
    let mut final_loss = f64::NAN;
    for step in 0..config.steps {
        if stop.load(Ordering::Relaxed) {
            return Err(TeacherError::Stopped { teacher: index });
        }
        let (pixels, labels) = batches.next(N::OFFSET);
        let loss = loss(network.network(), pixels.into_tensor(device), &labels, weights.as_deref());
        final_loss = network.step(config.rate_at(images.len(), step), &loss).map_err(|error| match error {
            StepError::NotFinite { loss } => TeacherError::Diverged { teacher: index, step: step + 1, loss },
            StepError::Device(error) => error.into(),
        })?;
        if let Some(average) = &mut average {
            average.update(network.network());
        }
    }
    let trained = average.map_or_else(|| network.frozen(), WarmedUpAverage::into_model);
    Ok((Box::new(trained), final_loss))
}

/// Returns the network with its initial weights and with numbered parameters, so that equal networks have equal bytes.
fn initial<N: TeacherNetwork>(data: &Split, streams: &Streams, device: &Device) -> N {
    let device = device.clone().autodiff();
    number_parameters(N::new(data.shape(), data.classes(), &mut streams.stream("weights", 0), &device))
}

struct Batches<'a> {
    config: &'a TeacherConfig,
    data: &'a Split,
    images: Cycle,
    stream: Stream,
}

impl<'a> Batches<'a> {
    fn new(config: &'a TeacherConfig, data: &'a Split, images: &[usize], streams: &Streams) -> Self {
        Self { config, data, images: Cycle::new(images.to_vec()), stream: streams.stream("batches", 0) }
    }

    /// Returns the next images, each moved randomly in both directions, and their labels.
    fn next(&mut self, offset: f32) -> (Pixels, Vec<u8>) {
        let Self { config, data, images, stream } = self;
        let mut pixels = Pixels::with_capacity(data.shape(), config.batch);
        let bound = i64::try_from(config.shift).expect("a shift within an image");
        let labels = (0..config.batch).map(|_| {
            let image = images.next(stream);
            let shift = [(); 2].map(|()| stream.random_range(-bound..=bound) as isize);
            pixels.push_moved(data.pixels(image), shift, offset);
            data.label(image)
        });
        let labels = labels.collect();
        (pixels, labels)
    }
}

/// Returns the mean cross-entropy of a batch in nats, with a weight for each class if there are any, plus the network's
/// penalty, of shape `[1]`.
fn loss(network: &impl TeacherNetwork, images: Tensor<4>, labels: &[u8], weights: Option<&[f32]>) -> Tensor<1> {
    let images_count = images.dims()[0];
    let logits = network.logits(images);
    let device = logits.device();
    let numbers: Vec<i32> = labels.iter().map(|&label| i32::from(label)).collect();
    let numbers = Tensor::<2, Int>::from_data(TensorData::new(numbers, [images_count, 1]), &device);
    let own = log_softmax(logits).gather(1, numbers);
    let own = match weights {
        None => own,
        Some(weights) => {
            let weights: Vec<f32> = labels.iter().map(|&label| weights[usize::from(label)]).collect();
            own * Tensor::<2>::from_data(TensorData::new(weights, [images_count, 1]), &device)
        }
    };
    let loss = mean(own).neg();
    match network.penalty() {
        Some(penalty) => loss + penalty,
        None => loss,
    }
}
