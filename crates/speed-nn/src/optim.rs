//! Optimisers as Burn's [`Optimizer`](burn::optim::Optimizer).

mod adam;
mod trained;

pub use adam::{Adam, AdamOps, AdamStep, Epsilon};
pub use trained::{StepError, Trained};
