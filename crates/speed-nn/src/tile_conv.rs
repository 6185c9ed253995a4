//! Convolutions on the processor's tile unit, without a matrix of patches, for maps of many channels.
//!
//! The positions of a block of maps are numbered map by map, row by row, and results are computed for all of them, also where
//! a window would reach beyond its map; the caller reads those it wants. So sixteen neighbouring positions are a tile
//! wherever a row ends, and at every place of the kernel their tile is the same values so many positions further, read
//! from there ([`overlapping`](crate::matrix::tiles::overlapping)).

use crate::matrix::tiles::overlapping::{Before, Parts, Right, Rows, multiply};
use crate::matrix::tiles::{DEPTH, PANEL, SIDE};
use crate::matrix::{Matrix, View, tiles_in_use};

/// Positions that are in work at a time: what belongs to them stays within a core's own cache.
const BLOCK_POSITIONS: usize = 720;

/// A convolution of stride 1 without padding on maps `[height, width, channels]` (NHWC), with weights
/// `[kernel * kernel * channels, outputs]`, of whose results the first `rows` rows and `columns` columns are wanted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TileConv {
    pub(crate) height: usize,
    pub(crate) width: usize,
    pub(crate) channels: usize,
    pub(crate) kernel: usize,
    pub(crate) rows: usize,
    pub(crate) columns: usize,
}

/// Values of one block of maps. It keeps its memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct TileConvWork {
    /// Results at every position, `[positions, outputs]`; in a backward pass the gradient of those that are wanted, zero at
    /// all other positions.
    pub(crate) results: Matrix,
    /// The gradient of the maps, `[positions, channels]`.
    pub(crate) map_gradient: Matrix,
    weights: Weights,
    maps: Parts,
    gradient: Parts,
    gradient_by_position: Right,
}

/// The weights as a right operand, in steps of 32 values, and how much further than a position's own values those are
/// that a step is multiplied with.
#[derive(Clone, Debug, Default)]
struct Weights {
    packed: Right,
    offsets: Vec<usize>,
}

impl TileConv {
    /// Returns whether a convolution to so many outputs is known here, on this machine and thread.
    pub(crate) fn applies(&self, outputs: usize) -> bool {
        tiles_in_use() && self.channels.is_multiple_of(SIDE) && outputs.is_multiple_of(PANEL)
    }

    /// Values of the maps that go through together.
    pub(crate) fn block_len(&self) -> usize {
        let positions = self.height * self.width;
        positions * self.channels * (BLOCK_POSITIONS / positions).max(1)
    }

    /// Prepares [`put_results`](Self::put_results) with these weights: row by row of the kernel, each of which meets one run
    /// of values.
    pub(crate) fn set_weights_for_results(&self, weight: View<'_>, work: &mut TileConvWork) {
        let run_len = self.kernel * self.channels;
        let steps = (0..self.kernel).flat_map(|ky| (0..run_len).step_by(DEPTH).map(move |inner| (ky, inner)));
        let steps: Vec<_> = steps.collect();
        let row = |ky: usize| weight.rows(ky * run_len..(ky + 1) * run_len).transposed();
        let Weights { packed, offsets } = &mut work.weights;
        packed.pack(weight.shape()[1], steps.iter().map(|&(ky, inner)| (row(ky), inner)));
        offsets.clear();
        offsets.extend(steps.iter().map(|(ky, inner)| ky * self.width * self.channels + inner));
    }

    /// Puts the results of a block of `maps` into `work.results`.
    pub(crate) fn put_results(&self, maps: &[f32], work: &mut TileConvWork) {
        let TileConvWork { results, weights: Weights { packed, offsets }, maps: parts, .. } = work;
        let (channels, run_len) = (self.channels, self.kernel * self.channels);
        let positions = (maps.len() / channels).next_multiple_of(SIDE);
        parts.write(0, maps, (positions + self.reach()) * channels + run_len.next_multiple_of(DEPTH));
        results.resize(positions, packed.columns());
        let tiles = (0..positions).step_by(SIDE).filter(|&first| self.wants(first, SIDE));
        let left = Rows { parts, stride: channels, offsets };
        multiply(results, Before::Replaced, left, packed, tiles.map(|first| [first * channels, first]));
    }

