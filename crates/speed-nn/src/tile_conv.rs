//! Convolutions on the processor's tile unit, without a matrix of patches, for maps of many channels.
//!
//! The positions of a block of maps are numbered map by map, row by row. Results are computed for all positions, even
//! if a window would reach beyond its map; the caller reads only the valid ones. So any sixteen neighbouring positions
//! form a tile, regardless of the ends of rows. For each place of the kernel, their tile is the same array read from a
//! fixed number of positions further on ([`overlapping`](crate::matrix::tiles::overlapping)).

use crate::matrix::tiles::overlapping::{Before, Parts, Right, Rows, multiply};
use crate::matrix::tiles::{DEPTH, PANEL, SIDE};
use crate::matrix::{Matrix, View, tiles_in_use};

/// Positions processed at a time, chosen so that their data fit a core's own cache.
const BLOCK_POSITIONS: usize = 720;

/// A convolution of stride 1 without padding on maps `[height, width, channels]` (NHWC), with weights
/// `[kernel * kernel * channels, outputs]`. Only the first `rows` rows and `columns` columns of the results are needed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TileConv {
    pub(crate) height: usize,
    pub(crate) width: usize,
    pub(crate) channels: usize,
    pub(crate) kernel: usize,
    pub(crate) rows: usize,
    pub(crate) columns: usize,
}

/// Values of one block of maps. Reuses its memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct TileConvBuffers {
    /// Results at every position, `[positions, outputs]`. In a backward pass, the gradient of the needed results, and
    /// zero at all other positions.
    pub(crate) results: Matrix,
    /// The gradient of the maps, `[positions, channels]`.
    pub(crate) map_gradient: Matrix,
    weights: Weights,
    maps: Parts,
    gradient: Parts,
    gradient_by_position: Right,
}

/// The weights as a right operand, in steps of 32 values, and the offset of each step: the distance from a position's
/// own values to those that the step multiplies.
#[derive(Clone, Debug, Default)]
struct Weights {
    packed: Right,
    offsets: Vec<usize>,
}

impl TileConv {
    /// Returns whether this machine and thread support the convolution to `outputs` outputs on tiles.
    pub(crate) fn applies(&self, outputs: usize) -> bool {
        tiles_in_use() && self.channels.is_multiple_of(SIDE) && outputs.is_multiple_of(PANEL)
    }

    /// Returns the number of values of the maps processed together.
    pub(crate) fn block_len(&self) -> usize {
        let positions = self.height * self.width;
        positions * self.channels * (BLOCK_POSITIONS / positions).max(1)
    }

    /// Prepares [`put_results`](Self::put_results) with these weights, in order of kernel rows; each row multiplies one
    /// run of values.
    pub(crate) fn set_weights_for_results(&self, weight: View<'_>, work: &mut TileConvBuffers) {
        let run_len = self.kernel * self.channels;
        let steps = (0..self.kernel).flat_map(|ky| (0..run_len).step_by(DEPTH).map(move |inner| (ky, inner)));
        let steps: Vec<_> = steps.collect();
        let row = |ky: usize| weight.rows(ky * run_len..(ky + 1) * run_len).transposed();
        let Weights { packed, offsets } = &mut work.weights;
        packed.pack(weight.shape()[1], steps.iter().map(|&(ky, inner)| (row(ky), inner)));
        offsets.clear();
        offsets.extend(steps.iter().map(|(ky, inner)| ky * self.width * self.channels + inner));
    }

    /// Writes the results of a block of `maps` to `work.results`.
    pub(crate) fn put_results(&self, maps: &[f32], work: &mut TileConvBuffers) {
        let TileConvBuffers { results, weights: Weights { packed, offsets }, maps: parts, .. } = work;
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
    pub(crate) fn add_weight_gradient(&self, maps: &[f32], work: &mut TileConvBuffers, weight: &mut Matrix) {
        let TileConvBuffers { results, maps: parts, gradient_by_position, .. } = work;
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

    /// Prepares [`put_map_gradient`](Self::put_map_gradient) with these weights, in order of kernel places. At each
    /// place, a value of a map belongs to the window a fixed number of positions before it.
    pub(crate) fn set_weights_for_maps(&self, weight: View<'_>, work: &mut TileConvBuffers) {
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

    /// Writes the gradient of a block of maps to `work.map_gradient`, from the gradient of its results in
    /// `work.results`.
    pub(crate) fn put_map_gradient(&self, work: &mut TileConvBuffers) {
        let TileConvBuffers { results, map_gradient, weights: Weights { packed, offsets }, gradient: parts, .. } = work;
        let (outputs, positions) = (results.columns(), results.rows().next_multiple_of(SIDE));
        parts.write(self.reach() * outputs, results.values(), (self.reach() + positions) * outputs);
        map_gradient.resize(positions, self.channels);
        let tiles = (0..positions).step_by(SIDE).map(|first| [first * outputs, first]);
        multiply(map_gradient, Before::Replaced, Rows { parts, stride: outputs, offsets }, packed, tiles);
    }

    /// Returns the distance in positions between place `place` of the kernel and its first place.
    fn further(&self, place: usize) -> usize {
        place / self.kernel * self.width + place % self.kernel
    }

    /// Returns the distance in positions between the kernel's last place and its first.
    fn reach(&self) -> usize {
        (self.kernel - 1) * (self.width + 1)
    }

    /// Returns whether `count` positions from `first` on may contain a needed result.
    fn wants(&self, first: usize, count: usize) -> bool {
        let positions = self.height * self.width;
        let first = first % positions;
        first < (self.rows - 1) * self.width + self.columns || first + count > positions
    }
}
