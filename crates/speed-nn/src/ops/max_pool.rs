//! Max pooling with TensorFlow's `SAME` padding.

use std::ops::Range;

use burn::backend::{Dispatch, TensorMetadata};
use burn::tensor::module::max_pool2d;
use burn::tensor::ops::MaxPoolOptions;
use burn::tensor::{Shape, Tensor};

use crate::flex::{Array, array, contiguous, on_flex, rows_mut, values};

operation!(MaxPoolOps: max_pool_same([maps], kernel: usize, stride: usize), forward, backward);

/// Returns the greatest value of every window `kernel x kernel`, one every `stride` pixels, of maps
/// `[images, height, width, channels]`: the output has [`pooled`] rows and columns. Padding is never the greatest
/// value; if it is odd, its larger half is at the end of the map.
///
/// # Panics
/// If `kernel` or `stride` is zero.
pub fn max_pool_same(maps: Tensor<4>, kernel: usize, stride: usize) -> Tensor<4> {
    assert!(kernel > 0 && stride > 0, "a kernel of {kernel} and a stride of {stride}");
    if !on_flex(&maps) {
        return max_pool_same_in_burn(maps, kernel, stride);
    }
    Tensor::from_dispatch(Dispatch::max_pool_same(maps.into_dispatch(), kernel, stride))
}

/// Computes [`max_pool_same`](fn@max_pool_same) with Burn's own operations.
pub fn max_pool_same_in_burn(maps: Tensor<4>, kernel: usize, stride: usize) -> Tensor<4> {
    let [_, height, width, _] = maps.dims();
    let padding = |size| {
        let padding = padding(size, kernel, stride);
        (padding / 2, padding - padding / 2)
    };
    let options = MaxPoolOptions::new([kernel, kernel])
        .with_stride([stride, stride])
        .with_padding_pairs([padding(height), padding(width)]);
    max_pool2d(maps.permute([0, 3, 1, 2]), options).permute([0, 2, 3, 1])
}

/// Returns the height or width of the output for maps of height or width `size`: `ceil(size / stride)`.
pub const fn pooled(size: usize, stride: usize) -> usize {
    size.div_ceil(stride)
}

/// Returns the number of pixels that windows reach beyond a map of height or width `size`.
fn padding(size: usize, kernel: usize, stride: usize) -> usize {
    ((pooled(size, stride) - 1) * stride + kernel).saturating_sub(size)
}

/// Returns the rows (or columns) of a map of `size` within the window of output `index`.
fn window(index: usize, size: usize, kernel: usize, stride: usize) -> Range<usize> {
    let (start, before) = (index * stride, padding(size, kernel, stride) / 2);
    start.saturating_sub(before)..(start + kernel - before).min(size)
}

/// The pixel of its map that each output was taken from, and the shape of the maps.
#[derive(Clone, Debug)]
struct Saved {
    choice: Vec<u32>,
    shape: Shape,
}

/// One window of a map.
struct Windowed<'a> {
    map: &'a [f32],
    y: Range<usize>,
    x: Range<usize>,
    width: usize,
    channels: usize,
}

/// Number of channels that are compared together, in registers.
const TOGETHER: usize = 16;

impl Windowed<'_> {
    /// Writes the greatest value, and its pixel, for each of `N` channels from `first` on.
    #[inline(always)]
    fn put_greatest<const N: usize>(&self, first: usize, output: &mut [f32], choice: &mut [u32]) {
        let first_pixel = u32::try_from(self.y.start * self.width + self.x.start).unwrap_or_default();
        let (mut best, mut chosen) = ([f32::NEG_INFINITY; N], [first_pixel; N]);
        for y in self.y.clone() {
            for x in self.x.clone() {
                let pixel = y * self.width + x;
                let place = u32::try_from(pixel).expect("a map of fewer than 2^32 pixels");
                let values = &self.map[pixel * self.channels + first..][..N];
                for ((best, chosen), &value) in best.iter_mut().zip(&mut chosen).zip(values) {
                    // A NaN is chosen and kept.
                    let greater = value > *best || value.is_nan();
                    *best = if greater { value } else { *best };
                    *chosen = if greater { place } else { *chosen };
                }
            }
        }
        output[..N].copy_from_slice(&best);
        choice[..N].copy_from_slice(&chosen);
    }
}

