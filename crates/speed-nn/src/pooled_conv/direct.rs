//! The convolution without a matrix of patches, for maps of few channels.
//!
//! For these maps the patches are many times the size of the maps and each of their values is multiplied by few
//! weights, so writing the patches costs more than the product. Here every value is read in place and multiplied by the
//! weights of sixteen outputs at once, and results are pooled while they are in registers.

use pulp::{Arch, Simd, WithSimd};

use super::layer::{PooledConv, PooledConvTrace, PooledWindows};
use super::pool::{LANES, POOL, lanes, lanes_mut, pool_lanes, spread_neighbours};

type Lanes = [f32; LANES];

/// Returns whether [`forward`] and [`backward`] support such a layer.
pub(super) fn applies(layer: &PooledConv) -> bool {
    matches!(layer.windows.run_len(), 3 | 5 | 9 | 15) && layer.outputs().is_multiple_of(LANES)
}

/// Computes [`PooledConv::forward`] into an output of the right size.
pub(super) fn forward(layer: &PooledConv, maps: &[f32], trace: &mut PooledConvTrace) {
    Arch::new().dispatch(Forward { layer, maps, trace });
}

/// Computes [`PooledConv::backward`] without the gradient of the maps, into a gradient of the weights that is zero.
pub(super) fn backward(layer: &PooledConv, maps: &[f32], gradient: &[f32], trace: &mut PooledConvTrace) {
    Arch::new().dispatch(Backward { layer, maps, gradient, trace });
}

// Both passes are compiled for each vector instruction set that a processor may have; the results are bit-identical.
// The functions they call are inlined, because a separate function would be compiled for the baseline target features.

struct Forward<'a> {
    layer: &'a PooledConv,
    maps: &'a [f32],
    trace: &'a mut PooledConvTrace,
}

impl WithSimd for Forward<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { layer, maps, trace } = self;
        match layer.windows.run_len() {
            3 => forward_runs::<3>(layer, maps, trace),
            5 => forward_runs::<5>(layer, maps, trace),
            9 => forward_runs::<9>(layer, maps, trace),
            _ => forward_runs::<15>(layer, maps, trace),
        }
    }
}

struct Backward<'a> {
    layer: &'a PooledConv,
    maps: &'a [f32],
    gradient: &'a [f32],
    trace: &'a mut PooledConvTrace,
}

impl WithSimd for Backward<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { layer, maps, gradient, trace } = self;
        match layer.windows.run_len() {
            3 => backward_runs::<3>(layer, maps, gradient, trace),
            5 => backward_runs::<5>(layer, maps, gradient, trace),
            9 => backward_runs::<9>(layer, maps, gradient, trace),
            _ => backward_runs::<15>(layer, maps, gradient, trace),
        }
    }
}

#[inline(always)]
fn forward_runs<const RUN: usize>(layer: &PooledConv, maps: &[f32], trace: &mut PooledConvTrace) {
    let (windows, outputs) = (&layer.windows, layer.outputs());
    let row_len = windows.width * windows.channels;
    for first in (0..outputs).step_by(LANES) {
        let weights = |row| *lanes(layer.weight.row(row), first);
        let weights: Vec<[Lanes; RUN]> =
            (0..windows.kernel).map(|ky| std::array::from_fn(|r| weights(ky * RUN + r))).collect();
        let rows = trace.output.values_mut().chunks_exact_mut(outputs);
        let mut results = rows.zip(trace.choice.chunks_exact_mut(outputs));
        for row in windows.window_rows(maps.len() / windows.map_len()) {
            for (window, (output, choice)) in row.zip(&mut results) {
                let starts = patches(windows, window);
                let mut sums = [[0.0; LANES]; POOL];
                for (ky, weights) in weights.iter().enumerate() {
                    let runs: [&[f32; RUN]; POOL] = starts.map(|start| lanes(maps, start + ky * row_len));
                    for (r, weights) in weights.iter().enumerate() {
                        for position in 0..POOL {
                            for lane in 0..LANES {
                                let sum = &mut sums[position][lane];
                                *sum = runs[position][r].mul_add(weights[lane], *sum);
                            }
                        }
                    }
                }
                let (output, choice) = (lanes_mut(output, first), lanes_mut(choice, first));
                pool_lanes(sums.each_ref(), lanes(&layer.bias, first), output, choice);
            }
        }
    }
}

#[inline(always)]
fn backward_runs<const RUN: usize>(layer: &PooledConv, maps: &[f32], gradient: &[f32], trace: &mut PooledConvTrace) {
    let (windows, outputs) = (&layer.windows, layer.outputs());
    let row_len = windows.width * windows.channels;
    let results = windows.pooled_positions() * outputs;
    let images = maps.chunks_exact(windows.map_len());
    for (map, (gradient, choice)) in images.zip(gradient.chunks_exact(results).zip(trace.choice.chunks_exact(results)))
    {
        let convolved = &mut trace.patches.convolved_gradient;
        spread_neighbours(gradient, choice, outputs, convolved);
        for first in (0..outputs).step_by(LANES) {
            for ky in 0..windows.kernel {
                let mut sums = [[0.0; LANES]; RUN];
                let mut rows = convolved.values().chunks_exact(outputs);
                for row in windows.window_rows(1) {
                    for window in row {
                        for (start, row) in patches(windows, window).into_iter().zip(&mut rows) {
                            let run: &[f32; RUN] = lanes(map, start + ky * row_len);
                            let g: Lanes = *lanes(row, first);
                            for r in 0..RUN {
                                for lane in 0..LANES {
                                    sums[r][lane] = run[r].mul_add(g[lane], sums[r][lane]);
                                }
                            }
                        }
                    }
                }
                for (r, sums) in sums.iter().enumerate() {
                    let all: &mut Lanes = lanes_mut(trace.weight.row_mut(ky * RUN + r), first);
                    all.iter_mut().zip(sums).for_each(|(all, sum)| *all += sum);
                }
            }
        }
    }
}

/// Returns the starts of the four patches of the pooling window at `position` in the maps.
#[inline(always)]
fn patches(windows: &PooledWindows, position: usize) -> [usize; POOL] {
    let [a, b, c, d] = windows.window(position);
    [a * windows.channels, b * windows.channels, c * windows.channels, d * windows.channels]
}
