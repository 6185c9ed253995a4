//! A convolution without padding, 2x2 max pooling, bias and ReLU in one pass.

use std::cell::RefCell;
use std::sync::{Arc, Mutex, PoisonError};

use burn::backend::{Dispatch, TensorMetadata};
use burn::tensor::ops::{ConvOptions, MaxPoolOptions};
use burn::tensor::{Tensor, activation, module};

pub use crate::pooled_conv::PooledWindows;

use crate::flex::{Array, array, contiguous, on_flex, size, values};
use crate::matrix::Matrix;
use crate::pooled_conv::{PooledConv, PooledConvTrace};

operation!(PooledConvOps: pooled_conv([maps, weight, bias], windows: PooledWindows), forward, backward);

/// Returns `relu(max_pool(conv(maps)) + bias)`, `[images, rows, columns, outputs]`, of maps `[images, height, width, channels]`,
/// weights `[kernel * kernel * channels, outputs]` in the order kernel row, kernel column, channel, and a bias `[outputs]`.
pub fn pooled_conv(maps: Tensor<4>, weight: Tensor<2>, bias: Tensor<1>, windows: PooledWindows) -> Tensor<4> {
    assert_eq!(maps.dims()[1..], windows.map(), "maps of a convolution");
    if !on_flex(&maps) {
        return pooled_conv_in_burn(maps, weight, bias, windows);
    }
    let (maps, weight) = (maps.into_dispatch(), weight.into_dispatch());
    Tensor::from_dispatch(Dispatch::pooled_conv(maps, weight, bias.into_dispatch(), windows))
}

/// Computes [`pooled_conv`](fn@pooled_conv) with Burn's own operations.
pub fn pooled_conv_in_burn(maps: Tensor<4>, weight: Tensor<2>, bias: Tensor<1>, windows: PooledWindows) -> Tensor<4> {
    let ([_, outputs], [_, _, _, channels]) = (weight.dims(), maps.dims());
    let weight = weight.reshape([windows.kernel(), windows.kernel(), channels, outputs]).permute([3, 2, 0, 1]);
    let options = ConvOptions::new([1, 1], [0, 0], [1, 1], 1);
    let convolved = module::conv2d(maps.permute([0, 3, 1, 2]), weight, Some(bias), options);
    activation::relu(module::max_pool2d(convolved, MaxPoolOptions::new([2, 2]))).permute([0, 2, 3, 1])
}

/// More passes than a network here has in progress at once.
const MOST_IDLE: usize = 8;

thread_local! {
    /// Memory of finished passes. Without it, each step would request megabytes from the system, which clears them.
    static IDLE: RefCell<Vec<PooledConvTrace>> = const { RefCell::new(Vec::new()) };
}

/// The memory of a pass, which is returned when the graph of gradients drops it.
#[derive(Debug, Default)]
struct Trace(PooledConvTrace);

impl Trace {
    fn idle() -> Self {
        Self(IDLE.with_borrow_mut(Vec::pop).unwrap_or_default())
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        let trace = std::mem::take(&mut self.0);
        // A thread that is ending no longer has this memory.
        let _ = IDLE.try_with(|idle| {
            let mut idle = idle.borrow_mut();
            // A graph may be dropped on another thread than its own, which must not accumulate the memory.
            if idle.len() < MOST_IDLE {
                idle.push(trace);
            }
        });
    }
}

/// The values that the gradients need.
#[derive(Clone, Debug)]
struct Saved {
    maps: Array,
    layer: Arc<PooledConv>,
    trace: Arc<Mutex<Trace>>,
}

fn forward([maps, weight, bias]: [Array; 3], windows: PooledWindows) -> (Array, Saved) {
    let [maps, weight, bias] = [maps, weight, bias].map(contiguous);
    let [inputs, outputs] = size(&weight);
    let weight = Matrix::from_vec(inputs, outputs, values(&weight).to_vec());
    let layer = PooledConv::new(windows, weight, values(&bias).to_vec());
    let mut trace = Trace::idle();
    layer.forward(values(&maps), &mut trace.0);
    let [rows, columns] = windows.pooled();
    let output = array(trace.0.take_output().into_vec(), [maps.shape()[0], rows, columns, outputs]);
    (output, Saved { maps, layer: Arc::new(layer), trace: Arc::new(Mutex::new(trace)) })
}

fn backward(
    Saved { maps, layer, trace }: Saved,
    gradient: Array,
    [maps_wanted, weight_wanted, bias_wanted]: [bool; 3],
) -> [Option<Array>; 3] {
    let gradient = contiguous(gradient);
    let mut trace = trace.lock().unwrap_or_else(PoisonError::into_inner);
    let mut by_maps = maps_wanted.then(|| vec![0.0; values(&maps).len()]);
    layer.backward(values(&maps), values(&gradient), by_maps.as_deref_mut(), &mut trace.0);
    let [weight, bias] = trace.0.gradients().map(<[f32]>::to_vec);
    let outputs = bias.len();
    [
        by_maps.map(|values| array(values, maps.shape())),
        weight_wanted.then(|| array(weight, [layer.windows().patch_len(), outputs])),
        bias_wanted.then(|| array(bias, [outputs])),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::on_vectors;
    use crate::test_support::{agree, random};

    #[test]
    fn values_and_gradients_agree_with_burn() {
        check_values_and_gradients();
        on_vectors(check_values_and_gradients);
    }

    fn check_values_and_gradients() {
        for (images, height, width, channels, outputs, kernel) in [
            (3, 9, 8, 2, 5, 5),
            (1, 7, 12, 1, 3, 3),
            (2, 6, 6, 4, 2, 5),
            (3, 8, 8, 1, 16, 5),
            (11, 16, 18, 8, 7, 5),
            // For tiles, if available: one block and several, even and odd maps, full and partial steps.
            (30, 12, 12, 16, 32, 5),
            (6, 21, 22, 32, 32, 3),
            (2, 2, 3, 16, 64, 1),
            (3, 7, 5, 48, 96, 4),
            // With fewer products: one window, odd and even maps, and more than a block.
            (3, 6, 7, 32, 16, 5),
            (5, 13, 11, 16, 48, 5),
            (40, 20, 21, 16, 16, 5),
            // Read in place: an odd number of windows, and several channels.
            (2, 8, 11, 3, 16, 5),
            (3, 5, 7, 1, 32, 3),
        ] {
            let windows = PooledWindows::new(height, width, channels, kernel).expect("large enough");
            let (maps, weight) =
                (random([images, height, width, channels], 1), random([windows.patch_len(), outputs], 2));
            let bias = random([outputs], 3);
            agree(
                [maps.clone()],
                |[maps]| pooled_conv(maps, weight.clone(), bias.clone(), windows),
                |[maps]| pooled_conv_in_burn(maps, weight.clone(), bias.clone(), windows),
            );
            // Without a gradient of the maps, as in a first layer.
            let maps = maps.inner();
            agree(
                [weight.clone()],
                |[weight]| pooled_conv(maps.clone(), weight, bias.clone(), windows),
                |[weight]| pooled_conv_in_burn(maps.clone(), weight, bias.clone(), windows),
            );
            agree(
                [bias],
                |[bias]| pooled_conv(maps.clone(), weight.clone(), bias, windows),
                |[bias]| pooled_conv_in_burn(maps.clone(), weight.clone(), bias, windows),
            );
        }
    }
}
