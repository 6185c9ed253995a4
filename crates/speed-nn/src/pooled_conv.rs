//! A convolution followed by 2x2 max pooling and ReLU, with an explicit gradient.
//!
//! Maps are stored in the order image, row, pixel, channel (NHWC), so every row of a window of a map is one run of
//! consecutive values. There are four implementations with the same results but for rounding: maps of few channels are
//! read in place (`direct.rs`); maps of many channels use the tile unit of processors that have one (`tiles.rs`), or fewer
//! products (`minimal.rs`); all others are copied into a matrix of patches (`patches.rs`).

mod direct;
mod layer;
mod minimal;
mod patches;
mod pool;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod tiles;

pub use layer::PooledWindows;
pub(crate) use layer::{PooledConv, PooledConvTrace};

impl PooledConv {
    /// Computes the output `[images * pooled rows * pooled columns, outputs]` of complete maps.
    ///
    /// # Panics
    /// If a map is incomplete.
    pub(crate) fn forward(&self, maps: &[f32], trace: &mut PooledConvTrace) {
        assert!(maps.len().is_multiple_of(self.windows.map_len()), "complete maps");
        let rows = maps.len() / self.windows.map_len() * self.windows.pooled_positions();
        trace.output.resize(rows, self.outputs());
        trace.choice.resize(rows * self.outputs(), 0);
        #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
        if let Some(convolution) = tiles::convolution(self) {
            return tiles::forward(self, convolution, maps, trace);
        }
        if let Some(convolution) = minimal::convolution(self) {
            minimal::forward(self, convolution, maps, trace);
        } else if direct::applies(self) {
            direct::forward(self, maps, trace);
        } else {
            patches::forward(self, maps, trace);
        }
    }

    /// Computes the gradients of weights and bias from `gradient`, that of the output, after [`forward`](Self::forward)
    /// of the same `maps`; also the gradient of the maps, if requested.
    ///
    /// # Panics
    /// If the length of `gradient` is not that of the output, or that of the gradient of the maps is not that of the
    /// maps.
    pub(crate) fn backward(
        &self,
        maps: &[f32],
        gradient: &[f32],
        map_gradient: Option<&mut [f32]>,
        trace: &mut PooledConvTrace,
    ) {
        assert_eq!(gradient.len(), trace.choice.len(), "gradient of the output");
        assert!(map_gradient.as_ref().is_none_or(|gradient| gradient.len() == maps.len()), "gradient of the maps");
        trace.bias.clear();
        trace.bias.resize(self.outputs(), 0.0);
        pool::add_to_bias(gradient, &trace.choice, &mut trace.bias);
        trace.weight.resize(self.windows.patch_len(), self.outputs());
        trace.weight.values_mut().fill(0.0);
        #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
        if let Some(convolution) = tiles::convolution(self) {
            return tiles::backward(self, convolution, maps, gradient, map_gradient, trace);
        }
        if let Some(convolution) = minimal::convolution(self) {
            minimal::backward(self, convolution, maps, gradient, map_gradient, trace);
        } else if map_gradient.is_none() && direct::applies(self) {
            direct::backward(self, maps, gradient, trace);
        } else {
            patches::backward(self, maps, gradient, map_gradient, trace);
        }
    }
}
