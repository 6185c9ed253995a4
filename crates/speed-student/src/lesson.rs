//! The input of a student's training.

use burn::tensor::Device;
use speed_core::random::Streams;
use speed_data::{Images, Split};
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
    /// The probability that each label is wrong, in the order of the labels; `None` if it is unknown. Only the method on pseudo-labels
    /// uses it, in addition to its setting `label_noise`.
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
    ///
    /// # Panics
    /// If an index is not below the number of images.
    #[must_use]
    pub fn batch<N: Classifier>(&self, some: &[usize]) -> Pixels {
        Pixels::from_split(self.pool.split(), some, N::OFFSET)
    }

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
        if let Some(doubts) = self.doubts {
            let labels = self.labelled.len();
            let found = doubts.iter().filter(|doubt| (0.0..1.0).contains(*doubt)).count();
            if [doubts.len(), found] != [labels; 2] {
                return Err(InvalidData::Doubts { labels, doubts: doubts.len(), found });
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
