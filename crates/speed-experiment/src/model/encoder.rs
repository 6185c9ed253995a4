//! The encoder of a model of vectors. A model's file states its digest and its preparation, and the encoder stays a file of its own.

use std::path::Path;

use speed_core::printable;
use speed_nn::onnx::{Encoder, OnnxError};

use super::{Image, Model, ModelEncoder};
use crate::encoder::vector;
use crate::error::ExperimentError;

impl Model {
    /// Reads a model as [`Self::read`] does, with its encoder if it is a model of vectors: the file of its training.
    ///
    /// # Errors
    /// If the model cannot be read, its encoder is missing or another one, or a model of pictures has an encoder.
    pub fn read_with_encoder(
        path: &Path,
        datasets: Option<&Path>,
        encoder: Option<&Path>,
    ) -> Result<Self, ExperimentError> {
        let model = Self::read(path, datasets)?;
        match (&model.description.encoder, encoder) {
            (None, None) => Ok(model),
            (Some(_), None) => Err(model.without_encoder().at(path)),
            (None, Some(encoder)) => {
                let fault = "expected no encoder, because the model reads pictures; found one: leave --encoder out";
                Err(ExperimentError::input(encoder, fault))
            }
            (Some(expected), Some(encoder)) => {
                let encoder = Some(read(expected, encoder)?);
                Ok(Self { encoder, ..model })
            }
        }
    }

    /// Returns the encoder; `None` for a model of pictures.
    pub(super) fn encoder(&self) -> Result<Option<&Encoder>, ExperimentError> {
        match (&self.description.encoder, &self.encoder) {
            (Some(_), None) => Err(self.without_encoder()),
            (_, encoder) => Ok(encoder.as_ref()),
        }
    }

    fn without_encoder(&self) -> ExperimentError {
        let known = self.description.encoder.as_ref().map(|encoder| &encoder.facts);
        let [file, digest] = known.map_or(["", ""], |facts| [&facts.file, &facts.digest]);
        ExperimentError::fault(format_args!(
            "expected the model's encoder, {} with SHA-256 {digest}, found none: give it with --encoder FILE",
            printable(file)
        ))
    }

    /// Returns the vector of an image.
    pub(super) fn vector(&self, encoder: &Encoder, image: &Image) -> Result<Vec<u8>, ExperimentError> {
        let (preparation, mut picture) = (self.preparation(), Vec::new());
        image.read(&preparation, &mut picture)?;
        vector(encoder, preparation.shape, &picture).map_err(|fault| ExperimentError::input(image.name(), fault))
    }
}

/// Reads the encoder of a model, with the model's own preparation.
fn read(expected: &ModelEncoder, path: &Path) -> Result<Encoder, ExperimentError> {
    let facts = &expected.facts;
    let other = |found: String| {
        let (file, digest) = (printable(&facts.file), &facts.digest);
        let fault = format_args!(
            "expected the model's encoder, {file} with SHA-256 {digest}, found {found}: give the encoder of the model's training"
        );
        ExperimentError::input(path, fault)
    };
    let encoder = Encoder::read(path, &facts.preparation.settings()).map_err(|error| match error {
        OnnxError::Unreadable { .. } => ExperimentError::input(path, error),
        error => other(format!("another file ({error})")),
    })?;
    let found = encoder.digest().to_hex();
    if found == facts.digest && encoder.width() == facts.width {
        Ok(encoder)
    } else {
        Err(other(format!("SHA-256 {found}")))
    }
}
