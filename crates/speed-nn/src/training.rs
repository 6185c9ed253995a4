//! Shared utilities for training image classifiers.
//!
//! In the order of the data: [`Pixels`] are images as a network reads them, [`Cycle`] is the order in which a training
//! reads them, a [`Classifier`] is the trained network, and [`predict`] applies it. [`Registry`] finds networks by
//! their names. Steps, optimisers and averages are in [`optim`](crate::optim) and [`average`](crate::average).

mod classifier;
mod cycle;
mod invalid_field;
mod pixels;
mod registry;
mod tensors;
mod trace;

pub use crate::by_name;
pub use classifier::{
    AnyClassifier, Classifier, TOGETHER, VECTOR_OFFSET, accuracy, accuracy_of, greatest, logits, margins, predict,
};
pub use cycle::Cycle;
pub use invalid_field::InvalidField;
pub use pixels::Pixels;
pub use registry::{Named, RegistrationError, Registry};
pub use tensors::{NamedTensors, TensorError, TensorValues};
pub use trace::{Activations, Trace, TraceError};
