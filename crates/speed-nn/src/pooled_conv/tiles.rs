//! The convolution on the processor's tile unit, without a matrix of patches, for maps of many channels.
//!
//! The positions of a block of maps are numbered image by image, row by row, and results are computed for all of them, also
//! where a window would reach beyond its image; pooling then reads those of whole windows. So sixteen neighbouring
//! positions are a tile wherever a row ends, and at every place of the kernel their tile is the same values so many
//! positions further, read from there ([`overlapping`](crate::matrix::tiles::overlapping)).

use super::pool::{pool, spread};
use super::{PooledConv, PooledConvTrace, PooledWindows};
use crate::matrix::tiles::overlapping::{Before, Parts, Right, Rows, multiply};
use crate::matrix::tiles::{DEPTH, PANEL, SIDE};
use crate::matrix::{Matrix, tiles_in_use};

/// Positions that are in work at a time: what belongs to them stays within a core's own cache.
const BLOCK_POSITIONS: usize = 576;

/// What belongs to one block of maps. It keeps its memory.
#[derive(Clone, Debug, Default)]
pub(super) struct Work {
    kernel: Kernel,
    maps: Parts,
    /// Results, or their gradient, at every position.
    results: Matrix,
    gradient: Parts,
    gradient_by_position: Right,
    map_gradient: Matrix,
}

/// The weights as a right operand, in steps of 32 values, and how much further than a position's own values those are
/// that a step is multiplied with.
#[derive(Clone, Debug, Default)]
struct Kernel {
    weights: Right,
    offsets: Vec<usize>,
}

impl Kernel {
    /// To multiply windows with, row by row of the kernel, each of which is one run of values.
    fn set_for_results(&mut self, layer: &PooledConv) {
        let (windows, run_len) = (&layer.windows, layer.windows.run_len());
        let steps = (0..windows.kernel).flat_map(|ky| (0..run_len).step_by(DEPTH).map(move |inner| (ky, inner)));
        let steps: Vec<_> = steps.collect();
        let weights = |ky| layer.weight.rows_view(ky * run_len..(ky + 1) * run_len).transposed();
        self.weights.pack(layer.outputs(), steps.iter().map(|&(ky, inner)| (weights(ky), inner)));
        self.offsets.clear();
        self.offsets.extend(steps.iter().map(|(ky, inner)| ky * windows.width * windows.channels + inner));
    }

    /// To multiply gradients of results with, place by place of the kernel: the value of a map that is there belongs to the
    /// result of so many positions before, at most [`PooledWindows::reach`].
    fn set_for_maps(&mut self, layer: &PooledConv) {
        let (windows, outputs) = (&layer.windows, layer.outputs());
        let PooledWindows { width, channels, kernel, .. } = *windows;
        let places = 0..kernel * kernel;
        let steps = places.flat_map(|place| (0..outputs).step_by(DEPTH).map(move |output| (place, output)));
        let steps: Vec<_> = steps.collect();
        let weights = |place| layer.weight.rows_view(place * channels..(place + 1) * channels);
        self.weights.pack(channels, steps.iter().map(|&(place, output)| (weights(place), output)));
        let further = |place| windows.reach() - (place / kernel * width + place % kernel);
        self.offsets.clear();
        self.offsets.extend(steps.iter().map(|&(place, output)| further(place) * outputs + output));
    }
}

/// Whether [`forward`] and [`backward`] know such a layer, on this machine and thread.
pub(super) fn apply(layer: &PooledConv) -> bool {
    tiles_in_use() && layer.windows.channels.is_multiple_of(SIDE) && layer.outputs().is_multiple_of(PANEL)
}

/// [`PooledConv::forward`] into an output of the right size.
pub(super) fn forward(layer: &PooledConv, maps: &[f32], trace: &mut PooledConvTrace) {
    let (windows, outputs, channels) = (&layer.windows, layer.outputs(), layer.windows.channels);
    let PooledConvTrace { output, choice, tiles: Work { kernel, maps: parts, results, .. }, .. } = trace;
    kernel.set_for_results(layer);
    let mut outputs_of_windows = output.values_mut().chunks_exact_mut(outputs).zip(choice.chunks_exact_mut(outputs));
    for maps in maps.chunks(block_len(windows)) {
        let positions = (maps.len() / channels).next_multiple_of(SIDE);
        parts.write(0, maps, (positions + windows.reach()) * channels + windows.run_len().next_multiple_of(DEPTH));
        results.resize(positions, outputs);
        let tiles = (0..positions).step_by(SIDE).filter(|&first| has_results(windows, first, SIDE));
        let left = Rows { parts, stride: channels, offsets: &kernel.offsets };
        multiply(results, Before::Replaced, left, &kernel.weights, tiles.map(|first| [first * channels, first]));
        for row in windows.window_rows(maps.len() / windows.map_len()) {
            for (window, (output, choice)) in row.zip(&mut outputs_of_windows) {
                pool(windows.window(window).map(|position| results.row(position)), &layer.bias, output, choice);
            }
        }
    }
}

