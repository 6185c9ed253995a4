//! Layers, initialisers and tensor plumbing that Burn lacks, shared by the model crates.

pub mod adam;
pub mod average;
pub mod batch_norm;
pub mod conv;
pub mod dense;
pub mod init;
pub mod lrn;
pub mod math;
pub mod matrix;
pub mod noise;
pub mod params;
pub mod pooled_conv;
pub mod threads;
pub mod weight_norm;
