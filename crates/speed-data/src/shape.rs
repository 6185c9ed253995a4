//! The size of one image.

use std::fmt;

/// The size of every image of a split: channels x height x width, stored channel by channel, row by row (CHW).
///
/// The numbers are unchecked; a [`Split`](crate::Split) refuses a shape with a zero or with more pixels than memory can
/// address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ImageShape {
    /// Colour channels: 1 for MNIST, 3 for colour images.
    pub channels: usize,
    /// Rows.
    pub height: usize,
    /// Columns.
    pub width: usize,
}

impl ImageShape {
    /// Returns the number of values in one image, `channels * height * width`, saturated if the product does not fit.
    pub const fn pixels(self) -> usize {
        self.channels.saturating_mul(self.height).saturating_mul(self.width)
    }

    /// Returns whether images of this shape can exist: no side is zero and the product fits.
    pub(crate) const fn is_possible(self) -> bool {
        let pixels = self.pixels();
        pixels > 0 && pixels < usize::MAX
    }
}

impl fmt::Display for ImageShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}x{}", self.channels, self.height, self.width)
    }
}