/// [`PooledConv::backward`] into a gradient of the weights that is zero.
pub(super) fn backward(
    layer: &PooledConv,
    maps: &[f32],
    gradient: &[f32],
    map_gradient: Option<&mut [f32]>,
    trace: &mut PooledConvTrace,
) {
    let (windows, outputs) = (&layer.windows, layer.outputs());
    let PooledConvTrace { choice, weight, tiles: work, .. } = trace;
    if map_gradient.is_some() {
        work.kernel.set_for_maps(layer);
    }
    let mut gradients_of_windows = gradient.chunks_exact(outputs).zip(choice.chunks_exact(outputs));
    let mut to = map_gradient.map(|gradient| gradient.chunks_mut(block_len(windows)));
    for maps in maps.chunks(block_len(windows)) {
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
        add_weight_gradient(windows, maps, weight, work);
        if let Some(to) = to.as_mut().and_then(Iterator::next) {
            put_map_gradient(windows, to, work);
        }
    }
}

/// Adds to `weight` the products of every window of a block of maps with the gradient of its result.
fn add_weight_gradient(windows: &PooledWindows, maps: &[f32], weight: &mut Matrix, work: &mut Work) {
    let Work { results, maps: parts, gradient_by_position, .. } = work;
    let (channels, positions) = (windows.channels, results.rows());
    let offsets = (0..positions).step_by(DEPTH).filter(|&first| has_results(windows, first, DEPTH));
    let offsets: Vec<usize> = offsets.collect();
    let gradient = results.view().transposed();
    gradient_by_position.pack(results.columns(), offsets.iter().map(|&first| (gradient, first)));

    // Rows of the left operand are channels, each a run of all positions.
    let length = (positions.next_multiple_of(DEPTH) + windows.reach()).next_multiple_of(DEPTH);
    parts.write_columns(maps, channels, length);
    let kernel_places = (0..windows.kernel).flat_map(|ky| (0..windows.kernel).map(move |kx| ky * windows.width + kx));
    let tiles = kernel_places.enumerate().flat_map(|(place, further)| {
        let channels = (0..channels).step_by(SIDE);
        channels.map(move |channel| [channel * length + further, place * windows.channels + channel])
    });
    let left = Rows { parts, stride: length, offsets: &offsets };
    multiply(weight, Before::AddedTo, left, gradient_by_position, tiles);
}

/// Puts the gradient of a block of maps, from that of its results.
fn put_map_gradient(windows: &PooledWindows, to: &mut [f32], work: &mut Work) {
    let Work { kernel, results, gradient: parts, map_gradient, .. } = work;
    let (outputs, positions) = (results.columns(), results.rows().next_multiple_of(SIDE));
    let length = (windows.reach() + positions) * outputs;
    parts.write(windows.reach() * outputs, results.values(), length);
    map_gradient.resize(positions, windows.channels);
    let tiles = (0..positions).step_by(SIDE).map(|first| [first * outputs, first]);
    let left = Rows { parts, stride: outputs, offsets: &kernel.offsets };
    multiply(map_gradient, Before::Replaced, left, &kernel.weights, tiles);
    to.copy_from_slice(&map_gradient.values()[..to.len()]);
}

/// Values of the maps that go through the layer together.
fn block_len(windows: &PooledWindows) -> usize {
    windows.map_len() * (BLOCK_POSITIONS / (windows.height * windows.width)).max(1)
}

/// Whether a result that pooling reads may be among `count` positions from `first` on.
fn has_results(windows: &PooledWindows, first: usize, count: usize) -> bool {
    let (first, [rows, columns]) = (first % (windows.height * windows.width), windows.pooled());
    let end = (2 * rows - 1) * windows.width + 2 * columns;
    first < end || first + count > windows.height * windows.width
}
