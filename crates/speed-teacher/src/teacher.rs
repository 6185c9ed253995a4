//! A trained teacher: predictions and serialisation.

use std::fmt;

use burn::tensor::Device;
use sha2::{Digest, Sha256};
use speed_data::{ImageShape, Split};
use speed_nn::params::ParameterError;
use speed_nn::training::{AnyClassifier, predict};

use crate::{Architecture, TeacherError};

const MAGIC: &[u8] = b"speed teacher 1\n";
const DIGEST_LEN: usize = 32;

/// A trained network with the size of its images and its number of classes.
///
/// Its weights are as private as its partition: `Debug` shows neither.
#[derive(Clone)]
pub struct Teacher {
    network: Box<dyn AnyClassifier>,
    device: Device,
    shape: ImageShape,
    classes: usize,
}

impl Teacher {
    /// Wraps a network without gradients on `device`.
    pub(crate) fn new(network: Box<dyn AnyClassifier>, device: Device, shape: ImageShape, classes: usize) -> Self {
        Self { network, device, shape, classes }
    }

    /// Returns the size of its images.
    #[must_use]
    pub fn shape(&self) -> ImageShape {
        self.shape
    }

    /// Returns its number of classes.
    #[must_use]
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// Returns the class with the greatest logit for every image; the lowest class on a tie.
    ///
    /// # Errors
    /// [`TeacherError::Data`] for images that differ in size or classes from the training images;
    /// [`TeacherError::Device`].
    pub fn predict(&self, images: &Split) -> Result<Vec<u8>, TeacherError> {
        let (expected, found) = (self.shape, images.shape());
        if found != expected {
            let message = format!("expected images of the teacher's size, {expected}, found {found}");
            return Err(TeacherError::Data(message));
        }
        let (expected, found) = (self.classes, images.classes());
        if found != expected {
            let message = format!("expected data with the teacher's {expected} classes, found {found}");
            return Err(TeacherError::Data(message));
        }
        Ok(predict(self.network.as_ref(), images, &(0..images.len()).collect::<Vec<_>>(), &self.device)?)
    }

    /// Returns its network.
    #[must_use]
    pub fn network(&self) -> &dyn AnyClassifier {
        self.network.as_ref()
    }

    /// Returns its network, without its image size and number of classes.
    #[must_use]
    pub fn into_network(self) -> Box<dyn AnyClassifier> {
        self.network
    }

    /// Returns the weights in full precision, preceded by a digest. Equal teachers have equal bytes.
    ///
    /// # Errors
    /// [`TeacherError::Bytes`] if Burn cannot write its record.
    pub fn to_bytes(&self) -> Result<Vec<u8>, TeacherError> {
        let record = self.network.to_record().map_err(|error| reject(&error.to_string()))?;
        Ok([MAGIC, digest(&record).as_slice(), &record].concat())
    }

    /// Reads [`to_bytes`](Self::to_bytes) back onto `device`, for the same architecture, image size and number of classes.
    ///
    /// # Errors
    /// [`TeacherError::Bytes`] for anything else; the errors of a network that cannot be built.
    pub fn from_bytes(
        architecture: Architecture,
        shape: ImageShape,
        classes: usize,
        device: &Device,
        bytes: &[u8],
    ) -> Result<Self, TeacherError> {
        let other = || {
            let [expected, found] = [MAGIC, &bytes[..bytes.len().min(MAGIC.len())]].map(String::from_utf8_lossy);
            reject(&format!("expected the header {:?}, found {:?}", expected.trim_end(), found.trim_end()))
        };
        let rest = bytes.strip_prefix(MAGIC).ok_or_else(other)?;
        let (expected, record) = rest.split_at_checked(DIGEST_LEN).ok_or_else(|| reject("it is truncated"))?;
        if digest(record) != expected {
            return Err(reject("its digest does not match: it is damaged or truncated"));
        }
        // A parameter takes four bytes.
        let template = architecture.classifier(shape, classes, record.len() / 4, device);
        let template = template.map_err(|error| match error {
            TeacherError::FewParameters { .. } => reject("it belongs to another network"),
            error => error,
        })?;
        let network = template.with_record(record).map_err(|error| match error {
            ParameterError::Length { .. } | ParameterError::Other => reject("it belongs to another network"),
            error => reject(&error.to_string()),
        })?;
        Ok(Self::new(network, device.clone(), shape, classes))
    }
}

impl fmt::Debug for Teacher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Teacher").field("shape", &self.shape).field("classes", &self.classes).finish_non_exhaustive()
    }
}

fn reject(reason: &str) -> TeacherError {
    TeacherError::Bytes { reason: reason.to_owned() }
}

fn digest(record: &[u8]) -> [u8; DIGEST_LEN] {
    Sha256::digest(record).into()
}
