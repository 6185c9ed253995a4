//! 2x2 max pooling, bias and ReLU of single windows, and their gradient.

use pulp::Simd;

use crate::matrix::Matrix;
use crate::panels::LANES;

/// Number of values that pooling compares: 2 x 2.
pub(super) const POOL: usize = 4;

/// The choice of a window whose output ReLU set to zero: none of its values.
const NONE: u32 = POOL as u32;

/// Pools the values of one window, with one output per bias. Records in `choice` which of the four values each output
/// is.
pub(super) fn pool(values: [&[f32]; POOL], bias: &[f32], output: &mut [f32], choice: &mut [u32]) {
    let whole = bias.len() - bias.len() % LANES;
    for first in (0..whole).step_by(LANES) {
        let values = values.map(|values| lanes::<_, LANES>(values, first));
        pool_lanes(values, lanes(bias, first), lanes_mut(output, first), lanes_mut(choice, first));
    }
    for first in whole..bias.len() {
        let values = values.map(|values| lanes::<_, 1>(values, first));
        pool_lanes(values, lanes(bias, first), lanes_mut(output, first), lanes_mut(choice, first));
    }
}

/// Pools like [`pool`], for a number of outputs known at compile time.
#[inline(always)]
fn pool_lanes<const N: usize>(
    values: [&[f32; N]; POOL],
    bias: &[f32; N],
    output: &mut [f32; N],
    choice: &mut [u32; N],
) {
    for lane in 0..N {
        let (mut best, mut chosen) = (values[0][lane], 0);
        for (position, values) in (1..).zip(&values[1..]) {
            // A NaN is chosen and kept.
            let greater = values[lane] > best || values[lane].is_nan();
            best = if greater { values[lane] } else { best };
            chosen = if greater { position } else { chosen };
        }
        let sum = best + bias[lane];
        // Not `max`, which would hide a NaN.
        output[lane] = if sum < 0.0 { 0.0 } else { sum };
        choice[lane] = if sum > 0.0 { chosen } else { NONE };
    }
}

/// Pools vectors like [`pool`]: returns the outputs and the choices.
#[inline(always)]
pub(super) fn pool_vectors<S: Simd>(simd: S, values: [S::f32s; POOL], bias: S::f32s) -> (S::f32s, S::u32s) {
    let (mut best, mut chosen) = (values[0], simd.splat_u32s(0));
    for (position, values) in (1..).zip(values.into_iter().skip(1)) {
        // A NaN is chosen and kept.
        let number = simd.equal_f32s(values, values);
        let greater = simd.or_m32s(simd.greater_than_f32s(values, best), simd.not_m32s(number));
        best = simd.select_f32s(greater, values, best);
        chosen = simd.select_u32s(greater, simd.splat_u32s(position), chosen);
    }
    let (zero, sum) = (simd.splat_f32s(0.0), simd.add_f32s(best, bias));
    let chosen = simd.select_u32s(simd.greater_than_f32s(sum, zero), chosen, simd.splat_u32s(NONE));
    // Not `max`, which would hide a NaN.
    (simd.select_f32s(simd.less_than_f32s(sum, zero), zero, sum), chosen)
}

/// Writes the vector to the first values.
#[inline(always)]
pub(super) fn store_choice<S: Simd>(to: &mut [u32], choice: S::u32s) {
    S::as_mut_simd_u32s(&mut to[..S::F32_LANES]).0[0] = choice;
}

/// Computes the gradient of one window's four values from the gradient of its outputs and the choice recorded by
/// [`pool`].
pub(super) fn spread(gradient: &[f32], choice: &[u32], values: [&mut [f32]; POOL]) {
    for (position, values) in (0..).zip(values) {
        for ((value, g), c) in values.iter_mut().zip(gradient).zip(choice) {
            *value = if *c == position { *g } else { 0.0 };
        }
    }
}

