//! Local response normalisation across channels (Krizhevsky et al. 2012, section 3.3), TensorFlow's
//! `lrn(depth_radius, bias = 1, alpha, beta = 0.75)`.
//!
//! [`LocalResponseNorm`] has its gradient written out. [`local_response_norm`] is the same in Burn: the sum of squares
//! over a window of channels is a product with a band matrix of ones, and the power 3/4 is two square roots, both
//! several times faster on a CPU than the general pooling and power that `burn-nn` uses.

use burn::tensor::{Device, Tensor, TensorData};

/// The layer on maps stored pixel by pixel (NHWC).
///
/// `y_c = x_c s_c^(-3/4)` with `s_c = 1 + alpha * sum_{|d - c| <= radius} x_d^2` over the channels `d` that exist.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LocalResponseNorm {
    /// Neighbours on each side.
    pub radius: usize,
    /// Multiplies the sum, not the mean.
    pub alpha: f32,
}

impl LocalResponseNorm {
    /// Normalises `maps` of `channels` channels into `output`, and leaves `s_c` in `scale`.
    pub fn forward(&self, maps: &[f32], channels: usize, output: &mut Vec<f32>, scale: &mut Vec<f32>) {
        output.resize(maps.len(), 0.0);
        scale.resize(maps.len(), 0.0);
        let pixels = maps.chunks_exact(channels);
        let results = output.chunks_exact_mut(channels).zip(scale.chunks_exact_mut(channels));
        for (x, (y, scale)) in pixels.zip(results) {
            // `y` holds the squares first.
            y.iter_mut().zip(x).for_each(|(y, x)| *y = self.alpha * x * x);
            scale.fill(1.0);
            self.add_windows(y, scale);
            y.iter_mut().zip(x).zip(scale).for_each(|((y, x), s)| *y = x * inverse_power(*s));
        }
    }

    /// Turns `gradient`, that of the output, into that of `maps`, for the `scale` that [`forward`](Self::forward) left:
    /// `g_c s_c^(-3/4) - (3/2) alpha x_c sum_{|d - c| <= radius} g_d x_d s_d^(-7/4)`.
    pub fn backward(&self, gradient: &mut [f32], maps: &[f32], channels: usize, scale: &[f32]) {
        let (mut along, mut sums) = (vec![0.0; channels], vec![0.0; channels]);
        let pixels = maps.chunks_exact(channels).zip(scale.chunks_exact(channels));
        for (g, (x, scale)) in gradient.chunks_exact_mut(channels).zip(pixels) {
            for (((along, g), x), s) in along.iter_mut().zip(g.iter_mut()).zip(x).zip(scale) {
                *g *= inverse_power(*s);
                *along = *g * x / s;
            }
            sums.fill(0.0);
            self.add_windows(&along, &mut sums);
            for ((g, x), sum) in g.iter_mut().zip(x).zip(&sums) {
                *g -= 1.5 * self.alpha * x * sum;
            }
        }
    }

    /// Adds to every channel of `sums` the values of its window.
    #[inline(always)]
    fn add_windows(&self, values: &[f32], sums: &mut [f32]) {
        let channels = values.len();
        sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
        for distance in 1..=self.radius.min(channels.saturating_sub(1)) {
            sums[distance..].iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
            sums.iter_mut().zip(&values[distance..]).for_each(|(sum, value)| *sum += value);
        }
    }
}

/// `s^(-3/4)`.
#[inline(always)]
fn inverse_power(s: f32) -> f32 {
    let root = s.sqrt();
    1.0 / (root * root.sqrt())
}

/// TensorFlow's `lrn(depth_radius, bias = 1, alpha, beta = 0.75)`:
/// `y_c = x_c / (1 + alpha * sum_{|d - c| <= radius} x_d^2)^0.75` over the channels `d` that exist.
///
/// `alpha` multiplies the sum, not the mean. Shapes: `[n, channels, height, width]` in and out.
#[must_use]
pub fn local_response_norm(maps: Tensor<4>, radius: usize, alpha: f32) -> Tensor<4> {
    let [n, channels, height, width] = maps.dims();
    // The band is a constant, but it must live on the same (autodiff) device as the maps.
    let band = band(channels, radius, alpha, &maps.device());
    let squares = maps.clone().square().reshape([n, channels, height * width]);
    let scale = (band.expand([n, channels, channels]).matmul(squares) + 1.0).reshape([n, channels, height, width]);
    let root = scale.sqrt();
    maps / (root.clone() * root.sqrt())
}

