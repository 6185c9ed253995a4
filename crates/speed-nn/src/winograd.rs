//! 3x3 and 5x5 convolutions of stride 1 with fewer products than windows take.
//!
//! Winograd's minimal filtering (Lavin and Gray, "Fast algorithms for convolutional neural networks", 2015, section 4.1):
//! a tile of values and the kernel are each transformed, `B' d B` and `G g G'`. These are multiplied element by element
//! and summed over the channels, which is one matrix product for each place of a tile; `A' m A` gives the results. Results
//! of a 3x3 kernel take 2.25 products each instead of 9, those of a 5x5 kernel 4 instead of 25. Portable arithmetic has
//! tiles of 2x2 results of 3x3 kernels, with 4 products. Infinite values give NaN, where windows may give infinite results.

mod filters;

use std::marker::PhantomData;
use std::ops::Range;

use pulp::{Arch, Simd, WithSimd};

use crate::matrix::{Matrix, ProductUnit, View, product_unit};
use crate::panels::{LANES, Packed, add_transposed, load, multiply, store};
use filters::{Filter, OfFivePoints, OfSevenPoints, OfThreePoints};

/// Transformed values processed at a time.
const BLOCK_VALUES: usize = 1 << 18;
/// The same with three points. Sums over blocks show in the last bits, which are those of portable arithmetic.
const PORTABLE_BLOCK_VALUES: usize = 1 << 17;

/// A convolution of stride 1 on maps `[rows, columns, channels]` (NHWC).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Winograd {
    /// Rows, columns and channels of the maps.
    map: [usize; 3],
    /// Rows and columns of the results.
    results: [usize; 2],
    /// Rows and columns of zeros before a map.
    before: [usize; 2],
    /// Channels of the results.
    outputs: usize,
    algorithm: Algorithm,
}

/// The size of a tile.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Algorithm {
    /// 2x2 results of a 3x3 kernel.
    TwoOfThree,
    /// 4x4 results of a 3x3 kernel.
    FourOfThree,
    /// 4x4 results of a 5x5 kernel.
    FourOfFive,
}

/// Calls a method with the constants of an algorithm.
macro_rules! with_filter {
    ($winograd:ident.$method:ident($($argument:expr),*)) => {
        match $winograd.algorithm {
            Algorithm::TwoOfThree => $winograd.$method::<OfThreePoints, 3, 2, 4>($($argument),*),
            Algorithm::FourOfThree => $winograd.$method::<OfFivePoints, 3, 4, 6>($($argument),*),
            Algorithm::FourOfFive => $winograd.$method::<OfSevenPoints, 5, 4, 8>($($argument),*),
        }
    };
}

/// Reused working memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct WinogradBuffers {
    /// The transformed kernel: for each place of a tile, `[channels, outputs]`.
    weights: Vec<Packed>,
    /// The weights of the transposed convolution.
    transposed: Matrix,
    /// The gradient of the transformed kernel, `[channels, outputs]` for each place.
    weight_gradient: Places,
    /// Transformed values, `[tiles, channels]` for each place.
    values: Places,
    /// Their products, or transformed gradients, `[tiles, outputs]` for each place.
    products: Places,
}

/// A matrix of rows of one size for each place of a tile.
#[derive(Clone, Debug, Default)]
struct Places {
    values: Vec<f32>,
    rows: usize,
    columns: usize,
}

impl Places {
    fn resize(&mut self, places: usize, rows: usize, columns: usize) {
        (self.rows, self.columns) = (rows, columns);
        let length = places * self.stride();
        if self.values.len() < length {
            self.values.resize(length, 0.0);
        }
    }

    /// Returns the distance between places: not a power of two, so that one row of all places does not share cache sets.
    fn stride(&self) -> usize {
        self.rows * self.columns + LANES
    }

    #[inline(always)]
    fn of(&self, place: usize) -> &[f32] {
        &self.values[place * self.stride()..][..self.rows * self.columns]
    }

