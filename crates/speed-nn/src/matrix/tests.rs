//! Products against their definition.

use rand::RngExt;
use speed_core::random::Streams;

use super::product::multiply_vectors;
use super::*;

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

/// Returns a range of columns, without a copy.
fn columns(matrix: &Matrix, range: Range<usize>) -> View<'_> {
    let start = if matrix.rows == 0 { 0 } else { range.start };
    View::new(&matrix.values()[start..], [matrix.rows, range.len()], [matrix.columns, 1])
}

fn random(rows: usize, columns: usize, index: u64) -> Matrix {
    let mut stream = Streams::new(1).stream("matrix", index);
    Matrix::from_fn(rows, columns, || stream.random::<f32>() - 0.5)
}

/// Checks a product. Rounding errors of independent terms grow like the root of their number.
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
    let right_part = columns(&b, n / 3..n);
    let left_part = columns(&at, m / 2..m).transposed();
    if right_part.shape[1] > 0 && left_part.shape[0] > 0 {
        check(product, tolerance, a.view(), right_part);
        check(product, tolerance, left_part, columns(&b, 0..n.div_ceil(2)));
    }
}

#[test]
fn products_of_plain_transposed_and_partial_matrices() {
    for sizes in [[1, 1, 1], [7, 5, 3], [33, 70, 19], [100, 3, 50], [4, 0, 3], [0, 2, 2], [90, 80, 70]] {
        check_layouts(multiply, 4e-6, sizes);
    }
}

/// Tests products with additional work, of few and of many columns, on tiles if the machine has them and otherwise on
/// vectors.
#[test]
fn products_with_squares_and_finished_rows() {
    let check = || {
        for [m, k, n] in [[1, 3, 1], [100, 300, 250], [33, 70, 19], [64, 64, 1], [3, 0, 4], [2, 3, 0], [0, 5, 6]] {
            let (left, right) = (random(m, k, 1), random(k, n, 2));
            let plain = product(left.view(), right.view());
            let (found, squares) = product_and_squares(left.view(), right.view());
            assert_eq!(found.values(), plain.values());
            let expected =
                (0..n).map(|column| (0..k).map(|row| f64::from(right.row(row)[column]).powi(2)).sum::<f64>());
            assert_eq!(squares.len(), n);
            for (found, expected) in squares.iter().zip(expected) {
                assert!((f64::from(*found) - expected).abs() <= 1e-5 * expected, "{found} is not {expected}");
            }
            let mut seen = Vec::new();
            let finished = product_finished(left.view(), right.view(), |first, rows| {
                seen.extend((0..rows.len() / n.max(1)).map(|row| first + row));
                rows.iter_mut().for_each(|value| *value += 1.0);
            });
            seen.sort_unstable();
            assert_eq!(
                seen,
                if n == 0 { vec![] } else { (0..m).collect::<Vec<_>>() },
                "every row once, {m} x {k} x {n}"
            );
            assert!(finished.values().iter().zip(plain.values()).all(|(found, plain)| *found == plain + 1.0));
        }
    };
    check();
    on_vectors(check);
}

/// Tests the tile unit for sizes below, at and above those of tiles, panels and blocks.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[test]
#[expect(clippy::print_stderr, reason = "a skipped test reports it")]
fn products_on_tiles() {
    if !tiles::available() {
        eprintln!("skipped: this machine has no tiles");
        return;
    }
    for sizes in [[1, 1, 1], [16, 32, 16], [32, 32, 32], [33, 31, 17], [7, 65, 100], [300, 70, 48], [50, 1000, 700]] {
        check_layouts(tiles::multiply, 4e-6, sizes);
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

/// Tests sizes below, at and above those of panels and blocks: the sum is in order, with every term added by a fused
/// multiply-add.
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
                        let sum = (0..k).fold(0.0, |sum, i| f32::mul_add(at(left, row, i), at(right, i, column), sum));
                        assert_eq!(out.row(row)[column].to_bits(), sum.to_bits(), "{m} {k} {n}: {row} {column}");
                    }
                }
            }
        }
    }
    check_layouts(portable::multiply, 4e-6, [90, 80, 70]);
}

#[test]
fn non_finite_values_propagate() {
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
