//! A dense layer whose weights are normalised (Salimans and Kingma, 2016): `activation(x theta scale / |theta| + bias)`, with the
//! norm of every unit's weights, a column of `theta`.
//!
//! The normalised weights are never materialised: the norm multiplies the product.

use burn::backend::Dispatch;
use burn::tensor::Tensor;

use super::activation::Activation;
use crate::flex::{Array, array, contiguous, from_matrix, on_flex, size, values, values_mut, with_view};
use crate::matrix::{View, product, product_and_squares, product_finished};

operation!(
    WeightNormOps: weight_norm_dense([x, theta, scale, bias], activation: Activation, epsilon: f32), forward, backward
);

/// Returns `activation(x theta scale / sqrt(|theta|^2 + epsilon) + bias)`, `[examples, outputs]`, of `x` `[examples, inputs]`,
/// `theta` `[inputs, outputs]`, `scale` and `bias` `[outputs]`.
///
/// # Panics
/// If they have other shapes.
pub fn weight_norm_dense(
    x: Tensor<2>,
    theta: Tensor<2>,
    [scale, bias]: [Tensor<1>; 2],
    activation: Activation,
    epsilon: f32,
) -> Tensor<2> {
    let outputs = [theta.dims()[1]];
    assert!(scale.dims() == outputs && bias.dims() == outputs, "scales and biases of {outputs:?} outputs");
    if !on_flex(&x) {
        return weight_norm_dense_in_burn(x, theta, [scale, bias], activation, epsilon);
    }
    let [x, theta] = [x, theta].map(Tensor::into_dispatch);
    let [scale, bias] = [scale, bias].map(Tensor::into_dispatch);
    Tensor::from_dispatch(Dispatch::weight_norm_dense(x, theta, scale, bias, activation, epsilon))
}

/// Computes [`weight_norm_dense`](fn@weight_norm_dense) with Burn's own operations.
pub fn weight_norm_dense_in_burn(
    x: Tensor<2>,
    theta: Tensor<2>,
    [scale, bias]: [Tensor<1>; 2],
    activation: Activation,
    epsilon: f32,
) -> Tensor<2> {
    let norm = (theta.clone().square().sum_dim(0) + epsilon).sqrt();
    activation.in_burn(x.matmul(theta) * (scale.unsqueeze::<2>() / norm) + bias.unsqueeze::<2>())
}

/// The values that the gradients need.
#[derive(Clone, Debug)]
struct Saved {
    x: Array,
    theta: Array,
    bias: Array,
    /// `x theta`. The output, from which it could be computed, is not kept, so that the next operation may write into
    /// it.
    products: Array,
    /// `1 / |theta|` of every unit.
    inverse: Vec<f32>,
    /// `scale / |theta|` of every unit.
    factor: Vec<f32>,
    activation: Activation,
}

fn forward([x, theta, scale, bias]: [Array; 4], activation: Activation, epsilon: f32) -> (Array, Saved) {
    let [theta, scale, bias] = [theta, scale, bias].map(contiguous);
    let (products, mut inverse) =
        with_view(&x, |x| product_and_squares(x, View::of_rows(values(&theta), size(&theta))));
    inverse.iter_mut().for_each(|square| *square = 1.0 / (*square + epsilon).sqrt());
    let factor: Vec<f32> = inverse.iter().zip(values(&scale)).map(|(inverse, scale)| inverse * scale).collect();
    let size = [products.rows(), products.columns()];
    let y = array(activation.of_products(products.values(), &factor, values(&bias)), size);
    (y, Saved { x, theta, bias, products: from_matrix(products), inverse, factor, activation })
}

fn backward(
    kept: Saved,
    mut gradient: Array,
    [x_wanted, theta_wanted, scale_wanted, bias_wanted]: [bool; 4],
) -> [Option<Array>; 4] {
    let Saved { x, theta, bias, products, inverse, factor, activation } = kept;
    let [inputs, outputs] = size(&theta);
    let (mut by_factor, mut by_bias) = (vec![0.0; outputs], vec![0.0; outputs]);
    let g = values_mut(&mut gradient);
    activation.gradient_of_products(values(&products), [&factor, values(&bias)], g, [&mut by_factor, &mut by_bias]);
    let g = View::of_rows(g, size(&products));

    let by_x = x_wanted.then(|| {
        let theta = View::of_rows(values(&theta), [inputs, outputs]);
        from_matrix(product(g, theta.transposed()))
    });
    let by_theta = theta_wanted.then(|| {
        // y = factor p with factor = scale / |theta|, so d|theta| = -factor / |theta| sum(g p), and d|theta| / dtheta is
        // theta / |theta|.
        let pull: Vec<f32> = factor
            .iter()
            .zip(&by_factor)
            .zip(&inverse)
            .map(|((factor, sum), inverse)| -factor * sum * inverse * inverse)
            .collect();
        from_matrix(with_view(&x, |x| {
            product_finished(x.transposed(), g, |first, rows| {
                let theta = values(&theta)[first * outputs..].chunks_exact(outputs);
                for (to, theta) in rows.chunks_exact_mut(outputs).zip(theta) {
                    to.iter_mut().zip(theta).zip(&pull).for_each(|((to, theta), pull)| *to = pull.mul_add(*theta, *to));
                }
            })
        }))
    });
    let by_scale = scale_wanted
        .then(|| array(by_factor.iter().zip(&inverse).map(|(g, inverse)| g * inverse).collect(), [outputs]));
    [by_x, by_theta, by_scale, bias_wanted.then(|| array(by_bias, [outputs]))]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::{agree, random};

    #[test]
    fn values_and_gradients_agree_with_burn() {
        // Sizes for vectors and, if available, for tiles.
        for (rows, inputs, outputs) in [(9, 6, 4), (90, 80, 96), (300, 70, 33), (40, 9, 1)] {
            for activation in Activation::ALL {
                let (x, theta) = (random([rows, inputs], 1), random([inputs, outputs], 2));
                let parts = [random([outputs], 3), random([outputs], 4)];
                agree(
                    [x.clone(), theta.clone()],
                    |[x, theta]| weight_norm_dense(x, theta, parts.clone(), activation, 1e-3),
                    |[x, theta]| weight_norm_dense_in_burn(x, theta, parts.clone(), activation, 1e-3),
                );
                agree(
                    parts.clone(),
                    |parts| weight_norm_dense(x.clone(), theta.clone(), parts, activation, 1e-3),
                    |parts| weight_norm_dense_in_burn(x.clone(), theta.clone(), parts, activation, 1e-3),
                );
            }
        }
    }
}
