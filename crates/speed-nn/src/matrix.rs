//! Dense matrices and their products.
//!
//! A [`Matrix`] is one block of `f32` in row-major order that keeps its memory when it is resized. A [`View`] is a
//! read-only matrix, plain or transposed.
//!
//! Products run on the calling thread only, so the order of every sum, and therefore every bit, does not depend on
//! other threads. Large products use the processor's tile unit if there is one ([`product_unit`]), so kinds of machine
//! differ in the last bits unless [`Arithmetic::Portable`] is held.

mod extra;
mod portable;
mod product;
#[cfg(test)]
mod tests;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub(crate) mod tiles;
mod unit;

use std::fmt;
use std::ops::Range;

pub(crate) use product::{Sums, append_product, put_product, tiles_in_use};
pub use product::{multiply, product, product_and_squares, product_finished};
pub use unit::{Arithmetic, ArithmeticInUse, OtherArithmetic, ProductUnit, on_vectors, product_unit};

/// Lanes of a panel of the tile unit.
const PANEL: usize = 32;

/// A matrix of `rows x columns` values in row-major order. `Debug` shows its size only.
#[derive(Clone, Default)]
pub struct Matrix {
    rows: usize,
    columns: usize,
    /// At least `rows * columns` values: shrinking keeps the allocation.
    values: Vec<f32>,
}

impl Matrix {
    /// Returns a matrix of zeros.
    pub fn zeros(rows: usize, columns: usize) -> Self {
        Self { rows, columns, values: vec![0.0; rows * columns] }
    }

    /// Returns a matrix of the values returned by `value`, which is called in row-major order.
    pub fn from_fn(rows: usize, columns: usize, mut value: impl FnMut() -> f32) -> Self {
        Self { rows, columns, values: (0..rows * columns).map(|_| value()).collect() }
    }

    /// Creates a matrix from values in row-major order.
    ///
    /// # Panics
    /// If there are not `rows * columns` values.
    pub fn from_vec(rows: usize, columns: usize, values: Vec<f32>) -> Self {
        assert_eq!(values.len(), rows * columns, "values of a matrix");
        Self { rows, columns, values }
    }

    /// Returns the values in row-major order.
    pub fn into_vec(mut self) -> Vec<f32> {
        self.values.truncate(self.rows * self.columns);
        self.values
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Returns all values in row-major order.
    pub fn values(&self) -> &[f32] {
        &self.values[..self.rows * self.columns]
    }

    /// Returns all values in row-major order, mutably.
    pub fn values_mut(&mut self) -> &mut [f32] {
        &mut self.values[..self.rows * self.columns]
    }

    /// Returns row `row`, one value per column.
    ///
    /// # Panics
    /// If `row >= rows()`, like a slice.
    pub fn row(&self, row: usize) -> &[f32] {
        &self.values()[row * self.columns..(row + 1) * self.columns]
    }

    /// Returns row `row`, mutably.
    ///
    /// # Panics
    /// If `row >= rows()`, like a slice.
    pub fn row_mut(&mut self, row: usize) -> &mut [f32] {
        let columns = self.columns;
        &mut self.values_mut()[row * columns..(row + 1) * columns]
    }

    /// Changes the size of the matrix and keeps its memory. The values are unspecified afterwards.
    pub fn resize(&mut self, rows: usize, columns: usize) {
        if self.values.len() < rows * columns {
            self.values.resize(rows * columns, 0.0);
        }
        (self.rows, self.columns) = (rows, columns);
    }

    /// Returns the complete matrix as an operand of [`multiply`].
    pub fn view(&self) -> View<'_> {
        View { values: self.values(), shape: [self.rows, self.columns], strides: [self.columns, 1] }
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

/// A read-only view of a matrix, of its transpose, or of a part of it.
#[derive(Clone, Copy)]
pub struct View<'a> {
    values: &'a [f32],
    shape: [usize; 2],
    strides: [usize; 2],
}

impl<'a> View<'a> {
    /// Creates a view of a strided matrix `[rows, columns]`: value `(r, c)` is at `r * strides[0] + c * strides[1]`. A
    /// product checks that it ends within `values`.
    ///
    /// # Panics
    /// If neither rows nor columns are contiguous.
    pub fn new(values: &'a [f32], shape: [usize; 2], strides: [usize; 2]) -> Self {
        assert!(strides.contains(&1), "strides {strides:?} of a matrix");
        Self { values, shape, strides }
    }

    /// Creates a view of a matrix in row-major order.
    pub fn of_rows(values: &'a [f32], shape: [usize; 2]) -> Self {
        Self { values, shape, strides: [shape[1], 1] }
    }

    /// Returns the transposed matrix, without a copy.
    #[must_use]
    pub fn transposed(self) -> Self {
        let Self { values, shape: [rows, columns], strides: [down, right] } = self;
        Self { values, shape: [columns, rows], strides: [right, down] }
    }

    /// Returns a range of rows, without a copy.
    ///
    /// # Panics
    /// If they begin beyond the matrix, like a slice.
    #[must_use]
    pub fn rows(self, range: Range<usize>) -> Self {
        let start = if range.is_empty() { 0 } else { range.start * self.strides[0] };
        Self { values: &self.values[start..], shape: [range.len(), self.shape[1]], strides: self.strides }
    }

    /// Returns row `row` of a matrix that is stored row by row.
    pub(crate) fn row(self, row: usize) -> &'a [f32] {
        debug_assert_eq!(self.strides[1], 1, "a matrix stored row by row");
        &self.values[row * self.strides[0]..][..self.shape[1]]
    }

    /// Returns `[rows, columns]`.
    pub fn shape(self) -> [usize; 2] {
        self.shape
    }
}
