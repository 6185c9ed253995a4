//! The convolution as a product with a matrix of patches, for any maps.
//!
//! The patches under the kernel are copied into one matrix, one block of maps at a time. The four patches of one
//! pooling window are neighbours, and so are the four values that pooling compares.

use super::layer::{PatchBuffers, PooledConv, PooledConvTrace, PooledWindows};
use super::pool::{POOL, pool, spread_neighbours};
use crate::matrix::{Matrix, multiply};

/// Values of the patches processed at a time: 1 MiB.
const BLOCK_VALUES: usize = 1 << 18;

/// Computes [`PooledConv::forward`] into an output of the right size.
pub(super) fn forward(layer: &PooledConv, maps: &[f32], trace: &mut PooledConvTrace) {
    let (windows, outputs) = (&layer.windows, layer.outputs());
    let PooledConvTrace { output, choice, patches: PatchBuffers { patches, convolved, .. }, .. } = trace;
    let mut results = output.values_mut().chunks_exact_mut(outputs).zip(choice.chunks_exact_mut(outputs));
    for maps in maps.chunks(block_len(windows)) {
        extract(windows, maps, patches);
        multiply(convolved, patches.view(), layer.weight.view());
        for (values, (output, choice)) in convolved.values().chunks_exact(POOL * outputs).zip(&mut results) {
            let values = [0, 1, 2, 3].map(|position| &values[position * outputs..][..outputs]);
            pool(values, &layer.bias, output, choice);
        }
    }
}

/// Computes [`PooledConv::backward`] into a gradient of the weights that is zero.
pub(super) fn backward(
    layer: &PooledConv,
    maps: &[f32],
    gradient: &[f32],
    map_gradient: Option<&mut [f32]>,
    trace: &mut PooledConvTrace,
) {
    let (windows, outputs) = (&layer.windows, layer.outputs());
    let PooledConvTrace { choice, weight, patches: work, .. } = trace;
    let results = windows.pooled_positions() * outputs * (block_len(windows) / windows.map_len());
    let blocks = maps.chunks(block_len(windows)).zip(gradient.chunks(results).zip(choice.chunks(results)));
    let mut to = map_gradient.map(|gradient| gradient.chunks_mut(block_len(windows)));
    for (maps, (gradient, choice)) in blocks {
        extract(windows, maps, &mut work.patches);
        spread_neighbours(gradient, choice, outputs, &mut work.convolved_gradient);
        multiply(&mut work.weight_part, work.patches.view().transposed(), work.convolved_gradient.view());
        weight.values_mut().iter_mut().zip(work.weight_part.values()).for_each(|(sum, part)| *sum += part);
        if let Some(to) = to.as_mut().and_then(Iterator::next) {
            to.fill(0.0);
            multiply(&mut work.patch_gradient, work.convolved_gradient.view(), layer.weight.view().transposed());
            add_back(windows, &work.patch_gradient, to);
        }
    }
}

/// Returns the number of values of the maps processed together, chosen so that their patches fit a core's own cache.
fn block_len(windows: &PooledWindows) -> usize {
    windows.map_len() * (BLOCK_VALUES / (POOL * windows.pooled_positions() * windows.patch_len())).max(1)
}

/// Writes the patches of complete `maps`, one per row.
fn extract(windows: &PooledWindows, maps: &[f32], patches: &mut Matrix) {
    let images = maps.len() / windows.map_len();
    patches.resize(POOL * images * windows.pooled_positions(), windows.patch_len());
    let (patches, length) = (patches.values_mut(), windows.run_len());
    // A short run of a length that the compiler knows takes a few instructions; any other run takes a call.
    match length {
        3 => for_each_run(windows, images, |patch, map| copy::<3>(&mut patches[patch..], &maps[map..])),
        5 => for_each_run(windows, images, |patch, map| copy::<5>(&mut patches[patch..], &maps[map..])),
        9 => for_each_run(windows, images, |patch, map| copy::<9>(&mut patches[patch..], &maps[map..])),
        15 => for_each_run(windows, images, |patch, map| copy::<15>(&mut patches[patch..], &maps[map..])),
        _ => for_each_run(windows, images, |patch, map| {
            patches[patch..patch + length].copy_from_slice(&maps[map..map + length]);
        }),
    }
}

/// Adds the values of all patches to the positions of complete `maps` that they come from.
fn add_back(windows: &PooledWindows, patches: &Matrix, maps: &mut [f32]) {
    let (patches, length) = (patches.values(), windows.run_len());
    for_each_run(windows, maps.len() / windows.map_len(), |patch, map| {
        for (sum, value) in maps[map..map + length].iter_mut().zip(&patches[patch..patch + length]) {
            *sum += value;
        }
    });
}

/// Calls `run(patch, map)` for every run of consecutive values in all patches of `images` maps, with the start of the
/// run in the matrix of patches and in the maps. Patches are in the order image, pooled row, pooled column, position in
/// the pooling window.
#[inline(always)]
fn for_each_run(windows: &PooledWindows, images: usize, mut run: impl FnMut(usize, usize)) {
    let mut patch = 0;
    for row in windows.window_rows(images) {
        for position in row.flat_map(|window| windows.window(window)) {
            for ky in 0..windows.kernel {
                run(patch, (position + ky * windows.width) * windows.channels);
                patch += windows.run_len();
            }
        }
    }
}

/// Copies the first `N` values.
#[inline(always)]
fn copy<const N: usize>(to: &mut [f32], from: &[f32]) {
    if let (Some(to), Some(from)) = (to.first_chunk_mut::<N>(), from.first_chunk::<N>()) {
        *to = *from;
    }
}
