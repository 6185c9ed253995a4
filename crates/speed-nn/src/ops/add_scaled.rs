//! `x + factor y`, in place if `x` is not shared: for noise layers and averages.

use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, Dispatch, Flex, backend_extension};
use burn::tensor::Tensor;

use crate::flex::{Array, contiguous, on_flex, record, values, values_mut};

/// The operation as Burn's backends see it.
#[backend_extension(Flex, Autodiff)]
pub(crate) trait AddScaledOps: Backend {
    /// See [`add_scaled`](fn@add_scaled).
    fn add_scaled(x: FloatTensor<Self>, y: FloatTensor<Self>, factor: f32) -> FloatTensor<Self>;
}

/// Returns `x + factor y` for tensors of one shape. `y` is a constant, for instance noise, and gets no gradient.
///
/// # Panics
/// If the shapes differ.
#[must_use]
pub fn add_scaled<const D: usize>(x: Tensor<D>, y: Tensor<D>, factor: f32) -> Tensor<D> {
    assert_eq!(x.dims(), y.dims(), "shapes of a sum");
    if !on_flex(&x) {
        return add_scaled_in_burn(x, y, factor);
    }
    Tensor::from_dispatch(Dispatch::add_scaled(x.into_dispatch(), y.into_dispatch(), factor))
}

/// Computes [`add_scaled`](fn@add_scaled) with Burn's own operations.
#[must_use]
pub fn add_scaled_in_burn<const D: usize>(x: Tensor<D>, y: Tensor<D>, factor: f32) -> Tensor<D> {
    x + y.detach() * factor
}

fn forward(mut x: Array, y: Array, factor: f32) -> Array {
    let y = contiguous(y);
    values_mut(&mut x).iter_mut().zip(values(&y)).for_each(|(x, y)| *x = factor.mul_add(*y, *x));
    x
}

impl AddScaledOps for Flex {
    fn add_scaled(x: FloatTensor<Self>, y: FloatTensor<Self>, factor: f32) -> FloatTensor<Self> {
        forward(x, y, factor)
    }
}

impl<C: CheckpointStrategy> AddScaledOps for Autodiff<Flex, C> {
    fn add_scaled(x: FloatTensor<Self>, y: FloatTensor<Self>, factor: f32) -> FloatTensor<Self> {
        let y = y.into_primitive();
        record::<C, _, 1>([x], |[x]| (forward(x, y, factor), ()), |(), gradient, _| [Some(gradient)])
    }
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
