//! Images for display.

use speed_data::ImageShape;

/// Generated or real images as bytes, image after image in CHW order, as in a split.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Samples {
    pub(crate) shape: ImageShape,
    pub(crate) pixels: Vec<u8>,
}

/// A picture: `height * width * channels` bytes, row by row, the channels of a pixel contiguous.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// Width in pixels.
    pub width: usize,
    /// Height in pixels.
    pub height: usize,
    /// Number of channels. Unless there are one or three, programs draw only the first.
    pub channels: usize,
    /// Bytes of all pixels.
    pub pixels: Vec<u8>,
}

impl Samples {
    /// Wraps images as bytes, image after image in CHW order; an incomplete last image is left out.
    pub fn new(shape: ImageShape, mut pixels: Vec<u8>) -> Self {
        pixels.truncate(pixels.len() - pixels.len() % shape.pixels().max(1));
        Self { shape, pixels }
    }

    /// Converts images `[count, height, width, channels]` with values within 0..=1, in row-major order.
    pub(crate) fn from_channels_last(images: &[f32], shape: ImageShape) -> Self {
        let ImageShape { channels, height, width } = shape;
        let area = height * width;
        let mut pixels = Vec::with_capacity(images.len());
        for image in images.chunks_exact(shape.pixels()) {
            // A cast from f32 saturates, so rounding cannot leave 0..=255.
            let byte = |value: f32| (value * 255.0).round() as u8;
            pixels.extend((0..channels * area).map(|i| byte(image[i % area * channels + i / area])));
        }
        Self { shape, pixels }
    }

    /// Returns the images side by side in rows of `columns` (at least one); places without an image are black.
    pub fn grid(&self, columns: usize) -> Picture {
        let columns = columns.max(1);
        let ImageShape { channels, height, width } = self.shape;
        let rows = (self.pixels.len() / self.shape.pixels().max(1)).div_ceil(columns);
        let pixels = vec![0; rows * columns * self.shape.pixels()];
        let mut grid = Picture { width: columns * width, height: rows * height, channels, pixels };
        for (image, pixels) in self.pixels.chunks_exact(self.shape.pixels()).enumerate() {
            for (i, &pixel) in pixels.iter().enumerate() {
                let (channel, y, x) = (i / (height * width), i / width % height, i % width);
                let (y, x) = (image / columns * height + y, image % columns * width + x);
                grid.pixels[(y * grid.width + x) * channels + channel] = pixel;
            }
        }
        grid
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_laid_out_in_rows() {
        let shape = ImageShape { channels: 2, height: 1, width: 2 };
        // Image n has the bytes 4 n .. 4 n + 4: two of channel 0, two of channel 1.
        let images: Vec<f32> = (0..3).flat_map(|n| [0, 2, 1, 3].map(|i| (4 * n + i) as f32 / 255.0)).collect();
        let samples = Samples::from_channels_last(&images, shape);
        assert_eq!(samples.pixels, (0..12).collect::<Vec<u8>>());
        let grid = samples.grid(2);
        assert_eq!((grid.width, grid.height, grid.channels), (4, 2, 2));
        assert_eq!(grid.pixels, [0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 0, 0, 0, 0]);
    }

    #[test]
    fn values_beyond_the_range_saturate() {
        let shape = ImageShape { channels: 1, height: 1, width: 1 };
        assert_eq!(Samples::from_channels_last(&[-0.1, 1.1, f32::NAN], shape).pixels, [0, 255, 0]);
    }
}