    #[inline(always)]
    fn of_mut(&mut self, place: usize) -> &mut [f32] {
        let (stride, length) = (self.stride(), self.rows * self.columns);
        &mut self.values[place * stride..][..length]
    }

    /// Returns the vectors of all places at one row, from `column` on.
    #[inline(always)]
    fn tile<S: Simd, const T: usize>(&self, simd: S, row: usize, column: usize) -> [[S::f32s; T]; T] {
        let mut all = [[simd.splat_f32s(0.0); T]; T];
        for (place, values) in all.as_flattened_mut().iter_mut().enumerate() {
            *values = load::<S>(&self.of(place)[row * self.columns + column..]);
        }
        all
    }
}

impl Winograd {
    /// Returns the algorithm for maps `[rows, columns, channels]` with `before` rows and columns of zeros before them.
    /// `None` if a kernel, stride or number of channels is not supported.
    pub(crate) fn new(
        map: [usize; 3],
        before: [usize; 2],
        [kernel, stride]: [usize; 2],
        results: [usize; 2],
        outputs: usize,
    ) -> Option<Self> {
        let portable = product_unit() == ProductUnit::Portable;
        let algorithm = match kernel {
            3 if portable => Algorithm::TwoOfThree,
            3 => Algorithm::FourOfThree,
            5 if !portable => Algorithm::FourOfFive,
            _ => return None,
        };
        let applies = stride == 1 && map[2].is_multiple_of(LANES) && outputs.is_multiple_of(LANES);
        applies.then_some(Self { map, results, before, outputs, algorithm })
    }

    /// Returns the convolution, with the kernel rotated by half a turn, whose results are the gradient of this one's
    /// maps.
    fn back(self, kernel: usize) -> Self {
        let Self { map: [height, width, channels], results: [rows, columns], before, outputs, algorithm } = self;
        let before = before.map(|zeros| kernel - 1 - zeros);
        Self { map: [rows, columns, outputs], results: [height, width], before, outputs: channels, algorithm }
    }

    /// Computes the results of complete maps with weights `[kernel * kernel * channels, outputs]`.
    pub(crate) fn forward(self, maps: &[f32], weight: View<'_>, work: &mut WinogradBuffers) -> Vec<f32> {
        let images = maps.len() / self.map.iter().product::<usize>();
        let mut out = vec![0.0; images * self.results[0] * self.results[1] * self.outputs];
        with_filter!(self.convolve(maps, weight, false, work, &mut out));
        out
    }

    /// Computes results of a 5x5 kernel, which `to` receives in tiles of 4x4.
    ///
    /// # Panics
    /// If the kernel is not 5x5.
    pub(crate) fn forward_to(self, maps: &[f32], weight: View<'_>, work: &mut WinogradBuffers, to: impl Results<4>) {
        assert_eq!(self.algorithm, Algorithm::FourOfFive, "the algorithm of 5x5 kernels");
        let filter = PhantomData::<OfSevenPoints>;
        Arch::new().dispatch(Convolve::<_, _, 5, 4, 8> {
            winograd: self,
            maps,
            weight,
            rotated: false,
            work,
            to,
            filter,
        });
    }

    /// Computes the gradient of the maps from the gradient of the results and the weights of the convolution. `out` must be
    /// zeros.
    pub(crate) fn put_map_gradient(
        self,
        by_results: &[f32],
        weight: View<'_>,
        work: &mut WinogradBuffers,
        out: &mut [f32],
    ) {
        with_filter!(self.put_map_gradient_with(by_results, weight, work, out));
    }

