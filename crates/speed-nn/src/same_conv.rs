//! A convolution that keeps height and width, with ReLU behind it and its gradient written out.
//!
//! Maps are stored image by image, row by row, pixel by pixel, channel by channel (NHWC). An image is copied into a frame
//! of zeros, so that every row of a window is one run of consecutive values; the windows of a few images at a time, as
//! many as a core's own cache holds, become the rows of a matrix. Maps of many channels go without that matrix on
//! processors that have a tile unit (`tiles.rs`).

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod tiles;

use crate::matrix::{Matrix, multiply};

/// Values of the windows that are in work at a time: 1 MiB.
const BLOCK_VALUES: usize = 1 << 20;

/// The layer: `relu(conv(x) + b)`, stride 1, zeros around the maps (`SAME` padding), an odd kernel size.
#[derive(Clone, Debug)]
pub struct SameConvRelu {
    height: usize,
    width: usize,
    kernel: usize,
    /// `[kernel * kernel * channels, outputs]`, in the order kernel row, kernel column, channel.
    weight: Matrix,
    bias: Vec<f32>,
}

/// Values that a forward pass leaves for the backward pass, and the gradients that this computes. Keeps its memory.
#[derive(Clone, Debug, Default)]
pub struct SameConvTrace {
    output: Matrix,
    /// Gradient of the weights, `[kernel * kernel * channels, outputs]`, after a backward pass.
    pub weight: Matrix,
    /// Gradient of the bias, `[outputs]`, after a backward pass.
    pub bias: Vec<f32>,
    // Of one block of images:
    framed: Vec<f32>,
    windows: Matrix,
    product: Matrix,
    weight_part: Matrix,
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    tiles: crate::tile_conv::TileConvWork,
}

impl SameConvTrace {
    /// Returns the layer's output `[images * height * width, outputs]`.
    #[must_use]
    pub fn output(&self) -> &Matrix {
        &self.output
    }
}

impl SameConvRelu {
    /// Returns a layer for maps of `[height, width]` with the weights `[kernel * kernel * channels, outputs]` and a bias.
    ///
    /// # Panics
    /// When the sizes do not fit together or the kernel's is even.
    #[must_use]
    pub fn new([height, width]: [usize; 2], kernel: usize, weight: Matrix, bias: Vec<f32>) -> Self {
        assert!(kernel % 2 == 1 && weight.rows().is_multiple_of(kernel * kernel), "windows of a convolution");
        assert_eq!(weight.columns(), bias.len(), "outputs of weight and bias");
        Self { height, width, kernel, weight, bias }
    }

    /// Computes [`SameConvTrace::output`] of whole maps.
    ///
    /// # Panics
    /// When `maps` does not hold whole maps.
    pub fn forward(&self, maps: &[f32], trace: &mut SameConvTrace) {
        assert!(maps.len().is_multiple_of(self.map_len()), "whole maps");
        let (positions, outputs) = (self.height * self.width, self.bias.len());
        trace.output.resize(maps.len() / self.map_len() * positions, outputs);
        #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
        if let Some(convolution) = tiles::convolution(self) {
            return tiles::forward(self, convolution, maps, trace);
        }
        let results = trace.output.values_mut().chunks_mut(self.block() * positions * outputs);
        for (maps, output) in maps.chunks(self.block() * self.map_len()).zip(results) {
            self.extract(maps, &mut trace.framed, &mut trace.windows);
            multiply(&mut trace.product, trace.windows.view(), self.weight.view());
            self.activate(trace.product.values(), output);
        }
    }

    /// Bias and ReLU of convolved positions.
    fn activate(&self, convolved: &[f32], output: &mut [f32]) {
        let outputs = self.bias.len();
        for (output, convolved) in output.chunks_exact_mut(outputs).zip(convolved.chunks_exact(outputs)) {
            for ((value, convolved), bias) in output.iter_mut().zip(convolved).zip(&self.bias) {
                let sum = convolved + bias;
                // Not `max`, which would hide a NaN.
                *value = if sum < 0.0 { 0.0 } else { sum };
            }
        }
    }

