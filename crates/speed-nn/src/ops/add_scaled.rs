//! `x + factor y`, in place if `x` is not shared: for noise layers and averages.

use burn::backend::Dispatch;
use burn::tensor::Tensor;

use crate::flex::{Array, contiguous, on_flex, values, values_mut};

operation!(AddScaledOps: add_scaled([x, y], factor: f32), forward, backward);

/// Returns `x + factor y` for tensors of one shape. `y` is a constant, for instance noise, and gets no gradient.
///
/// # Panics
/// If the shapes differ.
pub fn add_scaled<const D: usize>(x: Tensor<D>, y: Tensor<D>, factor: f32) -> Tensor<D> {
    assert_eq!(x.dims(), y.dims(), "shapes of a sum");
    if !on_flex(&x) {
        return add_scaled_in_burn(x, y, factor);
    }
    Tensor::from_dispatch(Dispatch::add_scaled(x.into_dispatch(), y.detach().into_dispatch(), factor))
}

/// Computes [`add_scaled`](fn@add_scaled) with Burn's own operations.
pub fn add_scaled_in_burn<const D: usize>(x: Tensor<D>, y: Tensor<D>, factor: f32) -> Tensor<D> {
    x + y.detach() * factor
}

fn forward([mut x, y]: [Array; 2], factor: f32) -> (Array, ()) {
    let y = contiguous(y);
    values_mut(&mut x).iter_mut().zip(values(&y)).for_each(|(x, y)| *x = factor.mul_add(*y, *x));
    (x, ())
}

fn backward((): (), gradient: Array, _: [bool; 2]) -> [Option<Array>; 2] {
    [Some(gradient), None]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::{agree, random};

    #[test]
    fn sums_agree_with_burn_and_leave_what_others_hold() {
        let (x, y) = (random([5, 4], 1), random([5, 4], 2).inner());
        let before = x.clone().inner().into_data();
        agree([x.clone()], |[x]| add_scaled(x, y.clone(), 0.5), |[x]| add_scaled_in_burn(x, y.clone(), 0.5));
        assert_eq!(x.inner().into_data(), before);
    }
}