    fn put_map_gradient_with<F: Filter<K, R, T>, const K: usize, const R: usize, const T: usize>(
        self,
        by_results: &[f32],
        weight: View<'_>,
        work: &mut WinogradBuffers,
        out: &mut [f32],
    ) {
        let mut transposed = std::mem::take(&mut work.transposed);
        transpose_places(weight, K * K, &mut transposed);
        let back = self.back(K);
        // Where the results are much smaller than the maps, because they have no padding.
        let fewer = 4 * self.tiles::<R>(out.len()) < 3 * back.tiles::<R>(by_results.len());
        if fewer && self.algorithm != Algorithm::TwoOfThree {
            let by_results = Within { positions: self.positions_of_results::<R>(), maps: by_results };
            let (tiles, map_gradient) = (self.tiles::<R>(out.len()), Some((transposed.view(), out)));
            let filter = PhantomData::<F>;
            Arch::new().dispatch(Gradients {
                winograd: self,
                tiles,
                by_results,
                by_weights: None,
                map_gradient,
                work,
                filter,
            });
        } else {
            back.convolve::<F, K, R, T>(by_results, transposed.view(), true, work, out);
        }
        work.transposed = transposed;
    }

    /// Computes the gradient of the weights `[kernel * kernel * channels, outputs]`, by transforming back the gradient
    /// of the transformed weights.
    pub(crate) fn weight_gradient(self, maps: &[f32], by_results: &[f32], work: &mut WinogradBuffers) -> Matrix {
        with_filter!(self.gradient(maps, by_results, work))
    }

    /// Computes the gradient of the weights of a 5x5 kernel, and adds that of the maps, if there is one, from the tiles
    /// of the gradient of the results, which are transformed once for both.
    ///
    /// # Panics
    /// If the kernel is not 5x5.
    pub(crate) fn gradients_of(
        self,
        maps: &[f32],
        by_results: impl Tiles<4>,
        map_gradient: Option<(View<'_>, &mut [f32])>,
        work: &mut WinogradBuffers,
        weight_gradient: &mut Matrix,
    ) {
        assert_eq!(self.algorithm, Algorithm::FourOfFive, "the algorithm of 5x5 kernels");
        weight_gradient.resize(25 * self.map[2], self.outputs);
        let mut transposed = std::mem::take(&mut work.transposed);
        let map_gradient = map_gradient.map(|(weight, out)| {
            transpose_places(weight, 25, &mut transposed);
            (transposed.view(), out)
        });
        let (by_weights, filter) = (Some((maps, weight_gradient)), PhantomData::<OfSevenPoints>);
        let gradients = Gradients::<_, _, 5, 4, 8> {
            winograd: self,
            tiles: self.tiles::<4>(maps.len()),
            by_results,
            by_weights,
            map_gradient,
            work,
            filter,
        };
        Arch::new().dispatch(gradients);
        work.transposed = transposed;
    }

    fn convolve<F: Filter<K, R, T>, const K: usize, const R: usize, const T: usize>(
        self,
        maps: &[f32],
        weight: View<'_>,
        rotated: bool,
        work: &mut WinogradBuffers,
        out: &mut [f32],
    ) {
        let to = PutResults::<R> { positions: self.positions_of_results::<R>(), out };
        Arch::new().dispatch(Convolve { winograd: self, maps, weight, rotated, work, to, filter: PhantomData::<F> });
    }

    fn gradient<F: Filter<K, R, T>, const K: usize, const R: usize, const T: usize>(
        self,
        maps: &[f32],
        by_results: &[f32],
        work: &mut WinogradBuffers,
    ) -> Matrix {
        let mut weight = Matrix::zeros(K * K * self.map[2], self.outputs);
        let by_results = Within { positions: self.positions_of_results::<R>(), maps: by_results };
        let (by_weights, filter) = (Some((maps, &mut weight)), PhantomData::<F>);
        let tiles = self.tiles::<R>(maps.len());
        Arch::new().dispatch(Gradients {
            winograd: self,
            tiles,
            by_results,
            by_weights,
            map_gradient: None,
            work,
            filter,
        });
        weight
    }

    /// Returns the number of tiles of `R x R` results in a column and in a row of results.
    fn across<const R: usize>(self) -> [usize; 2] {
        self.results.map(|results| results.div_ceil(R))
    }

    /// Returns the number of tiles of maps with `values` values.
    fn tiles<const R: usize>(self, values: usize) -> usize {
        values / self.map.iter().product::<usize>() * self.across::<R>().iter().product::<usize>()
    }

    /// Returns the number of tiles of `side x side` values processed together.
    fn block(self, side: usize) -> usize {
        let of = |values: usize| values / (side * side) / self.map[2].max(self.outputs);
        match self.algorithm {
            Algorithm::TwoOfThree => of(PORTABLE_BLOCK_VALUES) | 1,
            // Complete panels of eight or six rows.
            _ => of(BLOCK_VALUES).max(1).next_multiple_of(24),
        }
    }

    /// Returns the positions of tiles in the maps.
    fn positions<const R: usize>(self) -> TilePositions {
        TilePositions { map: self.map, before: self.before, across: self.across::<R>(), step: R }
    }

    /// Returns the positions of their results.
    fn positions_of_results<const R: usize>(self) -> TilePositions {
        let [rows, columns] = self.results;
        TilePositions::covering([rows, columns, self.outputs], R)
    }
}

/// The destination of results.
pub(crate) trait Results<const R: usize> {
    /// Takes all outputs of a tile, of which `results` returns `S::F32_LANES`, from the one that it gets.
    fn take<S: Simd>(&mut self, simd: S, tile: usize, outputs: usize, results: impl FnMut(usize) -> [[S::f32s; R]; R]);
}

/// Tiles of `N x N` values of each channel.
pub(crate) trait Tiles<const N: usize> {
    /// Calls `each(channel, values)` for every `S::F32_LANES` channels of a tile.
    fn of<S: Simd>(&self, simd: S, tile: usize, each: impl FnMut(usize, [[S::f32s; N]; N]));
}

/// A convolution, rotated by half a turn or not.
struct Convolve<'a, F, D, const K: usize, const R: usize, const T: usize> {
    winograd: Winograd,
    maps: &'a [f32],
    weight: View<'a>,
    rotated: bool,
    work: &'a mut WinogradBuffers,
    to: D,
    filter: PhantomData<F>,
}

