//! Images without their labels.

use speed_data::{ImageShape, Split};
use speed_nn::matrix::Matrix;

/// The images of a split. The student's pool is given as this type, so that its true labels cannot be used by mistake.
#[derive(Clone, Copy, Debug)]
pub struct Images<'a> {
    split: &'a Split,
}

/// Columns filled at a time: one cache line of `f32`.
const BLOCK: usize = 16;

impl<'a> Images<'a> {
    /// Returns the images of `split`.
    #[must_use]
    pub fn of(split: &'a Split) -> Self {
        Self { split }
    }

    /// Returns the number of images.
    #[must_use]
    pub fn len(&self) -> usize {
        self.split.len()
    }

    /// Returns whether there is no image.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.split.is_empty()
    }

    /// Returns the size of every image.
    #[must_use]
    pub fn shape(&self) -> ImageShape {
        self.split.shape()
    }

    /// Returns the bytes of image `i` in CHW order.
    ///
    /// # Panics
    /// When `i` is not below `len()`.
    pub(crate) fn pixels(&self, i: usize) -> &'a [u8] {
        self.split.pixels(i)
    }

    /// Writes image `i` in HWC order, pixels scaled to 0..=1.
    ///
    /// # Panics
    /// When `i` is not below `len()` or `to` is no image of this shape.
    pub(crate) fn write_channels_last(&self, i: usize, to: &mut [f32]) {
        let ImageShape { channels, height, width } = self.shape();
        assert_eq!(to.len(), self.shape().pixels(), "values of an image");
        for (channel, plane) in self.split.pixels(i).chunks_exact(height * width).enumerate() {
            for (value, &byte) in to[channel..].iter_mut().step_by(channels).zip(plane) {
                *value = f32::from(byte) / 255.0;
            }
        }
    }

    /// Writes the images `indices` into the columns of `to` from `first` on, pixels scaled to 0..=1, one pixel a row.
    ///
    /// # Panics
    /// When an index is not below `len()` or `to` has no such columns or not as many rows as an image has pixels.
    pub(crate) fn write(&self, to: &mut Matrix, first: usize, indices: &[usize]) {
        assert_eq!(to.rows(), self.shape().pixels(), "rows of a batch");
        let columns = to.columns();
        for (block, indices) in indices.chunks(BLOCK).enumerate() {
            let start = first + block * BLOCK;
            let images: Vec<&[u8]> = indices.iter().map(|&i| self.split.pixels(i)).collect();
            for (pixel, row) in to.values_mut().chunks_exact_mut(columns).enumerate() {
                for (value, image) in row[start..start + images.len()].iter_mut().zip(&images) {
                    *value = f32::from(image[pixel]) / 255.0;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_become_columns_within_0_and_1() {
        let shape = ImageShape { channels: 1, height: 1, width: 3 };
        let pixels: Vec<u8> = (0..60).collect();
        let split = Split::new(shape, 10, pixels, vec![0; 20]).expect("a split");
        let mut batch = Matrix::zeros(3, 22);
        let indices: Vec<usize> = (0..20).rev().collect();
        Images::of(&split).write(&mut batch, 1, &indices);
        for (column, index) in (1..).zip(indices) {
            for pixel in 0..3 {
                assert_eq!(batch.row(pixel)[column], (3 * index + pixel) as f32 / 255.0);
            }
        }
        assert!((0..3).all(|pixel| batch.row(pixel)[0] == 0.0 && batch.row(pixel)[21] == 0.0));
    }
}
