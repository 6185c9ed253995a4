//! Dense matrices for networks whose gradients are written out by hand.
//!
//! A [`Matrix`] is one block of `f32` in row-major order that keeps its memory when it is resized, so a training step
//! allocates nothing. The dense networks built on it hold one *feature a row* and one *example a column*: a layer is
//! `Y = W X` as on paper, what is per feature (bias, scale, batch statistics) is a loop over one contiguous row, and
//! this layout is also 15-20 % faster in the forward product than one example a row.
//!
//! Products run on the calling thread only: the order of every sum, and so every bit, is the same whatever else runs.
//! Large ones use the processor's tile unit where there is one ([`product_unit`]), so kinds of machine differ in the last bits,
//! unless [`Arithmetic::Portable`] is held.

mod portable;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub(crate) mod tiles;
mod unit;

use std::fmt;
use std::ops::Range;

pub use unit::{Arithmetic, ArithmeticInUse, OtherArithmetic, ProductUnit, kind, on_vectors, product_unit};

/// Lanes of a panel of the tile unit.
const PANEL: usize = 32;

/// A matrix of `rows x columns` values in row-major order. `Debug` shows its size only.
#[derive(Clone, Default)]
pub struct Matrix {
    rows: usize,
    columns: usize,
    /// At least `rows * columns`: what a larger size needed stays.
    values: Vec<f32>,
}

impl Matrix {
    /// Returns a matrix of zeros.
    #[must_use]
    pub fn zeros(rows: usize, columns: usize) -> Self {
        Self { rows, columns, values: vec![0.0; rows * columns] }
    }

    /// Returns a matrix of the values that `value` gives, called in row-major order.
    #[must_use]
    pub fn from_fn(rows: usize, columns: usize, mut value: impl FnMut() -> f32) -> Self {
        Self { rows, columns, values: (0..rows * columns).map(|_| value()).collect() }
    }

    /// Takes values in row-major order.
    ///
    /// # Panics
    /// When there are not `rows * columns`.
    #[must_use]
    pub fn from_vec(rows: usize, columns: usize, values: Vec<f32>) -> Self {
        assert_eq!(values.len(), rows * columns, "values of a matrix");
        Self { rows, columns, values }
    }

    /// Returns the values in row-major order.
    #[must_use]
    pub fn into_vec(mut self) -> Vec<f32> {
        self.values.truncate(self.rows * self.columns);
        self.values
    }

    /// Returns the number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the number of columns.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Returns all values in row-major order.
    #[must_use]
    pub fn values(&self) -> &[f32] {
        &self.values[..self.rows * self.columns]
    }

    /// Returns all values in row-major order, to change.
    pub fn values_mut(&mut self) -> &mut [f32] {
        &mut self.values[..self.rows * self.columns]
    }

    /// Row `row`, one value a column.
    ///
    /// # Panics
    /// When `row >= rows()`, as a slice does.
    #[must_use]
    pub fn row(&self, row: usize) -> &[f32] {
        &self.values()[row * self.columns..(row + 1) * self.columns]
    }

    /// Row `row`, to change.
    ///
    /// # Panics
    /// When `row >= rows()`, as a slice does.
    pub fn row_mut(&mut self, row: usize) -> &mut [f32] {
        let columns = self.columns;
        &mut self.values_mut()[row * columns..(row + 1) * columns]
    }

    /// Gives the matrix another size and keeps its memory. The values are then unspecified.
    pub fn resize(&mut self, rows: usize, columns: usize) {
        if self.values.len() < rows * columns {
            self.values.resize(rows * columns, 0.0);
        }
        (self.rows, self.columns) = (rows, columns);
    }

    /// Returns the whole matrix as an operand of [`multiply`].
    #[must_use]
    pub fn view(&self) -> View<'_> {
        View { values: self.values(), shape: [self.rows, self.columns], strides: [self.columns, 1] }
    }

    /// Some neighbouring rows, without a copy.
    ///
    /// # Panics
    /// When the range does not lie within `0..rows()`, as a slice does.
    #[must_use]
    pub fn rows_view(&self, range: Range<usize>) -> View<'_> {
        let values = &self.values()[range.start * self.columns..range.end * self.columns];
        View { values, shape: [range.len(), self.columns], strides: [self.columns, 1] }
    }

    /// Some neighbouring columns, without a copy.
    ///
    /// # Panics
    /// When the range does not lie within `0..columns()`, as a slice does.
    #[must_use]
    pub fn columns_view(&self, range: Range<usize>) -> View<'_> {
        assert!(range.start <= range.end && range.end <= self.columns, "columns {range:?} of {}", self.columns);
        let start = if self.rows == 0 { 0 } else { range.start };
        View { values: &self.values()[start..], shape: [self.rows, range.len()], strides: [self.columns, 1] }
    }
}

