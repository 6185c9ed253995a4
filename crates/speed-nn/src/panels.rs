//! Products of small panels, whose sums stay in registers.
//!
//! Every sum has its terms in order of the inner dimension, from first to last, each added by a fused multiply-add, so
//! the bits do not depend on the width of the processor's vectors. That width only decides how many sums run side by
//! side. The left operand is read in place.
//!
//! All functions are inlined: a separate function would be compiled for the baseline target features.

use pulp::Simd;

/// Channels are processed in multiples of this number, the values of the widest vector.
pub(crate) const LANES: usize = 16;

/// Returns the vector of the first values.
#[inline(always)]
pub(crate) fn load<S: Simd>(values: &[f32]) -> S::f32s {
    S::as_simd_f32s(&values[..S::F32_LANES]).0[0]
}

/// Writes the vector to the first values.
#[inline(always)]
pub(crate) fn store<S: Simd>(to: &mut [f32], vector: S::f32s) {
    S::as_mut_simd_f32s(&mut to[..S::F32_LANES]).0[0] = vector;
}

/// Returns the number of columns whose sums are computed side by side, in a product of `columns` columns, a multiple
/// of [`LANES`].
#[inline(always)]
pub(crate) fn panel_columns<S: Simd>(columns: usize) -> usize {
    // Eight rows of three vectors fill 32 registers.
    let most = if S::F32_LANES == LANES { 3 } else { 1 };
    let vectors = (1..=most).rev().find(|vectors| columns.is_multiple_of(vectors * LANES));
    vectors.unwrap_or(1) * LANES
}

/// Calls `$work::<S, ROWS, VECTORS>` with the numbers of rows and vectors of a panel of `$columns` columns. With shorter
/// vectors than the widest, it has `$rows` rows and [`LANES`] columns, for which 16 registers are enough.
macro_rules! with_panel {
    ($columns:expr, $rows:literal, $work:ident($($argument:expr),* $(,)?)) => {
        match (S::F32_LANES, $columns / LANES) {
            (16, 3) => $work::<S, 8, 3>($($argument),*),
            (16, 2) => $work::<S, 8, 2>($($argument),*),
            (16, _) => $work::<S, 8, 1>($($argument),*),
            (8, _) => $work::<S, $rows, 2>($($argument),*),
            (4, _) => $work::<S, $rows, 4>($($argument),*),
            _ => $work::<S, 1, { LANES }>($($argument),*),
        }
    };
}

/// A right operand whose columns are stored panel by panel, in each panel row by row.
#[derive(Clone, Debug, Default)]
pub(crate) struct Packed {
    values: Vec<f32>,
    rows: usize,
    columns: usize,
    /// Columns of a panel.
    width: usize,
}

impl Packed {
    /// Makes room for a matrix of unspecified values.
    #[inline(always)]
    pub(crate) fn resize<S: Simd>(&mut self, rows: usize, columns: usize) {
        (self.rows, self.columns, self.width) = (rows, columns, panel_columns::<S>(columns));
        if self.values.len() < rows * columns {
            self.values.resize(rows * columns, 0.0);
        }
    }

    /// Returns the panels in order of their columns.
    #[inline(always)]
    fn panels(&self) -> std::slice::ChunksExact<'_, f32> {
        self.values[..self.rows * self.columns].chunks_exact(self.rows * self.width)
    }

    /// Returns the values of a row from `column` to the end of its panel.
    #[inline(always)]
    pub(crate) fn row_mut(&mut self, row: usize, column: usize) -> &mut [f32] {
        let (panel, column) = (column / self.width, column % self.width);
        let start = (panel * self.rows + row) * self.width;
        &mut self.values[start + column..start + self.width]
    }
}

/// Multiplies rows of `inner` values with a packed operand into rows of `columns` values.
#[inline(always)]
pub(crate) fn multiply<S: Simd>(simd: S, out: &mut [f32], columns: usize, left: &[f32], right: &Packed) {
    with_panel!(right.width, 6, multiply_panels(simd, out, columns, left, right));
}