impl<F: Filter<K, R, T>, D: Results<R>, const K: usize, const R: usize, const T: usize> WithSimd
    for Convolve<'_, F, D, K, R, T>
{
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { winograd, maps, weight, rotated, work, mut to, .. } = self;
        let (tiles, outputs) = (winograd.tiles::<R>(maps.len()), winograd.outputs);
        let WinogradBuffers { weights, values, products, .. } = work;
        put_weights::<S, F, K, R, T>(simd, weight, rotated, weights);
        for from in (0..tiles).step_by(winograd.block(T)) {
            let some = from..tiles.min(from + winograd.block(T));
            put_values::<S, F, K, R, T>(simd, winograd.positions::<R>(), maps, some.clone(), values);
            products.resize(T * T, some.len(), outputs);
            for (place, weights) in weights.iter().take(T * T).enumerate() {
                multiply(simd, products.of_mut(place), outputs, values.of(place), weights);
            }
            for (row, tile) in some.enumerate() {
                to.take(
                    simd,
                    tile,
                    outputs,
                    #[inline(always)]
                    |output| {
                        both::<S, T, R>(
                            simd,
                            products.tile(simd, row, output),
                            #[inline(always)]
                            |values| F::result(simd, values),
                        )
                    },
                );
            }
        }
    }
}

/// Writes results to maps.
struct PutResults<'a, const R: usize> {
    positions: TilePositions,
    out: &'a mut [f32],
}

