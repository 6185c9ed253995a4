//! Operations on Burn's tensors with this crate's kernels behind them, one a module.
//!
//! Each is a function on [`Tensor`](burn::tensor::Tensor)s with
//!
//! 1. **a body of plain Burn tensors** (`..._in_burn`): what it computes, what runs on every backend but Flex, with Burn's own
//!    gradients, and what tests hold the other one against;
//! 2. **a kernel for Flex with its gradient written out**, registered with Burn's `#[backend_extension(Flex, Autodiff)]`.
//!
//! # Adding one
//!
//! 1. A function on tensors: not [on Flex](crate::flex::on_flex) it calls the body, else the dispatched operation.
//! 2. A trait with `#[backend_extension(Flex, Autodiff)]` and one function: tensors as `FloatTensor<Self>`, all else by value.
//! 3. Its implementation for `Flex`, which is the kernel, and for `Autodiff<Flex, C>`, which hands the kernel and its gradient to
//!    [`flex::record`](crate::flex::record). Inputs come by value: a kernel may write into what nothing else holds
//!    ([`flex::values_mut`](crate::flex::values_mut)). What it keeps for the gradient and has also returned, it keeps as a tensor, a
//!    second owner.
//! 4. A test that both give the same values and gradients, and a line in `benches/operations.rs`.
//!
//! [`bias`] is the shortest to start from.

pub mod activation;
pub mod batch_norm;
pub mod bias;
pub mod conv;
pub mod log_sum_exp;
pub mod lrn;
pub mod max_pool;
pub mod noise;
pub mod pooled_conv;
pub mod product;
pub mod sums;
pub mod weight_norm;
