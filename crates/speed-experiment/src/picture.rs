//! PNG sheets of images: generated images, and images of queries.

use image::codecs::png::PngEncoder;
use image::imageops::{FilterType, resize};
use image::{DynamicImage, GrayImage, ImageEncoder, RgbImage};
use speed_data::Split;
use speed_student::Samples;

use crate::error::Mismatch;

/// Images per row.
pub(crate) const COLUMNS: usize = 10;

/// Maximum number of queries in a sheet: a sheet of 1,000 would take about 1,000 kilobytes.
pub(crate) const SHOWN_QUERIES: usize = 200;

/// Maximum length of the longer side of a query's picture, in pixels.
const LONGEST_SIDE: usize = 48;

/// Draws generated images.
pub(crate) fn of_samples(samples: &Samples) -> Result<Vec<u8>, Mismatch> {
    png(&grid(samples))
}

/// Draws the first queried images of a pool; large images are reduced.
pub(crate) fn of_queries(pool: &Split, queries: &[usize]) -> Result<Vec<u8>, Mismatch> {
    let shown = &queries[..queries.len().min(SHOWN_QUERIES)];
    let pixels = shown.iter().flat_map(|&image| pool.pixels(image)).copied().collect();
    let sheet = grid(&Samples::new(pool.shape(), pixels));
    let longest = pool.shape().height.max(pool.shape().width);
    if longest <= LONGEST_SIDE {
        return png(&sheet);
    }
    let size = |pixels: u32| {
        let scaled = u64::from(pixels) * LONGEST_SIDE as u64 / longest as u64;
        u32::try_from(scaled).unwrap_or(u32::MAX).max(1)
    };
    let (width, height) = (size(sheet.width()), size(sheet.height()));
    png(&match sheet {
        DynamicImage::ImageLuma8(grey) => resize(&grey, width, height, FilterType::Triangle).into(),
        other => resize(&other.into_rgb8(), width, height, FilterType::Triangle).into(),
    })
}

/// Arranges images in a grid; if images have neither one nor three channels, only the first channel is drawn.
fn grid(samples: &Samples) -> DynamicImage {
    let grid = samples.grid(COLUMNS);
    let size = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
    let (width, height) = (size(grid.width), size(grid.height));
    let image = match grid.channels {
        1 => GrayImage::from_raw(width, height, grid.pixels).map(DynamicImage::from),
        3 => RgbImage::from_raw(width, height, grid.pixels).map(DynamicImage::from),
        channels => {
            let first = grid.pixels.into_iter().step_by(channels.max(1)).collect();
            GrayImage::from_raw(width, height, first).map(DynamicImage::from)
        }
    };
    image.unwrap_or_default()
}

fn png(image: &DynamicImage) -> Result<Vec<u8>, Mismatch> {
    let mut bytes = Vec::new();
    PngEncoder::new(&mut bytes)
        .write_image(image.as_bytes(), image.width(), image.height(), image.color().into())
        .map_err(Mismatch::Picture)?;
    Ok(bytes)
}

/// Returns width and height of a PNG file that can be decoded completely; `None` for other files and for sheets too
/// large for a page.
pub(crate) fn dimensions_of_whole(png: &[u8]) -> Option<(u32, u32)> {
    let mut reader = image::ImageReader::with_format(std::io::Cursor::new(png), image::ImageFormat::Png);
    let mut limits = image::Limits::default();
    limits.max_alloc = Some(MAX_DECODED);
    reader.limits(limits);
    let picture = reader.decode().ok()?;
    Some((picture.width(), picture.height()))
}

/// Maximum size of a decoded sheet of pictures, in bytes.
const MAX_DECODED: u64 = 256 << 20;

#[cfg(test)]
mod tests {
    use speed_data::ImageShape;

    use super::*;

    fn sheet(shape: ImageShape, queries: &[usize]) -> DynamicImage {
        let pixels = (0..3 * shape.pixels()).map(|i| if i < shape.pixels() { 0 } else { 255 }).collect();
        let pool = Split::new(shape, 2, pixels, vec![0, 1, 1]).expect("a split");
        image::load_from_memory(&of_queries(&pool, queries).expect("a picture")).expect("a PNG file")
    }

    #[test]
    fn queries_lie_side_by_side_and_large_ones_are_made_smaller() {
        let grey = sheet(ImageShape { channels: 1, height: 2, width: 3 }, &[2, 0]);
        assert_eq!((grey.width(), grey.height()), (30, 2));
        assert_eq!(grey.to_luma8().as_raw()[..8], [255, 255, 255, 0, 0, 0, 0, 0]);
        let colour = sheet(ImageShape { channels: 3, height: 96, width: 48 }, &[1; 11]);
        assert_eq!((colour.width(), colour.height(), colour.color().has_color()), (240, 96, true));
        let many = sheet(ImageShape { channels: 1, height: 1, width: 1 }, &[0; SHOWN_QUERIES + 1]);
        assert_eq!(many.height() as usize * COLUMNS, SHOWN_QUERIES);
    }
}