impl<const R: usize> Results<R> for PutResults<'_, R> {
    #[inline(always)]
    fn take<S: Simd>(
        &mut self,
        _: S,
        tile: usize,
        outputs: usize,
        mut results: impl FnMut(usize) -> [[S::f32s; R]; R],
    ) {
        let starts = self.positions.starts::<R>(tile);
        for output in (0..outputs).step_by(S::F32_LANES) {
            for (values, start) in results(output).as_flattened().iter().zip(starts.as_flattened()) {
                if let Some(start) = start {
                    store::<S>(&mut self.out[start + output..], *values);
                }
            }
        }
    }
}

/// The gradients of the weights and of the maps.
struct Gradients<'a, F, D, const K: usize, const R: usize, const T: usize> {
    winograd: Winograd,
    tiles: usize,
    by_results: D,
    /// The maps, and the gradient of the weights.
    by_weights: Option<(&'a [f32], &'a mut Matrix)>,
    /// The transposed weights, and values that the gradient of the maps is added to.
    map_gradient: Option<(View<'a>, &'a mut [f32])>,
    work: &'a mut WinogradBuffers,
    filter: PhantomData<F>,
}

impl<F: Filter<K, R, T>, D: Tiles<R>, const K: usize, const R: usize, const T: usize> WithSimd
    for Gradients<'_, F, D, K, R, T>
{
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { winograd, tiles, by_results, by_weights, mut map_gradient, work, .. } = self;
        let ([.., channels], outputs, positions) = (winograd.map, winograd.outputs, winograd.positions::<R>());
        let WinogradBuffers { weights, weight_gradient, values, products, .. } = work;
        if by_weights.is_some() {
            weight_gradient.resize(T * T, channels, outputs);
            (0..T * T).for_each(|place| weight_gradient.of_mut(place).fill(0.0));
        }
        if let Some((transposed, _)) = &map_gradient {
            put_weights::<S, F, K, R, T>(simd, *transposed, false, weights);
        }
        for from in (0..tiles).step_by(winograd.block(T)) {
            let some = from..tiles.min(from + winograd.block(T));
            products.resize(T * T, some.len(), outputs);
            put::<S, R, T>(
                simd,
                &by_results,
                some.clone(),
                #[inline(always)]
                |values| F::gradient(simd, values),
                products,
            );
            if let Some((maps, _)) = &by_weights {
                put_values::<S, F, K, R, T>(simd, positions, maps, some.clone(), values);
                for place in 0..T * T {
                    let by_weights = weight_gradient.of_mut(place);
                    add_transposed(simd, by_weights, [values.of(place), products.of(place)], [channels, outputs]);
                }
            }
            if let Some((_, out)) = &mut map_gradient {
                values.resize(T * T, some.len(), channels);
                for (place, weights) in weights.iter().take(T * T).enumerate() {
                    multiply(simd, values.of_mut(place), channels, products.of(place), weights);
                }
                add_values::<S, F, K, R, T>(simd, positions, values, some, out);
            }
        }
        if let Some((_, out)) = by_weights {
            take_weights::<S, F, K, R, T>(simd, weight_gradient, out);
        }
    }
}

/// Adds the gradient of transformed tiles to that of the maps.
#[inline(always)]
fn add_values<S: Simd, F: Filter<K, R, T>, const K: usize, const R: usize, const T: usize>(
    simd: S,
    positions: TilePositions,
    values: &Places,
    tiles: Range<usize>,
    out: &mut [f32],
) {
    for (row, tile) in tiles.enumerate() {
        let starts = positions.starts::<T>(tile);
        for channel in (0..values.columns).step_by(S::F32_LANES) {
            let by_values = both::<S, T, T>(
                simd,
                values.tile(simd, row, channel),
                #[inline(always)]
                |values| F::value_gradient(simd, values),
            );
            for (gradient, start) in by_values.as_flattened().iter().zip(starts.as_flattened()) {
                if let Some(start) = start {
                    let to = &mut out[start + channel..];
                    store::<S>(to, simd.add_f32s(load::<S>(to), *gradient));
                }
            }
        }
    }
}

