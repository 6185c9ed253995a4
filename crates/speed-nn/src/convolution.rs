//! Convolutions of any stride and padding, without bias and activation: the forward pass and both gradients.
//!
//! Maps are stored in the order image, row, pixel, channel (NHWC), and weights in the order kernel row, kernel column,
//! channel. So each row of a window is one contiguous run of values, matching one run of weights. Maps of many channels
//! at stride 1 run on the tile unit if the machine has one; otherwise 3x3 and 5x5 kernels use fewer products
//! (`winograd.rs`), and so do 5x5 kernels of stride 2 (`folded.rs`). None of them needs a matrix of windows. All other
//! cases copy the windows of a few images at a time into a matrix.

mod folded;

use std::cell::RefCell;

use crate::matrix::{Matrix, Sums, View, append_product, multiply, put_product};
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
use crate::tile_conv::{TileConv, TileConvBuffers};
use crate::winograd::{Winograd, WinogradBuffers};

/// Values of the windows processed at a time: 4 MiB.
const BLOCK_VALUES: usize = 1 << 20;

/// The windows of a convolution on maps of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    height: usize,
    width: usize,
    channels: usize,
    kernel: usize,
    stride: usize,
    /// Rows and columns of zeros before a map.
    before: [usize; 2],
    rows: usize,
    columns: usize,
}

#[derive(Default)]
struct ConvolutionBuffers {
    framed: Vec<f32>,
    windows: Matrix,
    product: Matrix,
    weight_part: Matrix,
    winograd: WinogradBuffers,
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    tiles: TileConvBuffers,
}

thread_local! {
    static BUFFERS: RefCell<ConvolutionBuffers> = RefCell::new(ConvolutionBuffers::default());
}

impl Geometry {
    /// Returns TensorFlow's `SAME` padding of maps `[height, width, channels]`: the number of result rows and columns
    /// is that of the map divided by the stride, rounded up. If the padding is odd, its larger half is at the end.
    /// `None` for sizes of zero.
    pub fn same([height, width, channels]: [usize; 3], kernel: usize, stride: usize) -> Option<Self> {
        let sizes = [height, width, channels, kernel, stride];
        let [rows, columns] = [height, width].map(|size| size.div_ceil(stride.max(1)));
        let before = [(rows, height), (columns, width)]
            .map(|(results, size)| (results.saturating_sub(1) * stride + kernel).saturating_sub(size) / 2);
        let geometry = Self { height, width, channels, kernel, stride, before, rows, columns };
        sizes.iter().all(|&size| size > 0).then_some(geometry)
    }

    /// Returns a padding of half of an odd `kernel` of zeros on every side of maps `[height, width, channels]`, as in
    /// Theano and cuDNN. The number of results is that of [`same`](Self::same), but the windows are at other positions
    /// if the stride is not 1. `None` for sizes of zero and even kernels.
    pub fn half(map: [usize; 3], kernel: usize, stride: usize) -> Option<Self> {
        let same = Self::same(map, kernel, stride)?;
        (kernel % 2 == 1).then_some(Self { before: [kernel / 2; 2], ..same })
    }

    /// Returns windows without padding at stride 1. `None` for maps `[height, width, channels]` that are smaller than
    /// the kernel, and for sizes of zero.
    pub fn valid([height, width, channels]: [usize; 3], kernel: usize) -> Option<Self> {
        let fits = kernel > 0 && channels > 0 && height >= kernel && width >= kernel;
        fits.then(|| {
            let [rows, columns] = [height, width].map(|size| size - kernel + 1);
            Self { height, width, channels, kernel, stride: 1, before: [0; 2], rows, columns }
        })
    }

    /// Returns `[height, width, channels]` of a map.
    pub fn map(&self) -> [usize; 3] {
        [self.height, self.width, self.channels]
    }

    /// Returns the number of rows and columns of the results.
    pub fn results(&self) -> [usize; 2] {
        [self.rows, self.columns]
    }

    /// Returns the number of rows, which is also that of columns, of the kernel.
    pub fn kernel(&self) -> usize {
        self.kernel
    }

    /// Returns the distance between neighbouring windows, in pixels.
    pub fn stride(&self) -> usize {
        self.stride
    }

