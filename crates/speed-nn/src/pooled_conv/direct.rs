//! The convolution without a matrix of patches, for maps of few channels.
//!
//! For these maps the patches are many times the size of the maps and each of their values is multiplied by few
//! weights, so writing the patches costs more than the product. Here every value is read in place and multiplied by a
//! vector of weights, and results are pooled while they are in registers.

use pulp::{Arch, Simd, WithSimd};

use super::layer::{PooledConv, PooledConvTrace, PooledWindows};
use super::pool::{POOL, pool_vectors, spread_neighbours, store_choice};
use crate::panels::{LANES, load, store};

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
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { layer, maps, trace } = self;
        match layer.windows.run_len() {
            3 => forward_runs::<S, 3>(simd, layer, maps, trace),
            5 => forward_runs::<S, 5>(simd, layer, maps, trace),
            9 => forward_runs::<S, 9>(simd, layer, maps, trace),
            _ => forward_runs::<S, 15>(simd, layer, maps, trace),
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
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { layer, maps, gradient, trace } = self;
        // As many rows of the kernel at once as have about ten sums.
        match layer.windows.run_len() {
            3 => backward_runs::<S, 3, 3>(simd, layer, maps, gradient, trace),
            5 => backward_runs::<S, 5, 2>(simd, layer, maps, gradient, trace),
            9 => backward_runs::<S, 9, 1>(simd, layer, maps, gradient, trace),
            _ => backward_runs::<S, 15, 1>(simd, layer, maps, gradient, trace),
        }
    }
}

#[inline(always)]
fn forward_runs<S: Simd, const RUN: usize>(simd: S, layer: &PooledConv, maps: &[f32], trace: &mut PooledConvTrace) {
    let (windows, outputs) = (&layer.windows, layer.outputs());
    let starts: Vec<[usize; POOL]> = windows.window_rows(1).flatten().map(|window| patches(windows, window)).collect();
    let results = starts.len() * outputs;
    for first in (0..outputs).step_by(S::F32_LANES) {
        let mut weights = Vec::with_capacity(windows.kernel);
        for ky in 0..windows.kernel {
            let mut row = [simd.splat_f32s(0.0); RUN];
            for (r, vector) in row.iter_mut().enumerate() {
                *vector = load::<S>(&layer.weight.row(ky * RUN + r)[first..]);
            }
            weights.push(row);
        }
        let bias = load::<S>(&layer.bias[first..]);
        let of_images = trace.output.values_mut().chunks_exact_mut(results).zip(trace.choice.chunks_exact_mut(results));
        for (map, (output, choice)) in maps.chunks_exact(windows.map_len()).zip(of_images) {
            let (mut window, row_len) = (0, windows.width * windows.channels);
            while window < starts.len() {
                // The sums of one window alone would wait for each other.
                if let Some(two) = starts[window..].first_chunk::<2>() {
                    let sums = sums_of_windows::<S, RUN, 2>(simd, &weights, map, row_len, two);
                    for (n, sums) in sums.into_iter().enumerate() {
                        put::<S>(simd, sums, bias, (&mut *output, &mut *choice), (window + n) * outputs + first);
                    }
                } else if let Some(one) = starts[window..].first_chunk::<1>() {
                    let [sums] = sums_of_windows::<S, RUN, 1>(simd, &weights, map, row_len, one);
                    put::<S>(simd, sums, bias, (&mut *output, &mut *choice), window * outputs + first);
                }
                window += 2;
            }
        }
    }
}

/// Pools the results of a window.
#[inline(always)]
fn put<S: Simd>(simd: S, sums: [S::f32s; POOL], bias: S::f32s, (output, choice): (&mut [f32], &mut [u32]), at: usize) {
    let (values, chosen) = pool_vectors(simd, sums, bias);
    store::<S>(&mut output[at..], values);
    store_choice::<S>(&mut choice[at..], chosen);
}

