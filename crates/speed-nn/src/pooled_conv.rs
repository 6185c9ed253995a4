//! A convolution with 2x2 max pooling and ReLU behind it, with its gradient written out.
//!
//! Maps are stored image by image, row by row, pixel by pixel, channel by channel (NHWC), so that every window of a map
//! is a few runs of consecutive values. The patches under the kernel are copied into one matrix, the convolution is a
//! product with it, and since the four patches of one pooling window are neighbours, so are the four values that
//! pooling compares.

use crate::matrix::{Matrix, multiply};

/// Values that pooling compares: 2 x 2.
const POOL: usize = 4;

/// Where the kernel looks, for maps of one size: a convolution without padding and of stride 1, then 2x2 max pooling of
/// stride 2 that drops an odd last row or column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PooledWindows {
    height: usize,
    width: usize,
    channels: usize,
    kernel: usize,
}

impl PooledWindows {
    /// Windows of a `kernel` x `kernel` convolution on `height` x `width` maps. `None` if the map is too small for a
    /// single pooled value.
    #[must_use]
    pub fn new(height: usize, width: usize, channels: usize, kernel: usize) -> Option<Self> {
        let fits = kernel > 0 && channels > 0 && height > kernel && width > kernel;
        fits.then_some(Self { height, width, channels, kernel })
    }

    /// Rows and columns after convolution and pooling.
    #[must_use]
    pub fn pooled(&self) -> [usize; 2] {
        [self.height, self.width].map(|size| {
            let convolved = size - self.kernel + 1;
            convolved / 2
        })
    }

    /// Values in one patch: `kernel * kernel * channels`, in the order kernel row, kernel column, channel.
    #[must_use]
    pub fn patch_len(&self) -> usize {
        self.kernel * self.kernel * self.channels
    }

    /// Values in one map.
    #[must_use]
    pub fn map_len(&self) -> usize {
        self.height * self.width * self.channels
    }

    /// Calls `run(patch, map)` for every run of consecutive values that all patches of `images` maps consist of:
    /// where it starts in the matrix of patches and where in the maps. Patches are in the order image, pooled row, pooled
    /// column, position in the pooling window.
    fn for_each_run(&self, images: usize, mut run: impl FnMut(usize, usize)) {
        let [rows, columns] = self.pooled();
        let mut patch = 0;
        for image in 0..images {
            for (row, column) in (0..rows * columns).map(|i| (i / columns, i % columns)) {
                for (y, x) in (0..POOL).map(|position| (2 * row + position / 2, 2 * column + position % 2)) {
                    for ky in 0..self.kernel {
                        run(patch, ((image * self.height + y + ky) * self.width + x) * self.channels);
                        patch += self.run_len();
                    }
                }
            }
        }
    }

    /// Values in one row of a window.
    fn run_len(&self) -> usize {
        self.kernel * self.channels
    }
}

/// The layer: `relu(max_pool(conv(x)) + b)`.
///
/// Bias and ReLU come after the pooling, which gives the same values as before it (both are monotone) for a quarter of
/// the work.
#[derive(Clone, Debug)]
pub struct PooledConv {
    windows: PooledWindows,
    weight: Matrix,
    bias: Vec<f32>,
}

/// What a forward pass leaves for the backward pass, and the gradients that this computes. Keeps its memory.
#[derive(Clone, Debug, Default)]
pub struct PooledConvTrace {
    patches: Matrix,
    maps: Matrix,
    choice: Vec<u8>,
    output: Matrix,
    map_gradient: Matrix,
    patch_gradient: Matrix,
    /// Gradient of the weights, `[patch_len, outputs]`, after a backward pass.
    pub weight: Matrix,
    /// Gradient of the bias, `[outputs]`, after a backward pass.
    pub bias: Vec<f32>,
}

impl PooledConvTrace {
    /// The layer's output `[images * pooled rows * pooled columns, outputs]`.
    #[must_use]
    pub fn output(&self) -> &Matrix {
        &self.output
    }
}

