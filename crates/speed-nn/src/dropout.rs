//! Dropout with its mask drawn from a caller's stream (Srivastava et al., 2014).

use rand::Rng;
use speed_random::Stream;

/// The units of a batch that are kept: a factor for each, 0 or `1 / (1 - rate)`, so that the expected value of a unit does
/// not change and nothing is left to do at evaluation. Keeps its memory.
#[derive(Clone, Debug, Default)]
pub struct DropoutMask {
    factors: Vec<f32>,
}

impl DropoutMask {
    /// Draws the factors of `units` units; each is dropped with probability `rate`, rounded to a multiple of 2^-16.
    ///
    /// # Panics
    /// When `rate` is not within `0.0..1.0`.
    pub fn draw(&mut self, units: usize, rate: f32, stream: &mut Stream) {
        assert!((0.0..1.0).contains(&rate), "dropout rate {rate}");
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a probability in 16 bits")]
        let limit = (rate * 65_536.0).round() as u32;
        let kept = 1.0 / (1.0 - limit as f32 / 65_536.0);
        self.factors.clear();
        self.factors.reserve(units + 1);
        // Two decisions from every 32 bits.
        while self.factors.len() < units {
            let bits = stream.next_u32();
            self.factors.extend([bits & 0xffff, bits >> 16].map(|half| if half < limit { 0.0 } else { kept }));
        }
        self.factors.truncate(units);
    }

    /// Multiplies values, or their gradients, by the factors.
    ///
    /// # Panics
    /// When there are not as many values as factors.
    pub fn apply(&self, values: &mut [f32]) {
        assert_eq!(values.len(), self.factors.len(), "units of a dropout mask");
        values.iter_mut().zip(&self.factors).for_each(|(value, factor)| *value *= factor);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use speed_random::Streams;

    #[test]
    fn the_share_of_dropped_units_and_the_mean_are_right() {
        let (mut mask, mut stream) = (DropoutMask::default(), Streams::new(1).stream("dropout", 0));
        for (units, rate) in [(100_001, 0.3), (99_999, 0.5), (1, 0.0), (0, 0.5)] {
            mask.draw(units, rate, &mut stream);
            let mut values = vec![2.0; units];
            mask.apply(&mut values);
            let dropped = values.iter().filter(|&&value| value == 0.0).count() as f64;
            // Five deviations of a binomial: fails for a correct mask with probability 6e-7.
            let (n, p) = (units as f64, f64::from(rate));
            assert!((dropped - n * p).abs() <= 5.0 * (n * p * (1.0 - p)).sqrt(), "{dropped} of {units}");
            let kept = 2.0 / (1.0 - rate);
            assert!(values.iter().all(|&value| value == 0.0 || (value - kept).abs() < 1e-3));
        }
    }

    #[test]
    #[should_panic(expected = "dropout rate 1")]
    fn nothing_may_be_dropped_for_sure() {
        DropoutMask::default().draw(1, 1.0, &mut Streams::new(1).stream("dropout", 0));
    }
}
