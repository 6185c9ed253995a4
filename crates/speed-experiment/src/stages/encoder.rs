//! The encoder of a run, which turns its pictures into vectors.

use std::path::PathBuf;

use speed_core::{printable, printable_path};
use speed_data::pictures::Preparation;
use speed_data::{Facts, ImageShape};
use speed_nn::onnx::Encoder;

use crate::config::{Config, DataSource};
use crate::error::ExperimentError;
use crate::model::ModelEncoder;
use crate::report::EncoderFacts;

/// The least height and width of a picture, in pixels.
pub(crate) const LEAST_SIDE: u32 = 8;

/// The encoder of a run, which turns its pictures into vectors.
#[derive(Debug)]
pub(crate) struct RunEncoder {
    path: PathBuf,
    encoder: Encoder,
}

impl RunEncoder {
    /// Reads the encoder of a config, if it has one.
    ///
    /// # Errors
    /// If the file cannot be read, or is not an encoder.
    pub(crate) fn read(config: &Config) -> Result<Option<Self>, ExperimentError> {
        let Some(path) = config.features.encoder() else { return Ok(None) };
        let encoder = Encoder::read(path, &config.encoder_settings());
        let encoder = encoder.map_err(|error| ExperimentError::input(path, error))?;
        Ok(Some(Self { path: path.to_owned(), encoder }))
    }

    /// Returns the shape of its pictures.
    pub(crate) fn shape(&self) -> ImageShape {
        self.encoder.shape()
    }

    /// Returns the shape of its vectors.
    pub(crate) fn vectors_shape(&self) -> ImageShape {
        self.encoder.vectors_shape()
    }

    /// Returns the facts about it for fingerprints and reports.
    pub(crate) fn facts(&self) -> EncoderFacts {
        EncoderFacts {
            file: printable(&self.path.file_name().unwrap_or_default().to_string_lossy()),
            digest: self.encoder.digest().to_hex(),
            width: self.encoder.width(),
            preparation: self.encoder.preparation().clone(),
        }
    }

    /// Returns it as the encoder of models that learn from a config's pictures, whose number of channels is `channels`. Sizes
    /// other than `data.size` are those of files, which a prediction does not repeat.
    pub(crate) fn of_model(&self, config: &Config, channels: usize) -> ModelEncoder {
        let facts = self.facts();
        let given = config.reading().size.filter(|_| config.data.source == DataSource::Pictures);
        let [height, width] = given.map_or(facts.preparation.size, |size| [size.height as usize, size.width as usize]);
        ModelEncoder { facts, pictures: [channels, height, width] }
    }

    /// Checks that it can read pictures of this shape.
    ///
    /// # Errors
    /// If they are too small to say anything.
    pub(crate) fn check_pictures(&self, shape: ImageShape) -> Result<(), ExperimentError> {
        if shape.height.min(shape.width) >= LEAST_SIDE as usize {
            return Ok(());
        }
        let place = printable_path(&self.path);
        Err(ExperimentError::fault(format_args!(
            "features.encoder = {place}: expected pictures of at least {LEAST_SIDE}x{LEAST_SIDE} pixels, found {}x{}: use larger pictures, or no \
             encoder",
            shape.height, shape.width
        )))
    }

    /// Returns facts about vectors from facts about pictures.
    pub(crate) fn of_vectors(&self, pictures: Facts) -> Facts {
        Facts { shape: self.vectors_shape(), ..pictures }
    }

    /// Returns the vector of a picture of any shape. `name` names the picture in an error.
    ///
    /// # Errors
    /// If its features are constant, infinite or not numbers, or the encoder fails.
    pub(crate) fn vector(
        &self,
        shape: ImageShape,
        picture: &[u8],
        name: impl FnOnce() -> String,
    ) -> Result<Vec<u8>, ExperimentError> {
        let vector = vector(&self.encoder, shape, picture);
        vector.map_err(|fault| ExperimentError::input(&self.path, format_args!("{}: {fault}", name())))
    }
}

/// Returns an encoder's vector of a picture of any shape.
///
/// # Errors
/// If its features are constant, infinite or not numbers, or the encoder fails.
pub(crate) fn vector(encoder: &Encoder, shape: ImageShape, picture: &[u8]) -> Result<Vec<u8>, String> {
    let preparation = Preparation { shape: encoder.shape(), least_side: 1, resizes: true, converts: true };
    let prepared = preparation.prepare_bytes(shape, picture)?;
    encoder.vector(&prepared).map_err(|error| error.to_string())
}
