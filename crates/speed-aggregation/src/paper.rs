//! The paper's own argmax circuit, for comparison only: nothing else here uses it.
//!
//! It is neither exact nor up to today's security, and its counts arrive in the clear. The protocol runs
//! [`crate::Server`].

mod answer;
mod argmax;

pub use answer::PaperAnswer;
pub use argmax::PaperArgmax;
