//! The logarithm of a sum of exponentials, and of a softmax, of every row: the parts of cross-entropies.

use burn::backend::Dispatch;
use burn::tensor::{Tensor, activation};

use crate::flex::{self, Array, array, contiguous, on_flex, size, values, values_mut};
use crate::math::exp;

operation!(LogSumExpOps: log_sum_exp([rows]), sums_forward, sums_backward);
operation!(LogSoftmaxOps: log_softmax([rows]), softmax_forward, softmax_backward);

/// Returns `ln(sum of e^z)` over each row of `[n, classes]`: `[n, 1]`. If a value is not finite, the result is not
/// finite either.
pub fn log_sum_exp(rows: Tensor<2>) -> Tensor<2> {
    if !on_flex(&rows) {
        return log_sum_exp_in_burn(rows);
    }
    Tensor::from_dispatch(Dispatch::log_sum_exp(rows.into_dispatch()))
}

/// Returns `z - ln(sum of e^z)` over each row of `[n, classes]`.
pub fn log_softmax(rows: Tensor<2>) -> Tensor<2> {
    if !on_flex(&rows) {
        return activation::log_softmax(rows, 1);
    }
    Tensor::from_dispatch(Dispatch::log_softmax(rows.into_dispatch()))
}

/// Computes [`log_sum_exp`](fn@log_sum_exp) with Burn's own operations.
pub fn log_sum_exp_in_burn(rows: Tensor<2>) -> Tensor<2> {
    // The maximum needs no gradient because it cancels.
    let largest = rows.clone().detach().max_dim(1);
    (rows - largest.clone()).exp().sum_dim(1).log() + largest
}

/// Returns the logarithm of the sum over one row, always summed from first to last.
fn of_row(row: &[f32]) -> f32 {
    let largest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    largest + libm::logf(row.iter().map(|z| exp(z - largest)).sum())
}

fn sums(rows: &Array) -> Array {
    let [count, classes] = size(rows);
    array(flex::rows(values(rows), classes).map(of_row).collect::<Vec<f32>>(), [count, 1])
}

fn softmax_logarithms(rows: &Array, sums: &Array) -> Array {
    let rows_and_sums = flex::rows(values(rows), size(rows)[1]).zip(values(sums));
    array(rows_and_sums.flat_map(|(row, sum)| row.iter().map(move |z| z - sum)).collect::<Vec<f32>>(), size(rows))
}

fn sums_forward([rows]: [Array; 1]) -> (Array, [Array; 2]) {
    let rows = contiguous(rows);
    let sums = sums(&rows);
    (sums.clone(), [rows, sums])
}

/// Returns the softmax times the row's gradient.
fn sums_backward([mut rows, sums]: [Array; 2], gradient: Array, _: [bool; 1]) -> [Option<Array>; 1] {
    let (classes, gradient) = (size(&rows)[1], contiguous(gradient));
    let by_sums = values(&gradient).iter().zip(values(&sums));
    for (row, (g, sum)) in flex::rows_mut(values_mut(&mut rows), classes).zip(by_sums) {
        row.iter_mut().for_each(|z| *z = g * exp(*z - sum));
    }
    [Some(rows)]
}

fn softmax_forward([rows]: [Array; 1]) -> (Array, Array) {
    let rows = contiguous(rows);
    let logarithms = softmax_logarithms(&rows, &sums(&rows));
    (logarithms.clone(), logarithms)
}

/// Returns the gradient minus the softmax times the row's sum of the gradient.
fn softmax_backward(logarithms: Array, gradient: Array, _: [bool; 1]) -> [Option<Array>; 1] {
    let (classes, mut gradient) = (size(&logarithms)[1], contiguous(gradient));
    let rows = flex::rows(values(&logarithms), classes);
    for (g, logarithms) in flex::rows_mut(values_mut(&mut gradient), classes).zip(rows) {
        let sum: f32 = g.iter().sum();
        g.iter_mut().zip(logarithms).for_each(|(g, logarithm)| *g -= sum * exp(*logarithm));
    }
    [Some(gradient)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::{agree, random, values};

    #[test]
    fn values_and_gradients_agree_with_burn() {
        for shape in [[7, 10], [1, 1], [3, 37]] {
            for scale in [1.0, 30.0] {
                let rows = random(shape, 1);
                agree([rows.clone()], |[x]| log_sum_exp(x * scale), |[x]| log_sum_exp_in_burn(x * scale));
                agree([rows.clone()], |[x]| log_softmax(x * scale), |[x]| activation::log_softmax(x * scale, 1));
                let columns = random([shape[1], shape[0]], 2);
                agree([columns], |[x]| log_sum_exp(x.transpose()), |[x]| log_sum_exp_in_burn(x.transpose()));
            }
        }
    }

    #[test]
    fn large_values_stay_finite_and_what_is_not_finite_is_seen() {
        let rows = random([2, 5], 1).inner() * 1e30;
        assert!(values(log_sum_exp(rows.clone())).into_iter().chain(values(log_softmax(rows))).all(f32::is_finite));
        for bad in [f32::NAN, f32::INFINITY] {
            let rows = random([2, 5], 1).inner().slice_fill([0..1, 2..3], bad);
            for found in [values(log_sum_exp(rows.clone()))[0], values(log_softmax(rows))[2]] {
                assert!(!found.is_finite());
            }
        }
    }
}
