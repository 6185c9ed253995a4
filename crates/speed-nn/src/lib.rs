//! Burn operations, layers and optimisers with their own kernels, for networks on CPUs.
//!
//! Its three main uses:
//! - build a network from [`layers`], which call fast operations on a CPU and Burn's own on a GPU;
//! - train it reproducibly, with optimisers that change its parameters in place ([`optim::Trained`]);
//! - add an operation with its own kernel and gradient ([`ops`]).
//!
//! A network is an ordinary Burn [`Module`](burn::module::Module), written once, without gradients. Where Burn's own
//! operations are slow on a CPU, it calls one of this crate's. [`ops`] describes the parts of an operation, and how to
//! add one.
//!
//! | module | content |
//! |---|---|
//! | [`layers`], [`dropout`], [`noise`] | the parts of networks |
//! | [`ops`], [`flex`] | operations with a kernel for Burn's `flex` backend, and their shared helpers |
//! | [`optim`], [`average`] | Adam in one pass over a parameter, and exponential averages of networks |
//! | [`init`], [`params`] | initial weights from a caller's stream; parameters with fixed ids, and their records |
//! | [`matrix`], [`convolution`], [`pooled_conv`], [`math`] | the kernels, independent of any network |
//! | [`device`] | the processor, or a GPU |
//! | [`mod@reach`] | the distance within which points are alike |
//! | [`threads`] | a work queue whose workers each have a one-thread pool |
//! | `training` | utilities for training image classifiers (feature `training`) |
//! | `onnx` | ONNX models of networks, and classifiers and encoders of other programs (feature `onnx`) |
//! | `allocator` | an allocator that keeps freed memory between steps (feature `allocator`) |
//!
//! # A network
//!
//! ```
//! use burn::module::Module;
//! use burn::tensor::{Device, Tensor};
//! use speed_nn::init;
//! use speed_nn::layers::{Conv, Dense};
//! use speed_nn::ops::{activation::Activation, conv::Geometry};
//! use speed_nn::optim::{Adam, Epsilon, Trained};
//! use speed_core::random::{Stream, Streams};
//!
//! /// A convolution of stride 2 and a dense layer, for images 8 x 8 of one channel and three classes.
//! #[derive(Module, Debug)]
//! struct Network {
//!     convolution: Conv,
//!     output: Dense,
//! }
//!
//! impl Network {
//!     fn new(stream: &mut Stream, device: &Device) -> Self {
//!         let geometry = Geometry::same([8, 8, 1], 3, 2).expect("a map");
//!         let mut parameters = |inputs, outputs| {
//!             let weight = init::normal([inputs, outputs], 0.3, stream, device);
//!             (weight, init::constant([outputs], 0.0, device))
//!         };
//!         let (weight, bias) = parameters(geometry.patch_len(), 16);
//!         let convolution = Conv::new(geometry, weight, bias, Activation::Relu);
//!         let (weight, bias) = parameters(4 * 4 * 16, 3);
//!         Self { convolution, output: Dense::new(weight, bias, Activation::Linear) }
//!     }
//!
//!     fn logits(&self, images: Tensor<4>) -> Tensor<2> {
//!         self.output.forward(self.convolution.forward(images).flatten(1, 3))
//!     }
//! }
//!
//! // Gradients are Burn's. A step changes parameters in place.
//! let device = Device::flex();
//! let network = Network::new(&mut Streams::new(1).stream("weights", 0), &device.clone().autodiff());
//! let mut network = Trained::new(network, Adam { beta1: 0.9, beta2: 0.999, epsilon: Epsilon::Outside(1e-8) });
//! let images = Tensor::<4>::ones([5, 8, 8, 1], &device);
//! let loss = |network: &Network| network.logits(images.clone()).square().mean();
//! let first = loss(network.network());
//! let first = network.step(0.01, &first)?;
//! let second = loss(network.network());
//! assert!(network.step(0.01, &second)? < first);
//! # Ok::<(), speed_nn::optim::StepError>(())
//! ```

#[cfg(feature = "allocator")]
pub mod allocator;
pub mod average;
pub mod convolution;
pub mod device;
pub mod dropout;
pub mod flex;
pub mod init;
mod kind;
pub mod layers;
pub mod math;
pub mod matrix;
pub mod noise;
#[cfg(feature = "onnx")]
pub mod onnx;
pub mod ops;
pub mod optim;
mod panels;
pub mod params;
pub mod pooled_conv;
pub mod reach;
#[cfg(test)]
mod test_support;
pub mod threads;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod tile_conv;
#[cfg(feature = "training")]
pub mod training;
mod winograd;

pub use kind::kind;
