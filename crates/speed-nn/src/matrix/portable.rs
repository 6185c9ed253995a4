//! Products that are bit-identical on every machine.
//!
//! Every value is the sum over the inner dimension from first to last, with each term added by a fused multiply-add
//! (`f32::mul_add`, which rounds once on every platform). The vector width and the sizes of panels and blocks determine
//! only how many sums run in parallel.

use std::cell::RefCell;

use pulp::{Arch, Simd, WithSimd};

use super::{Matrix, View};

/// Rows of a panel of the left operand.
const ROWS: usize = 6;
/// The largest number of columns of a panel of the right operand.
const WIDE: usize = 32;
/// Number of terms summed at a time: a panel of both operands stays in the nearest cache.
const INNER: usize = 256;
/// Rows of a block of the left operand.
const BLOCK_ROWS: usize = 16 * ROWS;
/// Columns of a block of the right operand.
const BLOCK_COLUMNS: usize = 32 * WIDE;

thread_local! {
    static PACKED: RefCell<[Vec<f32>; 2]> = const { RefCell::new([Vec::new(), Vec::new()]) };
}

/// Computes `out = left right` for operands of matching sizes; `out` has the size of the product.
pub(super) fn multiply(out: &mut Matrix, left: View<'_>, right: View<'_>) {
    out.values_mut().fill(0.0);
    let arch = Arch::new();
    let lanes = lanes(arch);
    PACKED.with_borrow_mut(|[packed_left, packed_right]| {
        let ([rows, inner], [_, columns]) = (left.shape, right.shape);
        for terms in blocks(inner, INNER) {
            for block_columns in blocks(columns, BLOCK_COLUMNS) {
                pack(packed_right, right.transposed(), &block_columns, &terms, lanes);
                for block_rows in blocks(rows, BLOCK_ROWS) {
                    pack(packed_left, left, &block_rows, &terms, ROWS);
                    for (row, left) in
                        block_rows.clone().step_by(ROWS).zip(packed_left.chunks_exact(ROWS * terms.len()))
                    {
                        let panels = packed_right.chunks_exact(lanes * terms.len());
                        for (column, right) in block_columns.clone().step_by(lanes).zip(panels) {
                            let ends = [block_rows.end.min(row + ROWS), block_columns.end.min(column + lanes)];
                            let sums = Sums { out: &mut *out, from: [row, column], ends };
                            arch.dispatch(Panels { sums, left, right, lanes });
                        }
                    }
                }
            }
        }
    });
}

fn blocks(length: usize, block: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
    (0..length).step_by(block).map(move |from| from..length.min(from + block))
}

/// Writes some rows of `view` as panels of `width` rows each, term by term; missing rows are zeros.
fn pack(
    packed: &mut Vec<f32>,
    view: View<'_>,
    rows: &std::ops::Range<usize>,
    terms: &std::ops::Range<usize>,
    width: usize,
) {
    packed.clear();
    packed.resize(rows.len().div_ceil(width) * width * terms.len(), 0.0);
    let [down, right] = view.strides;
    for (from, panel) in rows.clone().step_by(width).zip(packed.chunks_exact_mut(width * terms.len())) {
        let lanes = width.min(rows.end - from);
        if down == 1 {
            for (term, packed) in terms.clone().zip(panel.chunks_exact_mut(width)) {
                packed[..lanes].copy_from_slice(&view.values[from + term * right..][..lanes]);
            }
            continue;
        }
        for lane in 0..lanes {
            let values = view.values[(from + lane) * down + terms.start * right..].iter().step_by(right);
            for (value, packed) in values.zip(panel[lane..].iter_mut().step_by(width)) {
                *packed = *value;
            }
        }
    }
}

/// The part of a product that two panels contribute to.
struct Sums<'a> {
    out: &'a mut Matrix,
    from: [usize; 2],
    ends: [usize; 2],
}

/// Returns the number of columns computed side by side.
fn lanes(arch: Arch) -> usize {
    #[cfg(target_arch = "x86_64")]
    if matches!(arch, Arch::V4(_)) {
        return WIDE;
    }
    let _ = arch;
    WIDE / 2
}

/// The terms of two panels, to be added with the widest vectors available.
struct Panels<'a> {
    sums: Sums<'a>,
    left: &'a [f32],
    right: &'a [f32],
    lanes: usize,
}

impl WithSimd for Panels<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { sums, left, right, lanes } = self;
        if lanes == WIDE {
            add_panels::<WIDE>(sums, left, right);
        } else {
            add_panels::<{ WIDE / 2 }>(sums, left, right);
        }
    }
}

/// Inlined into the code that the dispatch compiles for each kind of vectors.
#[inline(always)]
fn add_panels<const LANES: usize>(sums: Sums<'_>, left: &[f32], right: &[f32]) {
    let Sums { out, from: [row, column], ends } = sums;
    let (rows, columns) = (row..ends[0], column..ends[1]);
    let mut values = [[0.0f32; LANES]; ROWS];
    for (values, row) in values.iter_mut().zip(rows.clone()) {
        values[..columns.len()].copy_from_slice(&out.row(row)[columns.clone()]);
    }
    let (left, _) = left.as_chunks::<ROWS>();
    let (right, _) = right.as_chunks::<LANES>();
    for (left, right) in left.iter().zip(right) {
        for (values, left) in values.iter_mut().zip(left) {
            for (value, right) in values.iter_mut().zip(right) {
                *value = left.mul_add(*right, *value);
            }
        }
    }
    for (values, row) in values.iter().zip(rows) {
        out.row_mut(row)[columns.clone()].copy_from_slice(&values[..columns.len()]);
    }
}
