//! The paper's own argmax circuit, for comparison only: nothing else here uses it.
//!
//! It is neither exact nor secure by today's standards, and its counts arrive in the clear. The protocol uses
//! [`crate::Server`].

mod answer;
mod argmax;

pub use answer::PaperAnswer;
pub use argmax::PaperArgmax;