fn forward([maps]: [Array; 1], kernel: usize, stride: usize) -> (Array, Saved) {
    let (shape, maps) = (maps.shape(), contiguous(maps));
    let [images, height, width, channels] = [0, 1, 2, 3].map(|side| shape[side]);
    let [rows, columns] = [height, width].map(|size| pooled(size, stride));
    let map_len = height * width * channels;
    let length = images * rows * columns * channels;
    let (mut output, mut choice) = (vec![0.0; length], vec![0; length]);
    let results = rows_mut(&mut output, channels).zip(rows_mut(&mut choice, channels));
    for (index, (output, choice)) in results.enumerate() {
        let window = Windowed {
            map: &values(&maps)[index / (rows * columns) * map_len..][..map_len],
            y: window(index / columns % rows, height, kernel, stride),
            x: window(index % columns, width, kernel, stride),
            width,
            channels,
        };
        let together = channels - channels % TOGETHER;
        for first in (0..together).step_by(TOGETHER) {
            let (best, choice) = (&mut output[first..], &mut choice[first..]);
            window.put_greatest::<TOGETHER>(first, best, choice);
        }
        for channel in together..channels {
            window.put_greatest::<1>(channel, &mut output[channel..], &mut choice[channel..]);
        }
    }
    (array(output, [images, rows, columns, channels]), Saved { choice, shape })
}

/// Adds the gradient of every output to its pixel.
fn backward(Saved { choice, shape }: Saved, gradient: Array, _: [bool; 1]) -> [Option<Array>; 1] {
    let (gradient, channels) = (contiguous(gradient), shape[3]);
    let mut maps = vec![0.0; shape.num_elements()];
    if choice.is_empty() {
        return [Some(array(maps, shape))];
    }
    let map_len = shape[1] * shape[2] * channels;
    let result_len = choice.len() / shape[0].max(1);
    let results = values(&gradient).chunks_exact(result_len).zip(choice.chunks_exact(result_len));
    for (map, (gradient, choice)) in maps.chunks_exact_mut(map_len).zip(results) {
        for (gradient, choice) in gradient.chunks_exact(channels).zip(choice.chunks_exact(channels)) {
            for (channel, (g, &pixel)) in gradient.iter().zip(choice).enumerate() {
                map[pixel as usize * channels + channel] += g;
            }
        }
    }
    [Some(array(maps, shape))]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::{agree, random, values};

    /// Images, height, width, channels; kernel, stride.
    const CASES: [([usize; 4], usize, usize); 6] = [
        ([2, 28, 28, 3], 3, 2),
        ([1, 7, 14, 5], 3, 2),
        ([2, 5, 8, 1], 3, 2),
        ([3, 1, 3, 2], 3, 2),
        ([1, 6, 6, 2], 2, 2),
        ([2, 9, 4, 3], 3, 3),
    ];

    #[test]
    fn values_and_gradients_agree_with_burn() {
        for (shape, kernel, stride) in CASES {
            // Negative values, so that a padding of zeros would be detected.
            let maps = random(shape, 1) - 9.0;
            let maps = Tensor::from_inner(maps.inner()).require_grad();
            agree(
                [maps],
                |[maps]| max_pool_same(maps, kernel, stride),
                |[maps]| max_pool_same_in_burn(maps, kernel, stride),
            );
        }
    }

    #[test]
    fn windows_are_those_of_tensorflow() {
        for (shape @ [_, height, width, channels], kernel, stride) in CASES {
            let maps = random(shape, 2).inner();
            let [rows, columns] = [height, width].map(|size| size.div_ceil(stride));
            // The documented rule: the necessary padding, with its smaller half at the start.
            let before = [(rows, height), (columns, width)]
                .map(|(outputs, size)| ((outputs - 1) * stride + kernel).saturating_sub(size) / 2);
            let (found, maps) = (values(max_pool_same(maps.clone(), kernel, stride)), values(maps));
            for (index, &value) in found.iter().enumerate() {
                let (channel, pixel) = (index % channels, index / channels);
                let (image, row, column) = (pixel / (rows * columns), pixel / columns % rows, pixel % columns);
                let mut best = f32::NEG_INFINITY;
                for (ky, kx) in (0..kernel * kernel).map(|k| (k / kernel, k % kernel)) {
                    let y = (row * stride + ky).wrapping_sub(before[0]);
                    let x = (column * stride + kx).wrapping_sub(before[1]);
                    if y < height && x < width {
                        best = best.max(maps[((image * height + y) * width + x) * channels + channel]);
                    }
                }
                assert_eq!(value, best, "{shape:?}, {index}");
            }
        }
    }

    #[test]
    fn a_nan_stays() {
        let mut x = vec![0.5; 9];
        x[4] = f32::NAN;
        let maps = crate::test_support::tensor(&x, [1, 3, 3, 1]).inner();
        assert!(values(max_pool_same(maps, 3, 2)).iter().all(|value| value.is_nan()));
    }
}