    /// Adds to `weight` the products of every window of a block of `maps` with the gradient of its result, in
    /// `work.results`.
    pub(crate) fn add_weight_gradient(&self, maps: &[f32], work: &mut TileConvWork, weight: &mut Matrix) {
        let TileConvWork { results, maps: parts, gradient_by_position, .. } = work;
        let (channels, positions) = (self.channels, results.rows());
        let offsets: Vec<_> = (0..positions).step_by(DEPTH).filter(|&first| self.wants(first, DEPTH)).collect();
        let gradient = results.view().transposed();
        gradient_by_position.pack(results.columns(), offsets.iter().map(|&first| (gradient, first)));

        // Rows of the left operand are channels, each a run of all positions.
        let length = (positions.next_multiple_of(DEPTH) + self.reach()).next_multiple_of(DEPTH);
        parts.write_columns(maps, channels, length);
        let tiles = (0..self.kernel * self.kernel).flat_map(|place| {
            let begin = move |channel| [channel * length + self.further(place), place * channels + channel];
            (0..channels).step_by(SIDE).map(begin)
        });
        let left = Rows { parts, stride: length, offsets: &offsets };
        multiply(weight, Before::AddedTo, left, gradient_by_position, tiles);
    }

    /// Prepares [`put_map_gradient`](Self::put_map_gradient) with these weights: place by place of the kernel, at each of
    /// which a value of a map met the window of so many positions before.
    pub(crate) fn set_weights_for_maps(&self, weight: View<'_>, work: &mut TileConvWork) {
        let (channels, outputs) = (self.channels, weight.shape()[1]);
        let places = 0..self.kernel * self.kernel;
        let steps = places.flat_map(|place| (0..outputs).step_by(DEPTH).map(move |output| (place, output)));
        let steps: Vec<_> = steps.collect();
        let place_of = |place: usize| weight.rows(place * channels..(place + 1) * channels);
        let Weights { packed, offsets } = &mut work.weights;
        packed.pack(channels, steps.iter().map(|&(place, output)| (place_of(place), output)));
        offsets.clear();
        offsets.extend(steps.iter().map(|&(place, output)| (self.reach() - self.further(place)) * outputs + output));
    }

    /// Puts into `work.map_gradient` the gradient of a block of maps, from that of its results in `work.results`.
    pub(crate) fn put_map_gradient(&self, work: &mut TileConvWork) {
        let TileConvWork { results, map_gradient, weights: Weights { packed, offsets }, gradient: parts, .. } = work;
        let (outputs, positions) = (results.columns(), results.rows().next_multiple_of(SIDE));
        parts.write(self.reach() * outputs, results.values(), (self.reach() + positions) * outputs);
        map_gradient.resize(positions, self.channels);
        let tiles = (0..positions).step_by(SIDE).map(|first| [first * outputs, first]);
        multiply(map_gradient, Before::Replaced, Rows { parts, stride: outputs, offsets }, packed, tiles);
    }

    /// Returns the distance in positions of place `place` of the kernel from its first.
    fn further(&self, place: usize) -> usize {
        place / self.kernel * self.width + place % self.kernel
    }

    /// Returns the distance in positions of the kernel's last place from its first.
    fn reach(&self) -> usize {
        (self.kernel - 1) * (self.width + 1)
    }

    /// Returns whether a result that is wanted may be among `count` positions from `first` on.
    fn wants(&self, first: usize, count: usize) -> bool {
        let positions = self.height * self.width;
        let first = first % positions;
        first < (self.rows - 1) * self.width + self.columns || first + count > positions
    }
}
