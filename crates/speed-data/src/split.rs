//! Labelled images of one kind: a training set, a test set, or a part of one.

use std::collections::HashSet;
use std::ops::Range;

use sha2::{Digest, Sha256};

use crate::{DataError, ImageShape};

/// The largest number of classes for a label of one byte.
const MAX_CLASSES: usize = 256;

/// Labelled images: `len` images of one [`ImageShape`] as bytes, image after image, and `len` labels below `classes`.
///
/// Pixels have the values of the file (0..=255); models scale them. The images are private data, so `Debug` shows only
/// sizes.
#[derive(Clone, PartialEq, Eq)]
pub struct Split {
    shape: ImageShape,
    classes: usize,
    pixels: Vec<u8>,
    labels: Vec<u8>,
}

impl Split {
    /// Checks and wraps images and labels.
    ///
    /// `pixels` holds `labels.len() * shape.pixels()` values, image-major, each image in CHW order.
    ///
    /// # Errors
    /// For a shape with a zero, unless `1 <= classes <= 256`, if pixels and labels do not fit together, and for a label
    /// that is not below `classes`.
    pub fn new(shape: ImageShape, classes: usize, pixels: Vec<u8>, labels: Vec<u8>) -> Result<Self, DataError> {
        if !shape.is_possible() {
            let text = format!("impossible image shape {shape} (channels x height x width)");
            return Err(DataError::Other(text));
        }
        if !(1..=MAX_CLASSES).contains(&classes) {
            let text = format!("impossible number of classes: expected 1 to 256, found {classes}");
            return Err(DataError::Other(text));
        }
        if labels.len().checked_mul(shape.pixels()) != Some(pixels.len()) {
            return Err(wrong_pixels(shape, labels.len(), pixels.len()));
        }
        if let Some((index, &label)) = labels.iter().enumerate().find(|&(_, &label)| usize::from(label) >= classes) {
            let text = format!("label of image {index}: expected below {classes}, found {label}");
            return Err(DataError::Other(text));
        }
        Ok(Self { shape, classes, pixels, labels })
    }

    /// Returns the number of images.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Returns whether the split has zero images.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    speed_core::getters! {
        /// Returns the size of every image.
        shape: ImageShape,
        /// Returns the number of classes K; labels are 0..K. A class may have no image.
        classes: usize,
        /// Returns all labels, in the order of the images.
        labels: &[u8],
    }

    /// Returns the pixels of image `i` in CHW order, `shape().pixels()` bytes.
    pub fn pixels(&self, i: usize) -> &[u8] {
        let size = self.shape.pixels();
        &self.pixels[i * size..(i + 1) * size]
    }

    /// Returns the label of image `i`, below [`classes`](Self::classes).
    pub fn label(&self, i: usize) -> u8 {
        self.labels[i]
    }

    /// Returns the images with the pixels of an image of `other`.
    pub fn copies_of(&self, other: &Self) -> Vec<usize> {
        let others: HashSet<&[u8]> = (0..other.len()).map(|image| other.pixels(image)).collect();
        (0..self.len()).filter(|image| others.contains(self.pixels(*image))).collect()
    }

    /// Returns the largest value of all pixels.
    pub fn largest_value(&self) -> u8 {
        self.pixels.iter().copied().max().unwrap_or_default()
    }

    /// Returns a copy of the images `range`, for example one teacher's partition or the student's pool.
    pub fn slice(&self, range: Range<usize>) -> Self {
        let size = self.shape.pixels();
        let labels = self.labels[range.clone()].to_vec();
        let pixels = self.pixels[range.start * size..range.end * size].to_vec();
        Self { shape: self.shape, classes: self.classes, pixels, labels }
    }

    /// Returns a copy of these images and of those of `other`, which come last.
    ///
    /// # Errors
    /// If the other images have another size or more classes.
    pub fn followed_by(&self, other: &Self) -> Result<Self, DataError> {
        if self.shape != other.shape {
            return Err(wrong_pixels(self.shape, other.len(), other.pixels.len()));
        }
        let pixels = [&*self.pixels, &other.pixels].concat();
        Self::new(self.shape, self.classes, pixels, [&*self.labels, &other.labels].concat())
    }

    /// Returns a copy of the images `indices`, in their order.
    pub fn select(&self, indices: &[usize]) -> Self {
        let labels = indices.iter().map(|&index| self.labels[index]).collect();
        let pixels = indices.iter().flat_map(|&index| self.pixels(index)).copied().collect();
        Self { shape: self.shape, classes: self.classes, pixels, labels }
    }

    /// Returns the SHA-256 of shape, classes, pixels and labels, for the fingerprint of results computed from them. Two
    /// splits have the same digest if and only if they are equal.
    pub fn digest(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        hash.update(b"speed/split/v1");
        let ImageShape { channels, height, width } = self.shape;
        // The sizes determine where pixels end and labels start, so the encoding is injective.
        for size in [channels, height, width, self.classes, self.len()] {
            hash.update((size as u64).to_le_bytes());
        }
        hash.update(&self.pixels);
        hash.update(&self.labels);
        hash.finalize().into()
    }
}

