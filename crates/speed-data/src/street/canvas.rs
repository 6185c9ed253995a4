//! The image that `wall`, `number` and `camera` draw on.

pub(super) const SIDE: usize = 32;

/// Red, green and blue, 0 to 1.
pub(super) type Colour = [f32; 3];

/// An image in progress.
pub(super) type Canvas = [Colour; SIDE * SIDE];