/// Does the same as [`spread`] for all windows of `outputs` outputs; the values of a window are four neighbouring rows
/// of `to`.
pub(super) fn spread_neighbours(gradient: &[f32], choice: &[u32], outputs: usize, to: &mut Matrix) {
    to.resize(POOL * gradient.len() / outputs, outputs);
    let results = gradient.chunks_exact(outputs).zip(choice.chunks_exact(outputs));
    for (values, (gradient, choice)) in to.values_mut().chunks_exact_mut(POOL * outputs).zip(results) {
        let (upper, lower) = values.split_at_mut(2 * outputs);
        let [(a, b), (c, d)] = [upper, lower].map(|pair| pair.split_at_mut(outputs));
        spread(gradient, choice, [a, b, c, d]);
    }
}

/// Adds the gradient of the outputs that ReLU let through to the gradient of the bias.
pub(super) fn add_to_bias(gradient: &[f32], choice: &[u32], bias: &mut [f32]) {
    let rows = gradient.chunks_exact(bias.len()).zip(choice.chunks_exact(bias.len()));
    for (gradient, choice) in rows {
        for ((sum, g), c) in bias.iter_mut().zip(gradient).zip(choice) {
            *sum += if *c == NONE { 0.0 } else { *g };
        }
    }
}

/// Returns `N` values from `first` on.
#[inline(always)]
fn lanes<T, const N: usize>(values: &[T], first: usize) -> &[T; N] {
    values[first..].first_chunk().expect("full registers of outputs")
}

/// Returns `N` mutable values from `first` on.
#[inline(always)]
fn lanes_mut<T, const N: usize>(values: &mut [T], first: usize) -> &mut [T; N] {
    values[first..].first_chunk_mut().expect("full registers of outputs")
}

#[cfg(test)]
mod tests {
    use pulp::{Scalar, Scalar128b, Scalar256b, Scalar512b};

    use super::*;

    /// Pools windows of four values with vectors of one length.
    fn vectors<S: Simd>(simd: S, windows: &[[f32; POOL]], bias: f32) -> Vec<(u32, u32)> {
        let mut pooled = Vec::new();
        for window in windows {
            let (output, choice) =
                pool_vectors(simd, window.map(|value| simd.splat_f32s(value)), simd.splat_f32s(bias));
            let (mut outputs, mut choices) = ([0.0; LANES], [0; LANES]);
            crate::panels::store::<S>(&mut outputs, output);
            store_choice::<S>(&mut choices, choice);
            pooled.push((outputs[0].to_bits(), choices[0]));
        }
        pooled
    }

    /// A NaN in any position is the output, so that a diverged training is visible; of equal values, the first is chosen.
    #[test]
    fn vectors_pool_like_single_values() {
        let mut windows = vec![[1.0, 1.0, 0.5, 1.0], [-2.0, -1.0, -1.0, -3.0], [0.0, -0.0, 0.0, -0.0]];
        for position in 0..POOL {
            let mut window = [0.5, f32::INFINITY, -1.0, f32::NEG_INFINITY];
            windows.push(window);
            window[position] = f32::NAN;
            windows.push(window);
        }
        for bias in [0.0, 0.25, -0.75, f32::NAN] {
            let single = windows.iter().map(|window| {
                let (mut output, mut choice) = ([0.0], [0]);
                pool(window.each_ref().map(std::slice::from_ref), &[bias], &mut output, &mut choice);
                assert_eq!(output[0].is_nan(), bias.is_nan() || window.iter().any(|value| value.is_nan()));
                (output[0].to_bits(), choice[0])
            });
            let single: Vec<_> = single.collect();
            assert_eq!(vectors(Scalar::new(), &windows, bias), single);
            assert_eq!(vectors(Scalar128b, &windows, bias), single);
            assert_eq!(vectors(Scalar256b, &windows, bias), single);
            assert_eq!(vectors(Scalar512b, &windows, bias), single);
        }
    }
}
