//! The convolution with fewer products (`winograd.rs`), for 5x5 kernels and maps of many channels.
//!
//! A tile of its results is four pooling windows.

use pulp::Simd;

use super::layer::{PooledConv, PooledConvTrace, PooledWindows};
use super::pool::{POOL, pool_vectors, store_choice};
use crate::panels::{load, store};
use crate::winograd::{Results, TilePositions, Tiles, Winograd};

/// Returns the convolution of a layer, if it is supported.
pub(super) fn convolution(layer: &PooledConv) -> Option<Winograd> {
    let (windows, results) = (&layer.windows, layer.windows.pooled().map(|size| 2 * size));
    let PooledWindows { height, width, channels, kernel } = *windows;
    let winograd = Winograd::new([height, width, channels], [0; 2], [kernel, 1], results, layer.outputs());
    winograd.filter(|_| kernel == 5)
}

/// Computes [`PooledConv::forward`] into an output of the right size.
pub(super) fn forward(layer: &PooledConv, convolution: Winograd, maps: &[f32], trace: &mut PooledConvTrace) {
    let PooledConvTrace { output, choice, winograd: work, .. } = trace;
    let to = Pooled { windows: windows_of_tiles(layer), bias: &layer.bias, output: output.values_mut(), choice };
    convolution.forward_to(maps, layer.weight.view(), work, to);
}

/// Computes [`PooledConv::backward`].
pub(super) fn backward(
    layer: &PooledConv,
    convolution: Winograd,
    maps: &[f32],
    gradient: &[f32],
    map_gradient: Option<&mut [f32]>,
    trace: &mut PooledConvTrace,
) {
    let PooledConvTrace { choice, weight, winograd: work, .. } = trace;
    let by_results = Spread { windows: windows_of_tiles(layer), gradient, choice, outputs: layer.outputs() };
    let map_gradient = map_gradient.map(|out| {
        out.fill(0.0);
        (layer.weight.view(), out)
    });
    convolution.gradients_of(maps, by_results, map_gradient, work, weight);
}

/// Row and column of each value of a pooling window, and of each window of a tile.
const PLACES: [[usize; 2]; POOL] = [[0, 0], [0, 1], [1, 0], [1, 1]];

/// Returns the positions of the pooling windows, `[rows, columns, outputs]`. A tile of 4x4 results has 2x2 windows.
fn windows_of_tiles(layer: &PooledConv) -> TilePositions {
    let [rows, columns] = layer.windows.pooled();
    TilePositions::covering([rows, columns, layer.outputs()], 2)
}

/// The gradient of the values of pooling windows.
struct Spread<'a> {
    windows: TilePositions,
    gradient: &'a [f32],
    choice: &'a [u32],
    outputs: usize,
}

impl Tiles<4> for Spread<'_> {
    #[inline(always)]
    fn of<S: Simd>(&self, simd: S, tile: usize, mut each: impl FnMut(usize, [[S::f32s; 4]; 4])) {
        let (zero, windows) = (simd.splat_f32s(0.0), self.windows.starts::<2>(tile));
        for output in (0..self.outputs).step_by(S::F32_LANES) {
            let mut values = [[zero; 4]; 4];
            for (start, [y, x]) in windows.as_flattened().iter().zip(PLACES) {
                let Some(at) = start.map(|start| start + output) else { continue };
                let gradient = load::<S>(&self.gradient[at..]);
                let choice = S::as_simd_u32s(&self.choice[at..at + S::F32_LANES]).0[0];
                for (position, [row, column]) in (0..).zip(PLACES) {
                    let chosen = simd.equal_u32s(choice, simd.splat_u32s(position));
                    values[2 * y + row][2 * x + column] = simd.select_f32s(chosen, gradient, zero);
                }
            }
            each(output, values);
        }
    }
}

/// Pools results.
struct Pooled<'a> {
    windows: TilePositions,
    bias: &'a [f32],
    output: &'a mut [f32],
    choice: &'a mut [u32],
}

impl Results<4> for Pooled<'_> {
    #[inline(always)]
    fn take<S: Simd>(
        &mut self,
        simd: S,
        tile: usize,
        outputs: usize,
        mut results: impl FnMut(usize) -> [[S::f32s; 4]; 4],
    ) {
        let windows = self.windows.starts::<2>(tile);
        for output in (0..outputs).step_by(S::F32_LANES) {
            let (values, bias) = (results(output), load::<S>(&self.bias[output..]));
            for (start, [y, x]) in windows.as_flattened().iter().zip(PLACES) {
                let Some(at) = start.map(|start| start + output) else { continue };
                let mut four = [bias; POOL];
                for (value, [row, column]) in four.iter_mut().zip(PLACES) {
                    *value = values[2 * y + row][2 * x + column];
                }
                let (values, choice) = pool_vectors(simd, four, bias);
                store::<S>(&mut self.output[at..], values);
                store_choice::<S>(&mut self.choice[at..], choice);
            }
        }
    }
}