impl PartialEq for Matrix {
    fn eq(&self, other: &Self) -> bool {
        (self.rows, self.columns, self.values()) == (other.rows, other.columns, other.values())
    }
}

impl fmt::Debug for Matrix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Matrix({} x {})", self.rows, self.columns)
    }
}

/// A matrix, a transposed one, or a block of columns, to read.
#[derive(Clone, Copy)]
pub struct View<'a> {
    values: &'a [f32],
    shape: [usize; 2],
    strides: [usize; 2],
}

impl<'a> View<'a> {
    /// Takes a strided matrix `[rows, columns]`: value `(r, c)` stands at `r * strides[0] + c * strides[1]`. A product checks that
    /// it ends within `values`.
    #[must_use]
    pub fn new(values: &'a [f32], shape: [usize; 2], strides: [usize; 2]) -> Self {
        Self { values, shape, strides }
    }

    /// Takes a matrix in row-major order.
    #[must_use]
    pub fn of_rows(values: &'a [f32], shape: [usize; 2]) -> Self {
        Self { values, shape, strides: [shape[1], 1] }
    }

    /// Returns the transposed matrix, without a copy.
    #[must_use]
    pub fn transposed(self) -> Self {
        let Self { values, shape: [rows, columns], strides: [down, right] } = self;
        Self { values, shape: [columns, rows], strides: [right, down] }
    }

    /// Returns some neighbouring rows, without a copy.
    ///
    /// # Panics
    /// When they begin beyond the matrix, as a slice does.
    #[must_use]
    pub fn rows(self, range: Range<usize>) -> Self {
        let start = if range.is_empty() { 0 } else { range.start * self.strides[0] };
        Self { values: &self.values[start..], shape: [range.len(), self.shape[1]], strides: self.strides }
    }

    /// `[rows, columns]`.
    #[must_use]
    pub fn shape(self) -> [usize; 2] {
        self.shape
    }
}

/// `out = left right`; `out` gets the size of the product.
///
/// # Panics
/// When `left` has not as many columns as `right` has rows.
pub fn multiply(out: &mut Matrix, left: View<'_>, right: View<'_>) {
    let shape @ [rows, inner, columns] = check(left, right);
    out.resize(rows, columns);
    if rows == 0 || columns == 0 {
        return;
    }
    if inner == 0 {
        out.values_mut().fill(0.0);
        return;
    }
    match unit_for(shape) {
        #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
        ProductUnit::Tiles => tiles::multiply(out, left, right),
        ProductUnit::Portable => portable::multiply(out, left, right),
        _ => multiply_vectors(out, left, right),
    }
}

/// Returns `left right`.
///
/// # Panics
/// When `left` has not as many columns as `right` has rows.
#[must_use]
pub fn product(left: View<'_>, right: View<'_>) -> Matrix {
    compute(left, right, Extra::default())
}

/// Returns `left right`, and the sums of squares of the columns of `right`, which are read for the product anyway.
///
/// # Panics
/// When the operands do not fit together, or `right` is not stored row by row.
#[must_use]
pub fn product_and_squares(left: View<'_>, right: View<'_>) -> (Matrix, Vec<f32>) {
    assert_eq!(right.strides[1], 1, "a right operand stored row by row");
    let [_, columns] = right.shape;
    let on_the_way = columns > 1 && unit_for(check(left, right)) == ProductUnit::Tiles;
    let mut squares = vec![0.0; columns.next_multiple_of(PANEL)];
    if on_the_way {
        let out = compute(left, right, Extra { squares: Some(&mut squares), finish: None });
        squares.truncate(columns);
        return (out, squares);
    }
    squares.truncate(columns);
    for row in right.values.chunks(right.strides[0]).take(right.shape[0]) {
        squares.iter_mut().zip(row).for_each(|(sum, value)| *sum = value.mul_add(*value, *sum));
    }
    (product(left, right), squares)
}

/// Returns `left right`, of which `finish` changes some neighbouring rows at a time, given the number of the first of them, while
/// they are in the processor's nearest memory.
///
/// # Panics
/// When the operands do not fit together, or `finish` itself multiplies.
#[must_use]
pub fn product_finished(left: View<'_>, right: View<'_>, mut finish: impl FnMut(usize, &mut [f32])) -> Matrix {
    compute(left, right, Extra { squares: None, finish: Some(&mut finish) })
}