    /// Computes the gradients of weights and bias from `gradient`, that of the output, after [`forward`](Self::forward)
    /// of the same `maps`; and that of the maps, where it is asked for. Turns `gradient` into that before the ReLU.
    ///
    /// # Panics
    /// When `gradient` is not as long as the output, or the gradient of the maps as the maps.
    pub fn backward(
        &self,
        maps: &[f32],
        gradient: &mut Matrix,
        mut map_gradient: Option<&mut [f32]>,
        trace: &mut SameConvTrace,
    ) {
        let (positions, outputs) = (self.height * self.width, self.bias.len());
        assert_eq!(gradient.values().len(), trace.output.values().len(), "gradient of the output");
        assert!(map_gradient.as_ref().is_none_or(|gradient| gradient.len() == maps.len()), "gradient of the maps");
        trace.bias.clear();
        trace.bias.resize(outputs, 0.0);
        let pairs = gradient.values_mut().chunks_exact_mut(outputs).zip(trace.output.values().chunks_exact(outputs));
        for (gradient, output) in pairs {
            for ((g, y), sum) in gradient.iter_mut().zip(output).zip(&mut trace.bias) {
                *g = if *y > 0.0 { *g } else { 0.0 };
                *sum += *g;
            }
        }
        trace.weight.resize(self.weight.rows(), outputs);
        trace.weight.values_mut().fill(0.0);
        #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
        if let Some(convolution) = tiles::convolution(self) {
            return tiles::backward(self, convolution, maps, gradient, map_gradient, trace);
        }
        for (block, maps) in maps.chunks(self.block() * self.map_len()).enumerate() {
            let first = block * self.block() * positions;
            let by_product = gradient.rows_view(first..first + maps.len() / self.map_len() * positions);
            self.extract(maps, &mut trace.framed, &mut trace.windows);
            multiply(&mut trace.weight_part, trace.windows.view().transposed(), by_product);
            trace.weight.values_mut().iter_mut().zip(trace.weight_part.values()).for_each(|(sum, part)| *sum += part);
            if let Some(map_gradient) = &mut map_gradient {
                multiply(&mut trace.product, by_product, self.weight.view().transposed());
                let to = &mut map_gradient[block * self.block() * self.map_len()..][..maps.len()];
                self.add_back(&trace.product, &mut trace.framed, to);
            }
        }
    }

    /// Writes the windows of whole `maps`, one a row.
    fn extract(&self, maps: &[f32], framed: &mut Vec<f32>, windows: &mut Matrix) {
        let images = maps.len() / self.map_len();
        self.frame(maps, framed);
        windows.resize(images * self.height * self.width, self.weight.rows());
        let windows = windows.values_mut();
        self.for_each_run(images, |window, frame, length| {
            windows[window..window + length].copy_from_slice(&framed[frame..frame + length]);
        });
    }

    /// Copies whole `maps` into frames of zeros.
    fn frame(&self, maps: &[f32], framed: &mut Vec<f32>) {
        let images = maps.len() / self.map_len();
        framed.clear();
        framed.resize(images * self.framed_len(), 0.0);
        self.for_each_row(images, |map, frame, length| {
            framed[frame..frame + length].copy_from_slice(&maps[map..map + length]);
        });
    }

    /// Copies whole `maps` out of their frames.
    fn unframe(&self, framed: &[f32], maps: &mut [f32]) {
        self.for_each_row(maps.len() / self.map_len(), |map, frame, length| {
            maps[map..map + length].copy_from_slice(&framed[frame..frame + length]);
        });
    }

    /// Writes into whole `maps` the sums of the values of all windows that they are in.
    fn add_back(&self, windows: &Matrix, framed: &mut Vec<f32>, maps: &mut [f32]) {
        let (images, windows) = (maps.len() / self.map_len(), windows.values());
        framed.clear();
        framed.resize(images * self.framed_len(), 0.0);
        self.for_each_run(images, |window, frame, length| {
            for (sum, value) in framed[frame..frame + length].iter_mut().zip(&windows[window..window + length]) {
                *sum += value;
            }
        });
        self.unframe(framed, maps);
    }

    /// Calls `run(map, frame, length)` for every row of the maps: where it starts there and in the framed maps.
    fn for_each_row(&self, images: usize, mut run: impl FnMut(usize, usize, usize)) {
        let (length, border) = (self.width * self.channels(), self.kernel / 2);
        for image in 0..images {
            for y in 0..self.height {
                let frame = image * self.framed_len() + (y + border) * self.framed_row_len() + border * self.channels();
                run((image * self.height + y) * length, frame, length);
            }
        }
    }

