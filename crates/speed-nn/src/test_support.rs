//! Helpers of the tests against Burn.

use burn::tensor::{Device, Tensor, TensorData};
use speed_random::Streams;

use crate::init;

/// Returns a tensor of values in row-major order, for Burn's autodiff.
pub(crate) fn tensor<const D: usize>(values: &[f32], shape: [usize; D]) -> Tensor<D> {
    Tensor::from_data(TensorData::new(values.to_vec(), shape), &Device::flex().autodiff())
}

/// Returns the values of a tensor in row-major order.
pub(crate) fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().try_to_vec().expect("f32")
}

/// Returns whether values agree to 2e-5 of the largest: the smallest may be sums of many values that cancel.
#[track_caller]
pub(crate) fn assert_close(found: &[f32], expected: &[f32]) {
    let largest = expected.iter().fold(0.0, |largest: f32, value| largest.max(value.abs()));
    assert_within(2e-5 * largest, found, expected);
}

/// Returns whether values differ by less than `allowed`.
#[track_caller]
pub(crate) fn assert_within(allowed: f32, found: &[f32], expected: &[f32]) {
    assert_eq!(found.len(), expected.len());
    for (i, (f, e)) in found.iter().zip(expected).enumerate() {
        assert!((f - e).abs() <= allowed, "{i}: {f} and {e}");
    }
}

/// Returns normal values of which gradients are computed, others for each index.
pub(crate) fn random<const D: usize>(shape: [usize; D], index: u64) -> Tensor<D> {
    init::normal(shape, 1.0, &mut Streams::new(1).stream("test", index), &Device::flex().autodiff()).require_grad()
}

/// Checks that an operation and its body give the same values, and the same gradients by all inputs.
#[track_caller]
pub(crate) fn agree<const N: usize, const D: usize, const O: usize>(
    inputs: [Tensor<D>; N],
    operation: impl Fn([Tensor<D>; N]) -> Tensor<O>,
    body: impl Fn([Tensor<D>; N]) -> Tensor<O>,
) {
    let run = |compute: &dyn Fn([Tensor<D>; N]) -> Tensor<O>| {
        let output = compute(inputs.clone());
        let weight = random(output.dims(), 99).inner();
        let gradients = (output.clone() * Tensor::from_inner(weight)).sum().backward();
        let by_inputs = inputs.each_ref().map(|input| values(input.grad(&gradients).expect("a gradient")));
        (output.dims(), values(output.inner()), by_inputs)
    };
    let ((dims, found, by_found), (expected_dims, expected, by_expected)) = (run(&operation), run(&body));
    assert_eq!(dims, expected_dims);
    let close = |found: &[f32], expected: &[f32]| {
        let largest = expected.iter().fold(0.0, |largest: f32, value| largest.max(value.abs()));
        assert_within(5e-5 * largest, found, expected);
    };
    close(&found, &expected);
    by_found.iter().zip(&by_expected).for_each(|(found, expected)| close(found, expected));
}
