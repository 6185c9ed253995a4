//! The convolution on the processor's tile unit, for maps of many channels.

use super::layer::{PooledConv, PooledConvTrace, PooledWindows};
use super::pool::{pool, spread};
use crate::tile_conv::TileConv;

/// Returns the convolution of a layer, if this machine and thread support it on tiles.
pub(super) fn convolution(layer: &PooledConv) -> Option<TileConv> {
    let (windows, [rows, columns]) = (&layer.windows, layer.windows.pooled().map(|size| 2 * size));
    let PooledWindows { height, width, channels, kernel } = *windows;
    let convolution = TileConv { height, width, channels, kernel, rows, columns };
    convolution.applies(layer.outputs()).then_some(convolution)
}

/// Computes [`PooledConv::forward`] into an output of the right size.
pub(super) fn forward(layer: &PooledConv, convolution: TileConv, maps: &[f32], trace: &mut PooledConvTrace) {
    let (windows, outputs) = (&layer.windows, layer.outputs());
    let PooledConvTrace { output, choice, tiles: work, .. } = trace;
    convolution.set_weights_for_results(layer.weight.view(), work);
    let mut outputs_of_windows = output.values_mut().chunks_exact_mut(outputs).zip(choice.chunks_exact_mut(outputs));
    for maps in maps.chunks(convolution.block_len()) {
        convolution.put_results(maps, work);
        for row in windows.window_rows(maps.len() / windows.map_len()) {
            for (window, (output, choice)) in row.zip(&mut outputs_of_windows) {
                pool(windows.window(window).map(|position| work.results.row(position)), &layer.bias, output, choice);
            }
        }
    }
}

/// Computes [`PooledConv::backward`] into a gradient of the weights that is zero.
pub(super) fn backward(
    layer: &PooledConv,
    convolution: TileConv,
    maps: &[f32],
    gradient: &[f32],
    map_gradient: Option<&mut [f32]>,
    trace: &mut PooledConvTrace,
) {
    let (windows, outputs) = (&layer.windows, layer.outputs());
    let PooledConvTrace { choice, weight, tiles: work, .. } = trace;
    if map_gradient.is_some() {
        convolution.set_weights_for_maps(layer.weight.view(), work);
    }
    let mut gradients_of_windows = gradient.chunks_exact(outputs).zip(choice.chunks_exact(outputs));
    let mut to = map_gradient.map(|gradient| gradient.chunks_mut(convolution.block_len()));
    for maps in maps.chunks(convolution.block_len()) {
        work.results.resize(maps.len() / windows.channels, outputs);
        let results = work.results.values_mut();
        results.fill(0.0);
        for row in windows.window_rows(maps.len() / windows.map_len()) {
            for (window, (gradient, choice)) in row.zip(&mut gradients_of_windows) {
                let (upper, lower) = results.split_at_mut((window + windows.width) * outputs);
                let pairs = [&mut upper[window * outputs..][..2 * outputs], &mut lower[..2 * outputs]];
                let [(a, b), (c, d)] = pairs.map(|pair| pair.split_at_mut(outputs));
                spread(gradient, choice, [a, b, c, d]);
            }
        }
        convolution.add_weight_gradient(maps, work, weight);
        if let Some(to) = to.as_mut().and_then(Iterator::next) {
            convolution.put_map_gradient(work);
            to.copy_from_slice(&work.map_gradient.values()[..to.len()]);
        }
    }
}
