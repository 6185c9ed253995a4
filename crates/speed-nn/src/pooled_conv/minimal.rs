//! The convolution with fewer products (`winograd.rs`), for 5x5 kernels and maps of many channels.
//!
//! A tile of its results is one pooling window.

use pulp::Simd;

use super::layer::{PooledConv, PooledConvTrace, PooledWindows};
use super::pool::{pool_vectors, store_choice};
use crate::panels::{load, store};
use crate::winograd::{Results, Tiles, Winograd};

/// Returns the convolution of a layer, if it is supported.
pub(super) fn convolution(layer: &PooledConv) -> Option<Winograd> {
    let (windows, results) = (&layer.windows, layer.windows.pooled().map(|size| 2 * size));
    let PooledWindows { height, width, channels, kernel } = *windows;
    let winograd = Winograd::new([height, width, channels], [0; 2], [kernel, 1], results, layer.outputs());
    winograd.filter(|_| kernel == 5)
}

/// Computes [`PooledConv::forward`] into an output of the right size.
pub(super) fn forward(layer: &PooledConv, convolution: Winograd, maps: &[f32], trace: &mut PooledConvTrace) {
    let PooledConvTrace { output, choice, winograd: work, .. } = trace;
    let to = Pooled { bias: &layer.bias, output: output.values_mut(), choice };
    convolution.forward_to(maps, layer.weight.view(), work, to);
}

/// Computes [`PooledConv::backward`].
pub(super) fn backward(
    layer: &PooledConv,
    convolution: Winograd,
    maps: &[f32],
    gradient: &[f32],
    map_gradient: Option<&mut [f32]>,
    trace: &mut PooledConvTrace,
) {
    let PooledConvTrace { choice, weight, winograd: work, .. } = trace;
    let by_results = Spread { gradient, choice, outputs: layer.outputs() };
    let map_gradient = map_gradient.map(|out| {
        out.fill(0.0);
        (layer.weight.view(), out)
    });
    convolution.gradients_of(maps, by_results, map_gradient, work, weight);
}

/// The gradient of the four values of every pooling window.
struct Spread<'a> {
    gradient: &'a [f32],
    choice: &'a [u32],
    outputs: usize,
}

impl Tiles<2> for Spread<'_> {
    #[inline(always)]
    fn of<S: Simd>(&self, simd: S, window: usize, mut each: impl FnMut(usize, [[S::f32s; 2]; 2])) {
        for output in (0..self.outputs).step_by(S::F32_LANES) {
            let at = window * self.outputs + output;
            let (gradient, zero) = (load::<S>(&self.gradient[at..]), simd.splat_f32s(0.0));
            let choice = S::as_simd_u32s(&self.choice[at..at + S::F32_LANES]).0[0];
            let mut values = [[zero; 2]; 2];
            for (position, value) in (0..).zip(values.as_flattened_mut()) {
                let chosen = simd.equal_u32s(choice, simd.splat_u32s(position));
                *value = simd.select_f32s(chosen, gradient, zero);
            }
            each(output, values);
        }
    }
}

/// Pools results.
struct Pooled<'a> {
    bias: &'a [f32],
    output: &'a mut [f32],
    choice: &'a mut [u32],
}

impl Results<2> for Pooled<'_> {
    #[inline(always)]
    fn take<S: Simd>(
        &mut self,
        simd: S,
        window: usize,
        outputs: usize,
        mut results: impl FnMut(usize) -> [[S::f32s; 2]; 2],
    ) {
        for output in (0..outputs).step_by(S::F32_LANES) {
            let (at, [[a, b], [c, d]]) = (window * outputs + output, results(output));
            let (values, choice) = pool_vectors(simd, [a, b, c, d], load::<S>(&self.bias[output..]));
            store::<S>(&mut self.output[at..], values);
            store_choice::<S>(&mut self.choice[at..], choice);
        }
    }
}
