//! A trained teacher: predictions and serialisation.

use burn::tensor::Device;
use sha2::{Digest, Sha256};
use speed_core::Vote;
use speed_core::random::Stream;
use speed_data::{ImageShape, Split};
use speed_nn::params::ParameterError;
use speed_nn::training::{AnyClassifier, predict};

use crate::{Architecture, OwnImages, TeacherError, Unknown};

const MAGIC: &[u8] = b"speed teacher 2\n";
const DIGEST_LEN: usize = 32;

/// A trained network with the size of its images, its number of classes, and the own images by which it recognises unlike ones.
///
/// Its weights and own images are as private as its partition: `Debug` shows neither.
#[derive(Clone)]
pub struct Teacher {
    pub(crate) network: Box<dyn AnyClassifier>,
    pub(crate) device: Device,
    pub(crate) shape: ImageShape,
    pub(crate) classes: usize,
    pub(crate) own: Option<OwnImages>,
}

impl Teacher {
    /// Returns the size of its images.
    pub fn shape(&self) -> ImageShape {
        self.shape
    }

    /// Returns its number of classes.
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

    /// Returns its vote on every image: the class with the greatest logit, but on an image unlike its own what `unknown` says, with random
    /// classes from `stream`.
    ///
    /// # Errors
    /// Like [`predict`](Self::predict).
    pub fn vote(&self, unknown: Unknown, images: &Split, stream: &mut Stream) -> Result<Vec<Vote>, TeacherError> {
        let labels = self.predict(images)?;
        let votes = labels.into_iter().enumerate().map(|(image, label)| match &self.own {
            None => Some(label),
            Some(own) => own.vote(unknown, label, images.pixels(image), stream),
        });
        Ok(votes.collect())
    }

    /// Returns its own images, if it lacks classes.
    pub fn own_images(&self) -> Option<&OwnImages> {
        self.own.as_ref()
    }

    /// Returns its network.
    pub fn network(&self) -> &dyn AnyClassifier {
        self.network.as_ref()
    }

    /// Returns its network and its own images, without its image size and number of classes.
    pub fn into_parts(self) -> (Box<dyn AnyClassifier>, Option<OwnImages>) {
        (self.network, self.own)
    }

    /// Returns the weights in full precision and the own images, preceded by a digest. Equal teachers have equal bytes.
    ///
    /// # Errors
    /// [`TeacherError::Bytes`] if Burn cannot write its record.
    pub fn to_bytes(&self) -> Result<Vec<u8>, TeacherError> {
        let record = self.network.to_record().map_err(|error| reject(&error.to_string()))?;
        let own = self.own.as_ref().map_or_else(Vec::new, OwnImages::to_bytes);
        let content = [&(record.len() as u64).to_le_bytes()[..], &record, &own].concat();
        Ok([MAGIC, digest(&content).as_slice(), &content].concat())
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
        let (expected, content) = rest.split_at_checked(DIGEST_LEN).ok_or_else(|| reject("it is truncated"))?;
        if digest(content) != expected {
            return Err(reject("its digest does not match: it is damaged or truncated"));
        }
        let record = content
            .split_first_chunk()
            .and_then(|(length, rest)| rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?));
        let (record, own) = record.ok_or_else(|| reject("its weights are truncated"))?;
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
        let own = match own {
            [] => None,
            own => {
                let own = OwnImages::from_bytes(own, (shape, architecture.reads_vectors()), classes);
                Some(own.ok_or_else(|| reject("its own images do not fit its image size and classes"))?)
            }
        };
        Ok(Self { network, device: device.clone(), shape, classes, own })
    }
}

speed_core::debug_as!(Teacher, this => "Teacher {{ shape: {}, classes: {}, .. }}", this.shape, this.classes);

fn reject(reason: &str) -> TeacherError {
    TeacherError::Bytes { reason: reason.to_owned() }
}

fn digest(record: &[u8]) -> [u8; DIGEST_LEN] {
    Sha256::digest(record).into()
}
