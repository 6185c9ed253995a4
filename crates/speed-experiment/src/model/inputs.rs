//! The images of a prediction: pictures, directories of pictures, and arrays.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use speed_core::npy::{ByteArray, RealNumbers, has_reals};
use speed_core::{printable, printable_path, read_regular};
use speed_data::ImageShape;
use speed_data::pictures::{Preparation, find};

use crate::error::ExperimentError;
use crate::image_warnings::of_range;

/// Maximum length of an array's file in bytes.
const MAX_ARRAY: u64 = 8 << 30;

/// Number of images that are looked at for their range.
const LOOKED_AT: usize = 50;

/// The images of a prediction, in order. Pictures are read when they are needed, arrays at once; both are prepared when they
/// are needed.
#[derive(Debug, Default)]
pub struct Inputs {
    images: Vec<Image>,
    warnings: Vec<String>,
}

#[derive(Debug)]
pub(super) enum Image {
    Picture(PathBuf),
    Entry(Arc<Array>, usize),
    /// The vector of an image, from an encoder.
    Vector {
        name: String,
        bytes: Vec<u8>,
    },
}

#[derive(Debug)]
pub(super) struct Array {
    path: PathBuf,
    layout: Layout,
    /// Its values in its order.
    bytes: Vec<u8>,
}

impl Inputs {
    /// Finds the images of some paths: pictures, directories of pictures, and `.npy` arrays.
    ///
    /// # Errors
    /// If a directory has no pictures, or an array is not one of images that the preparation accepts.
    pub fn find(paths: &[PathBuf], preparation: &Preparation) -> Result<Self, ExperimentError> {
        let mut inputs = Self::default();
        for path in paths {
            if path.is_dir() {
                let found = find(path)?;
                inputs.images.extend(found.files.into_iter().map(Image::Picture));
                let skipped = |files| format!("{}: {files}", printable_path(path));
                inputs.warnings.extend(found.passed_over.map(skipped));
            } else if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("npy")) {
                inputs.images.extend(array(path, preparation)?.into_images());
            } else {
                inputs.images.push(Image::Picture(path.clone()));
            }
        }
        Ok(inputs)
    }

    /// Returns the vectors of these images as inputs.
    pub(super) fn with_vectors(&self, vectors: Vec<Vec<u8>>) -> Self {
        let vector = |(image, bytes): (&Image, Vec<u8>)| Image::Vector { name: image.name(), bytes };
        Self { images: self.images.iter().zip(vectors).map(vector).collect(), warnings: Vec::new() }
    }

    /// Returns whether an encoder made vectors of the images.
    pub(super) fn are_vectors(&self) -> bool {
        matches!(self.images.first(), Some(Image::Vector { .. }))
    }

    /// Returns the warnings about the files.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Returns the warning about images that look almost black to a network, from the first fifty.
    ///
    /// # Errors
    /// If one of them cannot be read.
    pub fn dark(&self, preparation: &Preparation) -> Result<Option<String>, ExperimentError> {
        let mut pixels = Vec::new();
        self.images.iter().take(LOOKED_AT).try_for_each(|image| image.read(preparation, &mut pixels))?;
        let largest = pixels.into_iter().max().unwrap_or_default();
        Ok(self.images.first().and_then(|first| of_range(&printable(&first.name()), self.len(), largest)))
    }

    /// Returns the number of images.
    pub fn len(&self) -> usize {
        self.images.len()
    }

    /// Returns whether there are no images.
    pub fn is_empty(&self) -> bool {
        self.images.is_empty()
    }

    pub(super) fn images(&self) -> &[Image] {
        &self.images
    }
}

impl Array {
    fn into_images(self) -> impl Iterator<Item = Image> {
        let array = Arc::new(self);
        (0..array.layout.images).map(move |index| Image::Entry(Arc::clone(&array), index))
    }
}

impl Image {
    /// Returns its name: the path of a picture, or the path of an array with a position.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Picture(path) => path.display().to_string(),
            Self::Entry(array, index) => format!("{}[{index}]", array.path.display()),
            Self::Vector { name, .. } => name.clone(),
        }
    }

    /// Adds its prepared bytes.
    pub(super) fn read(&self, preparation: &Preparation, pixels: &mut Vec<u8>) -> Result<(), ExperimentError> {
        match self {
            Self::Picture(path) => pixels.extend(preparation.read(path)?),
            Self::Vector { bytes, .. } => pixels.extend(bytes),
            Self::Entry(array, index) => {
                let Array { path, layout, bytes } = &**array;
                let values = &bytes[index * layout.shape.pixels()..][..layout.shape.pixels()];
                let prepared = preparation.prepare_bytes(layout.shape, &layout.by_channel(values));
                let fault = |problem| ExperimentError::input(path, format_args!("image {index}: {problem}"));
                pixels.extend(prepared.map_err(fault)?);
            }
        }
        Ok(())
    }
}

