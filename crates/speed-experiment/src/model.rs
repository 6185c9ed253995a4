//! Models that leave a run: a student or a teacher in one file, and its predictions.
//!
//! Its five main uses:
//! - read the model of a file ([`Model::read`], [`Model::read_with_encoder`]), which may be untrusted;
//! - write a trained network with its description ([`to_bytes`]);
//! - classify pictures and arrays ([`Predicting`]);
//! - write a model for other programs ([`Model::to_onnx`]);
//! - classify with a model of another program ([`ForeignModel`]).
//!
//! A file is in the safetensors format, so other programs can read the weights. Its metadata have one entry, `speed`: a
//! [`Description`] in JSON, and a checksum of the description and the tensors. Equal models have equal bytes.

mod description;
mod encoder;
mod file;
mod foreign;
mod inputs;
mod onnx;
mod predict;
mod teacher;
#[cfg(test)]
mod tests;

use std::path::Path;

use burn::tensor::Device;
use speed_core::read_regular;
use speed_data::ImageShape;
use speed_data::pictures::Preparation;
use speed_nn::onnx::Encoder;
pub use speed_nn::onnx::{IMAGES, LOGITS, PROBABILITIES, PixelType};
use speed_nn::training::{Activations, AnyClassifier, NamedTensors};
use speed_teacher::OwnImages;

pub(crate) use self::description::check_names;
pub use self::description::{Description, FORMAT, ModelEncoder, Network, Origin, Preprocessing};
pub(crate) use self::file::MAX_FILE;
pub use self::foreign::ForeignModel;
use self::inputs::Image;
pub use self::inputs::Inputs;
pub use self::onnx::OnnxModel;
pub(crate) use self::predict::probabilities;
pub use self::predict::{Predicting, Prediction};

use crate::encoder::LEAST_SIDE;
use crate::error::ExperimentError;

/// Maximum number of values that a network computes at once for one image: 256 MiB.
const MAX_ACTIVATIONS: usize = 1 << 26;

/// A trained network with its description.
pub struct Model {
    description: Description,
    network: Box<dyn AnyClassifier>,
    /// Numbers of values in memory while the network computes one image.
    activations: Activations,
    device: Device,
    /// The encoder, if it was read.
    encoder: Option<Encoder>,
    /// The own images of a teacher that lacks classes.
    own: Option<OwnImages>,
}

impl Model {
    /// The largest file of a model, in bytes.
    pub const MAX_BYTES: u64 = MAX_FILE;

    /// Reads a model's file, or a teacher's stored weights in the directory of its run. The images in `datasets` are read
    /// only for a teacher of a run that kept no students.
    ///
    /// # Errors
    /// If the file is missing, damaged or not a model; for a teacher also the errors of its run's config and images.
    pub fn read(path: &Path, datasets: Option<&Path>) -> Result<Self, ExperimentError> {
        let bytes = read_regular(path, MAX_FILE).map_err(ExperimentError::unreadable_model(path))?;
        if bytes.starts_with(teacher::MAGIC) {
            let device = Device::flex();
            let (description, teacher) = teacher::read(path, &bytes, datasets, &device)?;
            let (network, own) = teacher.into_parts();
            let model = Self::new(description, network, device).map_err(|error| error.at(path))?;
            return Ok(Self { own, ..model });
        }
        Self::from_bytes(&bytes).map_err(|error| error.at(path))
    }

    /// Reads the bytes of a model's file.
    ///
    /// # Errors
    /// If they are damaged or not a model.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ExperimentError> {
        let (description, mut tensors) = file::described_from_bytes(bytes)?;
        let device = Device::flex();
        let own = match &description.network {
            Network::Teacher { config, .. } => {
                let images = (description.shape(), config.architecture.reads_vectors());
                OwnImages::take(&mut tensors, images, description.classes.len())
            }
            Network::Student { .. } => Ok(None),
        };
        let own = own.map_err(ExperimentError::fault)?;
        let parameters = tensors.values().map(|tensor| tensor.values.len()).sum();
        let network = description.network(parameters, &device)?.with_tensors(tensors)?;
        Ok(Self { own, ..Self::new(description, network, device)? })
    }

    /// Refuses a network whose memory for one image has no bound: its file may be small.
    fn new(description: Description, network: Box<dyn AnyClassifier>, device: Device) -> Result<Self, ExperimentError> {
        let ImageShape { channels, height, width } = description.shape();
        let activations = network.trace([1, height, width, channels])?.activations();
        let found = activations.tensor.max(activations.patches);
        if found > MAX_ACTIVATIONS {
            let expected = format_args!(
                "expected a network that computes at most {MAX_ACTIVATIONS} values at once for an image, found {found}"
            );
            return Err(ExperimentError::fault(expected));
        }
        Ok(Self { description, network, activations, device, encoder: None, own: None })
    }

    /// Returns the bytes of the model's file.
    ///
    /// # Errors
    /// If the network cannot be written.
    pub fn to_bytes(&self) -> Result<Vec<u8>, ExperimentError> {
        to_bytes(&self.description, self.network.as_ref(), self.own.as_ref())
    }

    /// Returns the description.
    pub fn description(&self) -> &Description {
        &self.description
    }

    /// Returns the shape of the images that its network reads.
    pub fn shape(&self) -> ImageShape {
        self.description.shape()
    }

    /// Returns the preparation of the images of a prediction, as in its training.
    pub fn preparation(&self) -> Preparation {
        let Preprocessing { resizes, converts } = self.description.preprocessing;
        let least_side = if self.description.encoder.is_some() { LEAST_SIDE as usize } else { 1 };
        Preparation { shape: self.description.pictures(), least_side, resizes, converts }
    }
}

/// Returns the bytes of the file of a network with its description, and with the own images of a teacher that lacks classes. Equal arguments give equal bytes.
///
/// # Errors
/// If the network has parameters that are not floating-point tensors, its device fails, or the file could not be read
/// again: an invalid description, values that are not finite, a network that is too large.
pub fn to_bytes(
    description: &Description,
    network: &dyn AnyClassifier,
    own: Option<&OwnImages>,
) -> Result<Vec<u8>, ExperimentError> {
    let mut tensors = network.tensors()?;
    tensors.extend(own.map(OwnImages::to_tensors).unwrap_or_default());
    of_tensors_to_bytes(description, &tensors)
}

/// Returns the bytes of the file of a model whose weights are `weights`, as [`weights_to_bytes`] returns them.
/// Fails if the weights are not those of the description's network, or the file could not be read again.
pub(crate) fn of_weights_to_bytes(description: &Description, weights: &[u8]) -> Result<Vec<u8>, ExperimentError> {
    of_tensors_to_bytes(description, &file::from_bytes(weights)?)
}

fn of_tensors_to_bytes(description: &Description, tensors: &NamedTensors) -> Result<Vec<u8>, ExperimentError> {
    let bytes = file::described_to_bytes(description, tensors)?;
    if bytes.len() as u64 > MAX_FILE {
        let expected = format_args!("expected at most {MAX_FILE} bytes, found {}", bytes.len());
        return Err(file::unwritable(expected));
    }
    Model::from_bytes(&bytes)?;
    Ok(bytes)
}

/// Returns the bytes of a file of a network's weights alone, in the safetensors format.
/// Fails if the network has parameters that are not floating-point tensors, or its device fails.
pub(crate) fn weights_to_bytes(network: &dyn AnyClassifier) -> Result<Vec<u8>, ExperimentError> {
    file::serialize(&network.tensors()?, None)
}

impl std::fmt::Debug for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Model").field("description", &self.description).finish_non_exhaustive()
    }
}
