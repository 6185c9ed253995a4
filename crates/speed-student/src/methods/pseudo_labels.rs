//! A student that learns from its own pseudo-labels: more accurate than the GAN with the same labels, in less time.
//!
//! A small convolutional network is trained on two kinds of images: images with a given label, and images of the pool
//! whose label it predicts with confidence. It learns from *strong* random views and labels *weak* ones (FixMatch, Sohn
//! et al. 2020). Once an epoch, it labels with the average of its parameters (mean teacher, Tarvainen and Valpola
//! 2017), above a threshold that follows its own confidence class by class (FreeMatch, Wang et al. 2023). Its
//! predictions are drawn towards equal class frequencies (ReMixMatch, Berthelot et al. 2020), or towards `student.prior`.
//!
//! Given labels may be wrong, so they count fully only at the start. After the warm-up, their target combines the label
//! with the network's prediction, and their weight falls to 0, so that the pseudo-labels of similar images outvote a
//! wrong label.

mod augment;
mod batches;
mod config;
mod constants;
mod network;
mod targets;
#[cfg(test)]
mod tests;
mod train;

use augment::Augmentation;
pub use config::PseudoLabelsConfig;
pub use constants::{PseudoLabelsConstants, Views};
pub(crate) use train::PseudoLabels;
#[cfg(test)]
pub(crate) use train::PseudoLabelsTraining;
