//! Sums in an order that does not depend on the processor, for losses.

use burn::backend::Dispatch;
use burn::tensor::Tensor;

use crate::flex::{self, Array, array, contiguous, on_flex, size, values};
use crate::math;

operation!(RowSumOps: row_sums([rows]), rows_forward, rows_backward);
operation!(ColumnSumOps: column_sums([rows]), columns_forward, columns_backward);

/// Returns the sum of each row of `[n, k]`: `[n, 1]`.
pub fn row_sums(rows: Tensor<2>) -> Tensor<2> {
    if !on_flex(&rows) {
        return rows.sum_dim(1);
    }
    Tensor::from_dispatch(Dispatch::row_sums(rows.into_dispatch()))
}

/// Returns the sum of each column of `[n, k]`: `[1, k]`.
pub fn column_sums(rows: Tensor<2>) -> Tensor<2> {
    if !on_flex(&rows) {
        return rows.sum_dim(0);
    }
    Tensor::from_dispatch(Dispatch::column_sums(rows.into_dispatch()))
}

/// Returns the mean of each column of `[n, k]`: `[1, k]`.
pub fn column_means(rows: Tensor<2>) -> Tensor<2> {
    let count = rows.dims()[0];
    column_sums(rows) / count as f64
}

/// Returns the sum of all values, of shape `[1]`.
pub fn total<const D: usize>(x: Tensor<D>) -> Tensor<1> {
    let count = x.shape().num_elements();
    row_sums(x.reshape([1, count])).reshape([1])
}

/// Returns the mean of all values, of shape `[1]`.
pub fn mean<const D: usize>(x: Tensor<D>) -> Tensor<1> {
    let count = x.shape().num_elements();
    total(x) / count as f64
}

fn of_rows(rows: &Array) -> Array {
    let [count, length] = size(rows);
    array((0..count).map(|row| math::sum(&values(rows)[row * length..][..length])).collect::<Vec<f32>>(), [count, 1])
}

fn of_columns(rows: &Array) -> Array {
    let length = size(rows)[1];
    let mut sums = vec![0.0; length];
    for row in flex::rows(values(rows), length) {
        sums.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
    }
    array(sums, [1, length])
}

fn rows_forward([rows]: [Array; 1]) -> (Array, [usize; 2]) {
    (of_rows(&contiguous(rows.clone())), size(&rows))
}

fn rows_backward(shape: [usize; 2], gradient: Array, _: [bool; 1]) -> [Option<Array>; 1] {
    let gradient = contiguous(gradient);
    let repeated = values(&gradient).iter().flat_map(|g| std::iter::repeat_n(*g, shape[1]));
    [Some(array(repeated.collect::<Vec<f32>>(), shape))]
}

fn columns_forward([rows]: [Array; 1]) -> (Array, [usize; 2]) {
    (of_columns(&contiguous(rows.clone())), size(&rows))
}

fn columns_backward(shape: [usize; 2], gradient: Array, _: [bool; 1]) -> [Option<Array>; 1] {
    [Some(array(values(&contiguous(gradient)).repeat(shape[0]), shape))]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::{agree, random};

    #[test]
    fn values_and_gradients_agree_with_burn() {
        for shape in [[7, 10], [1, 1], [3, 370]] {
            let x = random(shape, 1);
            agree([x.clone()], |[x]| row_sums(x), |[x]| x.sum_dim(1));
            agree([x.clone()], |[x]| column_sums(x), |[x]| x.sum_dim(0));
            agree([x.clone()], |[x]| total(x), |[x]| x.sum());
            agree([x.clone()], |[x]| mean(x), |[x]| x.mean());
            agree([x.clone()], |[x]| column_means(x), |[x]| x.mean_dim(0));
            agree([x], |[x]| row_sums(x.transpose()), |[x]| x.transpose().sum_dim(1));
        }
    }
}