/// What else a product does on its way.
#[derive(Default)]
struct Extra<'a> {
    /// Changes whole rows that are done, where they lie in the product.
    finish: Option<Finish<'a>>,
    /// Gets the sums of squares of the columns of the right operand, of whole panels; on tiles only.
    squares: Option<&'a mut [f32]>,
}

/// Takes the number of the first of some rows, and the rows.
type Finish<'a> = &'a mut dyn FnMut(usize, &mut [f32]);

fn compute(left: View<'_>, right: View<'_>, extra: Extra<'_>) -> Matrix {
    let shape @ [rows, inner, columns] = check(left, right);
    match unit_for(shape) {
        #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
        ProductUnit::Tiles => {
            let mut values = Vec::with_capacity(rows * columns);
            let out = tiles::Target::new(values.spare_capacity_mut(), [rows, columns]);
            tiles::multiply_with_extra(out, left, right, extra);
            // SAFETY: the product wrote every value of its rows and columns.
            unsafe { values.set_len(rows * columns) };
            Matrix { rows, columns, values }
        }
        ProductUnit::Vectors if inner > 0 && rows > 0 && columns > 0 => {
            let mut values: Vec<f32> = Vec::with_capacity(rows * columns);
            // SAFETY: there is memory for the product, whose every value is written and none is read before.
            unsafe {
                multiply_vectors_to(values.as_mut_ptr(), left, right);
                values.set_len(rows * columns);
            }
            if let Some(finish) = extra.finish {
                finish(0, &mut values);
            }
            Matrix { rows, columns, values }
        }
        _ => {
            let mut out = Matrix::default();
            multiply(&mut out, left, right);
            if let Some(finish) = extra.finish {
                finish(0, out.values_mut());
            }
            out
        }
    }
}

/// `left right`, some neighbouring rows at a time: `take` gets the number of the first of them and the rows, whole and in
/// their order, while they are in the processor's nearest memory. So a product that is used once is never written out.
///
/// `block` is used as memory. The bits are those of [`multiply`].
///
/// # Panics
/// When `left` has not as many columns as `right` has rows, or `take` itself multiplies.
pub fn multiply_by_rows(block: &mut Matrix, left: View<'_>, right: View<'_>, mut take: impl FnMut(usize, &Matrix)) {
    multiply(block, left, right);
    take(0, block);
}

/// Rows, inner size and columns of a product.
///
/// # Panics
/// When the operands do not fit together.
fn check(left: View<'_>, right: View<'_>) -> [usize; 3] {
    let ([rows, inner], [inner_right, columns]) = (left.shape, right.shape);
    assert_eq!(inner, inner_right, "inner sizes of a matrix product");
    for view in [left, right].into_iter().filter(|view| !view.shape.contains(&0)) {
        let last = (view.shape[0] - 1) * view.strides[0] + (view.shape[1] - 1) * view.strides[1];
        assert!(last < view.values.len(), "a view beyond its matrix");
    }
    [rows, inner, columns]
}

/// Returns whether this machine has tiles and this thread may use them.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub(crate) fn tiles_in_use() -> bool {
    product_unit() == ProductUnit::Tiles && !unit::vectors_only()
}

/// Chooses the unit that multiplies `rows x inner` by `inner x columns`: never the tiles where there is nothing to multiply.
fn unit_for(shape: [usize; 3]) -> ProductUnit {
    match product_unit() {
        #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
        ProductUnit::Tiles if !shape.contains(&0) && tiles::pay(shape) && !unit::vectors_only() => ProductUnit::Tiles,
        ProductUnit::Portable => ProductUnit::Portable,
        _ => {
            // Elsewhere no shape makes a difference.
            let _ = shape;
            ProductUnit::Vectors
        }
    }
}

/// `out = left right` on the vector unit, for operands that [`multiply`] has checked.
fn multiply_vectors(out: &mut Matrix, left: View<'_>, right: View<'_>) {
    // SAFETY: `multiply` has checked that both operands lie within their slices, `out` holds rows x columns values, and the
    // exclusive borrow of `out` keeps it apart from the operands.
    unsafe { multiply_vectors_to(out.values.as_mut_ptr(), left, right) };
}

