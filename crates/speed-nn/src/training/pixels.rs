//! Images as a network reads them.

use burn::tensor::{Device, Tensor, TensorData};
use speed_data::{ImageShape, Split};

/// Channels of a colour image.
const COLOURS: usize = 3;

/// A batch of images of one shape as numbers, in the order image, row, pixel, channel.
#[derive(Clone, Debug, PartialEq)]
pub struct Pixels {
    shape: ImageShape,
    values: Vec<f32>,
}

impl Pixels {
    /// Returns an empty batch with capacity for `images` images.
    pub fn with_capacity(shape: ImageShape, images: usize) -> Self {
        Self { shape, values: Vec::with_capacity(images * shape.pixels()) }
    }

    /// Returns the images `some` of a split; a byte b becomes `b / 255 + offset`.
    ///
    /// # Panics
    /// If an image is not in the split.
    pub fn from_split(images: &Split, some: &[usize], offset: f32) -> Self {
        let mut batch = Self::with_capacity(images.shape(), some.len());
        some.iter().for_each(|&image| batch.push(images.pixels(image), offset));
        batch
    }

    /// Returns their values.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// Returns the number of images.
    pub fn count(&self) -> usize {
        self.values.len() / self.shape.pixels().max(1)
    }

    /// Adds an image whose bytes are ordered channel by channel, as in a split.
    pub fn push(&mut self, bytes: &[u8], offset: f32) {
        let ImageShape { channels, height, width } = self.shape;
        let scale = |byte: u8| f32::from(byte) / 255.0 + offset;
        if channels == 1 {
            self.values.extend(bytes.iter().map(|&byte| scale(byte)));
            return;
        }
        let area = height * width;
        for place in 0..area {
            self.values.extend((0..channels).map(|channel| scale(bytes[channel * area + place])));
        }
    }

    /// Adds an image, moved down and right by `shift` pixels (up and left if negative). Beyond its border a colour
    /// image is extended by the values at the border, and any other image by byte 0, the background of scanned writing.
    pub fn push_moved(&mut self, bytes: &[u8], shift: [isize; 2], offset: f32) {
        let ImageShape { channels, height, width } = self.shape;
        let scale = |byte: u8| f32::from(byte) / 255.0 + offset;
        for y in 0..height {
            for x in 0..width {
                let (from_y, from_x) = (y.wrapping_add_signed(-shift[0]), x.wrapping_add_signed(-shift[1]));
                let inside = from_y < height && from_x < width;
                let from_y = y.saturating_add_signed(-shift[0]).min(height - 1);
                let from_x = x.saturating_add_signed(-shift[1]).min(width - 1);
                let byte = |channel: usize| bytes[(channel * height + from_y) * width + from_x];
                let is_seen = inside || channels == COLOURS;
                self.values.extend((0..channels).map(|channel| scale(if is_seen { byte(channel) } else { 0 })));
            }
        }
    }

    /// Adds an image of zeros, and returns its values for writing.
    pub fn push_empty(&mut self) -> &mut [f32] {
        let start = self.values.len();
        self.values.resize(start + self.shape.pixels(), 0.0);
        &mut self.values[start..]
    }

    /// Returns the images as `[images, height, width, channels]`.
    pub fn into_tensor(self, device: &Device) -> Tensor<4> {
        let ImageShape { channels, height, width } = self.shape;
        let dims = [self.count(), height, width, channels];
        Tensor::from_data(TensorData::new(self.values, dims), device)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: ImageShape = ImageShape { channels: COLOURS, height: 2, width: 3 };

    fn bytes(batch: &Pixels) -> Vec<u8> {
        batch.values().iter().map(|value| ((value + 0.5) * 255.0).round() as u8).collect()
    }

    #[test]
    fn grey_images_are_moved_over_an_empty_background_and_coloured_ones_go_on() {
        let image: Vec<u8> = (1..=18).collect();
        let moved = |shape: ImageShape, shift| {
            let mut batch = Pixels::with_capacity(shape, 1);
            batch.push_moved(&image[..shape.pixels()], shift, -0.5);
            bytes(&batch)
        };
        for (shift, grey, coloured) in [
            ([0, 0], [1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 6]),
            ([1, 0], [0, 0, 0, 1, 2, 3], [1, 2, 3, 1, 2, 3]),
            ([-1, 1], [0, 4, 5, 0, 0, 0], [4, 4, 5, 4, 4, 5]),
            ([0, -2], [3, 0, 0, 6, 0, 0], [3, 3, 3, 6, 6, 6]),
        ] {
            assert_eq!(moved(ImageShape { channels: 1, ..SHAPE }, shift), grey);
            // The next channel's bytes are greater by six.
            let coloured: Vec<u8> = coloured.into_iter().flat_map(|red: u8| [red, red + 6, red + 12]).collect();
            assert_eq!(moved(SHAPE, shift), coloured);
        }
        let mut still = Pixels::with_capacity(SHAPE, 1);
        still.push(&image, -0.5);
        assert_eq!(bytes(&still), moved(SHAPE, [0, 0]));
    }

    #[test]
    fn batches_are_channels_last_within_0_and_1() {
        for channels in [1, 3] {
            let shape = ImageShape { channels, height: 2, width: 5 };
            let pixels: Vec<u8> = (0..20 * shape.pixels()).map(|i| (i * 7 % 256) as u8).collect();
            let split = Split::new(shape, 10, pixels, vec![0; 20]).expect("a split");
            let some: Vec<usize> = (0..20).rev().collect();
            let mut batch = Pixels::from_split(&split, &some, 0.0);
            assert_eq!(batch.count(), 20);
            for (place, value) in batch.values().iter().enumerate() {
                let (image, pixel, channel) = (some[place / shape.pixels()], place / channels % 10, place % channels);
                assert_eq!(*value, f32::from(split.pixels(image)[channel * 10 + pixel]) / 255.0);
            }
            batch.push_empty()[0] = 0.5;
            assert_eq!(batch.into_tensor(&Device::flex()).dims(), [21, 2, 5, channels]);
        }
    }
}
