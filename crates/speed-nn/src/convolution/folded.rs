//! Convolutions of a 5x5 kernel and stride 2 as convolutions of a 3x3 kernel and stride 1.
//!
//! Four neighbouring pixels of the maps become one pixel of four times as many channels. A window of 5x5 pixels, or 6x6 with
//! a row and a column whose weights are zero, is then one of 3x3 pixels. With minimal filtering it takes 9 products for
//! each channel of the maps, instead of 25.

use super::Geometry;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
use crate::matrix::tiles_in_use;
use crate::matrix::{Matrix, ProductUnit, View, product_unit};
use crate::winograd::Winograd;

/// Rows and columns of the kernel on folded maps.
const FOLDED_KERNEL: usize = 3;
/// Rows and columns of pixels that become one.
const FOLD: usize = 2;

impl Geometry {
    /// Returns the convolution of stride 1 that equals this one of stride 2, if that takes fewer products and tiles do
    /// not apply.
    pub(super) fn folded(&self, outputs: usize) -> Option<Winograd> {
        #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
        if tiles_in_use() {
            return None;
        }
        let [rows, columns, channels] = self.folded_map();
        let winograd = Winograd::new([rows, columns, channels], [0; 2], [FOLDED_KERNEL, 1], self.results(), outputs);
        // For fewer windows, the transformation of the weights costs more than is saved.
        let applies = [self.kernel, self.stride] == [5, 2] && self.positions() >= 64;
        winograd.filter(|_| applies && product_unit() != ProductUnit::Portable)
    }

    /// Returns `[rows, columns, channels]` of the folded maps, which contain the zeros before and after a map.
    pub(super) fn folded_map(&self) -> [usize; 3] {
        let [rows, columns] = self.results().map(|results| results + FOLDED_KERNEL - 1);
        [rows, columns, FOLD * FOLD * self.channels]
    }

    /// Folds complete maps.
    pub(super) fn fold(&self, maps: &[f32]) -> Vec<f32> {
        let images = maps.len() / self.map_len();
        let mut folded = vec![0.0; images * self.folded_map().iter().product::<usize>()];
        self.for_each_folded(images, |map, fold| {
            folded[fold..fold + self.channels].copy_from_slice(&maps[map..map + self.channels]);
        });
        folded
    }

    /// Writes the values of folded maps to complete maps.
    pub(super) fn unfold(&self, folded: &[f32], maps: &mut [f32]) {
        self.for_each_folded(maps.len() / self.map_len(), |map, fold| {
            maps[map..map + self.channels].copy_from_slice(&folded[fold..fold + self.channels]);
        });
    }

    /// Calls `run(map, fold)` with the places of the channels of every pixel that windows reach.
    fn for_each_folded(&self, images: usize, mut run: impl FnMut(usize, usize)) {
        let [rows, columns, channels] = self.folded_map();
        let reached = |size: usize, folded: usize, before: usize| size.min((FOLD * folded).saturating_sub(before));
        let height = reached(self.height, rows, self.before[0]);
        let width = reached(self.width, columns, self.before[1]);
        for image in 0..images {
            for y in 0..height {
                let [row, down] = [(y + self.before[0]) / FOLD, (y + self.before[0]) % FOLD];
                for x in 0..width {
                    let [column, right] = [(x + self.before[1]) / FOLD, (x + self.before[1]) % FOLD];
                    let fold = ((image * rows + row) * columns + column) * channels;
                    let map = (image * self.height + y) * self.width + x;
                    run(map * self.channels, fold + (down * FOLD + right) * self.channels);
                }
            }
        }
    }

    /// Returns the weights `[9 * 4 * channels, outputs]` of the convolution of folded maps.
    pub(super) fn fold_weight(&self, weight: View<'_>) -> Matrix {
        let outputs = weight.shape()[1];
        let mut folded = Matrix::zeros(FOLDED_KERNEL * FOLDED_KERNEL * FOLD * FOLD * self.channels, outputs);
        self.for_each_weight(|row, fold| folded.row_mut(fold).copy_from_slice(weight.row(row)));
        folded
    }

    /// Returns the weights `[patch_len, outputs]` among those of folded maps.
    pub(super) fn unfold_weight(&self, folded: &Matrix) -> Matrix {
        let mut weight = Matrix::zeros(self.patch_len(), folded.columns());
        self.for_each_weight(|row, fold| weight.row_mut(row).copy_from_slice(folded.row(fold)));
        weight
    }

    /// Calls `run(row, fold)` for every row of the weights.
    fn for_each_weight(&self, mut run: impl FnMut(usize, usize)) {
        for row in 0..self.patch_len() {
            let (place, channel) = (row / self.channels, row % self.channels);
            let [y, x] = [place / self.kernel, place % self.kernel];
            let place = (y / FOLD * FOLDED_KERNEL + x / FOLD) * FOLD * FOLD + y % FOLD * FOLD + x % FOLD;
            run(row, place * self.channels + channel);
        }
    }
}
