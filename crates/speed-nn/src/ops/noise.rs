//! `x + factor noise`, in place where nothing else holds `x`: noise layers.

use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, Dispatch, Flex, backend_extension};
use burn::tensor::Tensor;

use crate::flex::{Array, contiguous, on_flex, record, values, values_mut};

/// The operation as Burn's backends see it.
#[backend_extension(Flex, Autodiff)]
pub trait NoiseOps: Backend {
    /// See [`add_noise`](fn@add_noise).
    fn add_noise(x: FloatTensor<Self>, noise: FloatTensor<Self>, factor: f32) -> FloatTensor<Self>;
}

/// Returns `x + factor noise`, of one shape; no gradient goes to the noise.
#[must_use]
pub fn add_noise<const D: usize>(x: Tensor<D>, noise: Tensor<D>, factor: f32) -> Tensor<D> {
    assert_eq!(x.dims(), noise.dims(), "shape of the noise");
    if !on_flex(&x) {
        return add_noise_in_burn(x, noise, factor);
    }
    Tensor::from_dispatch(Dispatch::add_noise(x.into_dispatch(), noise.into_dispatch(), factor))
}

/// Computes [`add_noise`](fn@add_noise) with Burn's own operations.
#[must_use]
pub fn add_noise_in_burn<const D: usize>(x: Tensor<D>, noise: Tensor<D>, factor: f32) -> Tensor<D> {
    // No gradient goes into noise.
    x + noise.detach() * factor
}

fn forward(mut x: Array, noise: Array, factor: f32) -> Array {
    let noise = contiguous(noise);
    values_mut(&mut x).iter_mut().zip(values(&noise)).for_each(|(x, noise)| *x = factor.mul_add(*noise, *x));
    x
}

impl NoiseOps for Flex {
    fn add_noise(x: FloatTensor<Self>, noise: FloatTensor<Self>, factor: f32) -> FloatTensor<Self> {
        forward(x, noise, factor)
    }
}

impl<C: CheckpointStrategy> NoiseOps for Autodiff<Flex, C> {
    fn add_noise(x: FloatTensor<Self>, noise: FloatTensor<Self>, factor: f32) -> FloatTensor<Self> {
        let noise = noise.into_primitive();
        record::<C, _, 1>([x], |[x]| (forward(x, noise, factor), ()), |(), gradient, _| [Some(gradient)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::{agree, random};

    #[test]
    fn sums_agree_with_burn_and_leave_what_others_hold() {
        let (x, noise) = (random([5, 4], 1), random([5, 4], 2).inner());
        let before = x.clone().inner().into_data();
        agree([x.clone()], |[x]| add_noise(x, noise.clone(), 0.5), |[x]| add_noise_in_burn(x, noise.clone(), 0.5));
        assert_eq!(x.inner().into_data(), before);
    }
}
