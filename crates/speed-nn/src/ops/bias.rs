//! `activation(x + bias)`, in place if `x` is not shared: the step after a product or a convolution.

use burn::backend::Dispatch;
use burn::tensor::Tensor;

use super::activation::Activation;
use crate::flex::{Array, array, contiguous, on_flex, values, values_mut};

operation!(BiasOps: bias_activation([x, bias], activation: Activation), forward, backward);

/// Returns `activation(x + bias)`, with a bias for each entry of the last dimension of `x`.
///
/// # Panics
/// If the number of biases differs from the size of the last dimension.
pub fn bias_activation<const D: usize>(x: Tensor<D>, bias: Tensor<1>, activation: Activation) -> Tensor<D> {
    assert_eq!(x.dims()[D - 1], bias.dims()[0], "biases of a layer");
    if !on_flex(&x) {
        return bias_activation_in_burn(x, bias, activation);
    }
    Tensor::from_dispatch(Dispatch::bias_activation(x.into_dispatch(), bias.into_dispatch(), activation))
}

/// Computes [`bias_activation`](fn@bias_activation) with Burn's own operations.
pub fn bias_activation_in_burn<const D: usize>(x: Tensor<D>, bias: Tensor<1>, activation: Activation) -> Tensor<D> {
    activation.in_burn(x + bias.unsqueeze::<D>())
}

fn forward([mut x, bias]: [Array; 2], activation: Activation) -> (Array, (Array, usize, Activation)) {
    let (units, bias) = (bias.layout().num_elements(), contiguous(bias));
    activation.add_bias(values_mut(&mut x), values(&bias));
    (x.clone(), (x, units, activation))
}

fn backward(
    (y, units, activation): (Array, usize, Activation),
    mut gradient: Array,
    [x_wanted, bias_wanted]: [bool; 2],
) -> [Option<Array>; 2] {
    let (y, mut by_bias) = (contiguous(y), vec![0.0; units]);
    activation.gradient_of_bias(values(&y), values_mut(&mut gradient), &mut by_bias);
    [x_wanted.then_some(gradient), bias_wanted.then(|| array(by_bias, [units]))]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::weight_norm::weight_norm_dense;
    use crate::test_support::{agree, random, values};
    use burn::tensor::Device;

    #[test]
    fn all_activations_agree_with_burn() {
        for activation in Activation::ALL {
            let (x, bias) = (random([4, 3, 2, 7], 1), random([7], 2));
            agree(
                [x.clone()],
                // Follows a product, so the operation may write into its input.
                |[x]| bias_activation(x * 1.0, bias.clone(), activation),
                |[x]| bias_activation_in_burn(x, bias.clone(), activation),
            );
            agree(
                [bias.clone()],
                |[bias]| bias_activation(x.clone(), bias, activation),
                |[bias]| bias_activation_in_burn(x.clone(), bias, activation),
            );
        }
    }

    /// A diverged training must be visible in its loss.
    #[test]
    fn nan_propagates() {
        let device = Device::flex();
        let nan = Tensor::<2>::from_floats([[f32::NAN; 3]; 20], &device);
        let (ones, zeros) = (Tensor::<1>::ones([3], &device), Tensor::<1>::zeros([3], &device));
        for activation in Activation::ALL {
            let theta = Tensor::<2>::ones([3, 3], &device);
            let parts = [ones.clone(), zeros.clone()];
            for output in [
                bias_activation(nan.clone(), zeros.clone(), activation),
                weight_norm_dense(nan.clone(), theta, parts, activation, 0.0),
            ] {
                assert!(values(output).iter().all(|value| value.is_nan()), "{activation:?}");
            }
        }
    }
}
