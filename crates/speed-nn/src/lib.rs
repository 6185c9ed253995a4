//! Burn operations, layers and optimisers with kernels of their own, for networks on processors.
//!
//! A network is an ordinary Burn [`Module`](burn::module::Module), written once, without gradients. Where Burn's own operations are
//! slow on a processor it calls one of this crate's: [`ops`] says what each has.
//!
//! | module | content |
//! |---|---|
//! | [`layers`], [`dropout`], [`noise`] | what networks are made of |
//! | [`ops`], [`flex`] | operations with a kernel for Burn's `flex` backend, and how to add one |
//! | [`optim`], [`average`] | Adam in one pass over a parameter, and exponential averages of networks |
//! | [`init`], [`params`] | initial weights from a caller's stream; parameters with fixed ids, and their records |
//! | [`matrix`], [`convolution`], [`pooled_conv`], [`math`] | the kernels: they know no network |
//! | [`device`] | the processor, or a GPU |
//! | [`threads`] | a work queue whose workers each have a one-thread pool |

pub mod average;
pub mod convolution;
pub mod device;
pub mod dropout;
pub mod flex;
pub mod init;
pub mod layers;
pub mod math;
pub mod matrix;
pub mod noise;
pub mod ops;
pub mod optim;
pub mod params;
pub mod pooled_conv;
#[cfg(test)]
mod test_support;
pub mod threads;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod tile_conv;