/// Transforms the gradient of transformed weights back.
#[inline(always)]
fn take_weights<S: Simd, F: Filter<K, R, T>, const K: usize, const R: usize, const T: usize>(
    simd: S,
    places: &Places,
    out: &mut Matrix,
) {
    let (channels, outputs) = (places.rows, places.columns);
    for channel in 0..channels {
        for output in (0..outputs).step_by(S::F32_LANES) {
            let kernel = both::<S, T, K>(
                simd,
                places.tile(simd, channel, output),
                #[inline(always)]
                |values| F::kernel_gradient(simd, values),
            );
            for (place, values) in kernel.as_flattened().iter().enumerate() {
                store::<S>(&mut out.row_mut(place * channels + channel)[output..], *values);
            }
        }
    }
}

/// The positions of tiles in maps `[rows, columns, channels]`.
#[derive(Clone, Copy)]
pub(crate) struct TilePositions {
    map: [usize; 3],
    /// Rows and columns of the first tile before the map.
    before: [usize; 2],
    /// Tiles in a column and in a row of a map.
    across: [usize; 2],
    /// The distance between neighbouring tiles.
    step: usize,
}

impl TilePositions {
    /// Returns the tiles of `side x side` positions that cover maps.
    pub(crate) fn covering(map: [usize; 3], side: usize) -> Self {
        Self { map, before: [0; 2], across: [map[0], map[1]].map(|length| length.div_ceil(side)), step: side }
    }

    /// Returns the index where the channels of each position of a tile start, or `None` beyond the map.
    #[inline(always)]
    pub(crate) fn starts<const N: usize>(self, tile: usize) -> [[Option<usize>; N]; N] {
        let ([height, width, channels], [down, across]) = (self.map, self.across);
        let (image, tile) = (tile / (down * across), tile % (down * across));
        let first = [tile / across, tile % across].map(|tile| tile * self.step);
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

/// Tiles of maps; values beyond the map are zeros.
struct Within<'a> {
    positions: TilePositions,
    maps: &'a [f32],
}

impl<const N: usize> Tiles<N> for Within<'_> {
    #[inline(always)]
    fn of<S: Simd>(&self, simd: S, tile: usize, mut each: impl FnMut(usize, [[S::f32s; N]; N])) {
        let starts = self.positions.starts::<N>(tile);
        for channel in (0..self.positions.map[2]).step_by(S::F32_LANES) {
            let mut tile = [[simd.splat_f32s(0.0); N]; N];
            for (values, start) in tile.as_flattened_mut().iter_mut().zip(starts.as_flattened()) {
                if let Some(start) = start {
                    *values = load::<S>(&self.maps[start + channel..]);
                }
            }
            each(channel, tile);
        }
    }
}

/// Transforms tiles of maps.
#[inline(always)]
fn put_values<S: Simd, F: Filter<K, R, T>, const K: usize, const R: usize, const T: usize>(
    simd: S,
    positions: TilePositions,
    maps: &[f32],
    tiles: Range<usize>,
    out: &mut Places,
) {
    out.resize(T * T, tiles.len(), positions.map[2]);
    let source = Within { positions, maps };
    put::<S, T, T>(
        simd,
        &source,
        tiles,
        #[inline(always)]
        |values| F::value(simd, values),
        out,
    );
}

#[inline(always)]
fn put<S: Simd, const N: usize, const T: usize>(
    simd: S,
    source: &impl Tiles<N>,
    tiles: Range<usize>,
    transform: impl Fn([S::f32s; N]) -> [S::f32s; T] + Copy,
    out: &mut Places,
) {
    for (row, tile) in tiles.enumerate() {
        source.of(
            simd,
            tile,
            #[inline(always)]
            |channel, tile| {
                let at = row * out.columns + channel;
                for (place, values) in both::<S, N, T>(simd, tile, transform).as_flattened().iter().enumerate() {
                    store::<S>(&mut out.of_mut(place)[at..], *values);
                }
            },
        );
    }
}

