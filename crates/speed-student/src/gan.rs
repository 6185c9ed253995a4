//! The paper's student: a semi-supervised GAN (Salimans et al., "Improved techniques for training GANs", 2016).

mod discriminator;
mod generator;
mod loss;
mod order;
#[cfg(test)]
mod peer_trace;
#[cfg(test)]
mod tests;
mod train;

pub(crate) use train::Gan;
