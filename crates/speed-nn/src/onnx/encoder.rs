//! Encoders of other programs, which turn pictures into vectors, in tract. Their files are untrusted.

use std::path::Path;

use speed_core::{Digest, read_regular};
use speed_data::ImageShape;
use tract_onnx::pb::ModelProto;

use crate::onnx::preparation::checked_size;
use crate::onnx::untrusted::{
    Input, MAX_MODEL, Plan, check_operations, compared, decoded, described, guarded, input, reals, typed,
};
use crate::onnx::{EncoderPreparation, EncoderSettings, OnnxError, PixelType, TokenPool, external};

#[cfg(test)]
mod tests;

/// The smallest and the largest number of values of a vector.
const WIDTHS: [usize; 2] = [2, 8192];
/// Number of pictures on which an optimised model is compared with the model as it was written.
const PICTURES: u64 = 2;
const OTHER_ENCODER: &str = "export the encoder for inference without them, or use another encoder";

/// A model of any program that gives a vector for a picture, from which classes are learned later. A picture's vector
/// depends on the picture and the encoder only.
pub struct Encoder {
    plan: Plan,
    input: Input,
    preparation: EncoderPreparation,
    width: usize,
    digest: Digest,
    model: ModelProto,
    /// The prepared values of the 256 bytes in every channel.
    prepared: Vec<[f32; 256]>,
}

impl Encoder {
    /// Reads a model's file: one input N x channels x height x width of uint8 or float32, and as first output N x D,
    /// N x D x 1 x 1, or tokens N x T x D, of float32. The number N is variable or 1.
    ///
    /// External weights are read from the model's own directory only. A file `preprocessor_config.json` there, as Hugging
    /// Face stores it, completes the settings.
    ///
    /// # Errors
    /// If a file cannot be read, the model has another form, an operation that tract lacks, operations that are random or
    /// have their own graphs, or a vector that does not depend on the picture.
    pub fn read(path: &Path, settings: &EncoderSettings) -> Result<Self, OnnxError> {
        let bytes = read_regular(path, MAX_MODEL).map_err(|error| OnnxError::unreadable(path, error))?;
        let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut model = decoded(&bytes)?;
        let graph = model.graph.get_or_insert_default();
        let completed = settings.completed(directory)?;
        let advice = "give the encoder's size, or export it with one";
        let input = input(graph, completed.size).map_err(|error| error.advising(advice))?;
        let (preparation, prepared) = prepared(&input, settings, &completed)?;
        check_operations(graph).map_err(|error| error.advising(OTHER_ENCODER))?;

        let mut digests = vec![Digest::of(&bytes)];
        digests.extend(external::embed(graph, path, directory, bytes.len() as u64)?);
        drop(bytes);
        digests.push(preparation.digest());
        let digest = Digest::of(digests.iter().map(Digest::as_bytes).copied().collect::<Vec<_>>().concat());

        let ([plain, optimised], width) = guarded(|| {
            let (typed, output) = typed(&model, &input)?;
            let width = width(reals(output.as_ref()), preparation.pool, &described(output.as_ref()))?;
            Ok((Plan::both(typed, &input)?, width))
        })
        .map_err(|error| error.advising(OTHER_ENCODER))?;
        let encoder = Self { plan: optimised, input, preparation, width, digest, model, prepared };
        encoder.check(&plain)?;
        Ok(encoder)
    }

    /// Compares the optimised model with the model as it was written, and refuses vectors without information.
    fn check(&self, plain: &Plan) -> Result<(), OnnxError> {
        let (plain, optimised) =
            (|image: &[u8]| self.features(plain, image), |image: &[u8]| self.features(&self.plan, image));
        let fault = "computes other vectors after its optimisation";
        let vectors = compared(self.shape(), PICTURES, fault, [&plain, &optimised])?;
        let found = match &vectors[..] {
            [first, second] if first != second => return Ok(()),
            [_, _] => "the same vector for two different pictures",
            _ => "vectors that are constant, infinite or not numbers",
        };
        let expected = "finite vectors that depend on the picture";
        Err(OnnxError::form(expected, found).advising("check the encoder's mean and deviation, or use another encoder"))
    }

    speed_core::getters! {
        /// Returns the shape of its pictures.
        shape: ImageShape = input.shape,
        /// Returns whether a run of the model may have several pictures.
        is_variable: bool = input.is_variable,
        /// Returns the number of values of a vector.
        width: usize,
        /// Returns the digest of the model's bytes, its external weights and its preparation.
        digest: Digest,
        /// Returns the preparation of its pictures.
        preparation: &EncoderPreparation,
    }

    /// Returns the shape of a vector as an image of one row.
    pub fn vectors_shape(&self) -> ImageShape {
        ImageShape { channels: 1, height: 1, width: self.width }
    }

    /// Returns the vector of a picture of its [`shape`](Self::shape), whose bytes are ordered channel, row, column. Only the
    /// direction of a vector matters, so its value v becomes the byte `128 + round(127 v / max|v|)`.
    ///
    /// # Errors
    /// If the model fails, or its features are constant, infinite or not numbers.
    pub fn vector(&self, image: &[u8]) -> Result<Vec<u8>, OnnxError> {
        let features = self.features(&self.plan, image)?;
        let largest = features.iter().fold(0.0_f32, |largest, value| largest.max(value.abs()));
        // In the order of the exported model's operations.
        Ok(features.iter().map(|value| (128.0 + (value / largest * 127.0).round_ties_even()) as u8).collect())
    }

