//! The paper's students: semi-supervised GANs (Salimans et al., "Improved techniques for training GANs", 2016). The
//! training does not depend on their networks.

mod constants;
mod convolutional;
mod dense;
mod loss;
mod networks;
mod order;
#[cfg(test)]
mod peer_trace;
#[cfg(test)]
mod tests;
mod train;

pub use constants::{ConvolutionalConstants, GanConstants, GanSize};
pub(crate) use convolutional::Convolutional;
pub(crate) use dense::Dense;
pub(crate) use train::Gan;
#[cfg(test)]
pub(crate) use train::GanTraining;