/// Transforms weights `[K * K * channels, outputs]`, rotated by half a turn or not.
#[inline(always)]
fn put_weights<S: Simd, F: Filter<K, R, T>, const K: usize, const R: usize, const T: usize>(
    simd: S,
    weight: View<'_>,
    rotated: bool,
    out: &mut Vec<Packed>,
) {
    let [inputs, outputs] = weight.shape();
    let channels = inputs / (K * K);
    out.resize_with(out.len().max(T * T), Packed::default);
    out.iter_mut().take(T * T).for_each(|packed| packed.resize::<S>(channels, outputs));
    for channel in 0..channels {
        for output in (0..outputs).step_by(S::F32_LANES) {
            let mut kernel = [[simd.splat_f32s(0.0); K]; K];
            for (place, values) in kernel.as_flattened_mut().iter_mut().enumerate() {
                let from = if rotated { K * K - 1 - place } else { place };
                *values = load::<S>(&weight.row(from * channels + channel)[output..]);
            }
            let places = both::<S, K, T>(
                simd,
                kernel,
                #[inline(always)]
                |values| F::kernel(simd, values),
            );
            for (values, out) in places.as_flattened().iter().zip(&mut *out) {
                store::<S>(out.row_mut(channel, output), *values);
            }
        }
    }
}

/// Transposes the weights `[channels, outputs]` of every place of the kernel.
pub(crate) fn transpose_places(weight: View<'_>, places: usize, out: &mut Matrix) {
    let [inputs, outputs] = weight.shape();
    let channels = inputs / places;
    out.resize(places * outputs, channels);
    for (place, to) in out.values_mut().chunks_exact_mut(outputs * channels).enumerate() {
        for channel in 0..channels {
            for (value, to) in
                weight.row(place * channels + channel).iter().zip(to[channel..].iter_mut().step_by(channels))
            {
                *to = *value;
            }
        }
    }
}

/// Applies a transformation to the columns, and then to the rows of the result. (With loops, because `map` of an array
/// of arrays is a call.)
#[inline(always)]
fn both<S: Simd, const N: usize, const M: usize>(
    simd: S,
    values: [[S::f32s; N]; N],
    transform: impl Fn([S::f32s; N]) -> [S::f32s; M],
) -> [[S::f32s; M]; M] {
    let zero = simd.splat_f32s(0.0);
    let mut columns = [[zero; N]; M];
    for x in 0..N {
        let mut column = [zero; N];
        for y in 0..N {
            column[y] = values[y][x];
        }
        let column = transform(column);
        for y in 0..M {
            columns[y][x] = column[y];
        }
    }
    let mut out = [[zero; M]; M];
    for (out, row) in out.iter_mut().zip(columns) {
        *out = transform(row);
    }
    out
}

#[cfg(test)]
mod tests {
    use pulp::{Scalar, Scalar128b, Scalar256b, Scalar512b};
    use rand::RngExt;
    use speed_core::random::Streams;

    use super::*;

    fn random(length: usize, index: u64) -> Vec<f32> {
        let mut stream = Streams::new(1).stream("winograd", index);
        (0..length).map(|_| stream.random::<f32>() - 0.5).collect()
    }

    /// Maps, weights and gradients of three images.
    struct Case {
        winograd: Winograd,
        maps: Vec<f32>,
        weight: Matrix,
        by_results: Vec<f32>,
    }

