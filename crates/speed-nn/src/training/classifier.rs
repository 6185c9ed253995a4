//! Networks that classify images, and their predictions.

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use speed_data::Split;

use super::tensors::{NamedTensors, TensorError, collect, replace};
use super::trace::{self, Trace, TraceError};
use crate::device::{DeviceError, values};
use crate::params::{ParameterError, to_record, with_record};
use crate::training::Pixels;

/// Images classified at a time; a larger number is not faster.
pub const TOGETHER: usize = 100;

/// The [offset](Classifier::OFFSET) of networks that read an encoder's vectors, whose zero is the byte 128.
pub const VECTOR_OFFSET: f32 = -128.0 / 255.0;

/// A network that classifies images, as an ordinary Burn module.
pub trait Classifier: Module + Sync + 'static {
    /// The value of an empty pixel: a byte b of an image is read as `b / 255 + OFFSET`.
    const OFFSET: f32 = 0.0;

    /// Returns the logits `[images, classes]` of images `[images, height, width, channels]`.
    fn logits(&self, images: Tensor<4>) -> Tensor<2>;
}

/// A [`Classifier`] of unknown type, without gradients.
pub trait AnyClassifier: Send + Sync {
    /// Returns the logits `[images, classes]` of images `[images, height, width, channels]`.
    fn logits(&self, images: Tensor<4>) -> Tensor<2>;

    /// Returns [`Classifier::OFFSET`].
    fn offset(&self) -> f32;

    /// Returns Burn's record of its parameters.
    ///
    /// # Errors
    /// If Burn cannot write it.
    fn to_record(&self) -> Result<Vec<u8>, ParameterError>;

    /// Returns the same network with the parameters of a record.
    ///
    /// # Errors
    /// If the record is not one of this network.
    fn with_record(&self, record: &[u8]) -> Result<Box<dyn AnyClassifier>, ParameterError>;

    /// Returns its parameters by name.
    ///
    /// # Errors
    /// If a parameter is not a floating-point tensor, or the device fails.
    fn tensors(&self) -> Result<NamedTensors, TensorError>;

    /// Returns the same network with other parameters.
    ///
    /// # Errors
    /// If names or shapes differ from the network's parameters, or a value is not finite.
    fn with_tensors(&self, tensors: NamedTensors) -> Result<Box<dyn AnyClassifier>, TensorError>;

    /// Records its operations on images of shape `[images, height, width, channels]`, instead of computing them.
    ///
    /// # Errors
    /// If Burn cannot record them.
    ///
    /// # Panics
    /// If a network of a program reads values of its tensors, or has an operation without a body of plain tensors.
    fn trace(&self, shape: [usize; 4]) -> Result<Trace, TraceError>;

    /// Returns a copy.
    fn boxed(&self) -> Box<dyn AnyClassifier>;
}

impl<N: Classifier> AnyClassifier for N {
    fn logits(&self, images: Tensor<4>) -> Tensor<2> {
        Classifier::logits(self, images)
    }

    fn offset(&self) -> f32 {
        N::OFFSET
    }

    fn to_record(&self) -> Result<Vec<u8>, ParameterError> {
        to_record(self)
    }

    fn with_record(&self, record: &[u8]) -> Result<Box<dyn AnyClassifier>, ParameterError> {
        Ok(Box::new(with_record(self.clone(), record)?))
    }

    fn tensors(&self) -> Result<NamedTensors, TensorError> {
        collect(self)
    }

    fn with_tensors(&self, tensors: NamedTensors) -> Result<Box<dyn AnyClassifier>, TensorError> {
        Ok(Box::new(replace(self.clone(), tensors)?))
    }

    fn trace(&self, shape: [usize; 4]) -> Result<Trace, TraceError> {
        trace::trace(self, N::logits, shape)
    }

