//! Models in ONNX's format, for programs that are not this one.

use speed_core::ExitCode;
use speed_data::ImageShape;
use speed_nn::matrix::Arithmetic;
use speed_nn::onnx::{Encoder, Export, OnnxError, PixelType, largest_difference};

use super::Model;
use super::description::{FORMAT, ModelEncoder, Origin};
use crate::error::ExperimentError;
use crate::report::FROM_PUBLIC_DATA;

/// The largest difference of a logit from that of the network, as a fraction of the largest logit.
const MAX_DIFFERENCE: f32 = 1e-4;
/// The number of random images that a model is compared on: another one than the graph was recorded with.
const COMPARED: usize = 5;

/// A model in ONNX's format.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct OnnxModel {
    /// The bytes of the file.
    pub bytes: Vec<u8>,
    /// The largest difference of a logit from that of the network, on random images, as a fraction of the largest logit.
    pub difference: f32,
    /// The shape of its images: the encoder's pictures for a model of vectors.
    pub shape: ImageShape,
    /// Whether a run of the model may have several images.
    pub is_variable: bool,
}

impl Model {
    /// Returns the model in ONNX's format, after a comparison with the network. A model of vectors contains its encoder.
    ///
    /// # Errors
    /// If an operation of the network has no form in ONNX, the model computes other logits, or its encoder was not read.
    pub fn to_onnx(&self, pixels: PixelType) -> Result<OnnxModel, ExperimentError> {
        // In the other arithmetic, products are rounded more.
        let _arithmetic = Arithmetic::Portable.hold()?;
        let description = &self.description;
        let failure = |error: OnnxError| {
            let error = ExperimentError::new(ExitCode::Computation, format_args!("cannot export the network: {error}"));
            error.at(description.network.name())
        };
        let texts = serde_json::to_string(&description.classes).unwrap_or_default();
        let mut metadata = vec![
            ("classes", texts),
            ("kind", if description.is_teacher() { "teacher" } else { "student" }.to_owned()),
            ("network", description.network.name().to_owned()),
            ("format", FORMAT.to_string()),
            ("simulation", description.origin.simulation.to_string()),
        ];
        let Origin { experiment, run, row, round, publishable, .. } = &description.origin;
        metadata.extend(publishable.map(|publishable| ("publishable", publishable.to_string())));
        let known = [("experiment", experiment), ("run", run), ("row", row), ("round", round)];
        metadata.extend(known.into_iter().filter_map(|(key, value)| Some((key, value.clone()?))));
        let encoder = self.encoder()?;
        if let Some(ModelEncoder { facts, pictures: [channels, height, width] }) = &description.encoder {
            metadata.push(("encoder", facts.digest.clone()));
            metadata.push(("condition", FROM_PUBLIC_DATA.to_owned()));
            metadata.push(("pictures", format!("{channels}x{height}x{width}")));
        }
        let export = Export {
            network: self.network.as_ref(),
            shape: self.shape(),
            encoder,
            pixels,
            version: env!("CARGO_PKG_VERSION"),
            metadata: &metadata,
        };
        let bytes = export.to_bytes().map_err(failure)?;
        let difference = largest_difference(&export, &bytes, COMPARED).map_err(failure)?;
        if difference.is_nan() || difference > MAX_DIFFERENCE {
            return Err(failure(OnnxError::Differs { expected: MAX_DIFFERENCE, found: difference }));
        }
        let shape = encoder.map_or(self.shape(), Encoder::shape);
        Ok(OnnxModel { bytes, difference, shape, is_variable: encoder.is_none_or(Encoder::is_variable) })
    }
}
