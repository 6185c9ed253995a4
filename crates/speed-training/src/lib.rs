//! What trainings of image classifiers share, whatever they train.
//!
//! In the order of the data: [`Pixels`] are images as a network reads them, [`Cycle`] is the order in which a training sees them, a
//! [`Classifier`] is what comes out of it, and [`predict`] asks it. [`Registry`] finds networks by their names.
//! Steps, optimisers and averages are [`speed_nn`]'s.

mod classifier;
mod cycle;
mod invalid_field;
mod pixels;
mod registry;

pub use classifier::{AnyClassifier, Classifier, accuracy, predict};
pub use cycle::Cycle;
pub use invalid_field::InvalidField;
pub use pixels::Pixels;
pub use registry::{Named, RegistrationError, Registry};