    fn boxed(&self) -> Box<dyn AnyClassifier> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn AnyClassifier> {
    fn clone(&self) -> Self {
        self.as_ref().boxed()
    }
}

/// Returns the class with the greatest logit for each of some images of a split; the lowest class on a tie.
///
/// # Errors
/// If the device fails.
///
/// # Panics
/// If an image is not in the split or does not have the network's size; if the network does not return one row of 1 to
/// 256 logits for each image.
pub fn predict(
    network: &dyn AnyClassifier,
    images: &Split,
    some: &[usize],
    device: &Device,
) -> Result<Vec<u8>, DeviceError> {
    let mut labels = Vec::with_capacity(some.len());
    for some in some.chunks(TOGETHER) {
        let (logits, classes) = logits(network, images, some, device)?;
        labels.extend(logits.chunks_exact(classes).map(greatest));
    }
    Ok(labels)
}

/// Returns the logits of each of some images of a split, image after image, and their number for one image.
///
/// The images are computed [`TOGETHER`] at a time, as in an evaluation, so their logits have the same bits as there if
/// `some` begins at a multiple of that number.
///
/// # Errors
/// If the device fails.
///
/// # Panics
/// Like [`predict`].
pub fn logits(
    network: &dyn AnyClassifier,
    images: &Split,
    some: &[usize],
    device: &Device,
) -> Result<(Vec<f32>, usize), DeviceError> {
    let (mut all, mut classes) = (Vec::new(), 1);
    for some in some.chunks(TOGETHER) {
        let logits = network.logits(Pixels::from_split(images, some, network.offset()).into_tensor(device));
        let [rows, columns] = logits.dims();
        assert!(
            rows == some.len() && (1..=256).contains(&columns),
            "{rows} x {columns} logits of {} images",
            some.len()
        );
        classes = columns;
        all.extend(values(logits)?);
    }
    Ok((all, classes))
}

/// Returns the fraction of some images (at least one) that are classified as labelled.
///
/// # Errors
/// If the device fails.
///
/// # Panics
/// Like [`predict`].
pub fn accuracy(
    network: &dyn AnyClassifier,
    images: &Split,
    some: &[usize],
    device: &Device,
) -> Result<f64, DeviceError> {
    Ok(accuracy_of(&predict(network, images, some, device)?, images, some))
}

/// Returns the fraction of some images (at least one) whose predicted label is the true one.
///
/// # Panics
/// If an image is not in the split.
pub fn accuracy_of(predicted: &[u8], images: &Split, some: &[usize]) -> f64 {
    let right = predicted.iter().zip(some).filter(|&(label, &image)| *label == images.label(image)).count();
    right as f64 / some.len() as f64
}

/// Returns the class with the greatest of 1 to 256 logits; the lowest class on a tie.
///
/// # Panics
/// If there are more than 256 logits.
pub fn greatest(logits: &[f32]) -> u8 {
    let best = (1..logits.len()).fold(0, |best, class| if logits[class] > logits[best] { class } else { best });
    u8::try_from(best).expect("a split has at most 256 classes")
}

/// Returns by how much the second of two logits exceeds the first, for each image; empty if there are not two classes.
///
/// # Panics
/// If the logits are not those of `classes` classes.
pub fn margins(logits: &[f32], classes: usize) -> Vec<f64> {
    if classes != 2 {
        return Vec::new();
    }
    assert!(logits.len().is_multiple_of(2), "{} logits", logits.len());
    // A probability would round to 1 for many images that differ.
    logits.chunks_exact(2).map(|pair| f64::from(pair[1]) - f64::from(pair[0])).collect()
}

#[cfg(test)]
mod tests {
    use speed_data::ImageShape;

    use super::*;
    use crate::layers::Dense;
    use crate::ops::activation::Activation;

    /// Logits `[x, 0.4]` of images of one pixel x, whose bytes start at -1.
    #[derive(Module, Debug)]
    struct Threshold {
        layer: Dense,
    }

    impl Classifier for Threshold {
        const OFFSET: f32 = -1.0;

        fn logits(&self, images: Tensor<4>) -> Tensor<2> {
            self.layer.forward(images.flatten(1, 3))
        }
    }

    #[test]
    fn the_greatest_logit_decides_and_of_equal_ones_the_lowest() {
        assert_eq!(greatest(&[1.0, 3.0, 3.0]), 1);
        let device = Device::flex();
        let weight = Tensor::from_floats([[1.0, 0.0]], &device);
        let bias = Tensor::from_floats([1.0, 0.4], &device);
        let network = Threshold { layer: Dense::new(weight, bias, Activation::Linear) };
        let shape = ImageShape { channels: 1, height: 1, width: 1 };
        let split = Split::new(shape, 2, vec![0, 255, 51, 153], vec![1, 0, 0, 0]).expect("a split");
        assert_eq!(predict(&network, &split, &[3, 0, 1, 2], &device), Ok(vec![0, 1, 0, 1]));
        assert_eq!(accuracy(&network, &split, &[0, 1, 2], &device), Ok(2.0 / 3.0));
        assert!(network.with_record(&AnyClassifier::to_record(&network).expect("a record")).is_ok());
        assert!(network.with_record(&[1, 2, 3]).is_err());
    }
}