fn array(path: &Path, preparation: &Preparation) -> Result<Array, ExperimentError> {
    let file = read_regular(path, MAX_ARRAY);
    let file = file.map_err(|error| ExperimentError::input(path, format_args!("cannot read the images: {error}")))?;
    let (layout, bytes) = parsed_array(&file, preparation.shape).map_err(|error| error.at(path))?;
    Ok(Array { path: path.to_path_buf(), layout, bytes })
}

/// Returns the layout of an array for a model of images of shape `expected`, and its values as bytes.
fn parsed_array(file: &[u8], expected: ImageShape) -> Result<(Layout, Vec<u8>), ExperimentError> {
    if !has_reals(file)? {
        let ByteArray { shape, values, .. } = ByteArray::parse(file)?;
        return Ok((Layout::new(shape, expected)?, values.to_vec()));
    }
    let RealNumbers { shape, values, .. } = RealNumbers::parse(file)?;
    let layout = Layout::new(shape, expected)?;
    let pixels = layout.shape.pixels();
    let byte = |(place, value): (usize, f32)| {
        if !(0.0..=1.0).contains(&value) {
            let expected = format!("image {}: expected floating-point values of 0 to 1", place / pixels);
            let message = format_args!("{expected}, found {value}: divide values of 0 to 255 by 255");
            return Err(ExperimentError::fault(message));
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within 0 to 255")]
        Ok((255.0 * value).round_ties_even() as u8)
    };
    let bytes = values.into_iter().enumerate().map(byte).collect::<Result<_, _>>()?;
    Ok((layout, bytes))
}

fn other_axes(axes: &[usize]) -> ExperimentError {
    ExperimentError::fault(format_args!(
        "expected images x height x width, images x channels x height x width or images x height x width x channels, with 1 or 3 \
         channels and at least one image; found shape {axes:?}"
    ))
}

#[derive(Debug)]
struct Layout {
    images: usize,
    shape: ImageShape,
    /// Whether the channels are the last axis.
    channels_last: bool,
}

impl Layout {
    /// Finds the axis of the channels. If two axes are possible, the shape of the model's images decides.
    fn new(axes: Vec<usize>, expected: ImageShape) -> Result<Self, ExperimentError> {
        let first = |channels, height, width| ImageShape { channels, height, width };
        let is_one_image = |images: usize, height: usize, width: usize| {
            (images == 3 || [1, 3].contains(&width)) && [height, width] != [expected.height, expected.width]
        };
        let (shape, channels_last) = match axes[..] {
            [images, height, width] if is_one_image(images, height, width) => {
                return Err(ExperimentError::fault(format_args!(
                    "expected images x height x width, found shape {axes:?}, which may be one image with channels: save images x channels x \
                     height x width"
                )));
            }
            [_, height, width] => (first(1, height, width), false),
            [_, a @ (1 | 3), b, c @ (1 | 3)] => match (first(a, b, c) == expected, first(c, a, b) == expected) {
                (true, false) => (first(a, b, c), false),
                (false, true) => (first(c, a, b), true),
                _ => {
                    return Err(ExperimentError::fault(format_args!(
                        "expected exactly one axis that can be the channels, found shape {axes:?}: for a model of {expected} images, save \
                         images x channels x height x width"
                    )));
                }
            },
            [_, channels @ (1 | 3), height, width] => (first(channels, height, width), false),
            [_, height, width, channels @ (1 | 3)] => (first(channels, height, width), true),
            _ => return Err(other_axes(&axes)),
        };
        if axes.contains(&0) {
            return Err(other_axes(&axes));
        }
        Ok(Self { images: axes[0], shape, channels_last })
    }

    /// Returns the values of one image channel by channel.
    fn by_channel(&self, values: &[u8]) -> Vec<u8> {
        let ImageShape { channels, height, width } = self.shape;
        let area = height * width;
        if !self.channels_last {
            return values.to_vec();
        }
        let places = (0..channels).flat_map(|channel| (0..area).map(move |place| place * channels + channel));
        places.map(|place| values[place]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STRICT: Preparation = Preparation {
        shape: ImageShape { channels: 3, height: 2, width: 1 },
        least_side: 1,
        resizes: false,
        converts: false,
    };

    fn npy(descr: &str, shape: &str, values: &[u8]) -> Vec<u8> {
        let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
        [b"\x93NUMPY\x01\x00", [header.len() as u8, 0].as_slice(), header.as_bytes(), values].concat()
    }

    /// Returns the number of images of an array and their prepared bytes.
    fn prepared(file: &[u8], preparation: &Preparation) -> Result<(usize, Vec<u8>), String> {
        let (layout, bytes) = parsed_array(file, preparation.shape).map_err(|fault| fault.to_string())?;
        let images: Vec<Image> = Array { path: "a.npy".into(), layout, bytes }.into_images().collect();
        let mut pixels = Vec::new();
        for image in &images {
            image.read(preparation, &mut pixels).map_err(|error| error.to_string())?;
        }
        Ok((images.len(), pixels))
    }

    #[test]
    fn arrays_of_both_orders_and_types_are_the_same_images() {
        let first = prepared(&npy("|u1", "(1, 3, 2, 1)", &[0, 51, 102, 153, 204, 255]), &STRICT).expect("images");
        assert_eq!(first, (1, vec![0, 51, 102, 153, 204, 255]));
        let last = prepared(&npy("|u1", "(1, 2, 1, 3)", &[0, 102, 204, 51, 153, 255]), &STRICT).expect("images");
        assert_eq!(last, first);
        let reals: Vec<u8> = [0.0_f32, 0.2, 0.4, 0.6, 0.8, 1.0].iter().flat_map(|value| value.to_le_bytes()).collect();
        assert_eq!(prepared(&npy("<f4", "(1, 3, 2, 1)", &reals), &STRICT).expect("images"), first);
        let grey = Preparation { shape: ImageShape { channels: 1, height: 3, width: 2 }, ..STRICT };
        assert_eq!(prepared(&npy("|u1", "(2, 3, 2)", &[7; 12]), &grey).expect("images"), (2, vec![7; 12]));
    }

    #[test]
    fn other_arrays_are_refused_by_name() {
        let refused = |file: &[u8]| prepared(file, &STRICT).expect_err("refused");
        assert!(refused(&npy("|u1", "(2, 6)", &[0; 12])).contains("found shape [2, 6]"));
        assert!(refused(&npy("|u1", "(0, 3, 2, 1)", &[])).contains("at least one image"));
        assert!(refused(&npy("|u1", "(1, 2, 2, 2)", &[0; 8])).contains("1 or 3 channels"));
        assert!(refused(&npy("|u1", "(1, 3, 4, 3)", &[0; 36])).contains("exactly one axis"));
        assert!(
            refused(&npy("|u1", "(1, 3, 4, 4)", &[0; 48])).contains("image 0: expected an image of 3x2x1, found 3x4x4")
        );
        assert!(refused(&npy("|u1", "(1, 2, 1)", &[0; 2])).contains("found 1x2x1"));
        assert!(refused(&npy("<i8", "(1, 3, 2, 1)", &[0; 48])).contains("uint8"));
        for (value, found) in [(37.0_f32, "37"), (f32::NAN, "NaN"), (-0.5, "-0.5")] {
            let text = refused(&npy("<f4", "(1, 3, 2, 1)", &value.to_le_bytes().repeat(6)));
            assert!(text.contains(&format!("0 to 1, found {found}")), "{text}");
        }
        assert!(refused(b"no array").contains(".npy"));
    }

    #[test]
    fn an_array_that_may_be_one_image_is_refused_even_if_the_model_resizes() {
        let model = Preparation {
            shape: ImageShape { channels: 3, height: 28, width: 28 },
            resizes: true,
            converts: true,
            ..STRICT
        };
        for shape in ["(4, 4, 3)", "(3, 4, 4)", "(4, 4, 1)"] {
            let refused = prepared(&npy("|u1", shape, &vec![0; if shape.contains('3') { 48 } else { 16 }]), &model);
            assert!(refused.as_ref().is_err_and(|text| text.contains("may be one image")), "{shape}: {refused:?}");
        }
        assert_eq!(prepared(&npy("|u1", "(2, 4, 4)", &[0; 32]), &model).map(|(images, _)| images), Ok(2));
        let three_grey = prepared(&npy("|u1", "(3, 28, 28)", &[0; 3 * 784]), &model);
        assert_eq!(three_grey.map(|(images, _)| images), Ok(3));
    }
}
