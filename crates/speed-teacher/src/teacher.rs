//! A trained teacher: predictions and bytes.

use crate::batch::Images;
use crate::network::{Network, ParameterArray, Trace, parameter_arrays};
use crate::{TeacherConfig, TeacherError};
use burn::module::Module;
use burn::store::ModuleRecord;
use burn::tensor::{Bytes, Device};
use sha2::{Digest, Sha256};
use speed_data::{ImageShape, Split};
use speed_random::Streams;
use std::fmt;

/// Images that are predicted at once; more does not make it faster.
const PREDICTION_BATCH: usize = 100;

const MAGIC: &[u8; 16] = b"speed teacher 1\n";
const DIGEST_LEN: usize = 32;

/// A trained network with the size of the images it reads and the number of classes it knows.
///
/// Its weights are as private as its partition: `Debug` shows neither.
#[derive(Clone)]
pub struct Teacher {
    network: Network,
    shape: ImageShape,
    classes: usize,
}

impl Teacher {
    /// Returns a teacher of a network without autodiff.
    pub(crate) fn new(network: Network, shape: ImageShape, classes: usize) -> Self {
        Self { network, shape, classes }
    }

    /// Returns the size of the images it reads.
    #[must_use]
    pub fn shape(&self) -> ImageShape {
        self.shape
    }

    /// Returns the number of classes it knows.
    #[must_use]
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// Returns its parameters: weights and bias of every layer, from the image on.
    ///
    /// # Errors
    /// [`TeacherError::Device`] if Burn cannot read them.
    pub fn parameters(&self) -> Result<Vec<ParameterArray>, TeacherError> {
        parameter_arrays(&self.network)
    }

    /// Returns the class with the greatest logit of every image; of equal ones the lowest.
    ///
    /// # Errors
    /// [`TeacherError::ImageShape`] or [`TeacherError::Classes`] for images of another kind than it was trained on.
    pub fn predict(&self, images: &Split) -> Result<Vec<u8>, TeacherError> {
        self.predict_some(images, &(0..images.len()).collect::<Vec<_>>())
    }

    /// [`predict`](Self::predict) for the images with these indices only.
    pub(crate) fn predict_some(&self, images: &Split, indices: &[usize]) -> Result<Vec<u8>, TeacherError> {
        if images.shape() != self.shape {
            return Err(TeacherError::ImageShape { expected: self.shape, found: images.shape() });
        }
        if images.classes() != self.classes {
            return Err(TeacherError::Classes { expected: self.classes, found: images.classes() });
        }
        let (mut trace, offset) = (Trace::default(), self.network.offset());
        let mut labels = Vec::with_capacity(indices.len());
        for chunk in indices.chunks(PREDICTION_BATCH) {
            let mut batch = Images::with_capacity(self.shape, chunk.len());
            chunk.iter().for_each(|&i| batch.push(images, i, [0, 0], offset));
            let logits = self.network.logits(&batch, &mut trace)?;
            labels.extend(logits.chunks(self.classes).map(greatest));
        }
        Ok(labels)
    }

    /// Returns the weights in full precision with a digest in front. Equal teachers have equal bytes.
    ///
    /// # Errors
    /// [`TeacherError::Bytes`] if Burn cannot write its record.
    pub fn to_bytes(&self) -> Result<Vec<u8>, TeacherError> {
        let record = self.network.clone().into_record().into_bytes().map_err(record_error)?;
        Ok([MAGIC, digest(&record).as_slice(), &record].concat())
    }

    /// Reads [`to_bytes`](Self::to_bytes) back, for the same configuration, image size and number of classes.
    ///
    /// # Errors
    /// [`TeacherError::Bytes`] for anything else; the errors of a network that cannot be built.
    pub fn from_bytes(
        config: &TeacherConfig,
        shape: ImageShape,
        classes: usize,
        bytes: &[u8],
    ) -> Result<Self, TeacherError> {
        let reject = |reason: &str| TeacherError::Bytes { reason: reason.to_owned() };
        let rest = bytes.strip_prefix(MAGIC).ok_or_else(|| reject("it does not start as one of this version"))?;
        let (expected, record) = rest.split_at_checked(DIGEST_LEN).ok_or_else(|| reject("it is cut short"))?;
        if digest(record) != expected {
            return Err(reject("its digest does not match: it is damaged or cut short"));
        }
        // The initial weights are thrown away: any stream will do.
        let mut stream = Streams::new(0).stream("template", 0);
        let network = Network::new(config.architecture, shape, classes, &mut stream, &Device::flex())?;
        let template = network.clone().into_record().into_bytes().map_err(record_error)?;
        if template.len() != record.len() {
            return Err(reject("it belongs to another network"));
        }
        let record = ModuleRecord::from_bytes(Bytes::from_bytes_vec(record.to_vec())).map_err(record_error)?;
        let network = network.try_load_record(record.cast_to_module_dtype()).map_err(record_error)?;
        Ok(Self::new(network, shape, classes))
    }
}

impl fmt::Debug for Teacher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Teacher").field("shape", &self.shape).field("classes", &self.classes).finish_non_exhaustive()
    }
}

fn greatest(logits: &[f32]) -> u8 {
    let mut best = 0;
    for (class, logit) in logits.iter().enumerate() {
        if *logit > logits[best] {
            best = class;
        }
    }
    // A network has at most 256 classes.
    best as u8
}

fn digest(record: &[u8]) -> [u8; DIGEST_LEN] {
    Sha256::digest(record).into()
}

fn record_error(error: impl fmt::Display) -> TeacherError {
    TeacherError::Bytes { reason: error.to_string() }
}
