//! Helpers of the tests against Burn.

use burn::tensor::{Device, Tensor, TensorData};
use speed_core::random::Streams;

use crate::init;

/// Returns a tensor of values in row-major order, for Burn's autodiff.
pub(crate) fn tensor<const D: usize>(values: &[f32], shape: [usize; D]) -> Tensor<D> {
    Tensor::from_data(TensorData::new(values.to_vec(), shape), &Device::flex().autodiff())
}

/// Returns the values of a tensor in row-major order.
pub(crate) fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().try_to_vec().expect("f32")
}

/// Checks that values agree to 2e-5 of the largest value: the smallest may be sums of many values that cancel.
#[track_caller]
pub(crate) fn assert_close(found: &[f32], expected: &[f32]) {
    let largest = expected.iter().fold(0.0, |largest: f32, value| largest.max(value.abs()));
    assert_within(2e-5 * largest, found, expected);
}

/// Checks that values differ by less than `allowed`.
#[track_caller]
pub(crate) fn assert_within(allowed: f32, found: &[f32], expected: &[f32]) {
    assert_eq!(found.len(), expected.len());
    for (i, (f, e)) in found.iter().zip(expected).enumerate() {
        assert!((f - e).abs() <= allowed, "{i}: {f} and {e}");
    }
}

/// Returns normal values that record gradients, different for each index.
pub(crate) fn random<const D: usize>(shape: [usize; D], index: u64) -> Tensor<D> {
    init::normal(shape, 1.0, &mut Streams::new(1).stream("test", index), &Device::flex().autodiff()).require_grad()
}

/// Checks that an operation and its body give the same values and the same gradients with respect to all inputs: for
/// inputs that are contiguous, transposed, and part of a larger tensor. Also checks that no input is written to.
#[track_caller]
pub(crate) fn agree<const N: usize, const D: usize, const O: usize>(
    inputs: [Tensor<D>; N],
    operation: impl Fn([Tensor<D>; N]) -> Tensor<O>,
    body: impl Fn([Tensor<D>; N]) -> Tensor<O>,
) {
    let expected = run(&inputs, |x| x, &body);
    for (found, kind) in [
        (run(&inputs, |x| x, &operation), "as they are"),
        (run(&inputs.clone().map(turned), turned, &operation), "along another dimension"),
        (run(&inputs.clone().map(|x| Tensor::cat(vec![x.clone(), x], 0)), second_half, &operation), "in a larger one"),
    ] {
        assert_eq!(found.0, expected.0, "shape of the output of inputs {kind}");
        close(&found.1, &expected.1);
        found.2.iter().zip(&expected.2).for_each(|(found, expected)| close(found, expected));
    }
}

#[track_caller]
fn close(found: &[f32], expected: &[f32]) {
    let largest = expected.iter().fold(0.0, |largest: f32, value| largest.max(value.abs()));
    assert_within(5e-5 * largest, found, expected);
}

fn turned<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    x.swap_dims(0, D - 1)
}

fn second_half<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    let half = x.dims()[0] / 2;
    x.narrow(0, half, half)
}

/// Returns shape and values of an output, and its gradients with respect to `view` of leaves with the values of
/// `inputs`.
#[track_caller]
fn run<const N: usize, const D: usize, const O: usize>(
    inputs: &[Tensor<D>; N],
    view: impl Fn(Tensor<D>) -> Tensor<D>,
    compute: &dyn Fn([Tensor<D>; N]) -> Tensor<O>,
) -> ([usize; O], Vec<f32>, Vec<Vec<f32>>) {
    let leaf = |x: &Tensor<D>| {
        let device = Device::flex().autodiff();
        Tensor::<D>::from_data(x.clone().inner().into_data(), &device).require_grad()
    };
    let leaves = inputs.each_ref().map(leaf);
    let output = compute(leaves.clone().map(&view));
    let weight = random(output.dims(), 99).inner();
    let gradients = (output.clone() * Tensor::from_inner(weight)).sum().backward();
    for (leaf, input) in leaves.iter().zip(inputs) {
        assert_eq!(values(leaf.clone().inner()), values(input.clone().inner()), "an input was written to");
    }
    let by_leaf = |leaf: &Tensor<D>| {
        let gradient = leaf.grad(&gradients).expect("a gradient");
        // In the order of the operation's inputs.
        values(view(gradient))
    };
    (output.dims(), values(output.inner()), leaves.iter().map(by_leaf).collect())
}
