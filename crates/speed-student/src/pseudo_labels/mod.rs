//! A student that learns from pseudo-labels.

mod augment;
mod config;
mod graph;
mod metrics;
mod network;
mod state;
mod targets;
mod train;

pub use augment::{Augmentation, GRID};
pub use config::PseudoLabelsConfig;
pub use metrics::PseudoLabelsMetrics;
pub use network::Classifier;
pub use train::{PseudoLabelsOutcome, train};
