//! A convolution followed by 2x2 max pooling and ReLU, with an explicit gradient.
//!
//! Maps are stored in the order image, row, pixel, channel (NHWC), so every row of a window of a map is one run of
//! consecutive values. There are three implementations with the same results: maps of few channels are read in place
//! (`direct.rs`), maps of many channels use the tile unit of processors that have one (`tiles.rs`), and all others are
//! copied into a matrix of patches (`patches.rs`).

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
    /// Returns the windows of a `kernel` x `kernel` convolution on `height` x `width` maps. `None` if the map is too
    /// small for a single pooled value.
    #[must_use]
    pub fn new(height: usize, width: usize, channels: usize, kernel: usize) -> Option<Self> {
        let fits = kernel > 0 && channels > 0 && height > kernel && width > kernel;
        fits.then_some(Self { height, width, channels, kernel })
    }

    /// Returns the number of rows and columns after convolution and pooling.
    #[must_use]
    pub fn pooled(&self) -> [usize; 2] {
        [self.height, self.width].map(|size| {
            let convolved = size - self.kernel + 1;
            convolved / 2
        })
    }

    /// Returns `[height, width, channels]` of a map.
    #[must_use]
    pub fn map(&self) -> [usize; 3] {
        [self.height, self.width, self.channels]
    }

    /// Returns the number of rows, which is also that of columns, of the kernel.
    #[must_use]
    pub fn kernel(&self) -> usize {
        self.kernel
    }

    /// Returns the number of pooling windows of one map.
    fn pooled_positions(&self) -> usize {
        let [rows, columns] = self.pooled();
        rows * columns
    }

    /// Returns the number of values in one patch: `kernel * kernel * channels`, in the order kernel row, kernel column,
    /// channel.
    #[must_use]
    pub fn patch_len(&self) -> usize {
        self.kernel * self.kernel * self.channels
    }

    /// Returns the number of values in one map.
    #[must_use]
    pub fn map_len(&self) -> usize {
        self.height * self.width * self.channels
    }

    /// Returns the first positions of the pooling windows of `images` maps, one row of windows at a time. Positions are
    /// numbered map by map, row by row.
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

    /// Returns the number of values in one row of a window.
    fn run_len(&self) -> usize {
        self.kernel * self.channels
    }
}

/// The layer: `relu(max_pool(conv(x)) + b)`.
///
/// Bias and ReLU follow the pooling. Because both are monotone, this gives the same values as the other order for a
/// quarter of the work.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PooledConv {
    windows: PooledWindows,
    weight: Matrix,
    bias: Vec<f32>,
}

/// Values that a forward pass leaves for the backward pass, and the gradients that the latter computes. Reuses its
/// memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct PooledConvTrace {
    output: Matrix,
    /// Index of every output in its pooling window.
    choice: Vec<u32>,
    /// Gradient of the weights, `[patch_len, outputs]`, after a backward pass.
    pub(crate) weight: Matrix,
    /// Gradient of the bias, `[outputs]`, after a backward pass.
    pub(crate) bias: Vec<f32>,
    patches: patches::PatchBuffers,
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    tiles: crate::tile_conv::TileConvBuffers,
}

impl PooledConvTrace {
    /// Returns the output and leaves an empty one, because a backward pass does not need it.
    pub(crate) fn take_output(&mut self) -> Matrix {
        std::mem::take(&mut self.output)
    }

    /// Returns the gradients of weights and bias, after a backward pass.
    pub(crate) fn gradients(&self) -> [&[f32]; 2] {
        [self.weight.values(), &self.bias]
    }
}

impl PooledConv {
    /// Returns a layer with the weights `weight` `[patch_len, outputs]` and `bias` `[outputs]`.
    ///
    /// # Panics
    /// If their sizes do not match.
    pub(crate) fn new(windows: PooledWindows, weight: Matrix, bias: Vec<f32>) -> Self {
        assert_eq!([weight.rows(), weight.columns()], [windows.patch_len(), bias.len()], "weights of a convolution");
        Self { windows, weight, bias }
    }

    /// Returns the positions of the kernel.
    pub(crate) fn windows(&self) -> PooledWindows {
        self.windows
    }

    /// Returns the number of output channels.
    pub(crate) fn outputs(&self) -> usize {
        self.bias.len()
    }

    /// Computes the output `[images * pooled rows * pooled columns, outputs]` of complete maps.
    ///
    /// # Panics
    /// If a map is incomplete.
    pub(crate) fn forward(&self, maps: &[f32], trace: &mut PooledConvTrace) {
        assert!(maps.len().is_multiple_of(self.windows.map_len()), "complete maps");
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
    /// of the same `maps`; also the gradient of the maps, if requested.
    ///
    /// # Panics
    /// If the length of `gradient` is not that of the output, or that of the gradient of the maps is not that of the
    /// maps.
    pub(crate) fn backward(
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

    #[test]
    fn a_map_without_a_pooled_value_is_refused() {
        assert!(PooledWindows::new(5, 9, 1, 5).is_none());
        assert!(PooledWindows::new(9, 5, 1, 5).is_none());
        assert!(PooledWindows::new(9, 9, 0, 5).is_none());
        assert_eq!(PooledWindows::new(6, 7, 1, 5).map(|w| w.pooled()), Some([1, 1]));
    }
}