impl PooledConv {
    /// A layer with the weights `weight` `[patch_len, outputs]` and `bias` `[outputs]`.
    ///
    /// # Panics
    /// When their sizes do not fit together.
    #[must_use]
    pub fn new(windows: PooledWindows, weight: Matrix, bias: Vec<f32>) -> Self {
        assert_eq!([weight.rows(), weight.columns()], [windows.patch_len(), bias.len()], "weights of a convolution");
        Self { windows, weight, bias }
    }

    /// Computes [`PooledConvTrace::output`] of whole maps.
    ///
    /// # Panics
    /// When `maps` does not hold whole maps.
    pub fn forward(&self, maps: &[f32], trace: &mut PooledConvTrace) {
        assert!(maps.len().is_multiple_of(self.windows.map_len()), "whole maps");
        let images = maps.len() / self.windows.map_len();
        let [rows, columns] = self.windows.pooled();
        let pooled = images * rows * columns;
        trace.patches.resize(POOL * pooled, self.windows.patch_len());
        let (patches, run_len) = (trace.patches.values_mut(), self.windows.run_len());
        self.windows.for_each_run(images, |patch, map| {
            patches[patch..patch + run_len].copy_from_slice(&maps[map..map + run_len]);
        });
        multiply(&mut trace.maps, trace.patches.view(), self.weight.view());

        let outputs = self.bias.len();
        trace.output.resize(pooled, outputs);
        trace.choice.resize(pooled * outputs, 0);
        let windows = trace.maps.values().chunks_exact(POOL * outputs);
        let results = trace.output.values_mut().chunks_exact_mut(outputs).zip(trace.choice.chunks_exact_mut(outputs));
        for (window, (output, choice)) in windows.zip(results) {
            let (first, others) = window.split_at(outputs);
            output.copy_from_slice(first);
            choice.fill(0);
            for (position, values) in (1..).zip(others.chunks_exact(outputs)) {
                for ((best, choice), &value) in output.iter_mut().zip(choice.iter_mut()).zip(values) {
                    let greater = value > *best;
                    *best = if greater { value } else { *best };
                    *choice = if greater { position } else { *choice };
                }
            }
            for (value, bias) in output.iter_mut().zip(&self.bias) {
                let sum = *value + bias;
                // Not `max`, which would hide a NaN.
                *value = if sum < 0.0 { 0.0 } else { sum };
            }
        }
    }

    /// Computes the gradients of weights and bias from `gradient`, that of the output, after [`forward`](Self::forward).
    ///
    /// # Panics
    /// When `gradient` has another length than the output.
    pub fn backward(&self, gradient: &[f32], trace: &mut PooledConvTrace) {
        let outputs = self.bias.len();
        assert_eq!(gradient.len(), trace.output.values().len(), "gradient of the output");
        trace.bias.clear();
        trace.bias.resize(outputs, 0.0);
        trace.map_gradient.resize(trace.maps.rows(), outputs);
        let windows = trace.map_gradient.values_mut().chunks_exact_mut(POOL * outputs);
        let results = trace.output.values().chunks_exact(outputs).zip(trace.choice.chunks_exact(outputs));
        for ((window, (output, choice)), gradient) in windows.zip(results).zip(gradient.chunks_exact(outputs)) {
            for (position, values) in (0..).zip(window.chunks_exact_mut(outputs)) {
                for (((value, g), o), c) in values.iter_mut().zip(gradient).zip(output).zip(choice) {
                    *value = if *o > 0.0 && *c == position { *g } else { 0.0 };
                }
            }
            for ((sum, g), o) in trace.bias.iter_mut().zip(gradient).zip(output) {
                *sum += if *o > 0.0 { *g } else { 0.0 };
            }
        }
        multiply(&mut trace.weight, trace.patches.view().transposed(), trace.map_gradient.view());
    }

