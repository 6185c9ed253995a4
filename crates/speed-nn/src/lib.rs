//! Layers, initialisers and tensor plumbing that Burn lacks, shared by the model crates.
//!
//! | module | what | for |
//! |---|---|---|
//! | [`init`], [`params`] | initial weights from a caller's stream; parameters with fixed ids | every Burn model |
//! | [`conv`], [`dense`] | TensorFlow's padding, in Burn | teachers' parameters |
//! | [`same_conv`], [`max_pool`], [`lrn`] | convolution, pooling and normalisation as TensorFlow has them, gradients written out | reference teacher |
//! | [`pooled_conv`] | convolution and pooling in one pass, with its gradient | small teacher, student |
//! | [`linear`], [`dropout`], [`cross_entropy`] | layers and loss with their gradients written out | teachers, student |
//! | [`weight_norm`], [`batch_norm`], [`noise`], [`math`] | layers with their gradients written out | student |
//! | [`matrix`], [`adam`], [`average`] | products, optimiser and parameter averages on plain arrays | both |
//! | [`threads`] | a work queue whose workers each have a one-thread pool | ensembles and students |

pub mod adam;
pub mod average;
pub mod batch_norm;
pub mod conv;
pub mod cross_entropy;
pub mod dense;
pub mod dropout;
pub mod init;
pub mod linear;
pub mod lrn;
pub mod math;
pub mod matrix;
pub mod max_pool;
pub mod noise;
pub mod params;
pub mod pooled_conv;
pub mod same_conv;
#[cfg(test)]
mod test_support;
pub mod threads;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod tile_conv;
pub mod weight_norm;