/// Returns the results of the four patches of each window.
#[inline(always)]
fn sums_of_windows<S: Simd, const RUN: usize, const N: usize>(
    simd: S,
    weights: &[[S::f32s; RUN]],
    map: &[f32],
    row_len: usize,
    starts: &[[usize; POOL]; N],
) -> [[S::f32s; POOL]; N] {
    let mut all = [[simd.splat_f32s(0.0); POOL]; N];
    for (ky, weights) in weights.iter().enumerate() {
        for (sums, starts) in all.iter_mut().zip(starts) {
            for (sum, start) in sums.iter_mut().zip(starts) {
                let run: &[f32; RUN] = map[start + ky * row_len..].first_chunk().expect("a run within the map");
                for (value, weight) in run.iter().zip(weights) {
                    *sum = simd.mul_add_f32s(simd.splat_f32s(*value), *weight, *sum);
                }
            }
        }
    }
    all
}

#[inline(always)]
fn backward_runs<S: Simd, const RUN: usize, const ROWS: usize>(
    simd: S,
    layer: &PooledConv,
    maps: &[f32],
    gradient: &[f32],
    trace: &mut PooledConvTrace,
) {
    let (windows, outputs) = (&layer.windows, layer.outputs());
    let starts: Vec<usize> = windows.window_rows(1).flatten().flat_map(|window| patches(windows, window)).collect();
    let results = windows.pooled_positions() * outputs;
    let of_images = gradient.chunks_exact(results).zip(trace.choice.chunks_exact(results));
    for (map, (gradient, choice)) in maps.chunks_exact(windows.map_len()).zip(of_images) {
        let by_results = &mut trace.patches.convolved_gradient;
        spread_neighbours(gradient, choice, outputs, by_results);
        for first in (0..outputs).step_by(S::F32_LANES) {
            let mut ky = 0;
            while ky < windows.kernel {
                let rows = if ky + ROWS <= windows.kernel { ROWS } else { 1 };
                let (from, by_results) = (ky * windows.width * windows.channels, &by_results.values()[first..]);
                let places = starts.iter().zip(by_results.chunks(outputs));
                let to = &mut trace.weight.values_mut()[ky * RUN * outputs + first..];
                if rows == ROWS {
                    let sums = sums_of_rows::<S, RUN, ROWS>(simd, layer, &map[from..], places);
                    add(simd, sums.as_flattened(), to, outputs);
                } else {
                    let sums = sums_of_rows::<S, RUN, 1>(simd, layer, &map[from..], places);
                    add(simd, sums.as_flattened(), to, outputs);
                }
                ky += rows;
            }
        }
    }
}

/// Returns the gradient of rows of the kernel by the results at some places.
#[inline(always)]
fn sums_of_rows<'a, S: Simd, const RUN: usize, const ROWS: usize>(
    simd: S,
    layer: &PooledConv,
    map: &[f32],
    places: impl Iterator<Item = (&'a usize, &'a [f32])>,
) -> [[S::f32s; RUN]; ROWS] {
    let row_len = layer.windows.width * layer.windows.channels;
    let mut all = [[simd.splat_f32s(0.0); RUN]; ROWS];
    for (start, by_result) in places {
        let by_result = load::<S>(by_result);
        for (row, sums) in all.iter_mut().enumerate() {
            let run: &[f32; RUN] = map[start + row * row_len..].first_chunk().expect("a run within the map");
            for (sum, value) in sums.iter_mut().zip(run) {
                *sum = simd.mul_add_f32s(simd.splat_f32s(*value), by_result, *sum);
            }
        }
    }
    all
}

#[inline(always)]
fn add<S: Simd>(simd: S, sums: &[S::f32s], weights: &mut [f32], outputs: usize) {
    for (sum, weight) in sums.iter().zip(weights.chunks_mut(outputs)) {
        store::<S>(weight, simd.add_f32s(load::<S>(weight), *sum));
    }
}

/// Returns the starts of the four patches of the pooling window at `position` in the maps.
fn patches(windows: &PooledWindows, position: usize) -> [usize; POOL] {
    windows.window(position).map(|position| position * windows.channels)
}
