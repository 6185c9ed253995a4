//! Gaussian noise for noise layers, read from a pool of normal values drawn once.
//!
//! A step of the student takes about a million and a half normal values; drawing each costs more than the rest of the
//! step's element-wise work. A [`NormalPool`] draws its values once and every use reads a window that starts at a
//! random place. *This is an approximation*: two windows may overlap, so the same values come back at other positions
//! (4 million values serve a run of 10^10 uses). As a regulariser that is harmless; it must never serve as privacy
//! noise.

use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};
use speed_random::Stream;

/// Standard normal values to read windows from.
#[derive(Clone)]
pub struct NormalPool {
    values: Vec<f32>,
}

impl NormalPool {
    /// Draws `length` values; a length below 2 becomes 2.
    #[must_use]
    pub fn new(length: usize, stream: &mut Stream) -> Self {
        Self { values: (0..length.max(2)).map(|_| StandardNormal.sample(stream)).collect() }
    }

    /// Adds noise of deviation `sigma` to every value. Windows are at most half the pool long, each at its own place
    /// drawn from `stream`.
    pub fn add(&self, values: &mut [f32], sigma: f32, stream: &mut Stream) {
        if sigma == 0.0 {
            return;
        }
        for part in values.chunks_mut(self.longest_window()) {
            let start = self.draw_start(part.len(), stream);
            for (value, noise) in part.iter_mut().zip(&self.values[start..]) {
                *value = sigma.mul_add(*noise, *value);
            }
        }
    }

    /// Returns the starts of the windows that [`add`](Self::add) would read for `length` values at a deviation above 0, one window
    /// for every [`longest_window`](Self::longest_window) values or fewer; takes the same draws from `stream`.
    pub fn draw_starts(&self, length: usize, stream: &mut Stream) -> Vec<usize> {
        let longest = self.longest_window();
        (0..length).step_by(longest).map(|from| self.draw_start(longest.min(length - from), stream)).collect()
    }

    fn draw_start(&self, length: usize, stream: &mut Stream) -> usize {
        stream.random_range(0..=self.values.len() - length)
    }

    /// Values in the longest window: half the pool.
    #[must_use]
    pub fn longest_window(&self) -> usize {
        self.values.len() / 2
    }

    /// Returns all values, for code that reads windows on another device.
    #[must_use]
    pub fn values(&self) -> &[f32] {
        &self.values
    }
}

impl std::fmt::Debug for NormalPool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NormalPool").field("length", &self.values.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use speed_random::Streams;

    fn noisy(pool: usize, length: usize, sigma: f32, index: u64) -> Vec<f32> {
        let streams = Streams::new(5);
        let pool = NormalPool::new(pool, &mut streams.stream("pool", 0));
        let mut values = vec![1.0; length];
        pool.add(&mut values, sigma, &mut streams.stream("places", index));
        values
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
    fn starts_are_those_of_the_windows_read() {
        let streams = Streams::new(5);
        let pool = NormalPool::new(64, &mut streams.stream("pool", 0));
        let (mut reading, mut drawing) = (streams.stream("places", 1), streams.stream("places", 1));
        let mut values = vec![0.0; 77];
        pool.add(&mut values, 1.0, &mut reading);
        let starts = pool.draw_starts(77, &mut drawing);
        assert_eq!((starts.len(), pool.longest_window()), (3, 32));
        for (window, start) in values.chunks(32).zip(starts) {
            assert_eq!(window, &pool.values()[start..start + window.len()]);
        }
        assert_eq!(reading, drawing);
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