/// `alpha` where row and column differ by at most `radius`, else 0; shape `[1, channels, channels]`.
fn band(channels: usize, radius: usize, alpha: f32, device: &Device) -> Tensor<3> {
    let values: Vec<f32> = (0..channels * channels)
        .map(|i| if (i / channels).abs_diff(i % channels) <= radius { alpha } else { 0.0 })
        .collect();
    Tensor::from_data(TensorData::new(values, [1, channels, channels]), device)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::init;
    use crate::test_support::values;
    use speed_random::Streams;

    /// Computes the definition in double precision.
    fn oracle(maps: &[f32], dims: [usize; 4], radius: usize, alpha: f64) -> Vec<f64> {
        let [_, channels, height, width] = dims;
        let area = height * width;
        let at = |i: usize| f64::from(maps[i]);
        (0..maps.len())
            .map(|i| {
                let channel = i / area % channels;
                let base = i - channel * area;
                let window = channel.saturating_sub(radius)..=(channel + radius).min(channels - 1);
                let sum: f64 = window.map(|d| at(base + d * area).powi(2)).sum();
                at(i) / (1.0 + alpha * sum).powf(0.75)
            })
            .collect()
    }

    #[test]
    fn matches_its_definition() {
        let mut stream = Streams::new(1).stream("lrn", 0);
        // Fewer and more channels than the window of nine; large values, so that the denominator matters.
        for dims in [[2, 3, 4, 5], [1, 12, 3, 3], [3, 9, 1, 2]] {
            let maps = init::normal(dims, 30.0, &mut stream, &Device::flex());
            let expected = oracle(&values(maps.clone()), dims, 4, 0.001 / 9.0);
            let found = values(local_response_norm(maps, 4, 0.001 / 9.0));
            for (f, e) in found.iter().zip(&expected) {
                assert!((f64::from(*f) - e).abs() < 1e-5 * (1.0 + e.abs()), "{f} and {e}");
            }
        }
    }

    #[test]
    fn both_forms_have_the_same_values_and_gradients() {
        let device = Device::flex().autodiff();
        let mut stream = Streams::new(1).stream("lrn", 2);
        let (mut output, mut scale) = (Vec::new(), Vec::new());
        for (n, area, channels, radius) in [(2, 5, 3, 4), (1, 4, 12, 4), (3, 2, 9, 2), (2, 3, 1, 4)] {
            let maps = init::normal([n, area, 1, channels], 20.0, &mut stream, &device).require_grad();
            let upstream = init::normal([n, area, 1, channels], 1.0, &mut stream, &device);
            let expected = local_response_norm(maps.clone().permute([0, 3, 1, 2]), radius, 0.01).permute([0, 2, 3, 1]);
            let gradients = (expected.clone() * upstream.clone()).sum().backward();

            let layer = LocalResponseNorm { radius, alpha: 0.01 };
            let (own, mut gradient) = (values(maps.clone().inner()), values(upstream.inner()));
            layer.forward(&own, channels, &mut output, &mut scale);
            layer.backward(&mut gradient, &own, channels, &scale);
            let expected = [values(expected.inner()), values(maps.grad(&gradients).expect("a gradient"))];
            for (found, expected) in [&output, &gradient].into_iter().zip(expected) {
                for (f, e) in found.iter().zip(expected) {
                    assert!((f - e).abs() < 1e-5 * (1.0 + e.abs()), "{f} is not {e}");
                }
            }
        }
    }

    #[test]
    fn gradient_matches_finite_differences_of_the_definition() {
        let device = Device::flex().autodiff();
        let mut stream = Streams::new(1).stream("lrn", 1);
        let dims = [1, 11, 2, 2];
        let maps = init::normal(dims, 20.0, &mut stream, &device).require_grad();
        let weights = init::normal(dims, 1.0, &mut stream, &device);
        let host: Vec<f32> = values(maps.clone().inner());
        let weight: Vec<f32> = values(weights.clone().inner());
        let loss = (local_response_norm(maps.clone(), 4, 0.01) * weights).sum();
        let gradient = values(maps.grad(&loss.backward()).expect("maps require a gradient"));
        let value = |maps: &[f32]| -> f64 {
            oracle(maps, dims, 4, 0.01).iter().zip(&weight).map(|(y, w)| y * f64::from(*w)).sum()
        };
        for i in 0..host.len() {
            let (mut up, mut down) = (host.clone(), host.clone());
            (up[i], down[i]) = (host[i] + 0.01, host[i] - 0.01);
            let expected = (value(&up) - value(&down)) / f64::from(up[i] - down[i]);
            assert!((f64::from(gradient[i]) - expected).abs() < 1e-4, "{i}: {} and {expected}", gradient[i]);
        }
    }
}
