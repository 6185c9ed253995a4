//! Dropout with its mask drawn from a caller's stream (Srivastava et al., 2014).

use burn::tensor::{Tensor, TensorData};
use rand::Rng;
use speed_core::random::Stream;

/// Drops every unit with probability `rate`, rounded to a multiple of 2^-16, and multiplies the others by
/// `1 / (1 - rate)`. The expected value of a unit does not change, so evaluation needs no correction.
///
/// # Panics
/// If `rate` is not within `0.0..1.0`.
pub fn dropout<const D: usize>(x: Tensor<D>, rate: f32, stream: &mut Stream) -> Tensor<D> {
    assert!((0.0..1.0).contains(&rate), "dropout rate {rate}");
    let (shape, device) = (x.dims(), x.device());
    let factors = factors(shape.iter().product(), rate, stream);
    x * Tensor::from_data(TensorData::new(factors, shape), &device)
}

/// Draws a factor for each unit: 0 or `1 / (1 - rate)`.
fn factors(units: usize, rate: f32, stream: &mut Stream) -> Vec<f32> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a probability in 16 bits")]
    let limit = (rate * 65_536.0).round() as u32;
    let kept = 1.0 / (1.0 - limit as f32 / 65_536.0);
    let mut factors = Vec::with_capacity(units + 1);
    // Two decisions from every 32 bits.
    while factors.len() < units {
        let bits = stream.next_u32();
        factors.extend([bits & 0xffff, bits >> 16].map(|half| if half < limit { 0.0 } else { kept }));
    }
    factors.truncate(units);
    factors
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::values;
    use burn::tensor::Device;
    use speed_core::random::Streams;

    #[test]
    fn the_share_of_dropped_units_and_the_mean_are_right() {
        let mut stream = Streams::new(1).stream("dropout", 0);
        for (units, rate) in [(100_001, 0.3), (99_999, 0.5), (1, 0.0)] {
            let values = values(dropout(Tensor::<1>::ones([units], &Device::flex()) * 2.0, rate, &mut stream));
            let dropped = values.iter().filter(|&&value| value == 0.0).count() as f64;
            // Five deviations of a binomial: fails for a correct mask with probability 6e-7.
            let (n, p) = (units as f64, f64::from(rate));
            assert!((dropped - n * p).abs() <= 5.0 * (n * p * (1.0 - p)).sqrt(), "{dropped} of {units}");
            let kept = 2.0 / (1.0 - rate);
            assert!(values.iter().all(|&value| value == 0.0 || (value - kept).abs() < 1e-3));
        }
    }

    #[test]
    fn no_gradient_goes_to_what_is_dropped() {
        let x = Tensor::<1>::ones([1000], &Device::flex().autodiff()).require_grad();
        let y = dropout(x.clone(), 0.4, &mut Streams::new(2).stream("dropout", 0));
        let kept = values(y.clone().inner());
        assert_eq!(values(x.grad(&y.sum().backward()).expect("a gradient")), kept);
    }

    #[test]
    #[should_panic(expected = "dropout rate 1")]
    fn a_dropout_of_1_is_refused() {
        let _ = dropout(Tensor::<1>::ones([1], &Device::flex()), 1.0, &mut Streams::new(1).stream("dropout", 0));
    }
}
