//! Max pooling with TensorFlow's `SAME` padding and its gradient, on maps stored pixel by pixel (NHWC).

use std::ops::Range;

/// Pooling of windows `kernel x kernel` every `stride` pixels. The output has `ceil(size / stride)` rows and columns;
/// what a window has beyond the map is never the greatest; where the padding is odd, its larger half lies after the map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SameMaxPool {
    height: usize,
    width: usize,
    channels: usize,
    kernel: usize,
    stride: usize,
}

impl SameMaxPool {
    /// Pooling of maps `[height, width, channels]`.
    ///
    /// # Panics
    /// When a size is zero.
    #[must_use]
    pub fn new([height, width, channels]: [usize; 3], kernel: usize, stride: usize) -> Self {
        assert!([height, width, channels, kernel, stride].iter().all(|&size| size > 0), "sizes of a pooling layer");
        Self { height, width, channels, kernel, stride }
    }

    /// Rows and columns of the output.
    #[must_use]
    pub fn pooled(&self) -> [usize; 2] {
        [self.height.div_ceil(self.stride), self.width.div_ceil(self.stride)]
    }

    /// Writes the greatest value of every window to `output`, and to `choice` which of the map's pixels has it: the
    /// first of equal ones.
    pub fn forward(&self, maps: &[f32], output: &mut Vec<f32>, choice: &mut Vec<u32>) {
        let [rows, columns] = self.pooled();
        let (map_len, channels) = (self.height * self.width * self.channels, self.channels);
        let length = maps.len() / map_len * rows * columns * channels;
        output.resize(length, 0.0);
        choice.resize(length, 0);
        let results = output.chunks_exact_mut(channels).zip(choice.chunks_exact_mut(channels));
        for (index, (output, choice)) in results.enumerate() {
            let map = &maps[index / (rows * columns) * map_len..][..map_len];
            output.fill(f32::NEG_INFINITY);
            for y in window(index / columns % rows, self.height, self.kernel, self.stride) {
                for x in window(index % columns, self.width, self.kernel, self.stride) {
                    let pixel = y * self.width + x;
                    let place = u32::try_from(pixel).expect("a map of fewer than 2^32 pixels");
                    let values = &map[pixel * channels..][..channels];
                    for ((best, choice), &value) in output.iter_mut().zip(choice.iter_mut()).zip(values) {
                        // A NaN wins and stays.
                        let greater = value > *best || value.is_nan();
                        *best = if greater { value } else { *best };
                        *choice = if greater { place } else { *choice };
                    }
                }
            }
        }
    }

    /// Sends the gradient of the output back to the pixels of `choice`; what else is in `maps` becomes zero.
    pub fn backward(&self, gradient: &[f32], choice: &[u32], maps: &mut [f32]) {
        let [rows, columns] = self.pooled();
        let map_len = self.height * self.width * self.channels;
        let result_len = rows * columns * self.channels;
        maps.fill(0.0);
        let results = gradient.chunks_exact(result_len).zip(choice.chunks_exact(result_len));
        for (map, (gradient, choice)) in maps.chunks_exact_mut(map_len).zip(results) {
            let values = gradient.chunks_exact(self.channels).zip(choice.chunks_exact(self.channels));
            for (gradient, choice) in values {
                for (channel, (g, &pixel)) in gradient.iter().zip(choice).enumerate() {
                    map[pixel as usize * self.channels + channel] += g;
                }
            }
        }
    }
}

/// Returns the rows (or columns) of a map of `size` within the window of output `index`.
fn window(index: usize, size: usize, kernel: usize, stride: usize) -> Range<usize> {
    let padding = ((size.div_ceil(stride) - 1) * stride + kernel).saturating_sub(size);
    let (start, before) = (index * stride, padding / 2);
    start.saturating_sub(before)..(start + kernel - before).min(size)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conv::max_pool_same;
    use crate::init;
    use crate::test_support::values;
    use burn::tensor::Device;
    use speed_random::Streams;

    #[test]
    fn values_and_gradients_agree_with_burn() {
        let device = Device::flex().autodiff();
        let mut stream = Streams::new(1).stream("pool", 0);
        let (mut output, mut choice) = (Vec::new(), Vec::new());
        for (n, height, width, channels, kernel, stride) in
            [(2, 28, 28, 3, 3, 2), (1, 7, 14, 5, 3, 2), (2, 5, 8, 1, 3, 2), (3, 1, 3, 2, 3, 2), (1, 6, 6, 2, 2, 2)]
        {
            // Negative values: a padding of zeros would be seen.
            let maps = init::uniform([n, height, width, channels], -2.0, -1.0, &mut stream, &device).require_grad();
            let expected = max_pool_same(maps.clone().permute([0, 3, 1, 2]), kernel, stride).permute([0, 2, 3, 1]);
            let upstream = init::normal(expected.dims(), 1.0, &mut stream, &device);
            let gradients = (expected.clone() * upstream.clone()).sum().backward();

            let pool = SameMaxPool::new([height, width, channels], kernel, stride);
            let own = values(maps.clone().inner());
            pool.forward(&own, &mut output, &mut choice);
            assert_eq!(output, values(expected.inner()));
            let mut gradient = vec![7.0; own.len()];
            pool.backward(&values(upstream.inner()), &choice, &mut gradient);
            for (found, expected) in gradient.iter().zip(values(maps.grad(&gradients).expect("a gradient"))) {
                assert!((found - expected).abs() < 1e-5, "{found} is not {expected}");
            }
        }
    }
}
