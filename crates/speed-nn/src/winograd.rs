//! 3x3 convolutions of stride 1 with 16 products instead of the 36 that windows take.
//!
//! Winograd's minimal filtering F(2x2, 3x3) (Lavin and Gray, "Fast algorithms for convolutional neural networks", 2015,
//! section 4.1): a tile of 4x4 values and the kernel are each transformed to 16 values, `B' d B` and `G g G'`. These
//! are multiplied element by element and summed over the channels, which is sixteen matrix products; `A' m A` gives 2x2
//! results. The transformations only add, subtract and halve, so rounding errors are a few times those of windows.
//! Infinite values give NaN, where windows may give infinite results.

use pulp::Arch;

use crate::matrix::{Matrix, Sums, View, put_product};

/// Number of values that a transformation processes side by side.
const LANES: usize = 16;
/// Rows and columns of the kernel.
const KERNEL: usize = 3;
/// Rows and columns of results of a tile.
const RESULTS: usize = 2;
/// Rows and columns of values of a tile.
const TILE: usize = KERNEL + RESULTS - 1;
/// Values of a tile.
const PLACES: usize = TILE * TILE;
/// Transformed values processed at a time: 512 KiB, plus 512 KiB of products.
const BLOCK_VALUES: usize = 1 << 17;

/// A 3x3 convolution of stride 1 on maps `[rows, columns, channels]` (NHWC).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Winograd {
    /// Rows, columns and channels of the maps.
    pub(crate) map: [usize; 3],
    /// Rows and columns of the results.
    pub(crate) results: [usize; 2],
    /// Rows and columns of zeros before a map.
    pub(crate) before: [usize; 2],
    /// Channels of the results.
    pub(crate) outputs: usize,
}

/// Reused working memory.
#[derive(Default)]
pub(crate) struct WinogradBuffers {
    /// The transformed kernel, or its gradient: `[channels, outputs]` for each place of a tile.
    weights: Matrix,
    /// Transformed values, `[tiles, channels]` for each place.
    values: Matrix,
    /// Their products, or transformed gradients, `[tiles, outputs]` for each place.
    products: Matrix,
    part: Matrix,
}

type Lanes = [f32; LANES];

impl Winograd {
    /// Returns whether maps with these numbers of channels and outputs are supported.
    pub(crate) fn applies(kernel: usize, stride: usize, [channels, outputs]: [usize; 2]) -> bool {
        [kernel, stride] == [KERNEL, 1] && channels.is_multiple_of(LANES) && outputs.is_multiple_of(LANES)
    }

    /// Returns the convolution, with the kernel rotated by half a turn, whose results are the gradient of this one's
    /// maps.
    fn back(self) -> Self {
        let Self { map: [height, width, channels], results: [rows, columns], before, outputs } = self;
        let before = before.map(|zeros| KERNEL - 1 - zeros);
        Self { map: [rows, columns, outputs], results: [height, width], before, outputs: channels }
    }

    /// Computes the results of complete maps with weights `[9 * channels, outputs]`.
    pub(crate) fn forward(self, maps: &[f32], weight: View<'_>, work: &mut WinogradBuffers) -> Vec<f32> {
        put_weights(weight, |place| place, &mut work.weights);
        self.convolve(maps, |weight| weight, work)
    }

    /// Computes the gradient of the maps from the gradient of the results, with the weights of the convolution.
    pub(crate) fn map_gradient(self, by_results: &[f32], weight: View<'_>, work: &mut WinogradBuffers) -> Vec<f32> {
        put_weights(weight, |[y, x]| [KERNEL - 1 - y, KERNEL - 1 - x], &mut work.weights);
        self.back().convolve(by_results, |weight| weight.transposed(), work)
    }

