//! Batches of images as a network reads them.

use burn::tensor::{Device, Tensor, TensorData};
use rand::RngExt;
use rand::seq::SliceRandom;
use speed_data::{ImageShape, Split};
use speed_random::Stream;

/// Images of one shape as numbers, image by image, row by row, pixel by pixel, channel by channel.
pub(crate) struct Images {
    values: Vec<f32>,
    count: usize,
    shape: ImageShape,
}

impl Images {
    pub(crate) fn with_capacity(shape: ImageShape, images: usize) -> Self {
        Self { values: Vec::with_capacity(images * shape.pixels()), count: 0, shape }
    }

    /// Adds image `i` of `data`, moved down and right by `shift` pixels (up and left where negative) over a background
    /// of byte 0; a byte b becomes `b / 255 + offset`.
    pub(crate) fn push(&mut self, data: &Split, i: usize, shift: [isize; 2], offset: f32) {
        let ImageShape { channels, height, width } = self.shape;
        let pixels = data.pixels(i);
        let scale = |byte: u8| f32::from(byte) / 255.0 + offset;
        for y in 0..height {
            let from_y = y.wrapping_add_signed(-shift[0]);
            for x in 0..width {
                let from_x = x.wrapping_add_signed(-shift[1]);
                let inside = from_y < height && from_x < width;
                self.values.extend(
                    (0..channels)
                        .map(|c| scale(if inside { pixels[(c * height + from_y) * width + from_x] } else { 0 })),
                );
            }
        }
        self.count += 1;
    }

    /// Returns them as `[images, height, width, channels]`.
    pub(crate) fn into_tensor(self, device: &Device) -> Tensor<4> {
        let ImageShape { channels, height, width } = self.shape;
        Tensor::from_data(TensorData::new(self.values, [self.count, height, width, channels]), device)
    }
}

/// Draws batches from some images of a split: every image once, in random order, then again in another order.
pub(crate) struct Batches<'a> {
    data: &'a Split,
    order: Vec<usize>,
    position: usize,
    stream: Stream,
}

impl<'a> Batches<'a> {
    /// `images` are indices into `data`; there is at least one.
    pub(crate) fn new(data: &'a Split, images: Vec<usize>, stream: Stream) -> Self {
        let position = images.len();
        Self { data, order: images, position, stream }
    }

    /// Returns the next `size` images, each moved by up to `shift` pixels in both directions, and their labels.
    pub(crate) fn next(&mut self, size: usize, shift: usize, offset: f32) -> (Images, Vec<u8>) {
        let mut images = Images::with_capacity(self.data.shape(), size);
        let mut labels = Vec::with_capacity(size);
        for _ in 0..size {
            if self.position == self.order.len() {
                self.order.shuffle(&mut self.stream);
                self.position = 0;
            }
            let image = self.order[self.position];
            self.position += 1;
            let bound = shift as isize;
            let shift = [(); 2].map(|()| self.stream.random_range(-bound as i64..=bound as i64) as isize);
            images.push(self.data, image, shift, offset);
            labels.push(self.data.label(image));
        }
        (images, labels)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use speed_random::Streams;

    /// Returns one image of 2 channels, 2 rows, 3 columns with the bytes 1..=12, and two more.
    fn split() -> Split {
        let shape = ImageShape { channels: 2, height: 2, width: 3 };
        Split::new(shape, 3, (1..=36).collect(), vec![0, 1, 2]).expect("a valid split")
    }

    fn bytes(shift: [isize; 2]) -> Vec<u8> {
        let mut images = Images::with_capacity(split().shape(), 1);
        images.push(&split(), 0, shift, -0.5);
        images.values.iter().map(|v| ((v + 0.5) * 255.0).round() as u8).collect()
    }

    #[test]
    fn images_are_moved_over_an_empty_background() {
        assert_eq!(bytes([0, 0]), [1, 7, 2, 8, 3, 9, 4, 10, 5, 11, 6, 12]);
        assert_eq!(bytes([1, 0]), [0, 0, 0, 0, 0, 0, 1, 7, 2, 8, 3, 9]);
        assert_eq!(bytes([-1, 1]), [0, 0, 4, 10, 5, 11, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bytes([0, -2]), [3, 9, 0, 0, 0, 0, 6, 12, 0, 0, 0, 0]);
    }

    #[test]
    fn every_image_comes_once_in_a_pass_and_with_its_label() {
        let data = split();
        let mut batches = Batches::new(&data, vec![0, 2], Streams::new(1).stream("batches", 0));
        let mut orders = std::collections::HashSet::new();
        for _ in 0..50 {
            let (images, labels) = batches.next(2, 0, 0.0);
            assert_eq!((images.count, images.values.len()), (2, 24));
            let mut sorted = labels.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, [0, 2]);
            for (image, label) in images.values.chunks(12).zip(&labels) {
                assert_eq!((image[0] * 255.0).round() as u8, 1 + 12 * label);
            }
            orders.insert(labels);
        }
        assert_eq!(orders.len(), 2, "both orders occur");
    }
}
