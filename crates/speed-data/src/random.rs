//! Random numbers for the drawn datasets.

use rand::RngExt;
use speed_core::random::Stream;

/// Returns a bell-shaped number of mean 0 and variance 1 within +-3.47: the scaled sum of four uniform numbers. It is
/// bounded, so that no digit is torn apart, and uses no logarithm, so that it is the same on every machine.
pub(crate) fn bell(stream: &mut Stream) -> f32 {
    // Each uniform number has variance 1/12, the sum of four 1/3.
    const SCALE: f32 = 1.732_050_8;
    let sum: f32 = (0..4).map(|_| stream.random::<f32>()).sum();
    (sum - 2.0) * SCALE
}
