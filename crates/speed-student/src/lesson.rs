//! The input of a student's training.

use burn::tensor::Device;
use speed_core::random::Streams;
use speed_data::{ImageShape, Split};
use speed_nn::device::DeviceError;
use speed_nn::training::{AnyClassifier, Classifier, Pixels, accuracy};

use crate::{InvalidData, StudentConfig};

/// The images of a split without their labels. The student's pool has this type, so its true labels cannot be used by mistake.
#[derive(Clone, Copy, Debug)]
pub struct Images<'a> {
    split: &'a Split,
}

impl<'a> Images<'a> {
    /// Wraps the images of `split`.
    #[must_use]
    pub fn new(split: &'a Split) -> Self {
        Self { split }
    }

    pub(crate) fn split(&self) -> &'a Split {
        self.split
    }

    /// Returns the number of images.
    #[must_use]
    pub fn len(&self) -> usize {
        self.split.len()
    }

    /// Returns whether the split is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.split.is_empty()
    }

    /// Returns the size of every image.
    #[must_use]
    pub fn shape(&self) -> ImageShape {
        self.split.shape()
    }

    /// Returns the number of classes.
    #[must_use]
    pub fn classes(&self) -> usize {
        self.split.classes()
    }

    /// Returns the bytes of image `i` in CHW order.
    ///
    /// # Panics
    /// If `i` is not below `len()`.
    #[must_use]
    pub fn pixels(&self, i: usize) -> &'a [u8] {
        self.split.pixels(i)
    }

    /// Returns some images in the form that networks of type `N` read.
    ///
    /// # Panics
    /// If an index is not below `len()`.
    #[must_use]
    pub fn batch<N: Classifier>(&self, some: &[usize]) -> Pixels {
        Pixels::from_split(self.split, some, N::OFFSET)
    }
}

/// One student's settings, images, labels, randomness and device.
#[derive(Clone, Copy, Debug)]
pub struct Lesson<'a> {
    /// The settings.
    pub config: &'a StudentConfig,
    /// The images that the student may see.
    pub pool: Images<'a>,
    /// The labels that the student may see, as (index in the pool, label).
    pub labelled: &'a [(usize, u8)],
    /// Images whose labels are used only for accuracy, if there are any. Without them the accuracy is unknown.
    pub test: Option<&'a Split>,
    /// The random streams of this student only; nothing else may draw from them.
    pub streams: &'a Streams,
    /// The device of the training.
    pub device: &'a Device,
}

impl Lesson<'_> {
    /// Returns the number of classes.
    #[must_use]
    pub fn classes(&self) -> usize {
        self.pool.classes()
    }

    /// Returns the accuracy of a classifier on the test images, if there are any.
    ///
    /// # Errors
    /// If the device failed.
    pub fn accuracy(&self, network: &dyn AnyClassifier) -> Result<Option<f64>, DeviceError> {
        let measure = |test: &Split| accuracy(network, test, &(0..test.len()).collect::<Vec<_>>(), self.device);
        self.test.map(measure).transpose()
    }

    /// Checks that pool, labels and test images fit together.
    pub(crate) fn check(&self) -> Result<(), InvalidData> {
        let (pool, classes) = (self.pool, self.classes());
        if let Some(test) = self.test {
            if pool.shape() != test.shape() {
                return Err(InvalidData::Shape { pool: pool.shape(), test: test.shape() });
            }
            if classes != test.classes() {
                return Err(InvalidData::Classes { pool: classes, test: test.classes() });
            }
            if test.is_empty() {
                return Err(InvalidData::NoTest);
            }
        }
        check_labels(pool, self.labelled, classes)
    }
}

/// Checks that there are labels, and that they are classes of images of the pool.
pub(crate) fn check_labels(pool: Images<'_>, labelled: &[(usize, u8)], classes: usize) -> Result<(), InvalidData> {
    if labelled.is_empty() {
        return Err(InvalidData::NoLabels);
    }
    for (position, &(index, label)) in labelled.iter().enumerate() {
        if index >= pool.len() {
            return Err(InvalidData::Index { position, index, pool: pool.len() });
        }
        if usize::from(label) >= classes {
            return Err(InvalidData::Label { position, label, classes });
        }
    }
    Ok(())
}
