//! Initial weights, drawn from the caller's stream.
//!
//! Burn's `flex` backend has one generator per process, so with its own initialisers a model would depend on concurrent
//! draws of other threads. Here every value comes from the given [`Stream`], in row-major order of the shape: the same
//! stream gives the same weights on every machine and device.
//!
//! The functions return plain tensors; `Param::from_tensor` turns one into a trainable parameter.

use burn::tensor::{Device, Shape, Tensor, TensorData};
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};
use speed_core::random::Stream;

/// Draws independent normal values of mean 0 and standard deviation `std`.
pub fn normal<const D: usize>(shape: [usize; D], std: f32, stream: &mut Stream, device: &Device) -> Tensor<D> {
    fill(shape, device, || std * standard_normal(stream))
}

/// Draws normal values of mean 0, redrawing every value beyond two standard deviations, like TensorFlow's
/// `truncated_normal`. As there, `std` is the deviation *before* truncation; the deviation of the values is 0.880
/// `std`.
pub fn truncated_normal<const D: usize>(
    shape: [usize; D],
    std: f32,
    stream: &mut Stream,
    device: &Device,
) -> Tensor<D> {
    fill(shape, device, || {
        loop {
            let value = standard_normal(stream);
            if value.abs() <= 2.0 {
                return std * value;
            }
        }
    })
}

/// Draws independent uniform values in `[low, high)`.
pub fn uniform<const D: usize>(
    shape: [usize; D],
    low: f32,
    high: f32,
    stream: &mut Stream,
    device: &Device,
) -> Tensor<D> {
    fill(shape, device, || low + (high - low) * stream.random::<f32>())
}

/// Returns a tensor filled with one value.
pub fn constant<const D: usize>(shape: [usize; D], value: f32, device: &Device) -> Tensor<D> {
    fill(shape, device, || value)
}

fn standard_normal(stream: &mut Stream) -> f32 {
    StandardNormal.sample(stream)
}

fn fill<const D: usize>(shape: [usize; D], device: &Device, mut draw: impl FnMut() -> f32) -> Tensor<D> {
    let shape = Shape::new(shape);
    let values: Vec<f32> = (0..shape.num_elements()).map(|_| draw()).collect();
    Tensor::from_data(TensorData::new(values, shape), device)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::values;
    use speed_core::random::Streams;

    fn stream(index: u64) -> Stream {
        Streams::new(3).stream("init", index)
    }

    fn mean(values: &[f32], power: i32) -> f64 {
        values.iter().map(|&v| f64::from(v).powi(power)).sum::<f64>() / values.len() as f64
    }

    const SHAPE: [usize; 3] = [40, 50, 50];

    #[test]
    fn normal_has_its_moments() {
        // n = 1e5 fixed draws: mean within 5 sigma/sqrt(n), variance within 5 sqrt(2/n), fourth moment 3 within 5
        // sqrt(96/n). Each check fails for a correct sampler with probability 6e-7 over seeds.
        let v = values(normal(SHAPE, 0.5, &mut stream(0), &Device::flex()));
        assert!(mean(&v, 1).abs() < 5.0 * 0.5 / 1e5_f64.sqrt());
        assert!((mean(&v, 2) / 0.25 - 1.0).abs() < 5.0 * (2.0 / 1e5_f64).sqrt());
        assert!((mean(&v, 4) / 0.0625 - 3.0).abs() < 5.0 * (96.0 / 1e5_f64).sqrt());
    }

    #[test]
    fn truncated_normal_is_cut_at_two_deviations() {
        // Variance of a standard normal cut at +-2: 1 - 4 phi(2) / (2 Phi(2) - 1) = 0.773741. Clipping instead of
        // redrawing would give 0.9205.
        let v = values(truncated_normal(SHAPE, 0.1, &mut stream(1), &Device::flex()));
        assert!(v.iter().all(|x| x.abs() <= 0.2));
        assert!(v.iter().any(|x| x.abs() > 0.199));
        assert!(mean(&v, 1).abs() < 0.002);
        assert!((mean(&v, 2) / 0.01 - 0.773_741).abs() < 0.012);
    }

    #[test]
    fn uniform_fills_its_interval() {
        let v = values(uniform(SHAPE, -1.0, 3.0, &mut stream(2), &Device::flex()));
        assert!(v.iter().all(|x| (-1.0..3.0).contains(x)));
        assert!((mean(&v, 1) - 1.0).abs() < 5.0 * (16.0_f64 / 12.0 / 1e5).sqrt());
        assert!((mean(&v, 2) - 1.0 - 16.0 / 12.0).abs() < 0.05);
    }
}
