//! Local response normalisation across channels (Krizhevsky et al. 2012, section 3.3), TensorFlow's
//! `lrn(depth_radius, bias = 1, alpha, beta = 0.75)`.

use burn::backend::{Dispatch, TensorMetadata};
use burn::tensor::{Device, Tensor, TensorData};

use crate::flex::{Array, array, contiguous, on_flex, rows, rows_mut, values, values_mut};

operation!(LrnOps: local_response_norm([maps], window: Window), forward, backward);

/// The neighbouring channels that normalise one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    /// Neighbours on each side.
    pub radius: usize,
    /// Factor of the sum of squares, not of its mean.
    pub alpha: f32,
}

/// Returns `y_c = x_c s_c^(-3/4)` with `s_c = 1 + alpha sum_{|d - c| <= radius} x_d^2` over the channels `d` that exist, of maps
/// `[images, rows, columns, channels]`.
pub fn local_response_norm(maps: Tensor<4>, window: Window) -> Tensor<4> {
    if !on_flex(&maps) {
        return local_response_norm_in_burn(maps, window);
    }
    Tensor::from_dispatch(Dispatch::local_response_norm(maps.into_dispatch(), window))
}

/// Computes [`local_response_norm`](fn@local_response_norm) with Burn's own operations: the sums over windows are a
/// product with a band matrix, and the power consists of two square roots.
pub fn local_response_norm_in_burn(maps: Tensor<4>, window: Window) -> Tensor<4> {
    let [images, rows, columns, channels] = maps.dims();
    let squares = maps.clone().square().reshape([images * rows * columns, channels]);
    let band = band(channels, window, &maps.device());
    let scale = (squares.matmul(band) + 1.0).reshape([images, rows, columns, channels]);
    let root = scale.sqrt();
    maps / (root.clone() * root.sqrt())
}

/// Returns `[channels, channels]`: `alpha` where row and column are neighbours, else 0.
fn band(channels: usize, Window { radius, alpha }: Window, device: &Device) -> Tensor<2> {
    let values: Vec<f32> = (0..channels * channels)
        .map(|i| if (i / channels).abs_diff(i % channels) <= radius { alpha } else { 0.0 })
        .collect();
    Tensor::from_data(TensorData::new(values, [channels, channels]), device)
}

impl Window {
    /// Returns the normalised values, and `s_c` of each.
    fn normalise(self, maps: &[f32], channels: usize) -> (Vec<f32>, Vec<f32>) {
        let (mut out, mut scales) = (vec![0.0; maps.len()], vec![0.0; maps.len()]);
        let mut squares = Padded::new(channels, self.radius);
        let pixels = rows_mut(&mut out, channels).zip(rows_mut(&mut scales, channels));
        for (x, (out, scales)) in rows(maps, channels).zip(pixels) {
            squares.values().iter_mut().zip(x).for_each(|(square, x)| *square = self.alpha * x * x);
            squares.put_sums(1.0, scales);
            out.iter_mut().zip(x).zip(scales).for_each(|((y, x), s)| *y = x * inverse_powers(*s)[0]);
        }
        (out, scales)
    }

    /// Turns the gradient of the output into that of the maps:
    /// `g_c s_c^(-3/4) - (3/2) alpha x_c sum_{|d - c| <= radius} g_d x_d s_d^(-7/4)`.
    fn gradient(self, gradient: &mut [f32], maps: &[f32], scales: &[f32], channels: usize) {
        let (mut along, mut sums) = (Padded::new(channels, self.radius), vec![0.0; channels]);
        let pixels = rows(maps, channels).zip(rows(scales, channels));
        for (g, (x, scale)) in rows_mut(gradient, channels).zip(pixels) {
            for (((along, g), x), s) in along.values().iter_mut().zip(g.iter_mut()).zip(x).zip(scale) {
                let [power, inverse] = inverse_powers(*s);
                *g *= power;
                *along = *g * x * inverse;
            }
            along.put_sums(0.0, &mut sums);
            for ((g, x), sum) in g.iter_mut().zip(x).zip(&sums) {
                *g -= 1.5 * self.alpha * x * sum;
            }
        }
    }
}