    /// Returns the rows and the columns of zeros before and after a map that windows reach; 0 at the end if no window
    /// reaches beyond it.
    pub fn padding(&self) -> [[usize; 2]; 2] {
        let [height, width] = self.framed();
        let after =
            [height.saturating_sub(self.height + self.before[0]), width.saturating_sub(self.width + self.before[1])];
        [[self.before[0], after[0]], [self.before[1], after[1]]]
    }

    /// Returns the number of values in one map.
    pub fn map_len(&self) -> usize {
        self.height * self.width * self.channels
    }

    /// Returns the number of windows of one map.
    pub fn positions(&self) -> usize {
        self.rows * self.columns
    }

    /// Returns the number of values in a window, which is the number of rows of the weight matrix.
    pub fn patch_len(&self) -> usize {
        self.kernel * self.kernel * self.channels
    }

    /// Convolves complete maps with weights `[patch_len, outputs]`: `[images * rows * columns, outputs]`.
    ///
    /// # Panics
    /// If a map is incomplete or the weights are for other windows.
    pub fn forward(&self, maps: &[f32], weight: View<'_>) -> Matrix {
        let outputs = self.outputs(weight);
        assert!(maps.len().is_multiple_of(self.map_len()), "complete maps");
        let positions = maps.len() / self.map_len() * self.positions();
        if let Some(winograd) = self.winograd(outputs) {
            let out = BUFFERS.with_borrow_mut(|work| winograd.forward(maps, weight, &mut work.winograd));
            return Matrix::from_vec(positions, outputs, out);
        }
        if let Some(winograd) = self.folded(outputs) {
            let (maps, weight) = (self.fold(maps), self.fold_weight(weight));
            let out = BUFFERS.with_borrow_mut(|work| winograd.forward(&maps, weight.view(), &mut work.winograd));
            return Matrix::from_vec(positions, outputs, out);
        }
        let mut out = Vec::with_capacity(positions * outputs);
        BUFFERS.with_borrow_mut(|work| {
            #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
            if let Some(tiles) = self.tiles(outputs) {
                tiles.set_weights_for_results(weight, &mut work.tiles);
                for maps in maps.chunks(self.tile_block(tiles)) {
                    self.frame(maps, &mut work.framed);
                    tiles.put_results(&work.framed, &mut work.tiles);
                    let results = work.tiles.results.values();
                    for from in self.result_rows(maps.len() / self.map_len(), outputs) {
                        out.extend_from_slice(&results[from..from + self.columns * outputs]);
                    }
                }
                return;
            }
            for maps in maps.chunks(self.block() * self.map_len()) {
                self.extract(maps, &mut work.framed, &mut work.windows);
                append_product(&mut out, work.windows.view(), weight);
            }
        });
        Matrix::from_vec(positions, outputs, out)
    }

    /// Computes the gradient of the weights `[patch_len, outputs]` from the gradient of the results
    /// `[images * rows * columns, outputs]`.
    ///
    /// # Panics
    /// If the number of results is not the number of windows of the maps.
    pub fn weight_gradient(&self, maps: &[f32], by_results: &[f32], outputs: usize) -> Matrix {
        let positions = maps.len() / self.map_len() * self.positions();
        assert_eq!(by_results.len(), positions * outputs, "gradient of the results");
        if let Some(winograd) = self.winograd(outputs) {
            return BUFFERS.with_borrow_mut(|work| winograd.weight_gradient(maps, by_results, &mut work.winograd));
        }
        if let Some(winograd) = self.folded(outputs) {
            let maps = self.fold(maps);
            let gradient =
                BUFFERS.with_borrow_mut(|work| winograd.weight_gradient(&maps, by_results, &mut work.winograd));
            return self.unfold_weight(&gradient);
        }
        let mut weight = Matrix::zeros(self.patch_len(), outputs);
        BUFFERS.with_borrow_mut(|work| {
            #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
            if let Some(tiles) = self.tiles(outputs) {
                let mut rows = by_results.chunks_exact(self.columns * outputs);
                for maps in maps.chunks(self.tile_block(tiles)) {
                    self.frame(maps, &mut work.framed);
                    self.put_gradient(maps.len() / self.map_len(), outputs, &mut rows, work);
                    tiles.add_weight_gradient(&work.framed, &mut work.tiles, &mut weight);
                }
                return;
            }
            let results = by_results.chunks(self.block() * self.positions() * outputs);
            for (maps, by_results) in maps.chunks(self.block() * self.map_len()).zip(results) {
                self.extract(maps, &mut work.framed, &mut work.windows);
                let by_results = View::of_rows(by_results, [by_results.len() / outputs, outputs]);
                let windows = work.windows.view().transposed();
                put_product(weight.values_mut(), windows, by_results, Sums::Added, &mut work.weight_part);
            }
        });
        weight
    }

