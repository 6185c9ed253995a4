//! Products of matrices.

use super::extra::Extra;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
use super::tiles;
use super::unit::{ProductUnit, product_unit, vectors_only};
use super::{Matrix, PANEL, View, portable};

/// Computes `out = left right`; `out` gets the size of the product.
///
/// # Panics
/// If the number of columns of `left` is not the number of rows of `right`.
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
/// If the number of columns of `left` is not the number of rows of `right`.
pub fn product(left: View<'_>, right: View<'_>) -> Matrix {
    compute(left, right, Extra::default())
}

/// Returns `left right`, and the sums of squares of the columns of `right`, which the product reads anyway.
///
/// # Panics
/// If the operands' sizes do not match, or `right` is not stored row by row.
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
    for row in right.values.chunks(right.strides[0].max(1)).take(right.shape[0]) {
        squares.iter_mut().zip(row).for_each(|(sum, value)| *sum = value.mul_add(*value, *sum));
    }
    (product(left, right), squares)
}

/// Returns `left right` after `finish` has modified it. `finish` gets the number of the first of some neighbouring
/// rows, and these rows, while they are in the processor's nearest cache.
///
/// # Panics
/// If the operands' sizes do not match, or `finish` itself multiplies.
pub fn product_finished(left: View<'_>, right: View<'_>, mut finish: impl FnMut(usize, &mut [f32])) -> Matrix {
    compute(left, right, Extra { squares: None, finish: Some(&mut finish) })
}

fn compute(left: View<'_>, right: View<'_>, extra: Extra<'_>) -> Matrix {
    let [rows, _, columns] = check(left, right);
    let mut values = Vec::with_capacity(rows * columns);
    append_with_extra(&mut values, left, right, extra);
    Matrix { rows, columns, values }
}

/// Appends the values of `left right`, row by row.
///
/// # Panics
/// If the operands' sizes do not match.
pub(crate) fn append_product(values: &mut Vec<f32>, left: View<'_>, right: View<'_>) {
    append_with_extra(values, left, right, Extra::default());
}

fn append_with_extra(values: &mut Vec<f32>, left: View<'_>, right: View<'_>, extra: Extra<'_>) {
    let shape @ [rows, inner, columns] = check(left, right);
    let (before, length) = (values.len(), rows * columns);
    values.reserve_exact(length);
    match unit_for(shape) {
        #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
        ProductUnit::Tiles => {
            let out = tiles::Target::new(&mut values.spare_capacity_mut()[..length], [rows, columns]);
            tiles::multiply_with_extra(out, left, right, extra);
            // SAFETY: the product wrote every value of its rows and columns.
            unsafe { values.set_len(before + length) };
            return;
        }
        ProductUnit::Vectors if inner > 0 && length > 0 => {
            // SAFETY: there is memory for the product; every value of it is written, and none is read before that.
            unsafe {
                multiply_vectors_to(values.spare_capacity_mut().as_mut_ptr().cast(), left, right, Sums::New);
                values.set_len(before + length);
            }
        }
        _ => {
            let mut out = Matrix::default();
            multiply(&mut out, left, right);
            values.extend_from_slice(out.values());
        }
    }
    if let Some(finish) = extra.finish {
        finish(0, &mut values[before..]);
    }
}

/// Writes the values of `left right` to `out`, row by row, or adds them to it; `part` is working memory.
///
/// # Panics
/// If the operands' sizes do not match, or `out` does not have the size of their product.
pub(crate) fn put_product(out: &mut [f32], left: View<'_>, right: View<'_>, sums: Sums, part: &mut Matrix) {
    let shape @ [rows, _, columns] = check(left, right);
    assert_eq!(out.len(), rows * columns, "the size of the product");
    if unit_for(shape) == ProductUnit::Vectors && !shape.contains(&0) {
        // SAFETY: the operands lie within their slices, and `out`, which does not overlap them, has the size of the
        // product.
        unsafe { multiply_vectors_to(out.as_mut_ptr(), left, right, sums) };
        return;
    }
    multiply(part, left, right);
    match sums {
        Sums::New => out.copy_from_slice(part.values()),
        Sums::Added => out.iter_mut().zip(part.values()).for_each(|(sum, part)| *sum += part),
    }
}

/// The treatment of the values already in the place of a product.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Sums {
    /// They are overwritten without being read.
    New,
    /// The product is added to them.
    Added,
}

/// Returns the rows, inner size and columns of a product.
///
/// # Panics
/// If the operands' sizes do not match.
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
    product_unit() == ProductUnit::Tiles && !vectors_only()
}

/// Chooses the unit that multiplies `rows x inner` by `inner x columns`: never the tiles if the product is empty.
fn unit_for(shape: [usize; 3]) -> ProductUnit {
    match product_unit() {
        #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
        ProductUnit::Tiles if !shape.contains(&0) && tiles::are_faster(shape) && !vectors_only() => ProductUnit::Tiles,
        ProductUnit::Portable => ProductUnit::Portable,
        _ => {
            // On other platforms the shape makes no difference.
            let _ = shape;
            ProductUnit::Vectors
        }
    }
}

/// Computes `out = left right` on the vector unit, for operands that [`multiply`] has checked.
pub(super) fn multiply_vectors(out: &mut Matrix, left: View<'_>, right: View<'_>) {
    // SAFETY: `multiply` has checked that both operands lie within their slices and that `out` holds rows x columns
    // values, and the exclusive borrow of `out` means that it does not overlap the operands.
    unsafe { multiply_vectors_to(out.values.as_mut_ptr(), left, right, Sums::New) };
}

/// Writes `left right` in row-major order, or adds it to the values there.
///
/// # Safety
/// The operands have passed [`check`] and are not empty. `out` points to memory for the product that does not overlap
/// theirs, and that is initialised if `sums` is [`Sums::Added`].
unsafe fn multiply_vectors_to(out: *mut f32, left: View<'_>, right: View<'_>, sums: Sums) {
    let ([rows, inner], [_, columns]) = (left.shape, right.shape);
    let stride = |stride: usize| isize::try_from(stride).expect("a stride within a slice fits an isize");
    // SAFETY: the caller guarantees the conditions; the product's strides are those of row-major order, and it is read
    // only if it is added to.
    unsafe {
        gemm::gemm(
            rows,
            columns,
            inner,
            out,
            1,
            stride(columns),
            sums == Sums::Added,
            left.values.as_ptr(),
            stride(left.strides[1]),
            stride(left.strides[0]),
            right.values.as_ptr(),
            stride(right.strides[1]),
            stride(right.strides[0]),
            1.0,
            1.0,
            false,
            false,
            false,
            gemm::Parallelism::None,
        );
    }
}
