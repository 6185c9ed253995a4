//! A student that learns from its own pseudo-labels: stronger than the GAN on the same labels, in less time.
//!
//! A small convolutional network is trained on two kinds of images: those with a given label, and those of the pool for
//! which it is sure of a label itself. It learns from *strong* random views and labels *weak* ones
//! (FixMatch, Sohn et al. 2020); it labels with the average of its parameters (mean teacher, Tarvainen and Valpola 2017),
//! once an epoch, above a threshold that follows its own confidence class by class (FreeMatch, Wang et al. 2023), its
//! predictions drawn towards equal class frequencies (ReMixMatch, Berthelot et al. 2020).
//!
//! Given labels may be wrong. They count fully at the start only: after the warm-up their target is what label and network
//! together make most probable, and their weight falls to 0, so that a wrong one is outvoted by the pseudo-labels of
//! similar images.

mod augment;
mod batches;
mod config;
mod network;
mod targets;
#[cfg(test)]
mod tests;
mod train;

pub use augment::{Augmentation, GRID};
pub use config::PseudoLabelsConfig;
pub(crate) use train::PseudoLabels;