    /// Computes the gradient of the maps from the gradient of the results `[images * rows * columns, outputs]`: a
    /// transposed convolution.
    ///
    /// # Panics
    /// If the results are not those of complete maps or the weights are for other windows.
    pub fn map_gradient(&self, weight: View<'_>, by_results: &[f32]) -> Vec<f32> {
        let outputs = self.outputs(weight);
        assert!(by_results.len().is_multiple_of(self.positions() * outputs), "results of complete maps");
        let images = by_results.len() / outputs / self.positions();
        let mut maps = vec![0.0; images * self.map_len()];
        if let Some(winograd) = self.winograd(outputs) {
            let out = &mut maps;
            BUFFERS.with_borrow_mut(|work| winograd.put_map_gradient(by_results, weight, &mut work.winograd, out));
            return maps;
        }
        if let Some(winograd) = self.folded(outputs) {
            let mut folded = vec![0.0; images * self.folded_map().iter().product::<usize>()];
            let (weight, out) = (self.fold_weight(weight), &mut folded);
            BUFFERS
                .with_borrow_mut(|work| winograd.put_map_gradient(by_results, weight.view(), &mut work.winograd, out));
            self.unfold(&folded, &mut maps);
            return maps;
        }
        BUFFERS.with_borrow_mut(|work| {
            #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
            if let Some(tiles) = self.tiles(outputs) {
                tiles.set_weights_for_maps(weight, &mut work.tiles);
                let mut rows = by_results.chunks_exact(self.columns * outputs);
                for maps in maps.chunks_mut(self.tile_block(tiles)) {
                    self.put_gradient(maps.len() / self.map_len(), outputs, &mut rows, work);
                    tiles.put_map_gradient(&mut work.tiles);
                    self.unframe(work.tiles.map_gradient.values(), maps);
                }
                return;
            }
            let results = by_results.chunks(self.block() * self.positions() * outputs);
            for (by_results, maps) in results.zip(maps.chunks_mut(self.block() * self.map_len())) {
                let by_results = View::of_rows(by_results, [by_results.len() / outputs, outputs]);
                multiply(&mut work.product, by_results, weight.transposed());
                self.add_back(&work.product, &mut work.framed, maps);
            }
        });
        maps
    }

    /// Returns the algorithm with fewer products, if it applies and tiles do not.
    fn winograd(&self, outputs: usize) -> Option<Winograd> {
        #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
        if self.tiles(outputs).is_some() {
            return None;
        }
        let Self { height, width, channels, kernel, stride, before, rows, columns } = *self;
        Winograd::new([height, width, channels], before, [kernel, stride], [rows, columns], outputs)
    }

    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    fn tiles(&self, outputs: usize) -> Option<TileConv> {
        let ([height, width], Self { channels, kernel, rows, columns, .. }) = (self.framed(), *self);
        let tiles = TileConv { height, width, channels, kernel, rows, columns };
        (self.stride == 1 && tiles.applies(outputs)).then_some(tiles)
    }

    /// Returns the number of values of complete maps, without their padding, that the tiles process together.
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    fn tile_block(&self, tiles: TileConv) -> usize {
        let [height, width] = self.framed();
        tiles.block_len() / (height * width * self.channels) * self.map_len()
    }

