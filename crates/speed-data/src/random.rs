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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_and_variance_are_0_and_1() {
        let mut stream = speed_core::random::Streams::new(3).stream("bell", 0);
        let sample: Vec<f64> = (0..40_000).map(|_| f64::from(bell(&mut stream))).collect();
        let mean = sample.iter().sum::<f64>() / 40_000.0;
        let square = sample.iter().map(|x| x * x).sum::<f64>() / 40_000.0;
        // The standard errors are 0.005 and below 0.0065 (kurtosis 2.7); a deviation of 5 has a probability below 1e-5.
        assert!(mean.abs() < 0.025, "{mean}");
        assert!((square - 1.0).abs() < 0.033, "{square}");
    }
}
