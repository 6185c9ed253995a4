//! The matrix product, on tiles if they are faster.

use burn::backend::Dispatch;
use burn::tensor::Tensor;

use crate::flex::{Array, multiply, on_flex};

operation!(ProductOps: product([left, right]), forward, backward);

/// Returns `left right`, `[n, k]` by `[k, m]`; transposed operands are not copied.
pub fn product(left: Tensor<2>, right: Tensor<2>) -> Tensor<2> {
    if !on_flex(&left) {
        return left.matmul(right);
    }
    Tensor::from_dispatch(Dispatch::product(left.into_dispatch(), right.into_dispatch()))
}

fn forward([left, right]: [Array; 2]) -> (Array, [Array; 2]) {
    (multiply(&left, &right), [left, right])
}

fn backward([left, right]: [Array; 2], gradient: Array, [left_wanted, right_wanted]: [bool; 2]) -> [Option<Array>; 2] {
    let by_left = left_wanted.then(|| multiply(&gradient, &right.transpose(0, 1)));
    [by_left, right_wanted.then(|| multiply(&left.transpose(0, 1), &gradient))]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::{agree, random};

    #[test]
    fn products_of_plain_and_transposed_operands_agree_with_burn() {
        agree([random([90, 80], 1), random([80, 96], 2)], |[a, b]| product(a, b), |[a, b]| a.matmul(b));
        agree(
            [random([90, 80], 1), random([96, 80], 2)],
            |[a, b]| product(a, b.transpose()),
            |[a, b]| a.matmul(b.transpose()),
        );
        agree(
            [random([80, 90], 1), random([80, 96], 2)],
            |[a, b]| product(a.transpose(), b),
            |[a, b]| a.transpose().matmul(b),
        );
    }
}
