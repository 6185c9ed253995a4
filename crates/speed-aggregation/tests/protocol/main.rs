//! The protocol from outside.

mod answers;
mod common;
mod exactness;
mod messages;
mod refusals;
mod state;
mod vectors;
