//! The structure of a public pool of images, computed without labels.
//!
//! [`PoolMap`] places every image of the pool in a space of few dimensions in which images of one class are near each other:
//! the spectral embedding of the graph of nearest neighbours (Belkin and Niyogi, "Laplacian Eigenmaps", 2003; normalised as in
//! Shi and Malik, 2000). [`PoolMap::clusters`] divides the pool in that space by k-means (Ng, Jordan and Weiss, 2001), with a typical
//! image and a core for each cluster. [`PoolMap::place`] places other images, for example a teacher's private ones.
//!
//! All arithmetic is in plain `f32` and `f64` sums of a fixed order, without fused operations, so every machine and every number
//! of threads gives the same bits.

mod belief;
mod clusters;
mod components;
mod eigen;
mod embedding;
mod features;
mod map;
mod neighbours;
mod rows;
mod whitening;

pub use belief::{Answer, Belief};
pub use clusters::Cluster;
pub use features::Features;
pub use map::{MapError, MapParts, PoolMap, Task};
pub(crate) use rows::Queued;
pub(crate) use whitening::Whitening;
