//! Handwritten digits, from which the numbers are made.

use rand::RngExt;
use speed_core::random::Stream;

use crate::{DataError, ImageShape, Split};

pub(super) struct Glyphs<'a> {
    images: &'a Split,
    pub(super) by_class: Vec<Vec<usize>>,
}

impl<'a> Glyphs<'a> {
    pub(super) fn from_split(images: &'a Split) -> Result<Self, DataError> {
        let mut by_class = vec![Vec::new(); images.classes()];
        for (image, &label) in images.labels().iter().enumerate() {
            by_class[usize::from(label)].push(image);
        }
        if images.shape().channels != 1 || by_class.iter().any(Vec::is_empty) {
            return Err(DataError::Other(format!(
                "handwriting must have one channel and an image of every class, found {} images of {}",
                images.len(),
                images.shape()
            )));
        }
        Ok(Self { images, by_class })
    }

    pub(super) fn of_class(&self, class: usize, stream: &mut Stream) -> Glyph<'a> {
        let image = self.by_class[class][stream.random_range(0..self.by_class[class].len())];
        Glyph { pixels: self.images.pixels(image), shape: self.images.shape() }
    }

    pub(super) fn any(&self, stream: &mut Stream) -> Glyph<'a> {
        let class = stream.random_range(0..self.by_class.len());
        self.of_class(class, stream)
    }
}

#[derive(Clone, Copy)]
pub(super) struct Glyph<'a> {
    pixels: &'a [u8],
    shape: ImageShape,
}

impl Glyph<'_> {
    /// Returns the ink, 0 to 1, at a place. The origin of the coordinates is the middle; their unit is the height.
    pub(super) fn ink(&self, [x, y]: [f32; 2]) -> f32 {
        let ImageShape { height, width, .. } = self.shape;
        let scale = height as f32;
        let (x, y) = (x * scale + 0.5 * (width - 1) as f32, y * scale + 0.5 * (height - 1) as f32);
        if !(x > -1.0 && y > -1.0 && x < width as f32 && y < height as f32) {
            return 0.0;
        }
        // The sums are positive, so truncation rounds down.
        let (column, row) = ((x + 1.0) as usize, (y + 1.0) as usize);
        let (u, v) = (x + 1.0 - column as f32, y + 1.0 - row as f32);
        let at = |row: usize, column: usize| match (row.checked_sub(1), column.checked_sub(1)) {
            (Some(row), Some(column)) if row < height && column < width => f32::from(self.pixels[row * width + column]),
            _ => 0.0,
        };
        let top = at(row, column) * (1.0 - u) + at(row, column + 1) * u;
        let bottom = at(row + 1, column) * (1.0 - u) + at(row + 1, column + 1) * u;
        (top * (1.0 - v) + bottom * v) / 255.0
    }
}