    /// Writes the gradient of a block's results to the positions of the tiles' results.
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    fn put_gradient<'a>(
        &self,
        images: usize,
        outputs: usize,
        rows: &mut impl Iterator<Item = &'a [f32]>,
        work: &mut ConvolutionBuffers,
    ) {
        let [height, width] = self.framed();
        work.tiles.results.resize(images * height * width, outputs);
        let results = work.tiles.results.values_mut();
        results.fill(0.0);
        for (to, row) in self.result_rows(images, outputs).zip(rows) {
            results[to..to + row.len()].copy_from_slice(row);
        }
    }

    /// Returns the positions of rows of results among those that the tiles computed for complete padded maps.
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    fn result_rows(&self, images: usize, outputs: usize) -> impl Iterator<Item = usize> {
        let ([height, width], rows) = (self.framed(), self.rows);
        (0..images).flat_map(move |image| (0..rows).map(move |row| (image * height + row) * width * outputs))
    }

    /// Returns the number of outputs of weights `[patch_len, outputs]`.
    fn outputs(&self, weight: View<'_>) -> usize {
        let [inputs, outputs] = weight.shape();
        assert_eq!(inputs, self.patch_len(), "rows of the weights");
        outputs
    }

    /// Returns the number of images processed together.
    fn block(&self) -> usize {
        (BLOCK_VALUES / (self.positions() * self.patch_len())).max(1)
    }

    /// Returns the rows and columns that windows reach, including zeros.
    fn framed(&self) -> [usize; 2] {
        [self.rows, self.columns].map(|results| (results - 1) * self.stride + self.kernel)
    }

    fn framed_len(&self) -> usize {
        let [height, width] = self.framed();
        height * width * self.channels
    }

    /// Calls `run(map, frame, length)` for every row of the maps that windows reach.
    fn for_each_row(&self, images: usize, mut run: impl FnMut(usize, usize, usize)) {
        let [height, width] = self.framed();
        let [above, left] = self.before;
        let length = self.width.min(width - left) * self.channels;
        for image in 0..images {
            for y in 0..self.height.min(height - above) {
                let frame = ((image * height + y + above) * width + left) * self.channels;
                run((image * self.height + y) * self.width * self.channels, frame, length);
            }
        }
    }

    fn frame(&self, maps: &[f32], framed: &mut Vec<f32>) {
        let images = maps.len() / self.map_len();
        framed.clear();
        framed.resize(images * self.framed_len(), 0.0);
        self.for_each_row(images, |map, frame, length| {
            framed[frame..frame + length].copy_from_slice(&maps[map..map + length]);
        });
    }

    fn unframe(&self, framed: &[f32], maps: &mut [f32]) {
        self.for_each_row(maps.len() / self.map_len(), |map, frame, length| {
            maps[map..map + length].copy_from_slice(&framed[frame..frame + length]);
        });
    }

    fn extract(&self, maps: &[f32], framed: &mut Vec<f32>, windows: &mut Matrix) {
        let images = maps.len() / self.map_len();
        self.frame(maps, framed);
        windows.resize(images * self.positions(), self.patch_len());
        let windows = windows.values_mut();
        self.for_each_run(images, |window, frame, length| {
            windows[window..window + length].copy_from_slice(&framed[frame..frame + length]);
        });
    }

    fn add_back(&self, windows: &Matrix, framed: &mut Vec<f32>, maps: &mut [f32]) {
        let (images, windows) = (maps.len() / self.map_len(), windows.values());
        framed.clear();
        framed.resize(images * self.framed_len(), 0.0);
        self.for_each_run(images, |window, frame, length| {
            for (sum, value) in framed[frame..frame + length].iter_mut().zip(&windows[window..window + length]) {
                *sum += value;
            }
        });
        self.unframe(framed, maps);
    }

    /// Calls `run(window, frame, length)` for every row of every window.
    fn for_each_run(&self, images: usize, mut run: impl FnMut(usize, usize, usize)) {
        let ([height, width], length) = (self.framed(), self.kernel * self.channels);
        let mut window = 0;
        for image in 0..images {
            for (y, x) in (0..self.positions()).map(|i| (i / self.columns, i % self.columns)) {
                for ky in 0..self.kernel {
                    let row = image * height + y * self.stride + ky;
                    run(window, (row * width + x * self.stride) * self.channels, length);
                    window += length;
                }
            }
        }
    }
}
