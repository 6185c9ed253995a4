//! Optimisers as Burn's [`Optimizer`](burn::optim::Optimizer).

mod adam;
mod averaged;
mod trained;

pub use adam::{Adam, Epsilon};
pub use averaged::Averaged;
pub use trained::{StepError, Trained};