    /// Computes the gradient of the weights `[9 * channels, outputs]`, by transforming back the gradient of the
    /// transformed weights.
    pub(crate) fn weight_gradient(self, maps: &[f32], by_results: &[f32], work: &mut WinogradBuffers) -> Matrix {
        let ([.., channels], outputs) = (self.map, self.outputs);
        work.weights.resize(PLACES * channels, outputs);
        work.weights.values_mut().fill(0.0);
        let tiles = self.tiles(maps.len());
        for from in (0..tiles).step_by(self.block()) {
            let some = from..tiles.min(from + self.block());
            put::<TILE>(self.places(), maps, some.clone(), value, &mut work.values);
            put::<RESULTS>(self.places_of_results(), by_results, some, gradient, &mut work.products);
            let weights = work.weights.values_mut().chunks_exact_mut(channels * outputs);
            for (place, weights) in weights.enumerate() {
                let [values, gradients] = [&work.values, &work.products].map(|matrix| of_place(matrix, place));
                put_product(weights, values.transposed(), gradients, Sums::Added, &mut work.part);
            }
        }
        let mut weight = Matrix::zeros(KERNEL * KERNEL * channels, outputs);
        take_weights(&work.weights, &mut weight);
        weight
    }

    fn convolve(self, maps: &[f32], weight: impl Fn(View<'_>) -> View<'_>, work: &mut WinogradBuffers) -> Vec<f32> {
        let tiles = self.tiles(maps.len());
        let images = maps.len() / self.map.iter().product::<usize>();
        let mut out = vec![0.0; images * self.results[0] * self.results[1] * self.outputs];
        let WinogradBuffers { weights, values, products, part } = work;
        for from in (0..tiles).step_by(self.block()) {
            let some = from..tiles.min(from + self.block());
            put::<TILE>(self.places(), maps, some.clone(), value, values);
            products.resize(values.rows(), self.outputs);
            let length = some.len() * self.outputs;
            for (place, products) in products.values_mut().chunks_exact_mut(length).enumerate() {
                put_product(products, of_place(values, place), weight(of_place(weights, place)), Sums::New, part);
            }
            self.take_results(products, some, &mut out);
        }
        out
    }

    /// Returns the number of tiles in a column and in a row of results.
    fn across(self) -> [usize; 2] {
        self.results.map(|results| results.div_ceil(RESULTS))
    }

    /// Returns the number of tiles of maps with `values` values.
    fn tiles(self, values: usize) -> usize {
        values / self.map.iter().product::<usize>() * self.across().iter().product::<usize>()
    }

    /// Returns the number of tiles processed together. It is odd, so that the values of one tile's places do not share
    /// cache lines.
    fn block(self) -> usize {
        (BLOCK_VALUES / PLACES / self.map[2].max(self.outputs)) | 1
    }

    /// Returns the places of tiles in the maps.
    fn places(self) -> TilePositions {
        TilePositions { map: self.map, before: self.before, across: self.across() }
    }

    /// Returns the places of their results.
    fn places_of_results(self) -> TilePositions {
        let [rows, columns] = self.results;
        TilePositions { map: [rows, columns, self.outputs], before: [0; 2], across: self.across() }
    }

    fn take_results(self, products: &Matrix, tiles: std::ops::Range<usize>, out: &mut [f32]) {
        let (places, outputs) = (self.places_of_results(), self.outputs);
        Arch::new().dispatch(
            #[inline(always)]
            || {
                for (row, tile) in tiles.enumerate() {
                    let runs = runs(products, row);
                    let starts = places.starts::<RESULTS>(tile);
                    for lane in (0..outputs).step_by(LANES) {
                        let tile = load(runs, lane);
                        let results = both(tile, result);
                        for (results, starts) in results.iter().zip(&starts) {
                            for (values, start) in results.iter().zip(starts) {
                                if let Some(start) = start {
                                    out[start + lane..start + lane + LANES].copy_from_slice(values);
                                }
                            }
                        }
                    }
                }
            },
        );
    }
}

/// The places of tiles in maps `[rows, columns, channels]`.
#[derive(Clone, Copy)]
struct TilePositions {
    map: [usize; 3],
    /// Rows and columns of the first tile before the map.
    before: [usize; 2],
    /// Tiles in a column and in a row of a map.
    across: [usize; 2],
}

impl TilePositions {
    /// Returns the index where the channels of each position of a tile start, or `None` beyond the map.
    #[inline(always)]
    fn starts<const N: usize>(self, tile: usize) -> [[Option<usize>; N]; N] {
        let ([height, width, channels], [down, across]) = (self.map, self.across);
        let (image, tile) = (tile / (down * across), tile % (down * across));
        let first = [tile / across, tile % across].map(|tile| tile * RESULTS);
        let mut starts = [[None; N]; N];
        for (y, starts) in (first[0]..).zip(&mut starts) {
            for (x, start) in (first[1]..).zip(starts) {
                let (y, x) = (y.wrapping_sub(self.before[0]), x.wrapping_sub(self.before[1]));
                *start = (y < height && x < width).then(|| ((image * height + y) * width + x) * channels);
            }
        }
        starts
    }
}

/// Transforms tiles of maps; values beyond the map are zeros.
fn put<const N: usize>(
    places: TilePositions,
    maps: &[f32],
    tiles: std::ops::Range<usize>,
    transform: impl Fn([Lanes; N]) -> [Lanes; TILE] + Copy,
    out: &mut Matrix,
) {
    let (channels, count) = (places.map[2], tiles.len());
    out.resize(PLACES * count, channels);
    Arch::new().dispatch(
        #[inline(always)]
        || {
            for (row, tile) in tiles.enumerate() {
                let starts = places.starts::<N>(tile);
                for lane in (0..channels).step_by(LANES) {
                    let mut tile = [[[0.0; LANES]; N]; N];
                    for (values, start) in tile.iter_mut().flatten().zip(starts.as_flattened()) {
                        if let Some(start) = start {
                            *values = lanes(&maps[start + lane..]);
                        }
                    }
                    for (place, values) in both(tile, transform).as_flattened().iter().enumerate() {
                        out.row_mut(place * count + row)[lane..lane + LANES].copy_from_slice(values);
                    }
                }
            }
        },
    );
}

/// Transforms weights `[9 * channels, outputs]`. `place` maps each row and column of the kernel to the one to read.
fn put_weights(weight: View<'_>, place: impl Fn([usize; 2]) -> [usize; 2] + Copy, out: &mut Matrix) {
    let [inputs, outputs] = weight.shape();
    let channels = inputs / (KERNEL * KERNEL);
    out.resize(PLACES * channels, outputs);
    Arch::new().dispatch(
        #[inline(always)]
        || {
            for channel in 0..channels {
                let rows: [[&[f32]; KERNEL]; KERNEL] = std::array::from_fn(|y| {
                    std::array::from_fn(|x| {
                        let [y, x] = place([y, x]);
                        weight.row((y * KERNEL + x) * channels + channel)
                    })
                });
                for lane in (0..outputs).step_by(LANES) {
                    let mut kernel = [[[0.0; LANES]; KERNEL]; KERNEL];
                    for (values, row) in kernel.iter_mut().flatten().zip(rows.as_flattened()) {
                        *values = lanes(&row[lane..]);
                    }
                    for (place, values) in both(kernel, kernel_places).as_flattened().iter().enumerate() {
                        out.row_mut(place * channels + channel)[lane..lane + LANES].copy_from_slice(values);
                    }
                }
            }
        },
    );
}

/// Transforms the gradient of transformed weights back.
fn take_weights(places: &Matrix, weight: &mut Matrix) {
    let (channels, outputs) = (places.rows() / PLACES, places.columns());
    Arch::new().dispatch(
        #[inline(always)]
        || {
            for channel in 0..channels {
                let runs = runs(places, channel);
                for lane in (0..outputs).step_by(LANES) {
                    let kernel = both(load(runs, lane), kernel_gradient);
                    for (place, values) in kernel.as_flattened().iter().enumerate() {
                        weight.row_mut(place * channels + channel)[lane..lane + LANES].copy_from_slice(values);
                    }
                }
            }
        },
    );
}

/// Returns the rows of one place.
fn of_place(places: &Matrix, place: usize) -> View<'_> {
    let rows = places.rows() / PLACES;
    places.view().rows(place * rows..(place + 1) * rows)
}

