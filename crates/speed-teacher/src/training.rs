//! A teacher's training between its steps: for code that runs the steps of many teachers at once on another device.
//!
//! A [`Training`] has all of a training but the arithmetic of its steps. [`train_teacher`](crate::train_teacher) runs them on
//! the processor; other code reads the [`arrays`](Training::arrays), takes a step on every
//! [`next_batch`](Training::next_batch), and [finishes](Training::finish) with the arrays that came of it.

use crate::batch::Batches;
use crate::network::{Network, parameter_arrays};
use crate::schedule::learning_rate;
use crate::{Teacher, TeacherConfig, TeacherError, TeacherMetrics, TrainedTeacher};
use burn::module::{Module, ModuleMapper, Param};
use burn::tensor::{Device, Tensor, TensorData};
use rand::seq::SliceRandom;
use speed_data::{ImageShape, Split};
use speed_random::{Stream, Streams};
use std::ops::Range;
use std::time::Instant;

pub use crate::average::warmed_up;
pub use crate::network::{KERNEL, ParameterArray};

/// Decay of the first moment of a teacher's Adam, a step.
pub const ADAM_BETA1: f32 = 0.9;
/// Decay of its second moment.
pub const ADAM_BETA2: f32 = 0.999;
/// The number added to the root of the second moment.
pub const ADAM_EPSILON: f32 = 1e-8;

/// One teacher's training before its first step.
pub struct Training<'a> {
    pub(crate) index: usize,
    config: &'a TeacherConfig,
    data: &'a Split,
    training: Vec<usize>,
    held_out: Vec<usize>,
    /// Initial weights, on a device with autodiff.
    pub(crate) network: Network,
    pub(crate) batches: Batches<'a>,
    start: Instant,
}

impl<'a> Training<'a> {
    /// Returns the training that [`train_teacher`](crate::train_teacher) starts with the same arguments.
    ///
    /// # Errors
    /// A configuration, image size or partition that cannot be trained on.
    pub fn start(
        index: usize,
        config: &'a TeacherConfig,
        data: &'a Split,
        partition: Range<usize>,
        streams: &Streams,
    ) -> Result<Self, TeacherError> {
        let start = Instant::now();
        config.check()?;
        let shape = data.shape();
        config.check_images(shape)?;
        let (training, held_out) =
            divide(&partition, data.len(), config.validation, &mut streams.stream("validation", 0))
                .ok_or(TeacherError::Partition { teacher: index, partition, images: data.len() })?;
        let mut weights = streams.stream("weights", 0);
        let device = Device::flex().autodiff();
        let network = Network::new(config.architecture, shape, data.classes(), &mut weights, &device)?;
        let batches = Batches::new(data, training.clone(), streams.stream("batches", 0));
        Ok(Self { index, config, data, training, held_out, network, batches, start })
    }

    /// Returns the teacher's index.
    #[must_use]
    pub fn index(&self) -> usize {
        self.index
    }

    /// Returns the images' size.
    #[must_use]
    pub fn shape(&self) -> ImageShape {
        self.data.shape()
    }

    /// Returns the number of classes.
    #[must_use]
    pub fn classes(&self) -> usize {
        self.data.classes()
    }

    /// Returns the initial parameters: weights and bias of every layer, from the image on.
    ///
    /// # Errors
    /// [`TeacherError::Device`] if Burn cannot read them.
    pub fn arrays(&self) -> Result<Vec<ParameterArray>, TeacherError> {
        parameter_arrays(&self.network)
    }

    /// Returns the next step's images, image by image, row by row, pixel by pixel, channel by channel, and their labels.
    pub fn next_batch(&mut self) -> (Vec<f32>, Vec<u8>) {
        let (images, labels) = self.batches.next(self.config.batch, self.config.shift, self.network.offset());
        (images.values, labels)
    }

    /// Returns the learning rate of step `step`, from 0.
    #[must_use]
    pub fn learning_rate(&self, step: usize) -> f64 {
        learning_rate(self.config, self.training.len(), step)
    }

    /// Returns the teacher with parameters of the shapes of [`arrays`](Self::arrays), and what its training came to; `final_loss` is
    /// the loss of the last step's batch.
    ///
    /// # Errors
    /// The errors of predictions.
    ///
    /// # Panics
    /// When the arrays are of other sizes.
    pub fn finish(self, arrays: Vec<Vec<f32>>, final_loss: f32) -> Result<TrainedTeacher, TeacherError> {
        struct Replace(std::vec::IntoIter<Vec<f32>>);
        impl ModuleMapper for Replace {
            fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
                let values = self.0.next().expect("one array a parameter");
                param.map(|tensor| Tensor::from_data(TensorData::new(values, tensor.dims()), &tensor.device()))
            }
        }
        let network = self.network.valid().map(&mut Replace(arrays.into_iter()));
        self.finish_with(network, final_loss)
    }

    /// Returns the same with the trained network itself, without autodiff.
    pub(crate) fn finish_with(&self, network: Network, final_loss: f32) -> Result<TrainedTeacher, TeacherError> {
        let teacher = Teacher::new(network, self.data.shape(), self.data.classes());
        let held_out = &self.held_out;
        let metrics = TeacherMetrics {
            steps: self.config.steps,
            final_loss: f64::from(final_loss),
            train_accuracy: accuracy(&teacher, self.data, &self.training)?,
            validation_accuracy: (!held_out.is_empty()).then(|| accuracy(&teacher, self.data, held_out)).transpose()?,
            seconds: self.start.elapsed().as_secs_f64(),
        };
        Ok(TrainedTeacher { index: self.index, teacher, metrics })
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
