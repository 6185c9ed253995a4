//! PNG sheets of images: generated images, and images of queries.

use std::io::Cursor;

use image::codecs::png::PngEncoder;
use image::imageops::{FilterType, resize};
use image::{DynamicImage, GrayImage, ImageEncoder, RgbImage};
use speed_student::Picture;

use crate::error::ExperimentError;

/// Images per row of a sheet.
pub(crate) const SHEET_COLUMNS: usize = 10;

/// Maximum number of queries in a sheet: a sheet of 1,000 would take about 1,000 kilobytes.
pub(crate) const SHOWN_QUERIES: usize = 200;

/// Returns a picture as a PNG file.
pub(crate) fn png(picture: Picture) -> Result<Vec<u8>, ExperimentError> {
    encoded(&decoded(picture))
}

/// Returns a picture as a PNG file, with both sides multiplied by `part / whole`.
pub(crate) fn reduced_png(picture: Picture, part: usize, whole: usize) -> Result<Vec<u8>, ExperimentError> {
    let sheet = decoded(picture);
    let size = |pixels: u32| {
        let scaled = u64::from(pixels) * part as u64 / whole.max(1) as u64;
        u32::try_from(scaled).unwrap_or(u32::MAX).max(1)
    };
    let (width, height) = (size(sheet.width()), size(sheet.height()));
    encoded(&match sheet {
        DynamicImage::ImageLuma8(grey) => resize(&grey, width, height, FilterType::Triangle).into(),
        other => resize(&other.into_rgb8(), width, height, FilterType::Triangle).into(),
    })
}

fn decoded(picture: Picture) -> DynamicImage {
    let size = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
    let (width, height) = (size(picture.width), size(picture.height));
    let image = if picture.channels == 3 {
        RgbImage::from_raw(width, height, picture.pixels).map(DynamicImage::from)
    } else {
        let first = picture.pixels.into_iter().step_by(picture.channels.max(1)).collect();
        GrayImage::from_raw(width, height, first).map(DynamicImage::from)
    };
    image.unwrap_or_default()
}

fn encoded(image: &DynamicImage) -> Result<Vec<u8>, ExperimentError> {
    let mut bytes = Vec::new();
    let written =
        PngEncoder::new(&mut bytes).write_image(image.as_bytes(), image.width(), image.height(), image.color().into());
    written.map_err(|error| ExperimentError::fault(format_args!("generated images cannot be drawn: {error}")))?;
    Ok(bytes)
}

/// Returns width and height of a PNG file that can be decoded completely; `None` for other files and for sheets too
/// large for a page.
pub(crate) fn dimensions_of_whole(png: &[u8]) -> Option<(u32, u32)> {
    let mut reader = image::ImageReader::with_format(Cursor::new(png), image::ImageFormat::Png);
    let mut limits = image::Limits::default();
    limits.max_alloc = Some(MAX_DECODED);
    reader.limits(limits);
    let picture = reader.decode().ok()?;
    Some((picture.width(), picture.height()))
}

/// Maximum size of a decoded sheet of pictures, in bytes.
const MAX_DECODED: u64 = 256 << 20;
