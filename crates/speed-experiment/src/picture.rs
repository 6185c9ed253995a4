//! Sheets of pictures: generated images, and images of queries.

use speed_data::Split;
use speed_student::Samples;

use crate::error::ExperimentError;
use crate::report::{SHEET_COLUMNS, SHOWN_QUERIES, png, reduced_png};

const LONGEST_SIDE: usize = 48;

pub(crate) fn of_samples(samples: &Samples) -> Result<Vec<u8>, ExperimentError> {
    png(samples.grid(SHEET_COLUMNS))
}

/// Draws the first queried images of a pool; large images are reduced.
pub(crate) fn of_queries(pool: &Split, queries: &[usize]) -> Result<Vec<u8>, ExperimentError> {
    let shown = &queries[..queries.len().min(SHOWN_QUERIES)];
    let pixels = shown.iter().flat_map(|&image| pool.pixels(image)).copied().collect();
    let sheet = Samples::new(pool.shape(), pixels).grid(SHEET_COLUMNS);
    let longest = pool.shape().height.max(pool.shape().width);
    if longest <= LONGEST_SIDE { png(sheet) } else { reduced_png(sheet, LONGEST_SIDE, longest) }
}

pub(crate) fn of_image(pool: &Split, image: usize) -> Result<Vec<u8>, ExperimentError> {
    png(Samples::new(pool.shape(), pool.pixels(image).to_vec()).grid(1))
}

#[cfg(test)]
mod tests {
    use image::DynamicImage;
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
        assert_eq!(many.height() as usize * SHEET_COLUMNS, SHOWN_QUERIES);
    }
}