speed_core::debug_as!(Split, this => "Split {{ len: {}, shape: {}, classes: {}, .. }}", this.len(), this.shape, this.classes);

/// Checks that the labels of a file are numbers of classes, counted from `first`.
pub(crate) fn check_labels(labels: &[u8], first: u8, classes: usize) -> Result<(), String> {
    let is_class = |label: u8| label >= first && usize::from(label - first) < classes;
    match labels.iter().enumerate().find(|&(_, &label)| !is_class(label)) {
        Some((index, &found)) => {
            let last = usize::from(first) + classes - 1;
            Err(format!("label {index}: expected {first} to {last}, found {found}"))
        }
        None => Ok(()),
    }
}

fn wrong_pixels(shape: ImageShape, images: usize, found: usize) -> DataError {
    let needed = images as u128 * shape.pixels() as u128;
    DataError::Other(format!("{images} images of {shape} need {needed} pixel values, found {found}"))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    const SHAPE: ImageShape = ImageShape { channels: 3, height: 2, width: 4 };

    /// Returns five images of 24 bytes; image i holds the bytes 24 i .. 24 i + 24.
    fn split() -> Split {
        Split::new(SHAPE, 7, (0..120).collect(), vec![6, 0, 3, 3, 1]).expect("a valid split")
    }

    #[test]
    fn images_and_labels_are_found_where_they_were_put() {
        let split = split();
        assert_eq!((split.len(), split.classes(), split.shape()), (5, 7, SHAPE));
        for i in 0..5 {
            let expected: Vec<u8> = (24 * i as u8..24 * i as u8 + 24).collect();
            assert_eq!(split.pixels(i), expected);
        }
        assert_eq!(split.label(2), 3);
        assert_eq!(split.labels(), [6, 0, 3, 3, 1]);
    }

    #[test]
    fn a_slice_is_the_same_images() {
        let part = split().slice(1..4);
        assert_eq!(part.labels(), [0, 3, 3]);
        assert_eq!(part.pixels(2), split().pixels(3));
        assert_eq!((part.classes(), part.shape()), (7, SHAPE));
        assert!(split().slice(5..5).is_empty());
        assert_eq!(split().select(&[1, 2, 3]), part);
        assert_eq!(split().select(&[4, 0]).labels(), [1, 6]);
    }

    #[test]
    fn bad_parts_are_refused_with_what_was_found() {
        let zero = ImageShape { channels: 1, height: 0, width: 4 };
        let huge = ImageShape { channels: 2, height: usize::MAX, width: 4 };
        let refused = |shape, classes, pixels: usize, labels: &[u8]| {
            Split::new(shape, classes, vec![0; pixels], labels.to_vec()).expect_err("refused").to_string()
        };
        for shape in [zero, huge] {
            assert!(refused(shape, 10, 0, &[]).contains(&format!("impossible image shape {shape}")));
        }
        for classes in [0, 257] {
            assert!(refused(SHAPE, classes, 0, &[]).contains(&format!("expected 1 to 256, found {classes}")));
        }
        for pixels in [0, 23, 25, 48] {
            assert!(refused(SHAPE, 10, pixels, &[1]).contains(&format!("need 24 pixel values, found {pixels}")));
        }
        assert_eq!(refused(SHAPE, 10, 48, &[9, 10]), "label of image 1: expected below 10, found 10");
        assert!(Split::new(SHAPE, 256, vec![0; 24], vec![255]).is_ok());
    }

    #[test]
    fn the_digest_sees_every_part() {
        let tall = ImageShape { channels: 3, height: 4, width: 2 };
        let mut pixels: Vec<u8> = (0..120).collect();
        let labels = vec![6, 0, 3, 3, 1];
        let mut digests = HashSet::from([split().digest()]);
        assert_eq!(split().digest(), split().digest());
        let mut insert = |split: Result<Split, DataError>| digests.insert(split.expect("a valid split").digest());
        assert!(insert(Split::new(tall, 7, pixels.clone(), labels.clone())));
        assert!(insert(Split::new(SHAPE, 8, pixels.clone(), labels.clone())));
        assert!(insert(Split::new(SHAPE, 7, pixels.clone(), vec![6, 0, 3, 3, 2])));
        pixels[119] ^= 1;
        assert!(insert(Split::new(SHAPE, 7, pixels, labels)));
        assert!(insert(Ok(split().slice(0..4))));
    }

    #[test]
    fn debug_shows_no_pixels() {
        let text = format!("{:?}", split());
        assert!(text.contains("len: 5") && text.len() < 120, "{text}");
    }
}
