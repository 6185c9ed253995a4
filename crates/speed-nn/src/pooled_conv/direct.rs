//! The convolution without a matrix of patches, for maps of few channels.
//!
//! There the patches are many times the maps and each of their values meets few weights, so that writing them costs more
//! than the product. Here every value is read where it is and multiplied by sixteen outputs' weights at once.

use super::{POOL, PooledWindows};
use crate::matrix::Matrix;

/// Outputs that are computed together: one vector register.
const LANES: usize = 16;

type Lanes = [f32; LANES];

/// Whether [`convolve`] and [`weight_gradient`] know windows with rows of this length, and so many outputs.
pub(super) fn applies(run_len: usize, outputs: usize) -> bool {
    matches!(run_len, 3 | 5 | 9 | 15) && outputs.is_multiple_of(LANES)
}

/// Writes to `convolved` the product of every patch of `maps` with the weights, one patch a row.
pub(super) fn convolve(windows: &PooledWindows, maps: &[f32], weight: &Matrix, convolved: &mut Matrix) {
    match windows.run_len() {
        3 => convolve_runs::<3>(windows, maps, weight, convolved),
        5 => convolve_runs::<5>(windows, maps, weight, convolved),
        9 => convolve_runs::<9>(windows, maps, weight, convolved),
        _ => convolve_runs::<15>(windows, maps, weight, convolved),
    }
}

/// Adds to `sums` the products of every patch of `maps` with the gradient of its results.
pub(super) fn weight_gradient(windows: &PooledWindows, maps: &[f32], gradient: &Matrix, sums: &mut Matrix) {
    match windows.run_len() {
        3 => weight_gradient_of_runs::<3>(windows, maps, gradient, sums),
        5 => weight_gradient_of_runs::<5>(windows, maps, gradient, sums),
        9 => weight_gradient_of_runs::<9>(windows, maps, gradient, sums),
        _ => weight_gradient_of_runs::<15>(windows, maps, gradient, sums),
    }
}

fn convolve_runs<const RUN: usize>(windows: &PooledWindows, maps: &[f32], weight: &Matrix, convolved: &mut Matrix) {
    let (outputs, row_len) = (weight.columns(), windows.width * windows.channels);
    convolved.resize(count(windows, maps), outputs);
    for first in (0..outputs).step_by(LANES) {
        let weights: Vec<[Lanes; RUN]> =
            (0..windows.kernel).map(|ky| std::array::from_fn(|r| lanes(weight.row(ky * RUN + r), first))).collect();
        let mut rows = convolved.values_mut().chunks_exact_mut(outputs);
        for starts in pooling_windows(windows, maps) {
            let mut sums = [[0.0; LANES]; POOL];
            for (ky, weights) in weights.iter().enumerate() {
                let runs: [&[f32; RUN]; POOL] = starts.map(|start| run(maps, start + ky * row_len));
                for (r, weights) in weights.iter().enumerate() {
                    for position in 0..POOL {
                        for lane in 0..LANES {
                            let sum = &mut sums[position][lane];
                            *sum = runs[position][r].mul_add(weights[lane], *sum);
                        }
                    }
                }
            }
            for (sums, row) in sums.iter().zip(&mut rows) {
                row[first..first + LANES].copy_from_slice(sums);
            }
        }
    }
}

fn weight_gradient_of_runs<const RUN: usize>(
    windows: &PooledWindows,
    maps: &[f32],
    gradient: &Matrix,
    sums: &mut Matrix,
) {
    let outputs = gradient.columns();
    for first in (0..outputs).step_by(LANES) {
        for ky in 0..windows.kernel {
            let mut parts = [[[0.0; LANES]; RUN]; 2];
            let mut rows = gradient.values().chunks_exact(outputs);
            for starts in pooling_windows(windows, maps) {
                for (position, (start, row)) in starts.into_iter().zip(&mut rows).enumerate() {
                    let run: &[f32; RUN] = run(maps, start + ky * windows.width * windows.channels);
                    let (g, part) = (lanes(row, first), &mut parts[position % 2]);
                    for r in 0..RUN {
                        for lane in 0..LANES {
                            part[r][lane] = run[r].mul_add(g[lane], part[r][lane]);
                        }
                    }
                }
            }
            let [even, odd] = &parts;
            for (r, (even, odd)) in even.iter().zip(odd).enumerate() {
                let row = &mut sums.row_mut(ky * RUN + r)[first..first + LANES];
                row.iter_mut().zip(even.iter().zip(odd)).for_each(|(sum, (even, odd))| *sum += even + odd);
            }
        }
    }
}

/// Patches of `maps`.
fn count(windows: &PooledWindows, maps: &[f32]) -> usize {
    let [rows, columns] = windows.pooled();
    maps.len() / windows.map_len() * rows * columns * POOL
}

/// Where the four patches of every pooling window start in `maps`.
fn pooling_windows(windows: &PooledWindows, maps: &[f32]) -> impl Iterator<Item = [usize; POOL]> {
    let (windows, [rows, columns]) = (*windows, windows.pooled());
    let row_len = windows.width * windows.channels;
    (0..maps.len() / windows.map_len()).flat_map(move |image| {
        (0..rows).flat_map(move |row| {
            let start = image * windows.map_len() + 2 * row * row_len;
            (0..columns).map(move |column| {
                let start = start + 2 * column * windows.channels;
                [start, start + windows.channels, start + row_len, start + row_len + windows.channels]
            })
        })
    })
}

#[inline(always)]
fn run<const RUN: usize>(maps: &[f32], start: usize) -> &[f32; RUN] {
    maps[start..].first_chunk().expect("windows lie within whole maps")
}

#[inline(always)]
fn lanes(row: &[f32], first: usize) -> Lanes {
    *row[first..].first_chunk().expect("whole registers of outputs")
}
