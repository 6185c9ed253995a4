//! Operations on Burn's tensors with this crate's kernels behind them, one a module.
//!
//! Each is a function on [`Tensor`](burn::tensor::Tensor)s with
//!
//! 1. **a body of plain Burn tensors** (`..._in_burn`): what it computes, what runs on every backend but Flex, with Burn's own
//!    gradients and, on GPUs, its fusion, and what tests hold the other one against;
//! 2. **a kernel for Flex with its gradient written out**, registered with Burn's `#[backend_extension(Flex, Autodiff)]`.

pub mod activation;
pub mod batch_norm;
pub mod bias;
pub mod conv;
pub mod lrn;
pub mod max_pool;
pub mod noise;
pub mod pooled_conv;
pub mod product;
pub mod weight_norm;