/// One pixel's values of every channel, padded on both sides with the zeros that windows reach.
struct Padded {
    channels: usize,
    radius: usize,
    padded: Vec<f32>,
}

/// Number of sums that are computed together, in registers.
const TOGETHER: usize = 16;

impl Padded {
    fn new(channels: usize, radius: usize) -> Self {
        // A window beyond the first or the last channel contains at most all channels.
        let radius = radius.min(channels.saturating_sub(1));
        Self { channels, radius, padded: vec![0.0; channels.next_multiple_of(TOGETHER) + 2 * radius] }
    }

    fn values(&mut self) -> &mut [f32] {
        &mut self.padded[self.radius..self.radius + self.channels]
    }

    /// Writes, for every channel, `start` plus the sum of its window.
    #[inline(always)]
    fn put_sums(&self, start: f32, sums: &mut [f32]) {
        for (first, sums) in (0..).step_by(TOGETHER).zip(sums.chunks_mut(TOGETHER)) {
            let mut together = [start; TOGETHER];
            for place in first..=first + 2 * self.radius {
                let values = &self.padded[place..place + TOGETHER];
                together.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
            }
            sums.copy_from_slice(&together[..sums.len()]);
        }
    }
}

/// Returns `s^(-3/4)` and `1 / s`.
#[inline(always)]
fn inverse_powers(s: f32) -> [f32; 2] {
    let root = s.sqrt();
    let power = 1.0 / (root * root.sqrt());
    [power, power * power * root]
}

/// The values that the gradient needs.
#[derive(Clone, Debug)]
struct Saved {
    maps: Array,
    scales: Vec<f32>,
    window: Window,
}

fn forward([maps]: [Array; 1], window: Window) -> (Array, Saved) {
    let (maps, shape) = (contiguous(maps.clone()), maps.shape());
    let (out, scales) = window.normalise(values(&maps), shape[3]);
    (array(out, shape), Saved { maps, scales, window })
}

fn backward(Saved { maps, scales, window }: Saved, mut gradient: Array, _: [bool; 1]) -> [Option<Array>; 1] {
    let channels = maps.shape()[3];
    window.gradient(values_mut(&mut gradient), values(&maps), &scales, channels);
    [Some(gradient)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::{agree, random};

    const CASES: [([usize; 4], Window); 4] = [
        ([2, 3, 4, 10], Window { radius: 4, alpha: 0.3 }),
        ([1, 2, 1, 3], Window { radius: 4, alpha: 0.1 }),
        ([2, 1, 2, 1], Window { radius: 1, alpha: 1.0 }),
        ([1, 3, 2, 64], Window { radius: 4, alpha: 0.001 / 9.0 }),
    ];

    #[test]
    fn values_and_gradients_agree_with_burn() {
        for (shape, window) in CASES {
            agree(
                [random(shape, 1)],
                |[maps]| local_response_norm(maps, window),
                |[maps]| local_response_norm_in_burn(maps, window),
            );
        }
    }

    #[test]
    fn values_are_those_of_the_definition_in_double_precision() {
        for (shape, window) in CASES {
            let maps = random(shape, 2).inner();
            let x: Vec<f32> = maps.clone().into_data().try_to_vec().expect("f32");
            let found: Vec<f32> = local_response_norm(maps, window).into_data().try_to_vec().expect("f32");
            for (pixel, found) in found.chunks_exact(shape[3]).enumerate() {
                let x = &x[pixel * shape[3]..][..shape[3]];
                for (channel, found) in found.iter().enumerate() {
                    let near = channel.saturating_sub(window.radius)..(channel + window.radius + 1).min(shape[3]);
                    let squares: f64 = x[near].iter().map(|&x| f64::from(x).powi(2)).sum();
                    let expected = f64::from(x[channel]) * (1.0 + f64::from(window.alpha) * squares).powf(-0.75);
                    assert!((f64::from(*found) - expected).abs() < 1e-6, "{found} is not {expected}");
                }
            }
        }
    }
}
