//! The convolution on the processor's tile unit, for maps of many channels.

use super::{SameConvRelu, SameConvTrace};
use crate::matrix::Matrix;
use crate::tile_conv::TileConv;

/// Returns the convolution of framed maps behind a layer, if it is known on this machine and thread.
pub(super) fn convolution(layer: &SameConvRelu) -> Option<TileConv> {
    let [height, width] = [layer.height, layer.width].map(|size| size + layer.kernel - 1);
    let (channels, kernel, rows, columns) = (layer.channels(), layer.kernel, layer.height, layer.width);
    let convolution = TileConv { height, width, channels, kernel, rows, columns };
    convolution.applies(layer.bias.len()).then_some(convolution)
}

/// [`SameConvRelu::forward`] into an output of the right size.
pub(super) fn forward(layer: &SameConvRelu, convolution: TileConv, maps: &[f32], trace: &mut SameConvTrace) {
    let SameConvTrace { output, framed, tiles: work, .. } = trace;
    convolution.set_weights_for_results(&layer.weight, work);
    let mut rows = output.values_mut().chunks_exact_mut(layer.width * layer.bias.len());
    for maps in maps.chunks(block_len(layer, convolution)) {
        layer.frame(maps, framed);
        convolution.put_results(framed, work);
        for (from, row) in result_rows(layer, convolution, maps).zip(&mut rows) {
            layer.activate(&work.results.values()[from..from + row.len()], row);
        }
    }
}

/// [`SameConvRelu::backward`] from the gradient before the ReLU, into a gradient of the weights that is zero.
pub(super) fn backward(
    layer: &SameConvRelu,
    convolution: TileConv,
    maps: &[f32],
    gradient: &Matrix,
    map_gradient: Option<&mut [f32]>,
    trace: &mut SameConvTrace,
) {
    let SameConvTrace { weight, framed, tiles: work, .. } = trace;
    if map_gradient.is_some() {
        convolution.set_weights_for_maps(&layer.weight, work);
    }
    let mut rows = gradient.values().chunks_exact(layer.width * layer.bias.len());
    let mut to = map_gradient.map(|gradient| gradient.chunks_mut(block_len(layer, convolution)));
    for maps in maps.chunks(block_len(layer, convolution)) {
        layer.frame(maps, framed);
        work.results.resize(framed.len() / layer.channels(), layer.bias.len());
        let results = work.results.values_mut();
        results.fill(0.0);
        for (to, row) in result_rows(layer, convolution, maps).zip(&mut rows) {
            results[to..to + row.len()].copy_from_slice(row);
        }
        convolution.add_weight_gradient(framed, work, weight);
        if let Some(to) = to.as_mut().and_then(Iterator::next) {
            convolution.put_map_gradient(work);
            layer.unframe(work.map_gradient.values(), to);
        }
    }
}

/// Values of the maps, without their frames, that go through together.
fn block_len(layer: &SameConvRelu, convolution: TileConv) -> usize {
    convolution.block_len() / layer.framed_len() * layer.map_len()
}

/// Starts of the rows of a block's maps in its results.
fn result_rows(layer: &SameConvRelu, convolution: TileConv, maps: &[f32]) -> impl Iterator<Item = usize> {
    let (height, outputs) = (layer.height, layer.bias.len());
    let rows = (0..maps.len() / layer.map_len()).flat_map(move |map| {
        let first = map * convolution.height;
        first..first + height
    });
    rows.map(move |row| row * convolution.width * outputs)
}