    /// Calls `run(window, frame, length)` for every row of every window: where it starts in the matrix of windows and
    /// in the framed maps.
    fn for_each_run(&self, images: usize, mut run: impl FnMut(usize, usize, usize)) {
        let length = self.kernel * self.channels();
        let mut window = 0;
        for image in 0..images {
            for (y, x) in (0..self.height * self.width).map(|i| (i / self.width, i % self.width)) {
                for ky in 0..self.kernel {
                    let frame = image * self.framed_len() + (y + ky) * self.framed_row_len() + x * self.channels();
                    run(window, frame, length);
                    window += length;
                }
            }
        }
    }

    /// Images that go through the layer together.
    fn block(&self) -> usize {
        (BLOCK_VALUES / (self.height * self.width * self.weight.rows())).max(1)
    }

    fn channels(&self) -> usize {
        self.weight.rows() / (self.kernel * self.kernel)
    }

    fn map_len(&self) -> usize {
        self.height * self.width * self.channels()
    }

    fn framed_row_len(&self) -> usize {
        (self.width + self.kernel - 1) * self.channels()
    }

    fn framed_len(&self) -> usize {
        (self.height + self.kernel - 1) * self.framed_row_len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::init;
    use crate::test_support::{assert_close, matrix_of, values};
    use burn::tensor::module::conv2d;
    use burn::tensor::ops::ConvOptions;
    use burn::tensor::{Device, activation};
    use speed_random::Streams;

    /// Output and all three gradients against Burn's own convolution and autodiff.
    #[test]
    fn agrees_with_burn() {
        let device = Device::flex().autodiff();
        let mut stream = Streams::new(1).stream("same", 0);
        // One trace for all sizes, the last in several blocks: nothing of an earlier pass may be left.
        let mut trace = SameConvTrace::default();
        for (n, height, width, channels, outputs, kernel) in [
            (3, 5, 6, 2, 4, 3),
            (2, 7, 4, 3, 5, 5),
            (1, 2, 1, 1, 2, 5),
            (3, 14, 14, 40, 48, 5),
            // For tiles, where there are: one block and several, even and odd maps.
            (5, 6, 7, 16, 32, 3),
            (3, 14, 14, 64, 128, 5),
            (1, 1, 2, 48, 64, 5),
        ] {
            let maps = init::normal([n, height, width, channels], 1.0, &mut stream, &device).require_grad();
            let weight = init::normal([kernel, kernel, channels, outputs], 0.3, &mut stream, &device).require_grad();
            let bias = init::normal([outputs], 0.3, &mut stream, &device).require_grad();
            let upstream = init::normal([n, height, width, outputs], 1.0, &mut stream, &device);
            let options = ConvOptions::new([1, 1], [kernel / 2, kernel / 2], [1, 1], 1);
            let kernels = weight.clone().permute([3, 2, 0, 1]);
            let expected = conv2d(maps.clone().permute([0, 3, 1, 2]), kernels, Some(bias.clone()), options);
            let expected = activation::relu(expected).permute([0, 2, 3, 1]);
            let gradients = (expected.clone() * upstream.clone()).sum().backward();

            let own_weight = matrix_of(kernel * kernel * channels, outputs, values(weight.clone().inner()));
            let layer = SameConvRelu::new([height, width], kernel, own_weight, values(bias.clone().inner()));
            let own_maps = values(maps.clone().inner());
            layer.forward(&own_maps, &mut trace);
            let mut gradient = Matrix::zeros(n * height * width, outputs);
            gradient.values_mut().copy_from_slice(&values(upstream.inner()));
            let mut map_gradient = vec![7.0; own_maps.len()];
            layer.backward(&own_maps, &mut gradient, Some(&mut map_gradient), &mut trace);

            assert_close(trace.output().values(), &values(expected.inner()));
            assert_close(trace.weight.values(), &values(weight.grad(&gradients).expect("a gradient")));
            assert_close(&trace.bias, &values(bias.grad(&gradients).expect("a gradient")));
            assert_close(&map_gradient, &values(maps.grad(&gradients).expect("a gradient")));
        }
    }
}
