//! The input of a student's training.

use burn::tensor::Device;
use speed_core::random::Streams;
use speed_data::{ImageShape, Images, Split};
use speed_nn::device::DeviceError;
use speed_nn::training::{AnyClassifier, Classifier, Pixels, accuracy};

use crate::{InvalidData, StudentConfig};

/// One student's settings, images, labels, randomness and device.
#[derive(Clone, Copy, Debug)]
pub struct Lesson<'a> {
    /// The settings.
    pub config: &'a StudentConfig,
    /// The images that the student may see.
    pub pool: Images<'a>,
    /// The labels that the student may see, as (index in the pool, label).
    pub labelled: &'a [(usize, u8)],
    /// The probability that each label is wrong, in the order of the labels; `None` if it is unknown. The methods
    /// on pseudo-labels and `linear` use it.
    pub doubts: Option<&'a [f32]>,
    /// Images whose labels are used only for accuracy, if there are any. Without them the accuracy is unknown.
    pub test: Option<&'a Split>,
    /// The random streams of this student only; nothing else may draw from them.
    pub streams: &'a Streams,
    /// The device of the training.
    pub device: &'a Device,
}

impl Lesson<'_> {
    /// Returns some images of the pool in the form that networks of type `N` read.
    pub fn batch<N: Classifier>(&self, some: &[usize]) -> Pixels {
        Pixels::from_split(self.pool.split(), some, N::OFFSET)
    }

    /// Returns the number of classes.
    pub fn classes(&self) -> usize {
        self.pool.classes()
    }

    /// Returns the frequency of each class that the student assumes; `None` if all are equal.
    pub(crate) fn prior(&self) -> Option<Vec<f64>> {
        self.config.prior.frequencies(self.labelled, self.doubts, self.classes())
    }

    /// Returns the accuracy of a classifier on the test images, if there are any.
    pub(crate) fn accuracy(&self, network: &dyn AnyClassifier) -> Result<Option<f64>, DeviceError> {
        let measure = |test: &Split| accuracy(network, test, &(0..test.len()).collect::<Vec<_>>(), self.device);
        self.test.map(measure).transpose()
    }

    /// Checks that pool, labels and test images fit together.
    pub(crate) fn check(&self) -> Result<(), InvalidData> {
        let (pool, classes) = (self.pool, self.classes());
        if let Some(test) = self.test {
            check_shapes(pool.shape(), test.shape())?;
            let found = test.classes();
            if found != classes {
                let message = format!("expected test images of the pool's {classes} classes, found {found} classes");
                return Err(InvalidData(message));
            }
            if test.is_empty() {
                return Err(InvalidData::no_test());
            }
        }
        if let Some(doubts) = self.doubts {
            let labels = self.labelled.len();
            let found = doubts.iter().filter(|doubt| (0.0..1.0).contains(*doubt)).count();
            let doubts = doubts.len();
            if [doubts, found] != [labels; 2] {
                return Err(InvalidData(format!(
                    "expected a doubt of at least 0 and below 1 for each of {labels} labels, found {found} of {doubts} doubts in this range"
                )));
            }
        }
        check_labels(pool, self.labelled, classes)
    }
}

/// Checks that the pool and the test images have the same size.
pub(crate) fn check_shapes(pool: ImageShape, test: ImageShape) -> Result<(), InvalidData> {
    if pool == test {
        return Ok(());
    }
    Err(InvalidData(format!("expected test images of the size of the pool's images, {pool}, found {test}")))
}

/// Checks that there are labels, and that they are classes of images of the pool.
pub(crate) fn check_labels(pool: Images<'_>, labelled: &[(usize, u8)], classes: usize) -> Result<(), InvalidData> {
    if labelled.is_empty() {
        return Err(InvalidData("expected at least one labelled image, found none".to_owned()));
    }
    for (position, &(index, label)) in labelled.iter().enumerate() {
        if index >= pool.len() {
            let images = pool.len();
            return Err(InvalidData(format!(
                "label {position}: expected an image of the pool of {images} images, found image {index}"
            )));
        }
        if usize::from(label) >= classes {
            let message = format!("label {position}: expected a class below {classes}, found {label}");
            return Err(InvalidData(message));
        }
    }
    Ok(())
}