/// Returns a row of every place.
#[inline(always)]
fn runs(places: &Matrix, row: usize) -> [&[f32]; PLACES] {
    std::array::from_fn(|place| places.row(place * (places.rows() / PLACES) + row))
}

#[inline(always)]
fn load(runs: [&[f32]; PLACES], lane: usize) -> [[Lanes; TILE]; TILE] {
    let mut tile = [[[0.0; LANES]; TILE]; TILE];
    for (values, run) in tile.iter_mut().flatten().zip(runs) {
        *values = lanes(&run[lane..]);
    }
    tile
}

#[inline(always)]
fn lanes(values: &[f32]) -> Lanes {
    *values.first_chunk().expect("a number of channels that fills all lanes")
}

/// Applies a transformation to the columns, and then to the rows of the result. (With loops, because `map` of an array
/// of arrays is a call.)
#[inline(always)]
fn both<const N: usize, const M: usize>(
    values: [[Lanes; N]; N],
    transform: impl Fn([Lanes; N]) -> [Lanes; M],
) -> [[Lanes; M]; M] {
    let mut columns = [[[0.0; LANES]; N]; M];
    for x in 0..N {
        let mut column = [[0.0; LANES]; N];
        for y in 0..N {
            column[y] = values[y][x];
        }
        let column = transform(column);
        for y in 0..M {
            columns[y][x] = column[y];
        }
    }
    let mut out = [[[0.0; LANES]; M]; M];
    for (out, row) in out.iter_mut().zip(columns) {
        *out = transform(row);
    }
    out
}

