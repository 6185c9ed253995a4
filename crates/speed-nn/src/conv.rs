//! Convolution and pooling with TensorFlow's `SAME` padding, as the paper's published networks use them.

use burn::module::{Module, Param};
use burn::tensor::Tensor;
use burn::tensor::module::{conv2d, max_pool2d};
use burn::tensor::ops::{ConvOptions, MaxPoolOptions};

/// A convolution of stride 1 that keeps height and width (`SAME`), for an odd kernel size.
#[derive(Module, Debug)]
pub struct SameConv {
    weight: Param<Tensor<4>>,
    bias: Param<Tensor<1>>,
}

impl SameConv {
    /// Returns a layer with the initial values `weight` `[outputs, inputs, kernel, kernel]` and `bias` `[outputs]`.
    #[must_use]
    pub fn new(weight: Tensor<4>, bias: Tensor<1>) -> Self {
        Self { weight: Param::from_tensor(weight), bias: Param::from_tensor(bias) }
    }

    /// Returns the parameters: weight `[outputs, inputs, kernel, kernel]` and bias `[outputs]`.
    #[must_use]
    pub fn parameters(&self) -> (&Param<Tensor<4>>, &Param<Tensor<1>>) {
        (&self.weight, &self.bias)
    }

    /// `[n, inputs, height, width]` to `[n, outputs, height, width]`.
    #[must_use]
    pub fn forward(&self, maps: Tensor<4>) -> Tensor<4> {
        let weight = self.weight.val();
        let [_, _, rows, columns] = weight.dims();
        let options = ConvOptions::new([1, 1], [rows / 2, columns / 2], [1, 1], 1);
        conv2d(maps, weight, Some(self.bias.val()), options)
    }
}

/// Returns the height (or width) of a map of `size` after [`max_pool_same`] with this stride: `ceil(size / stride)`.
#[must_use]
pub const fn pooled_size(size: usize, stride: usize) -> usize {
    size.div_ceil(stride)
}

/// Max pooling with TensorFlow's `SAME` padding: the output has [`pooled_size`] rows and columns, the padding is
/// never the maximum, and where it is odd its larger half lies after the map (28 rows, kernel 3, stride 2: none
/// before, one after).
#[must_use]
pub fn max_pool_same(maps: Tensor<4>, kernel: usize, stride: usize) -> Tensor<4> {
    let [_, _, height, width] = maps.dims();
    let options = MaxPoolOptions::new([kernel, kernel])
        .with_stride([stride, stride])
        .with_padding_pairs([same_padding(height, kernel, stride), same_padding(width, kernel, stride)]);
    max_pool2d(maps, options)
}

fn same_padding(size: usize, kernel: usize, stride: usize) -> (usize, usize) {
    let covered = (pooled_size(size, stride) - 1) * stride + kernel;
    let padding = covered.saturating_sub(size);
    (padding / 2, padding - padding / 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::init;
    use crate::test_support::values;
    use burn::tensor::Device;
    use speed_random::Streams;

    #[test]
    fn same_convolution_matches_its_definition() {
        let (device, mut stream) = (Device::flex(), Streams::new(1).stream("conv", 0));
        let (n, inputs, outputs, height, width, kernel) = (2, 3, 4, 6, 5, 5);
        let maps = init::normal([n, inputs, height, width], 1.0, &mut stream, &device);
        let weight = init::normal([outputs, inputs, kernel, kernel], 1.0, &mut stream, &device);
        let bias = init::normal([outputs], 1.0, &mut stream, &device);
        let found = SameConv::new(weight.clone(), bias.clone()).forward(maps.clone());
        assert_eq!(found.dims(), [n, outputs, height, width]);
        let (found, maps, weight, bias) = (values(found), values(maps), values(weight), values(bias));
        for (index, &value) in found.iter().enumerate() {
            let (x, y) = (index % width, index / width % height);
            let (o, i) = (index / (width * height) % outputs, index / (width * height * outputs));
            let mut sum = bias[o];
            for c in 0..inputs {
                for (ky, kx) in (0..kernel * kernel).map(|k| (k / kernel, k % kernel)) {
                    let (sy, sx) = ((y + ky).wrapping_sub(2), (x + kx).wrapping_sub(2));
                    if sy < height && sx < width {
                        sum += maps[((i * inputs + c) * height + sy) * width + sx]
                            * weight[((o * inputs + c) * kernel + ky) * kernel + kx];
                    }
                }
            }
            assert!((value - sum).abs() < 1e-4, "{index}: {value} and {sum}");
        }
    }

    #[test]
    fn pooling_matches_its_definition_for_even_and_odd_sizes() {
        let (device, mut stream) = (Device::flex(), Streams::new(1).stream("pool", 0));
        for (height, width) in [(28, 28), (7, 14), (5, 8), (1, 3)] {
            // Negative values: a padding of zeros would be seen.
            let maps = init::uniform([2, 3, height, width], -2.0, -1.0, &mut stream, &device);
            let found = max_pool_same(maps.clone(), 3, 2);
            let (rows, columns) = (height.div_ceil(2), width.div_ceil(2));
            assert_eq!(found.dims(), [2, 3, rows, columns]);
            let (found, maps) = (values(found), values(maps));
            // TensorFlow: an even size starts its first window at 0, an odd one at -1.
            let (top, left) = (height % 2, width % 2);
            for (index, &value) in found.iter().enumerate() {
                let (px, py, map) = (index % columns, index / columns % rows, index / (rows * columns));
                let mut best = f32::NEG_INFINITY;
                for (ky, kx) in (0..9).map(|k| (k / 3, k % 3)) {
                    let (y, x) = ((2 * py + ky).wrapping_sub(top), (2 * px + kx).wrapping_sub(left));
                    if y < height && x < width {
                        best = best.max(maps[(map * height + y) * width + x]);
                    }
                }
                assert_eq!(value, best, "{height}x{width}, {index}");
            }
        }
    }
}