    /// Writes the gradient of the input maps into `maps`, after [`backward`](Self::backward).
    ///
    /// # Panics
    /// When `maps` is shorter than the input.
    pub fn input_gradient(&self, trace: &mut PooledConvTrace, maps: &mut [f32]) {
        multiply(&mut trace.patch_gradient, trace.map_gradient.view(), self.weight.view().transposed());
        let (patches, run_len) = (trace.patch_gradient.values(), self.windows.run_len());
        maps.fill(0.0);
        self.windows.for_each_run(maps.len() / self.windows.map_len(), |patch, map| {
            for (sum, value) in maps[map..map + run_len].iter_mut().zip(&patches[patch..patch + run_len]) {
                *sum += value;
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::init;
    use burn::tensor::module::{conv2d, max_pool2d};
    use burn::tensor::ops::{ConvOptions, MaxPoolOptions};
    use burn::tensor::{Device, Tensor, activation};
    use speed_random::Streams;

    fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
        tensor.into_data().try_to_vec().expect("f32")
    }

    fn assert_close(found: &[f32], expected: &[f32]) {
        assert_eq!(found.len(), expected.len());
        for (i, (f, e)) in found.iter().zip(expected).enumerate() {
            assert!((f - e).abs() < 2e-4 * (1.0 + e.abs()), "{i}: {f} and {e}");
        }
    }

    /// Output and all three gradients against Burn's own convolution, pooling and autodiff.
    #[test]
    fn agrees_with_burn() {
        let device = Device::flex().autodiff();
        let mut stream = Streams::new(1).stream("pooled", 0);
        // One trace for all sizes: nothing of an earlier pass may be left.
        let mut trace = PooledConvTrace::default();
        for (n, height, width, channels, outputs, kernel) in
            [(3, 9, 8, 2, 5, 5), (1, 7, 12, 1, 3, 3), (2, 6, 6, 4, 2, 5), (3, 8, 8, 1, 16, 5)]
        {
            let windows = PooledWindows::new(height, width, channels, kernel).expect("large enough");
            let [ph, pw] = windows.pooled();
            let maps = init::normal([n, height, width, channels], 1.0, &mut stream, &device).require_grad();
            let weight = init::normal([kernel, kernel, channels, outputs], 0.3, &mut stream, &device).require_grad();
            let bias = init::normal([outputs], 0.3, &mut stream, &device).require_grad();
            let upstream = init::normal([n, ph, pw, outputs], 1.0, &mut stream, &device);

            let options = ConvOptions::new([1, 1], [0, 0], [1, 1], 1);
            let kernels = weight.clone().permute([3, 2, 0, 1]);
            let expected = conv2d(maps.clone().permute([0, 3, 1, 2]), kernels, Some(bias.clone()), options);
            let expected = activation::relu(max_pool2d(expected, MaxPoolOptions::new([2, 2]))).permute([0, 2, 3, 1]);
            let gradients = (expected.clone() * upstream.clone()).sum().backward();

            let mut next = values(weight.clone().inner()).into_iter();
            let matrix = Matrix::from_fn(windows.patch_len(), outputs, || next.next().expect("as many weights"));
            let layer = PooledConv::new(windows, matrix, values(bias.clone().inner()));
            layer.forward(&values(maps.clone().inner()), &mut trace);
            layer.backward(&values(upstream.inner()), &mut trace);
            let mut map_gradient = vec![7.0; n * windows.map_len()];
            layer.input_gradient(&mut trace, &mut map_gradient);

            assert_close(trace.output().values(), &values(expected.inner()));
            assert_close(trace.weight.values(), &values(weight.grad(&gradients).expect("a gradient")));
            assert_close(&trace.bias, &values(bias.grad(&gradients).expect("a gradient")));
            assert_close(&map_gradient, &values(maps.grad(&gradients).expect("a gradient")));
        }
    }

    #[test]
    fn a_map_without_a_pooled_value_is_refused() {
        assert!(PooledWindows::new(5, 9, 1, 5).is_none());
        assert!(PooledWindows::new(9, 5, 1, 5).is_none());
        assert!(PooledWindows::new(9, 9, 0, 5).is_none());
        assert_eq!(PooledWindows::new(6, 7, 1, 5).map(|w| w.pooled()), Some([1, 1]));
    }
}
