//! A convolution with 2x2 max pooling and ReLU behind it, with its gradient written out.
//!
//! Maps are stored image by image, row by row, pixel by pixel, channel by channel (NHWC), so that every row of a window of
//! a map is one run of consecutive values. Three ways lead to the same results: few channels are read where they are
//! (`direct.rs`), many on the tile unit of processors that have one (`tiles.rs`), and all else is copied into a matrix of
//! patches (`patches.rs`).

mod direct;
mod patches;
mod pool;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod tiles;

use std::iter::StepBy;
use std::ops::Range;

use crate::matrix::Matrix;
use pool::POOL;

/// Positions of the kernel for maps of one size: a convolution without padding and of stride 1, then 2x2 max pooling of
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

    /// Returns the rows, and columns, of the kernel.
    #[must_use]
    pub fn kernel(&self) -> usize {
        self.kernel
    }

    /// Pooling windows of one map.
    fn pooled_positions(&self) -> usize {
        let [rows, columns] = self.pooled();
        rows * columns
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

    /// Returns the first positions of the pooling windows of `images` maps, a row of windows at a time; positions are numbered map
    /// by map, row by row.
    fn window_rows(&self, images: usize) -> impl Iterator<Item = StepBy<Range<usize>>> {
        let (Self { height, width, .. }, [rows, columns]) = (*self, self.pooled());
        (0..images * rows).map(move |row| {
            let first = (row / rows * height + row % rows * 2) * width;
            (first..first + 2 * columns).step_by(2)
        })
    }

    /// Returns the positions of the four values of the pooling window that begins at `first`.
    #[inline(always)]
    fn window(&self, first: usize) -> [usize; POOL] {
        [first, first + 1, first + self.width, first + self.width + 1]
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
#[derive(Clone, Debug, PartialEq)]
pub struct PooledConv {
    windows: PooledWindows,
    weight: Matrix,
    bias: Vec<f32>,
}

/// Values that a forward pass leaves for the backward pass, and the gradients that this computes. Keeps its memory.
#[derive(Clone, Debug, Default)]
pub struct PooledConvTrace {
    output: Matrix,
    /// Index of every output in its pooling window.
    choice: Vec<u32>,
    /// Gradient of the weights, `[patch_len, outputs]`, after a backward pass.
    pub weight: Matrix,
    /// Gradient of the bias, `[outputs]`, after a backward pass.
    pub bias: Vec<f32>,
    patches: patches::Work,
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    tiles: crate::tile_conv::TileConvWork,
}

impl PooledConvTrace {
    /// Returns the layer's output `[images * pooled rows * pooled columns, outputs]`.
    #[must_use]
    pub fn output(&self) -> &Matrix {
        &self.output
    }

    /// Returns the output and leaves none: a backward pass does not need it.
    pub fn take_output(&mut self) -> Matrix {
        std::mem::take(&mut self.output)
    }

    /// Gradients of weights and bias, after a backward pass.
    #[must_use]
    pub fn gradients(&self) -> [&[f32]; 2] {
        [self.weight.values(), &self.bias]
    }
}

impl PooledConv {
    /// Returns a layer with the weights `weight` `[patch_len, outputs]` and `bias` `[outputs]`.
    ///
    /// # Panics
    /// When their sizes do not fit together.
    #[must_use]
    pub fn new(windows: PooledWindows, weight: Matrix, bias: Vec<f32>) -> Self {
        assert_eq!([weight.rows(), weight.columns()], [windows.patch_len(), bias.len()], "weights of a convolution");
        Self { windows, weight, bias }
    }

    /// Positions of the kernel.
    #[must_use]
    pub fn windows(&self) -> PooledWindows {
        self.windows
    }

    /// Returns the number of output channels.
    #[must_use]
    pub fn outputs(&self) -> usize {
        self.bias.len()
    }

    /// Weights `[patch_len, outputs]` and bias `[outputs]`.
    #[must_use]
    pub fn parameters(&self) -> [&[f32]; 2] {
        [self.weight.values(), &self.bias]
    }

    /// Weights and bias, to change.
    pub fn parameters_mut(&mut self) -> [&mut [f32]; 2] {
        [self.weight.values_mut(), &mut self.bias]
    }

    /// Computes [`PooledConvTrace::output`] of whole maps.
    ///
    /// # Panics
    /// When `maps` does not hold whole maps.
    pub fn forward(&self, maps: &[f32], trace: &mut PooledConvTrace) {
        assert!(maps.len().is_multiple_of(self.windows.map_len()), "whole maps");
        let rows = maps.len() / self.windows.map_len() * self.windows.pooled_positions();
        trace.output.resize(rows, self.outputs());
        trace.choice.resize(rows * self.outputs(), 0);
        #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
        if let Some(convolution) = tiles::convolution(self) {
            return tiles::forward(self, convolution, maps, trace);
        }
        if direct::applies(self) {
            direct::forward(self, maps, trace);
        } else {
            patches::forward(self, maps, trace);
        }
    }

    /// Computes the gradients of weights and bias from `gradient`, that of the output, after [`forward`](Self::forward)
    /// of the same `maps`; and that of the maps, where it is asked for.
    ///
    /// # Panics
    /// When `gradient` has another length than the output, or the gradient of the maps another than the maps.
    pub fn backward(
        &self,
        maps: &[f32],
        gradient: &[f32],
        map_gradient: Option<&mut [f32]>,
        trace: &mut PooledConvTrace,
    ) {
        assert_eq!(gradient.len(), trace.choice.len(), "gradient of the output");
        assert!(map_gradient.as_ref().is_none_or(|gradient| gradient.len() == maps.len()), "gradient of the maps");
        trace.bias.clear();
        trace.bias.resize(self.outputs(), 0.0);
        pool::add_to_bias(gradient, &trace.choice, &mut trace.bias);
        trace.weight.resize(self.windows.patch_len(), self.outputs());
        trace.weight.values_mut().fill(0.0);
        #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
        if let Some(convolution) = tiles::convolution(self) {
            return tiles::backward(self, convolution, maps, gradient, map_gradient, trace);
        }
        if map_gradient.is_none() && direct::applies(self) {
            direct::backward(self, maps, gradient, trace);
        } else {
            patches::backward(self, maps, gradient, map_gradient, trace);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::init;
    use crate::test_support::{assert_close, matrix_of, values};
    use burn::tensor::module::{conv2d, max_pool2d};
    use burn::tensor::ops::{ConvOptions, MaxPoolOptions};
    use burn::tensor::{Device, activation};
    use speed_random::Streams;

    /// Output and all three gradients against Burn's own convolution, pooling and autodiff.
    #[test]
    fn agrees_with_burn() {
        let device = Device::flex().autodiff();
        let mut stream = Streams::new(1).stream("pooled", 0);
        // One trace for all sizes: nothing of an earlier pass may be left.
        let mut trace = PooledConvTrace::default();
        for (n, height, width, channels, outputs, kernel) in [
            (3, 9, 8, 2, 5, 5),
            (1, 7, 12, 1, 3, 3),
            (2, 6, 6, 4, 2, 5),
            (3, 8, 8, 1, 16, 5),
            (11, 16, 18, 8, 7, 5),
            // For tiles, where there are: one block and several, even and odd maps, whole and partial steps.
            (30, 12, 12, 16, 32, 5),
            (6, 21, 22, 32, 32, 3),
            (2, 2, 3, 16, 64, 1),
            (3, 7, 5, 48, 96, 4),
        ] {
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

            let own_weight = matrix_of(windows.patch_len(), outputs, values(weight.clone().inner()));
            let layer = PooledConv::new(windows, own_weight, values(bias.clone().inner()));
            let mut map_gradient = vec![7.0; n * windows.map_len()];
            let (input, upstream) = (values(maps.clone().inner()), values(upstream.inner()));
            layer.forward(&input, &mut trace);
            layer.backward(&input, &upstream, Some(&mut map_gradient), &mut trace);

            assert_close(trace.output().values(), &values(expected.inner()));
            assert_close(&map_gradient, &values(maps.grad(&gradients).expect("a gradient")));
            let check_parameters = |trace: &PooledConvTrace| {
                assert_close(trace.weight.values(), &values(weight.grad(&gradients).expect("a gradient")));
                assert_close(&trace.bias, &values(bias.grad(&gradients).expect("a gradient")));
            };
            check_parameters(&trace);
            layer.backward(&input, &upstream, None, &mut trace);
            check_parameters(&trace);
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
