//! The layer, the positions of its kernel, and the memory of its passes.

use std::iter::StepBy;
use std::ops::Range;

use super::pool::POOL;
use crate::matrix::Matrix;

/// Positions of the kernel for maps of one size: a convolution without padding and of stride 1, then 2x2 max pooling of
/// stride 2 that drops an odd last row or column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PooledWindows {
    pub(super) height: usize,
    pub(super) width: usize,
    pub(super) channels: usize,
    pub(super) kernel: usize,
}

impl PooledWindows {
    /// Returns the windows of a `kernel` x `kernel` convolution on `height` x `width` maps. `None` if the map is too
    /// small for a single pooled value.
    pub fn new(height: usize, width: usize, channels: usize, kernel: usize) -> Option<Self> {
        let fits = kernel > 0 && channels > 0 && height > kernel && width > kernel;
        fits.then_some(Self { height, width, channels, kernel })
    }

    /// Returns the number of rows and columns after convolution and pooling.
    pub fn pooled(&self) -> [usize; 2] {
        [self.height, self.width].map(|size| {
            let convolved = size - self.kernel + 1;
            convolved / 2
        })
    }

    /// Returns `[height, width, channels]` of a map.
    pub fn map(&self) -> [usize; 3] {
        [self.height, self.width, self.channels]
    }

    /// Returns the number of rows, which is also that of columns, of the kernel.
    pub(crate) fn kernel(&self) -> usize {
        self.kernel
    }

    /// Returns the number of pooling windows of one map.
    pub(super) fn pooled_positions(&self) -> usize {
        let [rows, columns] = self.pooled();
        rows * columns
    }

    /// Returns the number of values in one patch: `kernel * kernel * channels`, in the order kernel row, kernel column,
    /// channel.
    pub fn patch_len(&self) -> usize {
        self.kernel * self.kernel * self.channels
    }

    /// Returns the number of values in one map.
    pub(crate) fn map_len(&self) -> usize {
        self.height * self.width * self.channels
    }

    /// Returns the first positions of the pooling windows of `images` maps, one row of windows at a time. Positions are
    /// numbered map by map, row by row.
    pub(super) fn window_rows(&self, images: usize) -> impl Iterator<Item = StepBy<Range<usize>>> {
        let (Self { height, width, .. }, [rows, columns]) = (*self, self.pooled());
        (0..images * rows).map(move |row| {
            let first = (row / rows * height + row % rows * 2) * width;
            (first..first + 2 * columns).step_by(2)
        })
    }

    /// Returns the positions of the four values of the pooling window that begins at `first`.
    #[inline(always)]
    pub(super) fn window(&self, first: usize) -> [usize; POOL] {
        [first, first + 1, first + self.width, first + self.width + 1]
    }

    /// Returns the number of values in one row of a window.
    pub(super) fn run_len(&self) -> usize {
        self.kernel * self.channels
    }
}

/// The layer: `relu(max_pool(conv(x)) + b)`.
///
/// Bias and ReLU follow the pooling. Because both are monotone, this gives the same values as the other order for a
/// quarter of the work.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PooledConv {
    pub(super) windows: PooledWindows,
    pub(super) weight: Matrix,
    pub(super) bias: Vec<f32>,
}

/// Values that a forward pass leaves for the backward pass, and the gradients that the latter computes. Reuses its
/// memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct PooledConvTrace {
    pub(super) output: Matrix,
    /// Index of every output in its pooling window.
    pub(super) choice: Vec<u32>,
    /// Gradient of the weights, `[patch_len, outputs]`, after a backward pass.
    pub(crate) weight: Matrix,
    /// Gradient of the bias, `[outputs]`, after a backward pass.
    pub(crate) bias: Vec<f32>,
    pub(super) patches: PatchBuffers,
    pub(super) winograd: crate::winograd::WinogradBuffers,
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    pub(super) tiles: crate::tile_conv::TileConvBuffers,
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

/// Values of one block of maps of the convolution by patches. Reuses its memory.
#[derive(Clone, Debug, Default)]
pub(super) struct PatchBuffers {
    pub(super) patches: Matrix,
    pub(super) convolved: Matrix,
    pub(super) convolved_gradient: Matrix,
    pub(super) patch_gradient: Matrix,
    pub(super) weight_part: Matrix,
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
