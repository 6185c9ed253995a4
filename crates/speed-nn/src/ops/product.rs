//! The matrix product, on tiles if they are faster.

use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, Dispatch, Flex, backend_extension};
use burn::tensor::Tensor;

use crate::flex::{multiply, on_flex, record};

/// The operation as Burn's backends see it.
#[backend_extension(Flex, Autodiff)]
pub(crate) trait ProductOps: Backend {
    /// See [`product`](fn@product).
    fn product(left: FloatTensor<Self>, right: FloatTensor<Self>) -> FloatTensor<Self>;
}

/// Returns `left right`, `[n, k]` by `[k, m]`; transposed operands are not copied.
#[must_use]
pub fn product(left: Tensor<2>, right: Tensor<2>) -> Tensor<2> {
    if !on_flex(&left) {
        return left.matmul(right);
    }
    Tensor::from_dispatch(Dispatch::product(left.into_dispatch(), right.into_dispatch()))
}

impl ProductOps for Flex {
    fn product(left: FloatTensor<Self>, right: FloatTensor<Self>) -> FloatTensor<Self> {
        multiply(&left, &right)
    }
}

impl<C: CheckpointStrategy> ProductOps for Autodiff<Flex, C> {
    fn product(left: FloatTensor<Self>, right: FloatTensor<Self>) -> FloatTensor<Self> {
        record::<C, _, 2>(
            [left, right],
            |[left, right]| (multiply(&left, &right), (left, right)),
            |(left, right), gradient, [left_wanted, right_wanted]| {
                let by_left = left_wanted.then(|| multiply(&gradient, &right.transpose(0, 1)));
                let by_right = right_wanted.then(|| multiply(&left.transpose(0, 1), &gradient));
                [by_left, by_right]
            },
        )
    }
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