/// Writes `left right` in row-major order.
///
/// # Safety
/// The operands are as [`check`] wants them and not empty; from `out` on there is memory for the product, apart from theirs.
unsafe fn multiply_vectors_to(out: *mut f32, left: View<'_>, right: View<'_>) {
    let ([rows, inner], [_, columns]) = (left.shape, right.shape);
    let stride = |stride: usize| isize::try_from(stride).expect("a stride within a slice fits an isize");
    // SAFETY: the caller's promise; the product's strides are those of row-major order, and nothing is read from it.
    unsafe {
        gemm::gemm(
            rows,
            columns,
            inner,
            out,
            1,
            stride(columns),
            false,
            left.values.as_ptr(),
            stride(left.strides[1]),
            stride(left.strides[0]),
            right.values.as_ptr(),
            stride(right.strides[1]),
            stride(right.strides[0]),
            0.0,
            1.0,
            false,
            false,
            false,
            gemm::Parallelism::None,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::RngExt;
    use speed_random::Streams;

    /// Returns the product by its definition, in f64.
    fn naive(left: View<'_>, right: View<'_>) -> Vec<f64> {
        let at = |v: View<'_>, r: usize, c: usize| f64::from(v.values[r * v.strides[0] + c * v.strides[1]]);
        let mut out = Vec::new();
        for row in 0..left.shape[0] {
            for column in 0..right.shape[1] {
                out.push((0..left.shape[1]).map(|k| at(left, row, k) * at(right, k, column)).sum());
            }
        }
        out
    }

    fn random(rows: usize, columns: usize, index: u64) -> Matrix {
        let mut stream = Streams::new(1).stream("matrix", index);
        Matrix::from_fn(rows, columns, || stream.random::<f32>() - 0.5)
    }

    /// Rounding errors of independent terms add up like the root of their number.
    #[track_caller]
    fn check(product: fn(&mut Matrix, View<'_>, View<'_>), tolerance: f64, left: View<'_>, right: View<'_>) {
        let mut out = random(left.shape[0], right.shape[1], 9);
        product(&mut out, left, right);
        let expected = naive(left, right);
        assert_eq!([out.rows(), out.columns()], [left.shape[0], right.shape[1]]);
        assert_eq!(out.values().len(), expected.len());
        let allowed = tolerance * (left.shape[1] as f64).sqrt();
        for (found, expected) in out.values().iter().zip(expected) {
            assert!((f64::from(*found) - expected).abs() <= allowed, "{found} is not {expected}");
        }
    }

    #[track_caller]
    fn check_layouts(product: fn(&mut Matrix, View<'_>, View<'_>), tolerance: f64, [m, k, n]: [usize; 3]) {
        let (a, b) = (random(m, k, 1), random(k, n, 2));
        let (at, bt) = (random(k, m, 3), random(n, k, 4));
        for left in [a.view(), at.view().transposed()] {
            for right in [b.view(), bt.view().transposed()] {
                check(product, tolerance, left, right);
            }
        }
        let right_part = b.columns_view(n / 3..n);
        let left_part = at.columns_view(m / 2..m).transposed();
        if right_part.shape[1] > 0 && left_part.shape[0] > 0 {
            check(product, tolerance, a.view(), right_part);
            check(product, tolerance, left_part, b.columns_view(0..n.div_ceil(2)));
        }
    }

    #[test]
    fn products_of_plain_transposed_and_partial_matrices() {
        for sizes in [[1, 1, 1], [7, 5, 3], [33, 70, 19], [100, 3, 50], [4, 0, 3], [0, 2, 2], [90, 80, 70]] {
            check_layouts(multiply, 4e-6, sizes);
        }
    }

    /// Tests the tile unit for sizes below, at and above those of tiles, panels and blocks.
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    #[test]
    #[expect(clippy::print_stderr, reason = "a skipped test says so")]
    fn products_on_tiles() {
        if !tiles::available() {
            eprintln!("skipped: this machine has no tiles");
            return;
        }
        for sizes in [[1, 1, 1], [16, 32, 16], [32, 32, 32], [33, 31, 17], [7, 65, 100], [300, 70, 48], [50, 1000, 700]]
        {
            check_layouts(tiles::multiply, 4e-6, sizes);
        }
    }

    /// Sizes that leave a part of a panel and a part of a block of rows, of right operands below and above a block.
    #[test]
    fn products_by_rows_are_the_whole_products() {
        for [m, k, n] in [[7, 5, 3], [0, 2, 2], [4, 0, 3], [0, 0, 3], [150, 90, 80], [290, 300, 200], [70, 1000, 400]] {
            let (a, at, b) = (random(m, k, 1), random(k, m, 2), random(k, n, 3));
            for left in [a.view(), at.view().transposed()] {
                let by_rows = || {
                    let (mut block, mut values) = (Matrix::default(), Vec::new());
                    multiply_by_rows(&mut block, left, b.view(), |first, block| {
                        assert_eq!((values.len(), block.columns()), (first * n, n));
                        values.extend_from_slice(block.values());
                    });
                    values
                };
                let mut whole = Matrix::default();
                multiply(&mut whole, left, b.view());
                assert_eq!(by_rows(), whole.values());
                multiply_vectors(&mut whole, left, b.view());
                assert!(k == 0 || on_vectors(by_rows) == whole.values());
            }
        }
    }

    #[test]
    fn work_on_vectors_is_that_of_vectors_and_ends() {
        let (a, b) = (random(90, 80, 1), random(80, 70, 2));
        let product = |product: fn(&mut Matrix, View<'_>, View<'_>)| {
            let mut out = Matrix::zeros(90, 70);
            product(&mut out, a.view(), b.view());
            out
        };
        let usual = product(multiply);
        assert!(on_vectors(|| product(multiply)) == product(multiply_vectors));
        assert!(product(multiply) == usual);
    }

    /// A factor that needs all its 24 bits: without the low parts the error would be 2^-9.
    #[test]
    fn factors_keep_sixteen_bits() {
        let a = Matrix::from_fn(64, 64, || 1.0 + 2.0_f32.powi(-9) - 2.0_f32.powi(-17));
        let b = Matrix::from_fn(64, 64, || 1.0 - 2.0_f32.powi(-10) + 2.0_f32.powi(-18));
        let mut out = Matrix::default();
        multiply(&mut out, a.view(), b.view());
        let expected = 64.0 * f64::from(a.values()[0]) * f64::from(b.values()[0]);
        for &found in out.values() {
            assert!((f64::from(found) / expected - 1.0).abs() < 2.0_f64.powi(-16), "{found} is not {expected}");
        }
    }

    /// Sizes below, at and above those of panels and blocks: the sum in order, every term fused into it.
    #[test]
    fn portable_products_are_their_definition_to_the_bit() {
        for [m, k, n] in [[1, 1, 1], [6, 7, 32], [7, 300, 33], [150, 513, 40], [13, 70, 1100], [40, 1000, 7]] {
            let (a, at, b, bt) = (random(m, k, 1), random(k, m, 2), random(k, n, 3), random(n, k, 4));
            for left in [a.view(), at.view().transposed()] {
                for right in [b.view(), bt.view().transposed()] {
                    let mut out = random(m, n, 9);
                    portable::multiply(&mut out, left, right);
                    let at = |v: View<'_>, r: usize, c: usize| v.values[r * v.strides[0] + c * v.strides[1]];
                    for row in 0..m {
                        for column in 0..n {
                            let sum =
                                (0..k).fold(0.0, |sum, i| f32::mul_add(at(left, row, i), at(right, i, column), sum));
                            assert_eq!(out.row(row)[column].to_bits(), sum.to_bits(), "{m} {k} {n}: {row} {column}");
                        }
                    }
                }
            }
        }
        check_layouts(portable::multiply, 4e-6, [90, 80, 70]);
    }

    #[test]
    fn what_is_not_finite_stays_so() {
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let (mut a, b) = (random(80, 80, 1), random(80, 80, 2));
            a.values_mut()[7 * 80 + 3] = bad;
            let mut out = Matrix::default();
            multiply(&mut out, a.view(), b.view());
            assert!(out.row(7).iter().all(|value| !value.is_finite()) && out.row(6).iter().all(|v| v.is_finite()));
        }
    }

    #[test]
    fn a_smaller_size_shows_nothing_of_the_larger_one() {
        let mut resized = random(5, 4, 1);
        resized.resize(2, 3);
        resized.values_mut().fill(1.0);
        assert_eq!(resized, Matrix::from_fn(2, 3, || 1.0));
        assert_eq!((resized.values().len(), resized.view().values.len()), (6, 6));
        assert!(std::panic::catch_unwind(|| resized.row(2).len()).is_err());
    }

    #[test]
    #[should_panic(expected = "inner sizes")]
    fn sizes_that_do_not_fit_are_refused() {
        multiply(&mut Matrix::default(), random(2, 3, 0).view(), random(2, 3, 0).view());
    }

    #[test]
    #[should_panic(expected = "columns 1..4")]
    fn a_view_stays_within_its_matrix() {
        let _ = random(2, 3, 0).columns_view(1..4);
    }
}
