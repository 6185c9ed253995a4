//! Images without their labels.

use burn::tensor::{Device, Tensor, TensorData};
use speed_data::{ImageShape, Split};

/// The images of a split. The student's pool is given as this type, so that its true labels cannot be used by mistake.
#[derive(Clone, Copy, Debug)]
pub struct Images<'a> {
    split: &'a Split,
}

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

    /// Returns the images with these indices as `[images, height, width, channels]`, pixels scaled to 0..=1.
    ///
    /// # Panics
    /// When an index is not below `len()`.
    pub(crate) fn batch(&self, indices: &[usize], device: &Device) -> Tensor<4> {
        let ImageShape { channels, height, width } = self.shape();
        let area = height * width;
        let mut values = Vec::with_capacity(indices.len() * area * channels);
        for &image in indices {
            let pixels = self.split.pixels(image);
            if channels == 1 {
                values.extend(pixels.iter().map(|&byte| f32::from(byte) / 255.0));
                continue;
            }
            for place in 0..area {
                values.extend((0..channels).map(|channel| f32::from(pixels[channel * area + place]) / 255.0));
            }
        }
        Tensor::from_data(TensorData::new(values, [indices.len(), height, width, channels]), device)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_are_channels_last_within_0_and_1() {
        for channels in [1, 3] {
            let shape = ImageShape { channels, height: 2, width: 5 };
            let bytes: Vec<u8> = (0..20 * shape.pixels()).map(|i| (i * 7 % 256) as u8).collect();
            let split = Split::new(shape, 10, bytes, vec![0; 20]).expect("a split");
            let indices: Vec<usize> = (0..20).rev().collect();
            let batch = Images::of(&split).batch(&indices, &Device::flex());
            assert_eq!(batch.dims(), [20, 2, 5, channels]);
            let values: Vec<f32> = batch.into_data().try_to_vec().expect("f32");
            for (place, value) in values.into_iter().enumerate() {
                let (image, pixel, channel) =
                    (indices[place / shape.pixels()], place / channels % 10, place % channels);
                assert_eq!(value, f32::from(split.pixels(image)[channel * 10 + pixel]) / 255.0);
            }
        }
    }
}
