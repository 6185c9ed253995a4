//! Models that leave a run: a student or a teacher in one file, and its predictions.
//!
//! Its four main uses:
//! - read the model of a file ([`Model::read`]), which may be untrusted;
//! - write a trained network with its description ([`to_bytes`]);
//! - classify pictures and arrays ([`Predicting`]);
//! - write a model for other programs ([`Model::to_onnx`]).
//!
//! A file is in the safetensors format, so other programs can read the weights. Its metadata have one entry, `speed`: a
//! [`ModelCard`] in JSON, and a checksum of the card and the tensors. Equal models have equal bytes.

mod card;
mod file;
mod inputs;
mod onnx;
mod predict;
mod teacher;
#[cfg(test)]
mod tests;

use std::path::Path;

use burn::tensor::Device;
use speed_data::ImageShape;
use speed_data::pictures::Preparation;
use speed_nn::training::AnyClassifier;
pub use speed_onnx::{IMAGES, LOGITS, PROBABILITIES, PixelType};

pub use self::card::{FORMAT, ModelCard, Network, Origin, Preprocessing};
pub use self::file::to_bytes;
pub use self::inputs::Inputs;
pub use self::onnx::OnnxModel;
pub(crate) use self::predict::probabilities;
pub use self::predict::{Predicting, Prediction};

use crate::error::{ExperimentError, ModelFault};
use crate::store::read_large;

/// Maximum length of a model's file in bytes: ten times the length of the largest network here.
const MAX_FILE: u64 = 1 << 30;

/// A trained network with its description.
pub struct Model {
    card: ModelCard,
    network: Box<dyn AnyClassifier>,
    device: Device,
}

impl Model {
    /// Reads a model's file, or a teacher's stored weights in the folder of its run. The images in `datasets` are read only
    /// for a teacher of a run that kept no students.
    ///
    /// # Errors
    /// [`ExperimentError::Model`] if the file is missing, damaged or not a model; for a teacher also the errors of its run's
    /// config and images.
    pub fn read(path: &Path, datasets: Option<&Path>) -> Result<Self, ExperimentError> {
        let failure = |fault| ExperimentError::Model { path: path.to_path_buf(), fault };
        let bytes = read_large(path, MAX_FILE).map_err(|error| failure(ModelFault::Unreadable(error)))?;
        if teacher::is_teacher(&bytes) {
            return teacher::read(path, &bytes, datasets);
        }
        Self::from_bytes(&bytes).map_err(failure)
    }

    /// Reads the bytes of a model's file.
    ///
    /// # Errors
    /// If they are damaged or not a model.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ModelFault> {
        let (card, tensors) = file::from_bytes(bytes)?;
        let device = Device::flex();
        let parameters = tensors.values().map(|tensor| tensor.values.len()).sum();
        let network = card.network(parameters, &device)?.with_tensors(tensors)?;
        Ok(Self { card, network, device })
    }

    /// Returns the bytes of the model's file.
    ///
    /// # Errors
    /// If the network cannot be written.
    pub fn to_bytes(&self) -> Result<Vec<u8>, ModelFault> {
        to_bytes(&self.card, self.network.as_ref())
    }

    /// Returns the description.
    #[must_use]
    pub fn card(&self) -> &ModelCard {
        &self.card
    }

    /// Returns its network, without gradients.
    #[must_use]
    pub fn network(&self) -> &dyn AnyClassifier {
        self.network.as_ref()
    }

    /// Returns the shape of its images.
    #[must_use]
    pub fn shape(&self) -> ImageShape {
        self.card.shape()
    }

    /// Returns the preparation of its images, as in its training.
    #[must_use]
    pub fn preparation(&self) -> Preparation {
        let Preprocessing { resizes, converts } = self.card.preprocessing;
        Preparation { shape: self.shape(), resizes, converts }
    }
}

impl std::fmt::Debug for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Model").field("card", &self.card).finish_non_exhaustive()
    }
}
