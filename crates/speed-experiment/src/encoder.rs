//! The encoder of a run or of a command, which turns pictures into vectors.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use speed_core::{Digest, printable};
use speed_data::pictures::{Preparation, Reading, Size};
use speed_data::{DataError, ImageShape, Split};
use speed_nn::onnx::{Encoder, EncoderSettings};
use speed_nn::threads;

use crate::config::{Config, DataSource};
use crate::error::ExperimentError;
use crate::model::ModelEncoder;
use crate::progress::Progress;
use crate::report::EncoderFacts;

/// The least height and width of a picture, in pixels.
pub(crate) const LEAST_SIDE: u32 = 8;

/// The encoder of a run or of a command, which turns pictures into vectors.
#[derive(Debug)]
pub(crate) struct PictureEncoder {
    path: PathBuf,
    encoder: Encoder,
}

impl PictureEncoder {
    pub(crate) fn read(config: &Config) -> Result<Option<Self>, ExperimentError> {
        config.features.encoder().map(|path| Self::open(path, &config.encoder_settings())).transpose()
    }

    pub(crate) fn open(path: &Path, settings: &EncoderSettings) -> Result<Self, ExperimentError> {
        let encoder = Encoder::read(path, settings).map_err(|error| ExperimentError::input(path, error))?;
        Ok(Self { path: path.to_owned(), encoder })
    }

    /// Returns the digest of its model, external weights and preparation.
    pub(crate) fn digest(&self) -> Digest {
        self.encoder.digest()
    }

    pub(crate) fn shape(&self) -> ImageShape {
        self.encoder.shape()
    }

    pub(crate) fn vectors_shape(&self) -> ImageShape {
        self.encoder.vectors_shape()
    }

    pub(crate) fn facts(&self) -> EncoderFacts {
        EncoderFacts {
            file: printable(&self.path.file_name().unwrap_or_default().to_string_lossy()),
            digest: self.digest().to_hex(),
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

    fn check_pictures(&self, shape: ImageShape) -> Result<(), ExperimentError> {
        if shape.height.min(shape.width) >= LEAST_SIDE as usize {
            return Ok(());
        }
        let found = format_args!("{}x{}: use larger pictures, or no encoder", shape.height, shape.width);
        let expected = format_args!("expected pictures of at least {LEAST_SIDE}x{LEAST_SIDE} pixels");
        Err(ExperimentError::input(&self.path, format_args!("{expected}, found {found}")))
    }

    /// Returns the vectors of pictures with their labels. `name` names a picture in an error.
    pub(crate) fn encode(
        &self,
        pictures: &Split,
        name: &(dyn Fn(usize) -> String + Sync),
        threads: NonZeroUsize,
        progress: &dyn Progress,
    ) -> Result<Split, ExperimentError> {
        let (shape, all) = (pictures.shape(), pictures.len());
        self.check_pictures(shape)?;
        progress.begin("encode pictures", "pictures", all as u64, 0);
        let vectors = threads::map(&(0..all).collect::<Vec<_>>(), threads.get(), |&picture, _| {
            let vector = self.vector(shape, pictures.pixels(picture), || name(picture));
            progress.advance(1, "");
            vector
        })?;
        progress.end(&format!("{all} pictures encoded"));
        Ok(Split::new(self.vectors_shape(), pictures.classes(), vectors.concat(), pictures.labels().to_vec())?)
    }

    /// Returns the vector of a picture of any shape. `name` names the picture in an error.
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

pub(crate) fn vector(encoder: &Encoder, shape: ImageShape, picture: &[u8]) -> Result<Vec<u8>, String> {
    let preparation = Preparation { shape: encoder.shape(), least_side: 1, resizes: true, converts: true };
    let prepared = preparation.prepare_bytes(shape, picture)?;
    encoder.vector(&prepared).map_err(|error| error.to_string())
}

/// Reads pictures with `load`. For an encoder they are resized to the size in `reading`, or else to the encoder's: no picture decides
/// how others are read.
pub(crate) fn read_pictures<T>(
    encoder: Option<&PictureEncoder>,
    reading: Reading,
    load: impl FnOnce(Reading) -> Result<T, DataError>,
) -> Result<T, DataError> {
    let Some(encoder) = encoder else { return load(reading) };
    let ImageShape { height, width, .. } = encoder.shape();
    let pixels = if reading.is_colour { 3 } else { 1 } * height * width;
    let [height, width] = [height, width].map(|side| u32::try_from(side).unwrap_or(u32::MAX));
    let size = reading.size.or(Some(Size { height, width }));
    load(Reading { size, least_side: LEAST_SIDE, max_values: reading.max_values.max(pixels), ..reading })
}

/// Checks that the encoder reads pictures of this shape, and that teachers and students learn from its vectors, or else from the
/// pictures.
pub(crate) fn check_shape(
    config: &Config,
    encoder: Option<&PictureEncoder>,
    shape: ImageShape,
) -> Result<(), ExperimentError> {
    let Some(encoder) = encoder else { return config.check_images(shape) };
    encoder.check_pictures(shape)?;
    config.check_images(encoder.vectors_shape())
}