    /// Returns the features of a picture, to which those of its mirror image are added if the preparation says so.
    fn features(&self, plan: &Plan, image: &[u8]) -> Result<Vec<f32>, OnnxError> {
        let mut features = self.output(plan, image)?;
        if self.preparation.mirror {
            let mirrored: Vec<u8> =
                image.chunks_exact(self.shape().width).flat_map(|row| row.iter().rev().copied()).collect();
            let others = self.output(plan, &mirrored)?;
            features.iter_mut().zip(others).for_each(|(feature, other)| *feature += other);
        }
        let fault = match features.iter().find(|value| !value.is_finite()) {
            Some(value) => value.to_string(),
            None if features.iter().all(|value| *value == features[0]) => "equal ones".to_owned(),
            None => return Ok(features),
        };
        let expected = "features of this picture that are finite and not all equal";
        Err(OnnxError::form(expected, format!("{fault}: leave the picture out, or use another encoder")))
    }

    /// Returns the first output of a plan for a picture, with tokens pooled.
    fn output(&self, plan: &Plan, image: &[u8]) -> Result<Vec<f32>, OnnxError> {
        let ImageShape { height, width, .. } = self.shape();
        if image.len() != self.shape().pixels() {
            let found = format!("{}: resize it to the encoder's shape", image.len());
            return Err(OnnxError::form(
                format!("{} bytes of a picture {}", self.shape().pixels(), self.shape()),
                found,
            ));
        }
        let (shape, mut values) = match self.input.pixels {
            PixelType::Uint8 => plan.run(image)?,
            PixelType::Float => {
                let channels = image.chunks_exact(height * width).zip(&self.prepared);
                let reals = channels.flat_map(|(bytes, values)| bytes.iter().map(|&byte| values[usize::from(byte)]));
                plan.run(&reals.collect::<Vec<f32>>())?
            }
        };
        let found = format!("{shape:?}");
        if self::width(Some(&shape), self.preparation.pool, &found)? != self.width {
            return Err(output_fault(&found));
        }
        match self.preparation.pool {
            None => {}
            Some(TokenPool::First) => values.truncate(self.width),
            Some(TokenPool::Mean) => {
                let count = (values.len() / self.width) as f32;
                let sum = |place: usize| values.iter().skip(place).step_by(self.width).sum::<f32>();
                values = (0..self.width).map(|place| sum(place) / count).collect();
            }
        }
        Ok(values)
    }

    pub(crate) fn parts(&self) -> (&ModelProto, &Input) {
        (&self.model, &self.input)
    }
}

speed_core::debug_as!(Encoder, this => "Encoder {{ preparation: {:?}, .. }}", this.preparation);

/// Returns the complete preparation, and the prepared values of the 256 bytes in every channel.
fn prepared(
    input: &Input,
    settings: &EncoderSettings,
    completed: &EncoderSettings,
) -> Result<(EncoderPreparation, Vec<[f32; 256]>), OnnxError> {
    let ImageShape { channels, height, width } = input.shape;
    let size = checked_size([height, width])?;
    if let Some([height, width]) = settings.size.filter(|given| *given != size) {
        let found = format!("the size {height} x {width}: leave it out");
        return Err(OnnxError::form(format!("the model's own {} x {}", size[0], size[1]), found));
    }
    // A model that reads bytes contains its own preparation.
    let reads_bytes = input.pixels == PixelType::Uint8;
    let is_identity = |settings: &EncoderSettings| {
        settings.mean.iter().all(|mean| *mean == 0.0) && settings.deviation.iter().all(|deviation| *deviation == 1.0)
    };
    if reads_bytes && !is_identity(settings) {
        let found = "a mean and a deviation: leave them out";
        return Err(OnnxError::form("no preparation for a model that reads bytes", found));
    }
    let [mean, deviation] =
        if reads_bytes { EncoderSettings::default() } else { completed.clone() }.of_channels(channels)?;
    let prepared = mean
        .iter()
        .zip(&deviation)
        .map(|(mean, deviation)| std::array::from_fn(|byte| (byte as f32 / 255.0 - mean) / deviation));
    let prepared = prepared.collect();
    let EncoderSettings { pool, mirror, .. } = *completed;
    Ok((EncoderPreparation { size, mean, deviation, pool, mirror }, prepared))
}

/// Returns the number of values of a vector in an output of this shape.
fn width(shape: Option<&[usize]>, pool: Option<TokenPool>, found: &str) -> Result<usize, OnnxError> {
    let [min, max] = WIDTHS;
    let width = match (shape, pool) {
        (Some(&[1, width] | &[1, width, 1, 1]), None) => width,
        (Some(&[1, tokens, width]), Some(_)) if tokens > 0 => width,
        (Some(&[1, _, _]), None) => {
            let expected = "a token pool, first or mean, for a model that gives a vector for each token";
            return Err(OnnxError::form(expected, format!("none, and the output {found}: give a token pool")));
        }
        (Some(&[1, _] | &[1, _, 1, 1]), Some(_)) => {
            let expected = "no token pool for a model that gives one vector";
            return Err(OnnxError::form(expected, format!("one, and the output {found}: leave the token pool out")));
        }
        _ => return Err(output_fault(found)),
    };
    if (min..=max).contains(&width) { Ok(width) } else { Err(output_fault(found)) }
}

fn output_fault(found: &str) -> OnnxError {
    let [min, max] = WIDTHS;
    let expected =
        format!("a first output of N x D, N x D x 1 x 1 or tokens N x T x D, float32, with D from {min} to {max}");
    OnnxError::form(expected, found)
}
