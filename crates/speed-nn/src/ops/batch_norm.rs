//! Batch norm without parameters: `(x - mean) / sqrt(variance + epsilon)` over the examples (Ioffe and Szegedy, 2015).

use burn::backend::Dispatch;
use burn::tensor::Tensor;

use crate::flex::{Array, on_flex, rows, rows_mut, size, values, values_mut};

operation!(BatchNormOps: batch_norm([x], epsilon: f32), forward, backward);

/// Returns every unit of `x` `[examples, units]` with mean 0 and variance 1 over the examples. The variance is the mean
/// square, plus `epsilon`. [`bias_activation`](crate::ops::bias::bias_activation) applies shift and activation
/// afterwards.
pub fn batch_norm(x: Tensor<2>, epsilon: f32) -> Tensor<2> {
    if !on_flex(&x) {
        return batch_norm_in_burn(x, epsilon);
    }
    Tensor::from_dispatch(Dispatch::batch_norm(x.into_dispatch(), epsilon))
}

/// Computes [`batch_norm`](fn@batch_norm) with Burn's own operations.
pub fn batch_norm_in_burn(x: Tensor<2>, epsilon: f32) -> Tensor<2> {
    let centred = x.clone() - x.mean_dim(0);
    let deviation = (centred.clone().square().mean_dim(0) + epsilon).sqrt();
    centred / deviation
}

/// Returns the output, and for the gradient the output with `1 / deviation` of every unit.
fn forward([mut x]: [Array; 1], epsilon: f32) -> (Array, (Array, Vec<f32>)) {
    let [count, units] = size(&x);
    let count = count.max(1) as f32;
    let values = values_mut(&mut x);
    let mut mean = vec![0.0; units];
    for row in rows(values, units) {
        mean.iter_mut().zip(row).for_each(|(sum, x)| *sum += x);
    }
    mean.iter_mut().for_each(|sum| *sum /= count);
    let mut inverse = vec![0.0_f32; units];
    for row in rows_mut(values, units) {
        for ((x, mean), sum) in row.iter_mut().zip(&mean).zip(&mut inverse) {
            *x -= mean;
            *sum = x.mul_add(*x, *sum);
        }
    }
    inverse.iter_mut().for_each(|sum| *sum = 1.0 / (*sum / count + epsilon).sqrt());
    for row in rows_mut(values, units) {
        row.iter_mut().zip(&inverse).for_each(|(x, inverse)| *x *= inverse);
    }
    (x.clone(), (x, inverse))
}

/// `g' = (g - mean(g) - y mean(g y)) / deviation`.
fn backward((normalized, inverse): (Array, Vec<f32>), mut gradient: Array, _: [bool; 1]) -> [Option<Array>; 1] {
    let (units, g) = (inverse.len(), values_mut(&mut gradient));
    let count = (g.len() / units.max(1)).max(1) as f32;
    let [mut mean, mut along] = [vec![0.0_f32; units], vec![0.0_f32; units]];
    let outputs = || rows(values(&normalized), units);
    for (g, y) in rows(g, units).zip(outputs()) {
        for (((g, y), mean), along) in g.iter().zip(y).zip(&mut mean).zip(&mut along) {
            *mean += g;
            *along = g.mul_add(*y, *along);
        }
    }
    mean.iter_mut().chain(&mut along).for_each(|sum| *sum /= count);
    for (g, y) in rows_mut(g, units).zip(outputs()) {
        let sums = mean.iter().zip(&along).zip(&inverse);
        for ((g, y), ((mean, along), inverse)) in g.iter_mut().zip(y).zip(sums) {
            *g = inverse * (*g - mean - along * y);
        }
    }
    [Some(gradient)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::{agree, random};

    #[test]
    fn values_and_gradients_agree_with_burn() {
        for shape in [[30, 20], [2, 1], [7, 33]] {
            agree([random(shape, 1)], |[x]| batch_norm(x * 1.0, 1e-3), |[x]| batch_norm_in_burn(x, 1e-3));
        }
    }
}
