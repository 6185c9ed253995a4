//! The encoder of a run, which turns its pictures into vectors.

use std::path::PathBuf;

use speed_core::{printable, printable_path};
use speed_data::pictures::Preparation;
use speed_data::{Facts, ImageShape};
use speed_nn::onnx::Encoder;

use crate::config::Config;
use crate::error::ExperimentError;
use crate::report::EncoderFacts;

/// The least height and width of a picture, in pixels.
pub(super) const LEAST_SIDE: u32 = 8;

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
        let preparation = Preparation { shape: self.shape(), resizes: true, converts: true };
        let prepared = preparation.prepare_bytes(shape, picture);
        let vector = prepared.and_then(|bytes| self.encoder.vector(&bytes).map_err(|error| error.to_string()));
        vector.map_err(|fault| ExperimentError::input(&self.path, format_args!("{}: {fault}", name())))
    }
}