#[inline(always)]
fn add(mut left: Lanes, right: Lanes) -> Lanes {
    for lane in 0..LANES {
        left[lane] += right[lane];
    }
    left
}

#[inline(always)]
fn subtract(mut left: Lanes, right: Lanes) -> Lanes {
    for lane in 0..LANES {
        left[lane] -= right[lane];
    }
    left
}

#[inline(always)]
fn times(factor: f32, mut values: Lanes) -> Lanes {
    for value in &mut values {
        *value *= factor;
    }
    values
}

/// Returns `B' d`.
#[inline(always)]
fn value([a, b, c, d]: [Lanes; TILE]) -> [Lanes; TILE] {
    [subtract(a, c), add(b, c), subtract(c, b), subtract(b, d)]
}

/// Returns `A' m`.
#[inline(always)]
fn result([a, b, c, d]: [Lanes; TILE]) -> [Lanes; RESULTS] {
    [add(a, add(b, c)), subtract(b, add(c, d))]
}

/// Returns `A y`.
#[inline(always)]
fn gradient([a, b]: [Lanes; RESULTS]) -> [Lanes; TILE] {
    [a, add(a, b), subtract(a, b), times(-1.0, b)]
}

/// Returns `G g`.
#[inline(always)]
fn kernel_places([a, b, c]: [Lanes; KERNEL]) -> [Lanes; TILE] {
    let outer = add(a, c);
    [a, times(0.5, add(outer, b)), times(0.5, subtract(outer, b)), c]
}

/// Returns `G' u`.
#[inline(always)]
fn kernel_gradient([a, b, c, d]: [Lanes; TILE]) -> [Lanes; KERNEL] {
    let sum = times(0.5, add(b, c));
    [add(a, sum), times(0.5, subtract(b, c)), add(sum, d)]
}
