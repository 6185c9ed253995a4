//! Gaussian noise for noise layers, read from a pool of normal values drawn once.
//!
//! A training step takes about 1.5 million normal values; drawing each one costs more than the rest of the step's
//! element-wise work. A [`NormalPool`] draws its values once, and every use reads a window that starts at a random
//! position. *This is an approximation*: two windows may overlap, so the same values recur at other positions (4
//! million values serve a run of 10^10 uses). This is harmless for a regulariser; it must never serve as privacy noise.

use burn::tensor::{Device, Tensor, TensorData};
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};
use speed_core::random::Stream;

use crate::ops::add_scaled::add_scaled;

/// A pool of standard normal values, read in windows.
#[derive(Clone)]
pub struct NormalPool {
    values: Tensor<1>,
}

impl NormalPool {
    /// Draws `length` values (at least 2) and puts them on a device without gradients.
    pub fn new(length: usize, stream: &mut Stream, device: &Device) -> Self {
        let length = length.max(2);
        let values: Vec<f32> = (0..length).map(|_| StandardNormal.sample(stream)).collect();
        Self { values: Tensor::from_data(TensorData::new(values, [length]), device) }
    }

    /// Adds noise of deviation `sigma` to every value. Each window is at most half as long as the pool and starts at a
    /// position drawn from `stream`.
    pub fn add<const D: usize>(&self, x: Tensor<D>, sigma: f32, stream: &mut Stream) -> Tensor<D> {
        if sigma == 0.0 {
            return x;
        }
        let dims = x.dims();
        add_scaled(x, self.draw(dims.iter().product(), stream).reshape(dims), sigma)
    }

    /// Returns `count` values of one window, or of several if one is not enough.
    fn draw(&self, count: usize, stream: &mut Stream) -> Tensor<1> {
        let pool = self.values.dims()[0];
        let longest = pool / 2;
        let mut windows = (0..count.max(1)).step_by(longest).map(|from| {
            let length = longest.min(count - from);
            self.values.clone().narrow(0, stream.random_range(0..=pool - length), length)
        });
        if count <= longest {
            // Without a copy.
            return windows.next().expect("one window");
        }
        Tensor::cat(windows.collect(), 0)
    }
}

impl std::fmt::Debug for NormalPool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NormalPool").field("length", &self.values.dims()[0]).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::values;
    use speed_core::random::Streams;

    fn noisy(pool: usize, length: usize, sigma: f32, index: u64) -> Vec<f32> {
        let streams = Streams::new(5);
        let pool = NormalPool::new(pool, &mut streams.stream("pool", 0), &Device::flex());
        let ones = Tensor::<1>::ones([length], &Device::flex());
        values(pool.add(ones, sigma, &mut streams.stream("places", index)))
    }

    #[test]
    fn noise_has_its_deviation_and_no_mean() {
        // 1e5 values of one pool: mean within 5 / sqrt(n) deviations and variance within 5 sqrt(2 / n), each with a
        // false-alarm rate of 6e-7 over seeds.
        let v = noisy(200_000, 100_000, 0.5, 0);
        let mean = v.iter().map(|&x| f64::from(x) - 1.0).sum::<f64>() / 1e5;
        let variance = v.iter().map(|&x| (f64::from(x) - 1.0).powi(2)).sum::<f64>() / 1e5;
        assert!(mean.abs() < 5.0 * 0.5 / 1e5_f64.sqrt(), "{mean}");
        assert!((variance / 0.25 - 1.0).abs() < 5.0 * (2.0 / 1e5_f64).sqrt(), "{variance}");
    }

    #[test]
    fn windows_depend_on_the_stream_only() {
        assert_eq!(noisy(1000, 400, 1.0, 3), noisy(1000, 400, 1.0, 3));
        assert_ne!(noisy(1000, 400, 1.0, 3), noisy(1000, 400, 1.0, 4));
    }

    #[test]
    fn more_values_than_the_pool_has_all_get_noise() {
        for pool in [0, 2, 7, 64] {
            assert!(noisy(pool, 1000, 1.0, 0).iter().all(|&v| v != 1.0));
        }
    }

    #[test]
    fn no_noise_at_deviation_zero() {
        assert_eq!(noisy(10, 30, 0.0, 0), vec![1.0; 30]);
    }
}
