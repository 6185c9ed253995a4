//! Trainings of many students or many teachers as one computation, on any of Burn's devices.
//!
//! A single student or teacher is too small for a GPU: its products of matrices do not fill it. Here every array of
//! parameters has one more dimension, the student or teacher: weights are `[students, outputs, inputs]`, activations
//! `[students, units, batch]`, and a layer is one batched product of matrices.
//!
//! It is the same training as that of `speed-student` or `speed-teacher`: the same initial weights, batches, latent vectors
//! and noise from the same streams, the same optimiser and averages, so that both agree up to the rounding of `f32`.
//! Gradients are Burn's automatic differentiation, where the processor's are written out by hand: each is a check on the
//! other.

mod device;
mod network;
mod optimizer;
mod stack;
pub mod students;
pub mod teachers;
#[cfg(test)]
mod tests;

pub use device::{Accelerator, DeviceError, DeviceKind, open};
pub use students::{BatchError, EpochReport, Student, train_students};
pub use teachers::{TeachersError, train_teachers};
