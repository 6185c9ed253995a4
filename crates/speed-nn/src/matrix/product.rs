//! Products of matrices.

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
use super::tiles;
use super::unit::{ProductUnit, product_unit, vectors_only};
use super::{Matrix, PANEL, View, portable};

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
    for row in right.values.chunks(right.strides[0].max(1)).take(right.shape[0]) {
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
pub(super) struct Extra<'a> {
    /// Changes whole rows that are done, where they lie in the product.
    pub(super) finish: Option<Finish<'a>>,
    /// Gets the sums of squares of the columns of the right operand, of whole panels; on tiles only.
    pub(super) squares: Option<&'a mut [f32]>,
}

/// Takes the number of the first of some rows, and the rows.
pub(super) type Finish<'a> = &'a mut dyn FnMut(usize, &mut [f32]);

fn compute(left: View<'_>, right: View<'_>, extra: Extra<'_>) -> Matrix {
    let [rows, _, columns] = check(left, right);
    let mut values = Vec::with_capacity(rows * columns);
    append_with_extra(&mut values, left, right, extra);
    Matrix { rows, columns, values }
}

/// Appends the values of `left right`, row by row.
///
/// # Panics
/// When the operands do not fit together.
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
            // SAFETY: there is memory for the product, whose every value is written and none is read before.
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

/// Writes the values of `left right` to `out`, row by row, or adds them to it; `part` is memory to work in.
///
/// # Panics
/// When the operands do not fit together, or `out` is not of the size of their product.
pub(crate) fn put_product(out: &mut [f32], left: View<'_>, right: View<'_>, sums: Sums, part: &mut Matrix) {
    let shape @ [rows, _, columns] = check(left, right);
    assert_eq!(out.len(), rows * columns, "the size of the product");
    if unit_for(shape) == ProductUnit::Vectors && !shape.contains(&0) {
        // SAFETY: the operands lie within their slices, and `out`, which is apart from them, holds as many values as the product.
        unsafe { multiply_vectors_to(out.as_mut_ptr(), left, right, sums) };
        return;
    }
    multiply(part, left, right);
    match sums {
        Sums::New => out.copy_from_slice(part.values()),
        Sums::Added => out.iter_mut().zip(part.values()).for_each(|(sum, part)| *sum += part),
    }
}

/// What becomes of the values that are at the place of a product.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Sums {
    /// They are not read.
    New,
    /// The product is added to them.
    Added,
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
    product_unit() == ProductUnit::Tiles && !vectors_only()
}

/// Chooses the unit that multiplies `rows x inner` by `inner x columns`: never the tiles where there is nothing to multiply.
fn unit_for(shape: [usize; 3]) -> ProductUnit {
    match product_unit() {
        #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
        ProductUnit::Tiles if !shape.contains(&0) && tiles::pay(shape) && !vectors_only() => ProductUnit::Tiles,
        ProductUnit::Portable => ProductUnit::Portable,
        _ => {
            // Elsewhere no shape makes a difference.
            let _ = shape;
            ProductUnit::Vectors
        }
    }
}

/// `out = left right` on the vector unit, for operands that [`multiply`] has checked.
pub(super) fn multiply_vectors(out: &mut Matrix, left: View<'_>, right: View<'_>) {
    // SAFETY: `multiply` has checked that both operands lie within their slices, `out` holds rows x columns values, and the
    // exclusive borrow of `out` keeps it apart from the operands.
    unsafe { multiply_vectors_to(out.values.as_mut_ptr(), left, right, Sums::New) };
}

/// Writes `left right` in row-major order, or adds it to what is there.
///
/// # Safety
/// The operands are as [`check`] wants them and not empty; from `out` on there is memory for the product, apart from theirs, and with
/// [`Sums::Added`] it holds values.
unsafe fn multiply_vectors_to(out: *mut f32, left: View<'_>, right: View<'_>, sums: Sums) {
    let ([rows, inner], [_, columns]) = (left.shape, right.shape);
    let stride = |stride: usize| isize::try_from(stride).expect("a stride within a slice fits an isize");
    // SAFETY: the caller's promise; the product's strides are those of row-major order, and it is read only if it is added to.
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
