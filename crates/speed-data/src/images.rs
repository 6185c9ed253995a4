//! Images without their labels.

use crate::{ImageShape, Split};

/// The images of a split without their labels. The student's pool has this type, so its true labels cannot be used by mistake.
#[derive(Clone, Copy, Debug)]
pub struct Images<'a> {
    split: &'a Split,
}

impl<'a> Images<'a> {
    /// Wraps the images of `split`.
    pub fn new(split: &'a Split) -> Self {
        Self { split }
    }

    /// Returns the split behind the images, with its labels: only to measure, never to choose or to learn.
    pub fn split(&self) -> &'a Split {
        self.split
    }

    /// Returns the number of images.
    pub fn len(&self) -> usize {
        self.split.len()
    }

    /// Returns whether the split is empty.
    pub fn is_empty(&self) -> bool {
        self.split.is_empty()
    }

    /// Returns the size of every image.
    pub fn shape(&self) -> ImageShape {
        self.split.shape()
    }

    /// Returns the number of classes.
    pub fn classes(&self) -> usize {
        self.split.classes()
    }

    /// Returns the bytes of image `i` in CHW order.
    pub fn pixels(&self, i: usize) -> &'a [u8] {
        self.split.pixels(i)
    }
}
