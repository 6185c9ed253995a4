//! MATLAB files of level 5, as image datasets use them: arrays of numbers, each compressed separately.
//!
//! The reader is made for untrusted input: an array is read as it is decompressed, memory is reserved only for data
//! that has arrived, and the decompressed size is limited. The format: MathWorks, *MAT-File Format*, chapter 1.
//!
//! Images are an array `X` of unsigned bytes with the dimensions height, width, channel, image, of which the first
//! varies fastest. Labels are an array `y` with one integer for each image.

mod element;

use std::io::BufRead;

use element::{Array, MatError};

use crate::ImageShape;

pub(crate) struct MatImages {
    /// The shape of every image.
    pub shape: ImageShape,
    /// Image after image, each in the order channel, row, column.
    pub pixels: Vec<u8>,
    /// The label of every image, as in the file.
    pub labels: Vec<u8>,
}

/// Reads the images `X` and the labels `y` of a file, and decompresses at most `limit` bytes in total. Other arrays are
/// skipped.
pub(crate) fn read_images(file: impl BufRead, limit: u64) -> Result<MatImages, MatError> {
    let (mut images, mut labels) = (None, None);
    element::for_each_array(file, limit, &mut |array| {
        let is_repeated = match &*array.name {
            "X" => images.replace(read_pixels(array, limit)?).is_some(),
            "y" => labels.replace(read_labels(array)?).is_some(),
            _ => false,
        };
        match is_repeated {
            true => Err(MatError::Invalid(format!("there are two arrays `{}`", array.name))),
            false => Ok(()),
        }
    })?;
    let missing = |name: &str| MatError::Invalid(format!("array `{name}` is missing"));
    let (shape, pixels) = images.ok_or_else(|| missing("X"))?;
    let labels = labels.ok_or_else(|| missing("y"))?;
    let images = pixels.len() / shape.pixels();
    if labels.len() != images {
        return Err(MatError::Invalid(format!("{images} images and {} labels", labels.len())));
    }
    Ok(MatImages { shape, pixels, labels })
}

fn read_pixels(array: &mut Array<'_>, limit: u64) -> Result<(ImageShape, Vec<u8>), MatError> {
    let [height, width, channels, images] = array.dims[..] else {
        return Err(array.wrong_dims("height, width, channel, image"));
    };
    let shape = ImageShape { channels, height, width };
    if !shape.is_possible() || !matches!(channels, 1 | 3) {
        return Err(array.wrong_dims("height, width, 1 or 3 channels, image"));
    }
    if images == 0 {
        return Err(array.wrong_dims("height, width, channel, and at least one image"));
    }
    array.expect_bytes()?;
    let (size, plane) = (shape.pixels(), height * width);
    if (images as u128) * (size as u128) > limit.into() {
        return Err(MatError::too_long(limit));
    }
    // A header may promise more than arrives, so memory grows with the data that has arrived, and at most to the
    // promised size.
    let (mut pixels, mut image) = (Vec::new(), vec![0; size]);
    for _ in 0..images {
        array.read_bytes(&mut image)?;
        let start = pixels.len();
        if pixels.capacity() == start {
            pixels.reserve_exact((2 * start).clamp(size, images * size) - start);
        }
        pixels.resize(start + size, 0);
        for (columns, rows) in image.chunks_exact(plane).zip(pixels[start..].chunks_exact_mut(plane)) {
            for (y, row) in rows.chunks_exact_mut(width).enumerate() {
                row.iter_mut().enumerate().for_each(|(x, pixel)| *pixel = columns[x * height + y]);
            }
        }
    }
    Ok((shape, pixels))
}

fn read_labels(array: &mut Array<'_>) -> Result<Vec<u8>, MatError> {
    if array.dims.iter().filter(|&&size| size != 1).count() > 1 {
        return Err(array.wrong_dims("one row or one column"));
    }
    let mut labels = Vec::new();
    for index in 0..array.dims.iter().product() {
        let value = array.read_number()?;
        if !(0.0..=255.0).contains(&value) || value.fract() != 0.0 {
            return Err(MatError::wrong(format_args!("label {index}"), "an integer from 0 to 255", value));
        }
        labels.push(value as u8);
    }
    Ok(labels)
}

#[cfg(test)]
pub(crate) mod tests;
