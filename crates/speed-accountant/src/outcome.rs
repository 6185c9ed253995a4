//! The probability that a query gives another answer than one given outcome.

mod bound;
mod exact;
mod gaps;
mod pairs;
mod probability;
mod proposition4;

pub(crate) use bound::OutcomeBound;
pub(crate) use exact::{ClassNoise, MIN_RATIO, NEGLIGIBLE, reach_of_variance, runs};
pub(crate) use gaps::Gaps;
pub(crate) use pairs::Pairs;
pub use probability::{q, q_exact, q_pairs};