#[inline(always)]
fn multiply_panels<S: Simd, const ROWS: usize, const VECTORS: usize>(
    simd: S,
    out: &mut [f32],
    columns: usize,
    left: &[f32],
    right: &Packed,
) {
    let (rows, inner) = (out.len() / columns, right.rows);
    for (first, panel) in (0..columns).step_by(right.width).zip(right.panels()) {
        if rows < ROWS {
            for row in 0..rows {
                let sums = sums_of_rows::<S, 1, VECTORS>(simd, [&left[row * inner..][..inner]], panel);
                put::<S, 1, VECTORS>(&mut out[row * columns + first..], columns, sums);
            }
            continue;
        }
        for row in (0..rows).step_by(ROWS) {
            // The last rows are computed again if they do not fill a panel.
            let row = row.min(rows - ROWS);
            let mut from = [&left[..0]; ROWS];
            for (n, from) in from.iter_mut().enumerate() {
                *from = &left[(row + n) * inner..][..inner];
            }
            let sums = sums_of_rows::<S, ROWS, VECTORS>(simd, from, panel);
            put::<S, ROWS, VECTORS>(&mut out[row * columns + first..], columns, sums);
        }
    }
}

/// Returns the products of rows with a panel. Sums in an array of this function's own are in registers; those of an
/// array that is also indexed by a variable would be in memory.
#[inline(always)]
fn sums_of_rows<S: Simd, const ROWS: usize, const VECTORS: usize>(
    simd: S,
    left: [&[f32]; ROWS],
    panel: &[f32],
) -> [[S::f32s; VECTORS]; ROWS] {
    let (panel, _) = S::as_simd_f32s(panel);
    let (panel, _) = panel.as_chunks::<VECTORS>();
    // One check of each length here instead of one in every step.
    assert!(left.iter().all(|row| row.len() == panel.len()), "the inner sizes of a product");
    let mut all = [[simd.splat_f32s(0.0); VECTORS]; ROWS];
    for (inner, right) in panel.iter().enumerate() {
        for (sums, row) in all.iter_mut().zip(&left) {
            let value = simd.splat_f32s(row[inner]);
            for (sum, right) in sums.iter_mut().zip(right) {
                *sum = simd.mul_add_f32s(value, *right, *sum);
            }
        }
    }
    all
}

#[inline(always)]
fn put<S: Simd, const ROWS: usize, const VECTORS: usize>(
    out: &mut [f32],
    columns: usize,
    sums: [[S::f32s; VECTORS]; ROWS],
) {
    for (row, sums) in sums.into_iter().enumerate() {
        let out = &mut out[row * columns..][..VECTORS * S::F32_LANES];
        for (out, sum) in out.chunks_exact_mut(S::F32_LANES).zip(sums) {
            store::<S>(out, sum);
        }
    }
}

/// Adds `left' right` to `out`: `left` has a row of `rows` values, and `right` a row of `columns` values, for each term;
/// both numbers are multiples of [`LANES`].
#[inline(always)]
pub(crate) fn add_transposed<S: Simd>(
    simd: S,
    out: &mut [f32],
    [left, right]: [&[f32]; 2],
    [rows, columns]: [usize; 2],
) {
    with_panel!(panel_columns::<S>(columns), 4, add_transposed_panels(simd, out, [left, right], [rows, columns]));
}

#[inline(always)]
fn add_transposed_panels<S: Simd, const ROWS: usize, const VECTORS: usize>(
    simd: S,
    out: &mut [f32],
    operands: [&[f32]; 2],
    [rows, columns]: [usize; 2],
) {
    let width = VECTORS * S::F32_LANES;
    for column in (0..columns).step_by(width) {
        for row in (0..rows).step_by(ROWS) {
            let sums = sums_of_columns::<S, ROWS, VECTORS>(simd, operands, [rows, columns], [row, column]);
            for (n, sums) in sums.into_iter().enumerate() {
                let out = &mut out[(row + n) * columns + column..][..width];
                for (out, sum) in out.chunks_exact_mut(S::F32_LANES).zip(sums) {
                    store::<S>(out, simd.add_f32s(load::<S>(out), sum));
                }
            }
        }
    }
}

#[inline(always)]
fn sums_of_columns<S: Simd, const ROWS: usize, const VECTORS: usize>(
    simd: S,
    [left, right]: [&[f32]; 2],
    [rows, columns]: [usize; 2],
    [row, column]: [usize; 2],
) -> [[S::f32s; VECTORS]; ROWS] {
    assert!(row + ROWS <= rows && column + VECTORS * S::F32_LANES <= columns, "a panel within the product");
    let mut all = [[simd.splat_f32s(0.0); VECTORS]; ROWS];
    for (left, right) in left.chunks_exact(rows).zip(right.chunks_exact(columns)) {
        let (right, _) = S::as_simd_f32s(&right[column..][..VECTORS * S::F32_LANES]);
        for (sums, value) in all.iter_mut().zip(&left[row..][..ROWS]) {
            let value = simd.splat_f32s(*value);
            for (sum, right) in sums.iter_mut().zip(right) {
                *sum = simd.mul_add_f32s(value, *right, *sum);
            }
        }
    }
    all
}