    impl Case {
        fn new(map: [usize; 3], before: usize, outputs: usize, algorithm: Algorithm) -> Self {
            let kernel = if algorithm == Algorithm::FourOfFive { 5 } else { 3 };
            let results = [0, 1].map(|side| map[side] + 2 * before - kernel + 1);
            let rows = kernel * kernel * map[2];
            Self {
                winograd: Winograd { map, results, before: [before; 2], outputs, algorithm },
                maps: random(3 * map.iter().product::<usize>(), 1),
                weight: Matrix::from_vec(rows, outputs, random(rows * outputs, 2)),
                by_results: random(3 * results[0] * results[1] * outputs, 3),
            }
        }

        fn values(&self) -> [Vec<f32>; 3] {
            let (Self { winograd, maps, weight, by_results }, mut work) = (self, WinogradBuffers::default());
            let mut by_maps = vec![0.0; maps.len()];
            winograd.put_map_gradient(by_results, weight.view(), &mut work, &mut by_maps);
            let by_weights = winograd.weight_gradient(maps, by_results, &mut work).into_vec();
            [winograd.forward(maps, weight.view(), &mut work), by_maps, by_weights]
        }
    }

    /// The algorithm of portable arithmetic agrees with the other one, which `ops/conv.rs` compares with Burn.
    #[test]
    fn both_algorithms_of_a_3x3_kernel_agree() {
        for before in [0, 1] {
            let [portable, fast] = [Algorithm::TwoOfThree, Algorithm::FourOfThree]
                .map(|algorithm| Case::new([7, 6, 16], before, 32, algorithm).values());
            for (portable, fast) in portable.iter().flatten().zip(fast.iter().flatten()) {
                assert!((portable - fast).abs() < 2e-5, "{portable} and {fast}");
            }
        }
    }

    /// Computes results and both gradients with vectors of one length.
    fn on<S: Simd, F: Filter<K, 4, T>, const K: usize, const T: usize>(simd: S, case: &Case) -> Vec<u32> {
        let (Case { winograd, maps, weight, by_results }, mut work) = (case, WinogradBuffers::default());
        let (winograd, view, work, filter) = (*winograd, weight.view(), &mut work, PhantomData::<F>);
        let positions = winograd.positions_of_results::<4>();
        let mut out = vec![0.0; by_results.len()];
        let to = PutResults::<4> { positions, out: &mut out };
        let forward = Convolve { winograd, maps, weight: view, rotated: false, work: &mut *work, to, filter };
        forward.with_simd(simd);
        let mut transposed = Matrix::default();
        transpose_places(view, K * K, &mut transposed);
        let (mut by_maps, mut by_weights) = (vec![0.0; maps.len()], Matrix::zeros(weight.rows(), weight.columns()));
        let gradients = Gradients {
            winograd,
            tiles: winograd.tiles::<4>(maps.len()),
            by_results: Within { positions, maps: by_results },
            by_weights: Some((maps, &mut by_weights)),
            map_gradient: Some((transposed.view(), &mut by_maps)),
            work,
            filter,
        };
        gradients.with_simd(simd);
        [&out, &by_maps, by_weights.values()].into_iter().flatten().map(|value| value.to_bits()).collect()
    }

    #[test]
    fn vectors_of_every_length_give_the_same_bits() {
        fn check<F: Filter<K, 4, T>, const K: usize, const T: usize>(case: &Case) {
            let bits = on::<_, F, K, T>(Scalar512b, case);
            assert_eq!(bits, on::<_, F, K, T>(Scalar256b, case));
            assert_eq!(bits, on::<_, F, K, T>(Scalar128b, case));
            assert_eq!(bits, on::<_, F, K, T>(Scalar::new(), case));
        }
        // Panels of three and two vectors; fewer tiles than a panel has rows, and some rows that are computed again.
        for (map, outputs) in [([5, 4, 48], 32), ([9, 7, 32], 48)] {
            check::<OfFivePoints, 3, 6>(&Case::new(map, 1, outputs, Algorithm::FourOfThree));
            check::<OfSevenPoints, 5, 8>(&Case::new(map, 2, outputs, Algorithm::FourOfFive));
        }
    }
}
