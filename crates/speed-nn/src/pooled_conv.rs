//! A convolution with 2x2 max pooling and ReLU behind it, with its gradient written out.
//!
//! Maps are stored image by image, row by row, pixel by pixel, channel by channel (NHWC), so that every window of a map
//! is a few runs of consecutive values. The patches under the kernel are copied into one matrix, the convolution is a
//! product with it, and since the four patches of one pooling window are neighbours, so are the four values that
//! pooling compares. Maps of few channels go without the matrix (`direct.rs`).

mod direct;

use crate::matrix::{Matrix, multiply};

/// Values that pooling compares: 2 x 2.
const POOL: usize = 4;

/// Values of the patches that are in work at a time: 1 MiB.
const BLOCK_VALUES: usize = 1 << 18;

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

    /// Writes the patches of whole `maps`, one a row.
    fn extract(&self, maps: &[f32], patches: &mut Matrix) {
        let images = maps.len() / self.map_len();
        let [rows, columns] = self.pooled();
        patches.resize(POOL * images * rows * columns, self.patch_len());
        let (patches, length) = (patches.values_mut(), self.run_len());
        // A short run of a length that the compiler knows is a few instructions, any other a call.
        match length {
            3 => self.for_each_run(images, |patch, map| copy::<3>(&mut patches[patch..], &maps[map..])),
            5 => self.for_each_run(images, |patch, map| copy::<5>(&mut patches[patch..], &maps[map..])),
            9 => self.for_each_run(images, |patch, map| copy::<9>(&mut patches[patch..], &maps[map..])),
            15 => self.for_each_run(images, |patch, map| copy::<15>(&mut patches[patch..], &maps[map..])),
            _ => self.for_each_run(images, |patch, map| {
                patches[patch..patch + length].copy_from_slice(&maps[map..map + length]);
            }),
        }
    }

    /// Adds the values of all patches to the places of whole `maps` that they come from.
    fn add_back(&self, patches: &Matrix, maps: &mut [f32]) {
        let (patches, length) = (patches.values(), self.run_len());
        self.for_each_run(maps.len() / self.map_len(), |patch, map| {
            for (sum, value) in maps[map..map + length].iter_mut().zip(&patches[patch..patch + length]) {
                *sum += value;
            }
        });
    }

    /// Maps that go through the layer together: as many as keep their patches within a core's own cache.
    fn block(&self) -> usize {
        let [rows, columns] = self.pooled();
        (BLOCK_VALUES / (POOL * rows * columns * self.patch_len())).max(1)
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

/// What a forward pass leaves for the backward pass, and the gradients that this computes. Keeps its memory.
#[derive(Clone, Debug, Default)]
pub struct PooledConvTrace {
    /// Which of its four values a pooling window gave.
    choice: Vec<u32>,
    output: Matrix,
    /// Gradient of the weights, `[patch_len, outputs]`, after a backward pass.
    pub weight: Matrix,
    /// Gradient of the bias, `[outputs]`, after a backward pass.
    pub bias: Vec<f32>,
    // Of one block of maps:
    patches: Matrix,
    convolved: Matrix,
    convolved_gradient: Matrix,
    patch_gradient: Matrix,
    weight_part: Matrix,
}

impl PooledConvTrace {
    /// The layer's output `[images * pooled rows * pooled columns, outputs]`.
    #[must_use]
    pub fn output(&self) -> &Matrix {
        &self.output
    }

    /// Gradients of weights and bias, after a backward pass.
    #[must_use]
    pub fn gradients(&self) -> [&[f32]; 2] {
        [self.weight.values(), &self.bias]
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

    /// Where the kernel looks.
    #[must_use]
    pub fn windows(&self) -> PooledWindows {
        self.windows
    }

    /// Number of output channels.
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
        let images = maps.len() / self.windows.map_len();
        let [rows, columns] = self.windows.pooled();
        let (block, outputs) = (self.windows.block(), self.bias.len());
        trace.output.resize(images * rows * columns, outputs);
        trace.choice.resize(images * rows * columns * outputs, 0);
        let pooled = block * rows * columns * outputs;
        let results = trace.output.values_mut().chunks_mut(pooled).zip(trace.choice.chunks_mut(pooled));
        for (maps, (output, choice)) in maps.chunks(block * self.windows.map_len()).zip(results) {
            if direct::applies(self.windows.run_len(), outputs) {
                direct::convolve(&self.windows, maps, &self.weight, &mut trace.convolved);
            } else {
                self.windows.extract(maps, &mut trace.patches);
                multiply(&mut trace.convolved, trace.patches.view(), self.weight.view());
            }
            self.pool(trace.convolved.values(), output, choice);
        }
    }

    /// Pooling, bias and ReLU of convolved maps.
    fn pool(&self, convolved: &[f32], output: &mut [f32], choice: &mut [u32]) {
        let outputs = self.bias.len();
        let results = output.chunks_exact_mut(outputs).zip(choice.chunks_exact_mut(outputs));
        for (window, (output, choice)) in convolved.chunks_exact(POOL * outputs).zip(results) {
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

    /// Computes the gradients of weights and bias from `gradient`, that of the output, after [`forward`](Self::forward)
    /// of the same `maps`; and that of the maps, where it is asked for.
    ///
    /// # Panics
    /// When `gradient` has another length than the output, or the gradient of the maps another than the maps.
    pub fn backward(
        &self,
        maps: &[f32],
        gradient: &[f32],
        mut map_gradient: Option<&mut [f32]>,
        trace: &mut PooledConvTrace,
    ) {
        let outputs = self.bias.len();
        assert_eq!(gradient.len(), trace.output.values().len(), "gradient of the output");
        assert!(map_gradient.as_ref().is_none_or(|gradient| gradient.len() == maps.len()), "gradient of the maps");
        trace.bias.clear();
        trace.bias.resize(outputs, 0.0);
        trace.weight.resize(self.windows.patch_len(), outputs);
        trace.weight.values_mut().fill(0.0);
        let [rows, columns] = self.windows.pooled();
        let (block_maps, block_results) =
            (self.windows.block() * self.windows.map_len(), self.windows.block() * rows * columns * outputs);
        let results = trace.output.values().chunks(block_results).zip(trace.choice.chunks(block_results));
        let blocks = maps.chunks(block_maps).zip(gradient.chunks(block_results).zip(results));
        for (block, (maps, (gradient, (output, choice)))) in blocks.enumerate() {
            trace.convolved_gradient.resize(POOL * gradient.len() / outputs, outputs);
            let convolved = trace.convolved_gradient.values_mut();
            spread(gradient, output, choice, convolved, &mut trace.bias);
            if direct::applies(self.windows.run_len(), outputs) {
                direct::weight_gradient(&self.windows, maps, &trace.convolved_gradient, &mut trace.weight);
            } else {
                self.windows.extract(maps, &mut trace.patches);
                multiply(&mut trace.weight_part, trace.patches.view().transposed(), trace.convolved_gradient.view());
                let sums = trace.weight.values_mut().iter_mut();
                sums.zip(trace.weight_part.values()).for_each(|(sum, part)| *sum += part);
            }
            if let Some(map_gradient) = &mut map_gradient {
                let to = &mut map_gradient[block * block_maps..][..maps.len()];
                to.fill(0.0);
                multiply(&mut trace.patch_gradient, trace.convolved_gradient.view(), self.weight.view().transposed());
                self.windows.add_back(&trace.patch_gradient, to);
            }
        }
    }
}

/// Sends the gradient of every output back to the value that its pooling window gave, if ReLU let it through, and adds
/// it to that of the bias.
fn spread(gradient: &[f32], output: &[f32], choice: &[u32], convolved: &mut [f32], bias: &mut [f32]) {
    let outputs = bias.len();
    let results = output.chunks_exact(outputs).zip(choice.chunks_exact(outputs));
    let windows = convolved.chunks_exact_mut(POOL * outputs);
    for ((window, (output, choice)), gradient) in windows.zip(results).zip(gradient.chunks_exact(outputs)) {
        for (position, values) in (0..).zip(window.chunks_exact_mut(outputs)) {
            for (((value, g), o), c) in values.iter_mut().zip(gradient).zip(output).zip(choice) {
                *value = if *o > 0.0 && *c == position { *g } else { 0.0 };
            }
        }
        for ((sum, g), o) in bias.iter_mut().zip(gradient).zip(output) {
            *sum += if *o > 0.0 { *g } else { 0.0 };
        }
    }
}

/// The first `N` values.
#[inline(always)]
fn copy<const N: usize>(to: &mut [f32], from: &[f32]) {
    if let (Some(to), Some(from)) = (to.first_chunk_mut::<N>(), from.first_chunk::<N>()) {
        *to = *from;
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
            [(3, 9, 8, 2, 5, 5), (1, 7, 12, 1, 3, 3), (2, 6, 6, 4, 2, 5), (3, 8, 8, 1, 16, 5), (11, 16, 18, 8, 7, 5)]
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
            let mut map_gradient = vec![7.0; n * windows.map_len()];
            let (input, upstream) = (values(maps.clone().inner()), values(upstream.inner()));
            layer.forward(&input, &mut trace);
            layer.backward(&input, &upstream, Some(&mut map_gradient), &mut trace);

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
